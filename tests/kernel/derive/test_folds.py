"""Sites, every kind of fold, scans: against the gradient by the book, on oracle and host, to the byte (G2, G3, G5, G6)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.derive.derive import recipe
from osprey_py.kernel.derive.folds import adds, keeps
from osprey_py.kernel.derive.recipe import Input
from osprey_py.kernel.derive.subject import look
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, load, select, var
from osprey_py.source.diagnostic import OspreyError
from tests.gradient.literal_compare import judged, program
from tests.kernel.building import op
from tests.kernel.derive.carrying import buffer, run, subtotals

TYPE = "{ x: GpuBuffer<float>, y: GpuBuffer<float> }"


def rows(n: int, count: str, first: str, step: str, after: str = "v") -> str:
    """total over n elements r of `after` of the fold v of `step` (s, k) over count(r) steps."""
    fold = f"gpuFold(gpuIota({count}), {first}, fn(s, k) => {{ {step} }})"
    return f"total(gpuMap(gpuIota({n}), fn(r) => {{ let v = {fold}\n {after} }}))"


PROGRAMS = {
    "sites, the last first": "total(gpuMap(p.x, fn(v) => v * 1.0 + v * 1e17 - v * 1e17))",
    "sites in steps": rows(2, "3", "0.0", "let v = at(p.x, r)\n s + v * at(p.y, 0) + v * 1e17 - v * 1e17"),
    "what was chosen, read twice": "total(gpuMap(p.x, fn(v) => { let u = v > 0.0 ? v : 0.5\n"
    " u * 1.0 + u * 1e17 - v * 1e17 }))",
    "sum": rows(2, "3", "0.0", "s + at(p.x, r * 3 + k) * at(p.y, k)", "exp(v)"),
    "sum of differences": rows(2, "3", "at(p.y, r)", "s - at(p.x, r * 3 + k)", "v * v"),
    "sum of some": rows(2, "3", "0.0", "let a = at(p.x, r * 3 + k)\n a > 0.0 ? s + a * a : s", "v * v"),
    "sum with an element outside": rows(
        2, "3", "0.0", "let o = at(p.x, r * 3 + k) - at(p.y, r)\n s + o * o", "sqrt(v)"
    ),
    "causal": rows(6, "intDiv(r, 3) + 1", "0.0", "s + at(p.x, intDiv(r, 3) * 3 + k) * at(p.y, k * 3 + r % 3)"),
    "causal from none": rows(4, "r - 1", "at(p.y, r)", "s + at(p.x, r) * at(p.y, k)", "v / 3.0"),
    "windows": rows(5, "3", "0.0", "s + at(p.x, r + k - 1) * at(p.y, k)"),
    "max": rows(2, "3", "-inf", "max(s, at(p.x, r * 3 + k) * at(p.y, r))"),
    "max the other way round": rows(2, "3", "at(p.y, r)", "max(at(p.x, r * 3 + k), s)"),
    "min by if": rows(2, "3", "at(p.y, r)", "let a = at(p.x, r * 3 + k)\n a < s ? a : s"),
    "max of some": rows(2, "3", "at(p.y, r)", "let a = at(p.x, r * 3 + k)\n a > 0.0 ? s : max(s, a * a)"),
    "the last": rows(2, "3", "at(p.y, r)", "let a = at(p.x, r * 3 + k)\n a > 0.0 ? a * a : (a < s ? s : a)"),
    "max from none": rows(3, "r", "at(p.y, r)", "max(s, at(p.x, r + k))"),
    "product": rows(2, "3", "at(p.y, r)", "s * at(p.x, r * 3 + k)"),
    "product from none": rows(3, "r", "at(p.y, r)", "s * at(p.x, r + k)"),
    "Horner": rows(3, "4", "0.0", "s * at(p.y, r) + at(p.x, k)"),
    "quotients that may fault": rows(3, "4", "1.0", "(s / at(p.x, k)) ?: (s * at(p.y, k))"),
    "some of everything": rows(
        3,
        "4",
        "at(p.y, r)",
        "k == 2 ? at(p.x, k) * s + s : (k == 1 && at(p.x, 0) > 0.0 ? at(p.x, 5) : tanh(s * at(p.x, r + 1)))",
    ),
    "what restarts": rows(3, "6", "at(p.y, r)", "at(p.x, k) > 0.5 ? at(p.x, k) : ieeeDiv(s * at(p.y, r), at(p.x, k))"),
    "index of the largest": rows(
        2, "3", "0", "at(p.x, r * 3 + k) > at(p.x, r * 3 + s) ? k : s", "at(p.x, r * 3 + v) * at(p.y, v)"
    ),
    "a sum in a sum": rows(
        2, "3", "0.0", "s + tanh(gpuFold(gpuIota(2), 0.0, fn(t, j) => t + at(p.x, k * 2 + j) * at(p.y, j + r)))"
    ),
    "a max in a sum": rows(
        2, "3", "0.0", "s + at(p.y, k) * gpuFold(gpuIota(k + 1), 0.25, fn(t, j) => max(t, at(p.x, k + j) * at(p.y, j)))"
    ),
    "a product in a product": rows(
        2, "3", "0.0", "s * 0.5 + at(p.y, k) * gpuFold(gpuIota(k + 1), s, fn(t, j) => t * at(p.x, k + j) * at(p.y, j))"
    ),
    "a max in a product": rows(2, "3", "1.0", "s * gpuFold(gpuIota(3), s, fn(t, j) => max(t, at(p.x, k + j) * s))"),
    "softmax": rows(
        6,
        "3",
        "-inf",
        "max(s, at(p.x, intDiv(r, 3) * 3 + k))",
        "let sum = gpuFold(gpuIota(3), 0.0, fn(s, k) => s + exp(at(p.x, intDiv(r, 3) * 3 + k) - v))\n"
        "exp(at(p.x, r) - v) / sum * at(p.y, r)",
    ),
    "a filter": "gpuFold(gpuIota(5) |> gpuFilter(fn(k) => at(p.x, k) > 0.0) |> gpuMap(fn(k) => at(p.x, k) * at(p.y, 0)),"
    " 0.5, fn(s, v) => s + v * v)",
    "a scan that adds": "total(gpuZipWith(gpuScan(p.x, 0.0, fn(s, v) => s + v), p.y, fn(a, b) => a * b))",
    "a scan that multiplies": "total(gpuZipWith(gpuScan(p.x, 1.0, fn(s, v) => s * v), p.y, fn(a, b) => a * b))",
    "a scan that chooses": "total(gpuZipWith(gpuScan(p.x, -1.0, fn(s, v) => max(s, v * v) + (v > 0.0 ? tanh(s) : v)),"
    " p.y, fn(a, b) => a * b))",
    "a scan that folds": "total(gpuScan(p.x, 1.0, fn(s, v) => exp(gpuFold(gpuIota(3), s,"
    " fn(a, k) => a * at(p.y, k) + s * v) / 10.0)))",
    "a scan from a parameter": "{ let first = gpuGet(p.y, 2) ?: 0.0\n"
    "total(gpuScan(p.x, first, fn(s, v) => s * v + first)) }",
    "a scan that starts anew": "total(gpuScan(p.x, 1.0, fn(s, v) => v > 0.0 ? v : ieeeDiv(s, v)))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_the_book(name: str) -> None:
    """G3, G5, G6: numbers, then ties, zeros and infinities."""
    draw = random.Random(name)
    plain = [[round(draw.uniform(-2.0, 2.0), 3) for _ in range(6)] for _ in "xy"]
    odd = [[draw.choice(["0.0", "1.0", "1.0", "-1.0", "inf", "1e300"]) for _ in range(6)] for _ in "xy"]
    for x, y in (plain, odd):
        point = f"{{ x: toGpu([{', '.join(map(str, x))}]), y: toGpu([{', '.join(map(str, y))}]) }}"
        judged(program(TYPE, point, PROGRAMS[name]))


# --- several accumulators: no program of today folds so, the IR can ---------------------------------------------


def two(step: Any, result: Any, n: int = 4) -> Kernel:
    """A fold with two accumulators over x[k], y[k], from (1.0, 0.5); both results go into `result`."""
    k, a, b = Bound(INT, "k"), Bound(FLOAT, "a"), Bound(FLOAT, "b")
    x, y = load(0, FLOAT, var(k)), load(1, FLOAT, var(k))
    found = fold(const(n), k, (a, b), (const(1.0), const(0.5)), step(var(a), var(b), x, y))
    return Kernel((FLOAT, FLOAT), (), result(*found))


def chain(a: Node, b: Node, x: Node, y: Node) -> tuple[Node, Node]:
    """b follows a: two scans, one after the other."""
    return op("fmul", a, x), op("fadd", op("fmul", b, y), a)


def circle(a: Node, b: Node, x: Node, y: Node) -> tuple[Node, Node]:
    """Each follows the other."""
    return op("fmul", b, x), op("fadd", op("fmul", a, y), b)


@pytest.mark.parametrize("second", [False, True])
def test_two_accumulators(second: bool) -> None:
    """G6, for an accumulator that another one is made of; by hand, backwards over the accumulators that were."""
    kernel = two(chain, lambda p, q: op("fmul", p, q) if not second else q)
    x, y = [0.7, -1.3, 2.1, 0.9], [1.1, 0.3, -0.6, 1.7]
    states = [(1.0, 0.5)]
    for u, v in zip(x, y, strict=True):
        a, b = states[-1]
        states.append((a * u, b * v + a))
    a, b = states[-1]
    da, db = (0.0, 1.0) if second else (1.0 * b, 1.0 * a)
    gx, gy = [0.0] * 4, [0.0] * 4
    for k in reversed(range(4)):
        (a, b), u, v = states[k], x[k], y[k]
        # The second accumulator's step is evaluated last: its sites come first.
        gy[k], gx[k] = db * b, da * a
        da, db = db + da * u, db * v
    inputs = (buffer(x), buffer(y))
    result = run(OracleBackend(), "map", kernel, inputs, (), 1)
    found = subtotals("map", kernel, (0, 1), inputs, (), 1, result, buffer([1.0]))
    assert {slot: [v.hex() for v in values] for slot, values in found} == {
        0: [(0.0 + v).hex() for v in gx],
        1: [(0.0 + v).hex() for v in gy],
    }


def test_accumulators_that_make_each_other_are_refused() -> None:
    """G10: by name, not silently."""
    with pytest.raises(OspreyError, match="accumulators that make each other"):
        recipe("map", two(circle, lambda p, q: p), (0, 1), (4, 4), (), 1)


def test_kinds() -> None:
    """Which folds are told apart by their steps."""

    def kind(step: Any) -> str:
        k, a = Bound(INT, "k"), Bound(FLOAT, "a")
        (found,) = fold(const(3), k, (a,), (const(0.0),), (step(var(a), load(0, FLOAT, var(k))),))
        subject = look(Kernel((FLOAT,), (), found), (0,))
        (f,) = subject.folds
        return "adds" if adds(subject, f) else "keeps" if keeps(subject, f, 0) else "other"

    assert kind(lambda a, x: op("fadd", a, op("exp", x))) == "adds"
    assert kind(lambda a, x: op("fsub", op("fadd", x, a), x)) == "adds"
    assert kind(lambda a, x: op("fsub", x, a)) == "other"
    assert kind(lambda a, x: op("fadd", op("fadd", a, x), a)) == "other"
    assert kind(lambda a, x: op("fadd", a, op("fmul", a, x))) == "other"
    assert kind(lambda a, x: op("fmax", a, x)) == "keeps"
    assert kind(lambda a, x: op("fmax", a, op("fadd", a, x))) == "other"
    assert kind(lambda a, x: x) == "keeps"


def test_the_value_of_a_kernel_is_read_where_it_is() -> None:
    """tanh needs its result: the launch reads it instead of computing it again."""
    kernel = Kernel((FLOAT,), (), op("tanh", load(0, FLOAT, index())))
    inputs = (buffer([0.25, 3.0]),)
    result = buffer([0.5, 0.0])  # not tanh: to be seen
    ((_, found),) = subtotals("map", kernel, (0,), inputs, (), 2, result, buffer([1.0, 1.0]))
    assert np.array_equal(found, [0.75, 1.0])
    # So does exp where it is what an `if` chooses: nothing of x is needed.
    x = load(0, FLOAT, index())
    chosen = Kernel((FLOAT,), (), select(op("lt", op("tofloat", index()), const(0.5)), op("exp", x), const(7.0)))
    ((_, found),) = subtotals("map", chosen, (0,), inputs, (), 2, result, buffer([1.0, 1.0]))
    assert np.array_equal(found, [0.5, 0.0])
    assert all(Input(0) not in m.inputs for m in recipe("map", chosen, (0,), (2,), (), 2).makes)
    # Not where something else reads it too.
    again = Kernel((FLOAT,), (), op("fmul", exp := op("exp", x), exp))
    assert any(Input(0) in m.inputs for m in recipe("map", again, (0,), (2,), (), 2).makes)
