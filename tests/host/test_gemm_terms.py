"""Sums of which a condition adds only some terms, through the whole host backend, against the oracle, byte for byte
(spec/contractions, C3, C7)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Scalar, Step, Storage
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Kernel, Node, const, index, load, select, uniform
from tests.host.test_gemm_launch import HOSTS, recognised, run, same, store
from tests.kernel.products import add, div, f, get, kernel, mod, mul, total, u
from tests.kernel.some_terms import COLUMNS, DEPTH, RANGES, ROWS, WAYS, times

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324])
"""What a term that is left out must not touch."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RANGES)
def test_sums_from_one_term_to_another(name: str, way: str) -> None:
    """C3, C7: what is left out lies beside NaN and infinities, and is not added."""
    rng = np.random.default_rng(4)
    inputs = [store(rng, ROWS * DEPTH), store(rng, DEPTH * COLUMNS)]
    for s in inputs:
        here = rng.random(s.length) < 0.1
        s.data[here] = rng.choice(SPECIAL, int(here.sum()))
    condition = RANGES[name][0]
    k = kernel(total(u(1), lambda acc, k: WAYS[way](condition(k), acc, times(k))))
    same(k, inputs, (ROWS, DEPTH, COLUMNS), ROWS * COLUMNS)


@pytest.mark.parametrize("seed", [None, -0.0, 0.5])
def test_one_kernel_at_other_lengths(seed: float | None) -> None:
    """C3, C7: what was proven at other lengths is checked for each: how often a row's beginning moves by whole terms,
    whether it moves at all, whether the ends of the fold cut."""
    row = div(index(), u(2))

    def step(acc: Node, k: Node) -> Node:
        x = f("fmul", get(0, add(mul(row, u(1)), k)), get(1, add(mul(k, u(2)), mod(index(), u(2)))))
        starts = Node("le", BOOL, (add(mul(row, u(3)), u(4)), mul(k, u(5))))
        ends = Node("lt", BOOL, (k, add(row, u(6))))
        here = select(starts, ends, const(False))
        return f("fadd", acc, select(here, x, const(0.0))) if seed is None else select(here, f("fadd", acc, x), acc)

    begin = const(0.0) if seed is None else uniform(7, FLOAT)
    k = Kernel((FLOAT,) * 2, ((INT,) * 7 + (() if seed is None else (FLOAT,))), total(u(1), step, begin))
    rng = np.random.default_rng(5)
    host, oracle = HOSTS[2], OracleBackend()
    compiled = host.compile("map", k, (Kind.F64,) * 2, Step("map", k, (), (), 1, store(rng, 1), None))
    caught = []
    for turn in range(60):
        m, inner, n = (int(x) for x in rng.integers(1, 14, 3))
        inputs = (store(rng, m * inner), store(rng, inner * n))
        for s in inputs:
            s.data[rng.random(s.length) < 0.1] = np.inf
        by = int(rng.integers(1, 3))
        numbers = (int(rng.integers(0, 3)) * (by if turn % 3 else 1), int(rng.integers(-9, 9)), by, turn % 15)
        uniforms: tuple[Scalar, ...] = (m, inner, n, *numbers, *(() if seed is None else (seed,)))
        step_ = Step("map", k, inputs, uniforms, m * n, Storage(Kind.F64, np.zeros(m * n)), compiled)
        assert host.run([step_]).fault is None
        assert step_.output.data.tobytes() == run(oracle, k, list(inputs), uniforms, m * n)[1]
        caught.append(recognised(step_))
    assert 50 > sum(caught) > 25


@st.composite
def conditions(draw: st.DrawFn, row: Node, column: Node, k: Node, depth: int = 0) -> Node:
    """Comparisons of sums of the fold's index and the output's digits, and what is made of them."""
    if depth < 2 and draw(st.integers(0, 2)) == 0:
        parts = [draw(conditions(row, column, k, depth + 1)) for _ in range(2)]
        way = draw(st.sampled_from(["band", "bor", "bnot", "select"]))
        if way == "bnot":
            return Node("bnot", BOOL, (parts[0],))
        return select(parts[0], parts[1], const(False)) if way == "select" else Node(way, BOOL, tuple(parts))
    sides = []
    for _ in range(2):
        side: Node = const(draw(st.integers(-9, 12)))
        for digit, most in ((k, 2), (row, 2), (column, 1)):
            by = draw(st.sampled_from([0, 0, 1, 1, -1, most]))
            if by:
                side = add(side, mul(digit, const(by)))
        sides.append(side)
    return Node(draw(st.sampled_from(["lt", "le", "lt", "le", "eq"])), BOOL, tuple(sides))


def test_sums_of_some_terms() -> None:
    """C3, C7, N14: random conditions on a sum's terms, among NaN and infinities, in any storage kind: whatever becomes a
    contraction has the oracle's bytes, and much does."""
    caught, looked = [0], [0]

    @settings(max_examples=60, deadline=None)
    @given(
        st.data(),
        st.tuples(st.integers(1, 15), st.integers(1, 14), st.integers(1, 20)),
        st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
        st.tuples(st.sampled_from([Kind.F64, Kind.F32]), st.booleans(), st.booleans()),
        st.integers(0, 2**32),
    )
    def check(
        data: st.DataObject,
        shape: tuple[int, int, int],
        seed: float,
        layout: tuple[Kind, bool, bool],
        source: int,
    ) -> None:
        m, inner, n = shape
        kind, turned, epilogue = layout
        i = index()
        row, column = div(i, u(2)), mod(i, u(2))

        def step(acc: Node, k: Node) -> Node:
            right = get(1, add(mul(column, u(1)), k) if turned else add(mul(k, u(2)), column))
            x = f("fmul", get(0, add(mul(row, u(1)), k)), right)
            condition = data.draw(conditions(row, column, k))
            way = data.draw(st.integers(0, 4))
            if way == 0:
                return select(condition, f("fadd", acc, x), acc)
            if way == 1:
                return select(condition, acc, f("fadd", x, acc))
            zero = const(0.0 if way < 4 else -0.0)
            return f("fadd", acc, select(condition, zero, x) if way == 3 else select(condition, x, zero))

        result = total(u(1), step, const(seed))
        k = kernel(f("fadd", result, load(2, FLOAT, i)) if epilogue else result, 3)
        rng = np.random.default_rng(source)
        inputs = [store(rng, m * inner), store(rng, inner * n, kind), store(rng, m * n)]
        for s in inputs:
            here = rng.random(s.length) < 0.15
            s.data[here] = rng.choice(SPECIAL, int(here.sum()))
        _, wanted, _ = run(OracleBackend(), k, inputs, (m, inner, n), m * n)
        for host in HOSTS.values():
            _, got, launch = run(host, k, inputs, (m, inner, n), m * n)
            assert got == wanted
        caught[0] += recognised(launch)
        looked[0] += 1

    check()
    assert looked[0] > caught[0] > 0
