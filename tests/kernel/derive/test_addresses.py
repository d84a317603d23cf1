"""Which executions a target meets, in which order: recipes against an enumeration in plain Python (G3)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.derive.derive import recipe, structural
from osprey_py.kernel.derive.recipe import Dense, Scattered
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, inrange, load, select, uniform, var
from tests.kernel.building import op
from tests.kernel.derive.carrying import buffer, run, subtotals


@dataclass(frozen=True)
class Place:
    """An address: constant + sum of multiple * digit; a digit is (i // unit) % extent of the launch (source 0) or of a
    fold's index (1, 2)."""

    constant: int
    terms: tuple[tuple[int, int, int, int], ...]

    def node(self, sources: list[Node]) -> Node:
        at: Node = const(self.constant)
        for source, unit, extent, multiple in self.terms:
            digit = op("urem", op("uquot", sources[source], const(unit)), const(extent))
            at = op("wadd", at, op("wmul", digit, const(multiple)))
        return at

    def value(self, sources: tuple[int, ...]) -> int:
        return self.constant + sum(m * (sources[s] // u % e) for s, u, e, m in self.terms)


@dataclass(frozen=True)
class Case:
    """out[i] = sum over k < count(i), l < inner of x[place] * w[i, k, l]; count(i) = base + slope * (i % period)."""

    n: int
    base: int
    slope: int
    period: int
    inner: int
    place: Place
    length: int

    def count(self, i: int) -> int:
        return self.base + self.slope * (i % self.period)

    @property
    def most(self) -> int:
        return max(1, *(self.count(i) for i in range(self.n)))

    def kernel(self) -> Kernel:
        i, k, m = index(), Bound(INT, "k"), Bound(INT, "l")
        outer, acc = Bound(FLOAT, "outer"), Bound(FLOAT, "inner")
        at = self.place.node([i, var(k), var(m)])
        weight = op("wadd", op("wmul", op("wadd", op("wmul", i, const(self.most)), var(k)), const(self.inner)), var(m))
        read = select(inrange(0, at), load(0, FLOAT, at), const(0.0))
        step = op("fadd", var(acc), op("fmul", read, load(1, FLOAT, weight)))
        (within,) = fold(uniform(0, INT), m, (acc,), (var(outer),), (step,))
        count = op("wadd", const(self.base), op("wmul", op("urem", i, const(self.period)), const(self.slope)))
        (result,) = fold(count, k, (outer,), (const(0.0),), (within,))
        return Kernel((FLOAT, FLOAT), (INT,), result)

    def contributions(self, adjoint: list[float], weights: list[float]) -> list[float]:
        sums = [0.0] * self.length
        for i in range(self.n):
            for k in range(self.count(i)):
                for m in range(self.inner):
                    at = self.place.value((i, k, m))
                    if 0 <= at < self.length:
                        sums[at] += adjoint[i] * weights[(i * self.most + k) * self.inner + m]
        return sums


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Digits of the three indices, some of them with a multiple; mixed radixes more often than not."""
    units = [draw(st.integers(1, 3)) for _ in range(2)]
    top = draw(st.integers(1, 3))
    n = units[0] * units[1] * top
    base, inner = draw(st.integers(-1, 3)), draw(st.integers(1, 3))
    slope = draw(st.sampled_from([0, 0, 1, -1, 2]))
    period = draw(st.sampled_from([n, units[0] * units[1]]))
    most = max(1, base, base + slope * (period - 1))
    digits = [(0, 1, units[0]), (0, units[0], units[1]), (0, units[0] * units[1], top), (1, 1, most), (2, 1, inner)]
    chosen = draw(st.permutations([d for d in digits if draw(st.booleans())]))
    terms, multiple = [], 1
    for source, unit, extent in chosen:
        multiple += draw(st.sampled_from([0, 0, 0, 1]))
        terms.append((source, unit, extent, multiple * draw(st.sampled_from([1, 1, 1, -1]))))
        multiple *= extent if draw(st.integers(0, 9)) else 1
    lowest = sum(m * (e - 1) for _, _, e, m in terms if m < 0)
    constant = -lowest + draw(st.sampled_from([0, 0, 0, 2, -1]))
    highest = constant + sum(m * (e - 1) for _, _, e, m in terms if m > 0)
    length = max(1, highest + 1 + draw(st.sampled_from([0, 0, 0, 2, -1])))
    return Case(n, base, slope, period, inner, Place(constant, tuple(terms)), length)


@settings(max_examples=150, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_every_element_adds_what_met_it_in_order(case: Case, random: object) -> None:
    """G3: contributions of very different sizes, so that another order is another sum."""
    shuffle = random.choice  # type: ignore[attr-defined]
    sizes = [1.0, 1e17, -1e17, 0.7, 3e-9]
    adjoint = [shuffle(sizes) for _ in range(case.n)]
    weights = [shuffle(sizes) for _ in range(case.n * case.most * case.inner)]
    kernel = case.kernel()
    inputs = (buffer([0.5] * case.length), buffer(weights))
    result = run(OracleBackend(), "map", kernel, inputs, (case.inner,), case.n)
    ((_, found),) = subtotals("map", kernel, (0,), inputs, (case.inner,), case.n, result, buffer(adjoint))
    assert [x.hex() for x in found] == [x.hex() for x in case.contributions(adjoint, weights)]


def plain(terms: tuple[tuple[int, int, int, int], ...], constant: int = 0, length: int = 24) -> Case:
    return Case(6, 4, 0, 6, 1, Place(constant, terms), length)


@pytest.mark.parametrize(
    ("case", "dense"),
    [
        (plain(((0, 1, 6, 4), (1, 1, 4, 1))), True),  # rows
        (plain(((0, 1, 6, 1), (1, 1, 4, 6))), True),  # columns
        (plain(((1, 1, 4, 1),), length=4), True),  # the launch index is free
        (plain((), constant=3), True),  # everything is free
        (plain(((0, 1, 6, -4), (1, 1, 4, 1)), constant=20), True),  # backwards
        (plain(((0, 1, 6, 8), (1, 1, 4, 2)), length=48), True),  # with holes
        (plain(((0, 1, 6, 1), (1, 1, 4, 1)), length=9), False),  # overlapping windows
    ],
)
def test_what_can_be_turned_around(case: Case, dense: bool) -> None:
    """A mixed radix is summed by target; all else is scattered."""
    found = recipe("map", case.kernel(), (0,), (case.length, 24), (1,), case.n)
    assert [type(s) for _, s in found.subtotals] == [Dense if dense else Scattered]


def test_structural() -> None:
    """Ints that addresses and counts depend on are; ints that are computed with, and floats, are not."""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    at = op("wadd", var(k), uniform(1, INT))
    value = op("fmul", load(0, FLOAT, at), op("fmul", uniform(3, FLOAT), op("tofloat", uniform(2, INT))))
    (total,) = fold(uniform(0, INT), k, (acc,), (const(0.0),), (op("fadd", var(acc), value),))
    kernel = Kernel((FLOAT,), (INT, INT, INT, FLOAT), total)
    assert structural(kernel) == {0, 1}
    assert recipe("map", kernel, (0,), (9,), (4, 5, 6, 7.0), 1) is recipe(
        "map", kernel, (0,), (9,), (4, 5, None, None), 1
    )
