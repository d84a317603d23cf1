"""Runs of several steps, and the steps that are no maps: order, reports, counts (backends/protocol.py; S2.4, S2.9, S3.1,
S5.1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import KIND_OF, Backend, Kind, Report, Scalar, Step, StepOp, Storage
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    MAX_DEPTH,
    Bound,
    Kernel,
    KFunction,
    Node,
    call,
    const,
    index,
    load,
    loop,
    select,
    uniform,
    var,
)
from tests.host.arrays import op

THREADS = (1, 2, 7)
X = load(0, FLOAT, index())
INVERSE = Kernel((FLOAT,), (), op("fdiv", FLOAT, const(1.0), X))
DOUBLE = Kernel((FLOAT,), (), op("fadd", FLOAT, X, X))
POSITIVE = Kernel((FLOAT,), (), op("lt", BOOL, const(0.0), X))
ACC = Bound(FLOAT, "acc")
RUNNING = Kernel((FLOAT,), (FLOAT,), op("fadd", FLOAT, var(ACC), X), (), ACC, uniform(0, FLOAT))


def floats(*values: float) -> Storage:
    return Storage(Kind.F64, np.array(values, np.float64))


def step(
    b: Backend,
    op_: StepOp,
    kernel: Kernel | None,
    inputs: tuple[Storage, ...],
    n: int,
    uniforms: tuple[Scalar, ...] = (),
) -> Step:
    kind = Kind.F64 if kernel is None else inputs[0].kind if op_ == "filter" else KIND_OF[kernel.type]
    output = b.allocate(kind, n)
    plain = Step(op_, kernel, inputs, uniforms, n, output, None)
    return Step(op_, kernel, inputs, uniforms, n, output, b.compile(op_, kernel, tuple(s.kind for s in inputs), plain))


@pytest.mark.parametrize("threads", THREADS)
def test_steps_see_what_those_before_them_wrote(threads: int) -> None:
    b = HostBackend(threads)
    first = step(b, "map", DOUBLE, (floats(*range(1000)),), 1000)
    second = step(b, "map", DOUBLE, (first.output,), 1000)
    third = step(b, "scan", RUNNING, (second.output,), 1000, (0.5,))
    assert b.run([first, second, third]) == Report(None, {})
    total = 0.5
    for i in range(1000):
        total += 4.0 * i
        assert third.output.data[i] == total


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_step_that_faults_is_reported(threads: int) -> None:
    b = HostBackend(threads)
    sound, bad = floats(*[1.0] * 100), floats(*[1.0] * 99, -0.0)
    steps = [step(b, "map", INVERSE, (s,), 100) for s in (sound, bad, sound, bad)]
    assert b.run(steps).fault == 1
    assert b.run(steps[2:]).fault == 1
    assert b.run(steps[2:3]).fault is None
    assert b.run(steps).fault == 1


def test_no_steps_and_empty_steps() -> None:
    b = HostBackend(1)
    assert b.run([]) == Report(None, {})
    empty = [step(b, "map", INVERSE, (floats(),), 0), step(b, "filter", POSITIVE, (floats(),), 0)]
    assert b.run(empty) == Report(None, {1: 0})


@pytest.mark.parametrize("values", [(), (1.0,), (-1.0, 2.0, float("nan"), 3.0, -0.0, 5e-324), (-1.0,) * 9, (2.0,) * 9])
def test_a_filter_keeps_order_and_counts(values: tuple[float, ...]) -> None:
    b = HostBackend(1)
    s = step(b, "filter", POSITIVE, (floats(*values),), len(values))
    report = b.run([s])
    kept = [v for v in values if v > 0.0]
    assert report == Report(None, {0: len(kept)})
    assert list(s.output.data[: len(kept)]) == kept


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", [Kind.F64, Kind.F32])
@pytest.mark.parametrize(("n", "m"), [(1, 0), (1, 50), (37, 1), (37, 5000)])
def test_accumulate_adds_in_source_order(threads: int, kind: Kind, n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    at = Storage(Kind.I64, rng.integers(0, n, m))
    values = rng.standard_normal(m) * 10.0 ** rng.integers(-20, 20, m)
    source = Storage(kind, values.astype(kind.dtype))
    outputs = []
    for b in (HostBackend(threads), OracleBackend()):
        s = step(b, "accumulate", None, (at, source), n)
        assert b.run([s]) == Report(None, {})
        outputs.append(s.output.data.tobytes())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("kind", [Kind.F64, Kind.F32])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 0), (1, 50), (37, 1), (37, 5000), (5000, 37)])
def test_accumulate_onto_a_base_adds_each_sum_once(kind: Kind, in_place: bool, n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    at = Storage(Kind.I64, rng.integers(-1, n, m))
    source = Storage(kind, (rng.standard_normal(m) * 10.0 ** rng.integers(-20, 20, m)).astype(kind.dtype))
    base = rng.standard_normal(n)
    outputs = []
    for b in (HostBackend(2), OracleBackend()):
        s = step(b, "accumulate", None, (at, source, Storage(Kind.F64, base.copy())), n)
        if in_place:
            s = replace(s, output=s.inputs[2])
        for _ in range(2):  # what the first leaves behind is nothing to the second
            assert b.run([s]) == Report(None, {})
        outputs.append(s.output.data.tobytes())
    assert outputs[0] == outputs[1]


def test_accumulate_onto_a_base_by_hand() -> None:
    """(1e17 - 1e17) + 1.0, then once to the base; beside it nothing changes."""
    at, values = Storage(Kind.I64, np.array([1, 1, -1, 1])), floats(1e17, -1e17, 5.0, 1.0)
    s = step(HostBackend(1), "accumulate", None, (at, values, floats(0.5, 0.25, 5e-324)), 3)
    HostBackend(1).run([s])
    assert list(s.output.data) == [0.5, 1.25, 5e-324]


# --- general kernels ------------------------------------------------------------------------------------------


def descent(limit: Node) -> Kernel:
    """f(n) = if n <= 0 { 0 } else { 3 + f(n - 1) }, called with limit."""
    p = Bound(INT, "p")
    (below,) = call(0, (op("sub", INT, var(p), const(1)),), (INT,), _site())
    body = select(op("le", BOOL, var(p), const(0)), const(0), op("add", INT, const(3), below))
    (top,) = call(0, (limit,), (INT,), _site())
    return Kernel((), (INT,), top, (KFunction("f", (p,), (body,)),))


def _site() -> object:
    return op("add", INT, const(0), const(0)).site


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_recursion_goes_as_deep_as_the_oracle_s(extra: int) -> None:
    """MAX_DEPTH frames and no more; the limit counts frames, not bytes of a stack."""
    outcomes = []
    for b in (HostBackend(2), OracleBackend()):
        s = step(b, "map", descent(uniform(0, INT)), (), 1, (MAX_DEPTH - 1 + extra,))
        report = b.run([s])
        outcomes.append((report, None if report.fault is not None else s.output.data.tobytes()))
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0][0].fault is not None) == (extra > 0)


def test_too_deep_recursion_is_recovered_by_nothing() -> None:
    recovered = Node("recover", INT, (descent(uniform(0, INT)).result, const(7)))
    kernel = descent(uniform(0, INT))
    kernel = Kernel((), (INT,), recovered, kernel.functions)
    b = HostBackend(1)
    assert b.run([step(b, "map", kernel, (), 1, (MAX_DEPTH * 2,))]).fault == 0
    assert b.run([step(b, "map", kernel, (), 1, (5,))]).fault is None


def test_recursion_that_two_branches_want_stays_linear() -> None:
    """The call is wanted by both sums; computed twice a frame it would never end."""
    p = Bound(INT, "p")
    (below,) = call(0, (op("sub", INT, var(p), const(1)),), (INT,), _site())
    stop = op("le", BOOL, var(p), const(0))
    even = op("eq", BOOL, Node("and", INT, (var(p), const(1))), const(0))
    both = op("add", INT, select(stop, const(0), below), select(op("lt", BOOL, const(0), var(p)), below, const(0)))
    body = select(even, op("rem", INT, both, const(1009)), op("rem", INT, op("add", INT, both, const(1)), const(1013)))
    (top,) = call(0, (uniform(0, INT),), (INT,), _site())
    kernel = Kernel((), (INT,), top, (KFunction("f", (p,), (body,)),))
    results = []
    for b in (HostBackend(1), OracleBackend()):
        s = step(b, "map", kernel, (), 1, (200,))
        assert b.run([s]).fault is None
        results.append(int(s.output.data[0]))
    assert results[0] == results[1]


def test_a_loop_does_not_run_on_what_a_faulted_step_left() -> None:
    """x = 1 / 0 first; then a loop that ends only for finite x. The loop is not entered."""
    b = HostBackend(2)
    first = step(b, "map", INVERSE, (floats(-0.0),), 1)
    x = Bound(FLOAT, "x")
    still = op("ne", BOOL, var(x), const(0.0))
    (end,) = loop((x,), (X,), still, (op("fmul", FLOAT, var(x), const(0.5)),))
    second = step(b, "map", Kernel((FLOAT,), (), end), (first.output,), 1)
    assert b.run([first, second]).fault == 0
    sound = step(b, "map", INVERSE, (floats(4.0),), 1)
    third = step(b, "map", Kernel((FLOAT,), (), end), (sound.output,), 1)
    assert b.run([sound, third]) == Report(None, {})
    assert third.output.data[0] == 0.0
