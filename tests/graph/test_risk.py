"""Launches that are proven not to fault at their sizes: none of them does, and they wait for a reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Storage
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.risk import may_fault, may_fault_here
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import (
    FLOAT,
    INT,
    OPS,
    Bound,
    Kernel,
    const,
    fold,
    index,
    inrange,
    length,
    load,
    select,
    uniform,
    var,
    walk,
)
from tests.fuzz.kernels import FAULT, Launch, launches, outcome
from tests.graph.support import Counting, op, span

PROVEN: set[str] = set()
"""Names of operations in kernels that may fault and were proven not to."""


def made(rt: Runtime, launch: Launch, counting: tuple[bool, ...]) -> tuple[Launch, Buffer]:
    """The launch on a runtime; slots of ints are 0, 1, 2 … where `counting`."""
    storages: list[Storage] = []
    buffers: list[Buffer] = []
    for x, counts in zip(launch.inputs, counting, strict=False):
        if counts and x.kind is Kind.I64:
            x = Storage(Kind.I64, np.arange(x.length, dtype=np.int64))
            buffers.append(rt.iota(x.length))
        else:
            buffers.append(rt.data(x))
        storages.append(x)
    run: Any = {"map": rt.map, "scan": rt.scan}[launch.op]
    buffer = run(launch.kernel, tuple(buffers), launch.uniforms, launch.n, span(1))
    return replace(launch, inputs=tuple(storages)), buffer


@settings(max_examples=400, deadline=None)
@given(launches(ops=("map", "map", "scan"), depth=3), st.tuples(*[st.booleans()] * 8))
def test_what_is_proven_does_not_fault(launch: Launch, counting: tuple[bool, ...]) -> None:
    rt = Runtime(OracleBackend())
    launch, buffer = made(rt, launch, counting)
    node = buffer.node
    if may_fault(launch.kernel) and not may_fault_here(node):
        PROVEN.update(n.op for n in walk(launch.kernel.roots) if OPS[n.op].checked)
        assert outcome(OracleBackend(), launch) != FAULT


def test_something_was_proven() -> None:
    """The test above has something to see."""
    assert len(PROVEN & {"add", "sub", "mul", "quot", "rem"}) >= 3, PROVEN


def matrix() -> Kernel:
    """Element i / u0 * u1 + i % u0 of slot 1, where slot 0 holds i: as the standard library's `matrix` makes it."""
    i = load(0, INT, index())
    row = op("quot", i, uniform(0, INT), line=2)
    at = op("add", op("mul", row, uniform(1, INT), line=3), op("rem", i, uniform(0, INT), line=4), line=5)
    return Kernel((INT, FLOAT), (INT, INT), select(inrange(1, at), load(1, FLOAT, at), const(0.0)), name="matrix")


@pytest.fixture
def rt() -> Runtime:
    return Runtime(Counting())


def ran(rt: Runtime) -> list[str]:
    assert isinstance(rt.backend, Counting)
    return rt.backend.ran


def test_index_arithmetic_that_stays_within_bounds_waits_for_its_reader(rt: Runtime) -> None:
    x = rt.from_list([float(k) for k in range(12)], FLOAT)
    kernel = matrix()
    assert may_fault(kernel)
    mark = rt.mark()
    y = rt.map(kernel, (rt.iota(6), x), (3, 4), 6)
    rt.settle(mark)
    rt.barrier()
    assert ran(rt) == [] and not y.node.listed
    assert rt.read(y) == [0.0, 1.0, 2.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("uniforms", "n", "message", "element"),
    [
        ((0, 4), 6, "division by zero", 0),
        ((1, 2**62), 6, "integer overflow", 2),
        ((3, 2**63 - 1), 7, "integer overflow", 4),
    ],
)
def test_index_arithmetic_that_leaves_them_runs(
    rt: Runtime, uniforms: tuple[int, int], n: int, message: str, element: int
) -> None:
    """The last: 2**63 - 1 plus 1, before twice 2**63 - 1 at element 6."""
    rt.map(matrix(), (rt.iota(n), rt.from_list([1.0], FLOAT)), uniforms, n, span(9))
    with pytest.raises(MathFault) as caught:
        rt.barrier()
    assert (caught.value.message, caught.value.element) == (message, element)


def test_ints_that_are_data_are_not_taken_for_an_iota(rt: Runtime) -> None:
    """The same kernel, the same lengths, the same uniforms."""
    x = rt.from_list([1.0], FLOAT)
    kernel = matrix()
    fine = rt.map(kernel, (rt.iota(3), x), (1, 2**61), 3)
    rt.barrier()
    assert ran(rt) == []
    rt.map(kernel, (rt.from_list([0, 1, 4], INT), x), (1, 2**61), 3)
    with pytest.raises(MathFault) as caught:
        rt.barrier()
    assert (caught.value.message, caught.value.element) == ("integer overflow", 2)
    assert rt.read(fine) == [1.0, 0.0, 0.0]


def test_other_lengths_are_other_questions(rt: Runtime) -> None:
    """A column's sum: how far a fold goes is a length."""
    k, acc = Bound(INT), Bound(FLOAT)
    at = op("add", op("mul", var(k), uniform(0, INT), line=3), index(), line=4)
    value = select(inrange(0, at), load(0, FLOAT, at), const(0.0))
    (total,) = fold(length(1), k, (acc,), (const(0.0),), (op("fadd", var(acc), value),))
    kernel = Kernel((FLOAT, INT), (INT,), total, name="columns")
    x = rt.from_list([1.0, 2.0, 3.0, 4.0], FLOAT)
    for n in (1, 2, 3, 2, 5, 4):
        rt.map(kernel, (x, rt.iota(n)), (2**62,), 2)
        before = len(ran(rt))
        if n <= 2:
            rt.barrier()
            assert len(ran(rt)) == before
        else:
            with pytest.raises(MathFault) as caught:
                rt.barrier()
            assert caught.value.message == "integer overflow"
            rt.forget(0)


def test_what_the_data_decides_still_runs(rt: Runtime) -> None:
    """A quotient of floats, behind index arithmetic that is sound."""
    i = load(0, INT, index())
    at = op("rem", i, uniform(0, INT), line=2)
    divided = Kernel((INT, FLOAT), (INT,), op("fdiv", const(1.0), load(1, FLOAT, at), line=3), name="divided")
    rt.map(divided, (rt.iota(4), rt.from_list([1.0, 0.0], FLOAT)), (2,), 4)
    with pytest.raises(MathFault) as caught:
        rt.barrier()
    assert (caught.value.message, caught.value.element) == ("division by zero", 1)
