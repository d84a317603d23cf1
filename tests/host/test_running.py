"""Runs whose first steps are under way while later ones are being made (backends/protocol.py, `Running`)."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host import running as running_module
from osprey_py.backends.host.compiled import Compiled
from osprey_py.backends.host.pool import Plan, Pool
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Backend, Kind, Report, Step, Storage
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Kernel, const, fold, index, load, loop, uniform, var
from tests.host.arrays import op
from tests.host.test_steps import DOUBLE, INVERSE, POSITIVE, RUNNING, X, floats, step

N = 4000
"""Elements: enough that a step is shared out."""


def product() -> Kernel:
    """[40, 100] x [100, 100], one row after the other: a matrix step."""
    acc, k = Bound(FLOAT, "acc"), Bound(INT, "k")
    row, column = op("quot", INT, index(), const(100)), op("rem", INT, index(), const(100))
    left = load(0, FLOAT, op("add", INT, op("mul", INT, row, const(100)), var(k)))
    right = load(1, FLOAT, op("add", INT, op("mul", INT, var(k), const(100)), column))
    (total,) = fold(
        const(100), k, (acc,), (const(0.5),), (op("fadd", FLOAT, var(acc), op("fmul", FLOAT, left, right)),)
    )
    return Kernel((FLOAT, FLOAT), (), op("fmul", FLOAT, total, const(0.125)))


def halving() -> Kernel:
    """Runs apart: who knows when it ends."""
    x = Bound(FLOAT, "x")
    again = op("lt", BOOL, const(1.0), var(x))
    (end,) = loop((x,), (X,), again, (op("fmul", FLOAT, var(x), const(0.5)),))
    return Kernel((FLOAT,), (), end)


def drawn(b: Backend, seed: int, count: int) -> list[Step]:
    """A chain of steps, each of which reads what the one before it wrote."""
    rng = random.Random(seed)
    at = Storage(Kind.I64, np.arange(N)[::-1].copy())
    weights = floats(*np.random.default_rng(seed).uniform(-0.2, 0.2, 10_000))
    value = floats(*np.random.default_rng(seed + 1).uniform(-3.0, 3.0, N))
    steps = []
    for _ in range(count):
        way = rng.choice(("double", "double", "product", "product", "scan", "accumulate", "halving"))
        if way == "double":
            made = step(b, "map", DOUBLE, (value,), N)
        elif way == "product":
            made = step(b, "map", product(), (value, weights), N)
        elif way == "scan":
            made = step(b, "scan", RUNNING, (value,), N, (0.25,))
        elif way == "accumulate":
            made = step(b, "accumulate", None, (at, value), N)
        else:
            made = step(b, "map", halving(), (value,), N)
        steps.append(made)
        value = made.output
    return [*steps, step(b, "filter", POSITIVE, (value,), N)]


def by_one(b: HostBackend, steps: list[Step], count: int | None = None) -> Report:
    running = b.begin(len(steps) if count is None else count)
    for s in steps:
        running.add(s)
    return running.end()


def wanted(seed: int, count: int) -> tuple[bytes, Report]:
    oracle = OracleBackend()
    steps = drawn(oracle, seed, count)
    report = oracle.run(steps)
    return steps[-1].output.data[: report.counts[len(steps) - 1]].tobytes(), report


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("run", [by_one, lambda b, steps: b.run(steps), lambda b, steps: by_one(b, steps, 200)])
def test_steps_that_come_one_by_one(threads: int, run: Callable[[HostBackend, list[Step]], Report]) -> None:
    """C6. Few steps, and many; twice, for a run leaves the next what it needs."""
    b = HostBackend(threads)
    for seed, count in ((1, 5), (2, 30), (3, 30)):
        expected = wanted(seed, count)
        for _ in range(2):
            steps = drawn(b, seed, count)
            report = run(b, steps)
            assert (steps[-1].output.data[: report.counts[count]].tobytes(), report) == expected


def test_a_plan_that_has_no_room_left_runs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[int] = []
    finish = Pool.finish

    def counted(pool: Pool, plan: Plan, scratch: int) -> None:
        finished.append(plan.steps)
        finish(pool, plan, scratch)

    monkeypatch.setattr(running_module, "ROOM", 0)
    monkeypatch.setattr(Pool, "finish", counted)
    for room in (4, 5, 9):
        b = HostBackend(2)
        b._plan = Plan(room)
        for seed in (2, 3, 4):
            steps = drawn(b, seed, 60)
            report = by_one(b, steps)
            assert (steps[-1].output.data[: report.counts[60]].tobytes(), report) == wanted(seed, 60)
        assert len(finished) > 9
        finished.clear()


def test_native_steps_of_a_launch_are_no_more_than_it_says() -> None:
    """What a step with several folds becomes: each of its sums may take two native steps."""
    b = HostBackend(2)
    both = product()
    once = both.result.args[0]
    kernel = Kernel(both.slots, (), op("fadd", FLOAT, both.result, op("fdiv", FLOAT, once, const(3.0))))
    for k in (product(), kernel, DOUBLE):
        s = step(b, "map", k, (floats(*[1.0] * N), floats(*[0.5] * 10_000)), N)
        running = b.begin(1)
        running.add(s)
        assert isinstance(s.compiled, Compiled)
        assert 0 < b._plan.steps <= s.compiled.most
        running.end()


@pytest.mark.parametrize("bad", [3, 20, 39])
def test_the_first_fault_is_reported_whenever_it_happens(bad: int) -> None:
    reports = []
    for b in (HostBackend(1), HostBackend(2), OracleBackend()):
        sound = floats(*[2.0] * N)
        zero = floats(*[2.0] * (N - 1), 0.0)
        steps = [step(b, "map", INVERSE, (zero if k >= bad else sound,), N) for k in range(40)]
        reports.append(b.run(steps).fault)
    assert reports == [bad] * 3


def test_a_run_that_is_abandoned_leaves_the_backend_as_it_was() -> None:
    b = HostBackend(2)
    expected = wanted(2, 30)
    for stop in (0, 3, 17, 31):
        steps = drawn(b, 2, 30)
        running = b.begin(len(steps))
        for s in steps[:stop]:
            running.add(s)
        running.abandon()
        assert b._plan.steps == 0
        steps = drawn(b, 2, 30)
        report = by_one(b, steps)
        assert (steps[-1].output.data[: report.counts[30]].tobytes(), report) == expected


def test_an_error_while_a_step_is_made_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    b = HostBackend(2)
    steps = drawn(b, 2, 30)

    def fails(*_: object) -> int:
        raise MemoryError("no room for it")

    with monkeypatch.context() as patched:
        patched.setattr(steps[20].compiled, "add", fails)
        with pytest.raises(MemoryError):
            b.run(steps)
    report = b.run(steps)
    assert report == wanted(2, 30)[1]


def test_uniforms_of_every_step_are_its_own() -> None:
    """Their words lie one behind the other while earlier steps read theirs."""
    b = HostBackend(2)
    value = floats(*[0.0] * N)
    kernel = Kernel((FLOAT,), (FLOAT,), op("fadd", FLOAT, X, uniform(0, FLOAT)))
    steps = []
    for k in range(300):
        steps.append(step(b, "map", kernel, (value,), N, (float(k),)))
        value = steps[-1].output
    assert by_one(b, steps) == Report(None, {})
    assert value.data.tolist() == [float(sum(range(300)))] * N
