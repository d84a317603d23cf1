"""Plans that run again: for the same lengths they repeat what they did, and nobody sees it (graph/repeat.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Backend, Kind, Storage
from osprey_py.graph.repeat import Habit
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, INT, Kernel, const, index, uniform
from tests.graph.programs import Action, data, observe, programs
from tests.graph.support import Counting, elementwise, gather, op, total
from tests.graph.test_programs import Strict

AXPY = elementwise(lambda a, b, k: op("fadd", a, op("fmul", k, b)), FLOAT, FLOAT, uniforms=(FLOAT,), name="axpy")
DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")
RATIO = elementwise(lambda a, b: op("fdiv", a, b, line=3), FLOAT, FLOAT, name="ratio")
SUM = elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum")
SHIFT = elementwise(lambda i, k: op("wadd", i, k), INT, uniforms=(INT,), name="shift")
WRAPPED = Kernel((FLOAT,), (INT,), gather(0, op("rem", index(), uniform(0, INT)), const(-1.0)), name="wrapped")
REVERSED = Kernel((FLOAT,), (), gather(0, op("wsub", const(49), index()), const(-1.0)), name="reversed")

BACKENDS: list[Callable[[], Backend]] = [Counting, lambda: HostBackend(threads=1), lambda: HostBackend(threads=2)]


@pytest.fixture(params=BACKENDS, ids=["oracle", "host", "host, two threads"])
def rt(request: pytest.FixtureRequest) -> Runtime:
    return Runtime(request.param())


def varied(actions: list[Action], turn: int) -> list[Action]:
    """The same launches with other floats, and other integers in every second turn."""

    def other(x: Any) -> Any:
        if isinstance(x, float):
            return x * (1.0 + turn)
        return x if type(x) is bool or turn % 2 == 0 or not -1000 < x < 1000 else x + turn

    def changed(a: Action) -> Action:
        return (
            a
            if a.launch is None
            else replace(a, launch=replace(a.launch, uniforms=tuple(map(other, a.launch.uniforms))))
        )

    return [changed(a) for a in actions]


@settings(max_examples=40, deadline=None)
@given(data(), data(), programs(), st.booleans(), st.sampled_from(BACKENDS[:2]))
def test_a_program_that_runs_again_sees_what_it_sees_alone(
    one: list[Any], two: list[Any], actions: list[Action], fusion: bool, make: Callable[[], Backend]
) -> None:
    """S1.1, S7.1: in turns that differ in nothing, in uniforms, in data, in lengths."""
    rt = Runtime(make(), fusion=fusion)
    for turn, initial in enumerate((one, one, one, one, two, one, one)):
        now = varied(actions, turn // 2)
        expected = observe(Strict(OracleBackend(), fusion=False), initial, now)
        for node in rt._listed:
            node.listed = False
        rt._listed.clear()
        assert observe(rt, initial, now) == expected


def test_a_training_step_repeats_itself_in_place(rt: Runtime) -> None:
    """Two parameters, temporaries in between, a rate that changes: the same memory from the third step on."""
    plain = Runtime(OracleBackend(), repeats=False)
    states = [[r.from_list([0.1 * k for k in range(50)], FLOAT), r.from_list([1.0] * 50, FLOAT)] for r in (rt, plain)]
    places: list[set[int]] = []
    for step in range(12):
        for r, state in zip((rt, plain), states, strict=True):
            gradient = r.map(REVERSED, (r.map(SUM, (state[0], state[1]), (), 50),), (), 50)
            new = [r.map(AXPY, (p, gradient), (-0.5 / (step + 1),), 50) for p in state]
            del gradient
            state.clear()
            r.force([b.node for b in new])
            state += new
            del new
        assert [rt.read(b) for b in states[0]] == [plain.read(b) for b in states[1]]
        places.append({rt.storage(b).address for b in states[0]})
    assert places[3:] == [places[3]] * 9
    assert rt.engine.repeats == 10 and plain.engine.repeats == 0
    if isinstance(rt.backend, Counting):
        assert rt.backend.live_bytes <= 50 * 8 * 4


def test_lengths_that_change_are_bound_afresh(rt: Runtime) -> None:
    for turn, n in enumerate((5, 5, 5, 9, 5, 5, 9, 9, 9, 0, 0, 0, 1, 5)):
        x = rt.from_list([float(k + turn) for k in range(n)], FLOAT)
        y = rt.map(DOUBLE, (rt.map(REVERSED, (x,), (), 50),), (), 50)
        z = rt.map(SUM, (x, x), (), n)
        del x
        rt.force([y.node, z.node])
        assert rt.read(z) == [2.0 * (k + turn) for k in range(n)]
        assert rt.read(y) == [2.0 * (49 - k + turn) if 49 - k < n else -2.0 for k in range(50)]
        del y, z
    assert rt.engine.repeats >= 3


def test_an_integer_that_decides_is_compared_and_others_are_put_in_place(rt: Runtime) -> None:
    x = rt.from_list([float(k) for k in range(12)], FLOAT)
    for turn, m in enumerate((4, 4, 4, 3, 4, 4, 7, 7, 7, 7)):
        y = rt.map(WRAPPED, (x,), (m,), 24)
        assert rt.read(y) == [float(k % m) for k in range(24)]
        z = rt.map(SHIFT, (rt.iota(24),), (turn,), 24)
        assert rt.read(z) == [k + turn for k in range(24)]
        del y, z
    assert rt.engine.repeats >= 8


def test_data_that_dies_in_a_larger_block_is_not_overwritten_as_if_it_filled_it(rt: Runtime) -> None:
    """x is the whole of its memory in most turns; in some it is what an append made, with room behind it."""
    for turn in range(12):
        x = rt.from_list([float(turn)] * 6, FLOAT)
        if turn in (4, 5, 6, 9):
            for k in range(2):
                x = rt.slice(x, 0, 4) if k == 0 else x
                x = rt.concat(x, rt.from_list([2.0], FLOAT))
                rt.get(x, 0)
            assert x.node.memory is not None and x.node.memory.storage.length > len(x) == 6
        wanted = [2.0 * v for v in rt.read(x)]
        y = rt.map(DOUBLE, (x,), (), 6)
        del x
        assert rt.read(y) == wanted
        del y
        if isinstance(rt.backend, Counting):
            assert rt.backend.live_bytes == 0
    assert rt.engine.repeats >= 4


def test_one_storage_read_as_two_buffers_may_be_two_the_next_time(rt: Runtime) -> None:
    def stored(value: float) -> Storage:
        return Storage(Kind.F64, np.full(8, value))

    for turn in range(8):
        a = stored(float(turn))
        b = a if turn < 4 or turn == 6 else stored(0.5)
        s = rt.map(RATIO, (rt.data(a), rt.data(b)), (), 8)
        t = rt.map(AXPY, (rt.data(b), s), (2.0,), 8)
        if turn == 0:
            with pytest.raises(MathFault):
                rt.read(t)
            continue
        wanted = float(turn) / b.data[0]
        assert rt.read(t) == [b.data[0] + 2.0 * wanted] * 8
    assert rt.engine.repeats >= 4


@pytest.mark.parametrize("bad", [0, 7, 31])
def test_a_fault_of_a_repeated_plan_is_the_one_that_strict_evaluation_meets(rt: Runtime, bad: int) -> None:
    """S3.1: data that dies in the plan is whole when the launches run again one by one."""
    for turn in range(8):
        divisor = [1.0] * 32
        if turn in (4, 6):
            divisor[bad] = 0.0
        x, y = rt.from_list([float(turn)] * 32, FLOAT), rt.from_list(divisor, FLOAT)
        q = rt.map(RATIO, (rt.map(DOUBLE, (x,), (), 32), y), (), 32)
        z = rt.map(SUM, (x, y), (), 32)
        w = rt.map(DOUBLE, (z,), (), 32)
        del x, y, z
        if turn in (4, 6):
            with pytest.raises(MathFault) as fault:
                rt.force([q.node, w.node])
            assert fault.value.element == bad
            rt.forget(0)
            del fault
        else:
            rt.force([q.node, w.node])
            assert rt.read(q) == [2.0 * turn] * 32 and rt.read(w) == [2.0 * (turn + 1.0)] * 32
        del q, w
    assert rt.engine.repeats >= 4


def test_an_accumulate_adds_to_zeros_each_time(rt: Runtime) -> None:
    base = [0.5, 0.25, 8.0]
    now = rt.from_list(base, FLOAT)
    for turn in range(6):
        places = rt.from_list([2, -1, 2, 0], INT)
        added = rt.map(AXPY, (rt.from_list([1.0] * 4, FLOAT), rt.from_list([float(turn)] * 4, FLOAT)), (1.0,), 4)
        after = rt.accumulate(3, places, added, base=now)
        del now, places, added
        rt.force([after.node])
        now = after
        del after
        base = [base[0] + (1.0 + turn), base[1], base[2] + 2.0 * (1.0 + turn)]
        assert rt.read(now) == base
    assert rt.engine.repeats == 4


def test_a_backend_s_own_memory_is_not_that_of_steps_behind_the_last_that_may_fault(rt: Runtime) -> None:
    """Two segments: an accumulate onto a base and a division; then, in place, what cannot fault."""
    places = rt.from_list([2, -1, 2, 0], INT)
    for turn in range(8):
        x = rt.from_list([float(turn)] * 4, FLOAT)
        base = rt.from_list([1.0, 2.0, 4.0], FLOAT)
        added = rt.accumulate(3, places, x, base=base)
        ratio = rt.map(RATIO, (added, base), (), 3)
        after = [rt.map(REVERSED, (rt.map(AXPY, (b, b), (1.0,), len(b)),), (), 50) for b in (x, ratio)]
        doubled = rt.map(DOUBLE, (x,), (), 4)
        del x, base, added
        rt.force([ratio.node, doubled.node, *[b.node for b in after]])
        assert rt.read(ratio) == [(1.0 + turn), 1.0, (4.0 + 2.0 * turn) / 4.0]
        assert rt.read(doubled) == [2.0 * turn] * 4
        assert rt.read(after[0]) == [-1.0] * 46 + [2.0 * turn] * 4
        assert rt.read(after[1])[-3:] == [2.0 * v for v in reversed(rt.read(ratio))]
        del ratio, doubled, after
    assert rt.engine.repeats == 6


def test_what_appends_or_filters_never_repeats() -> None:
    rt = Runtime(Counting())
    positive = elementwise(lambda a: op("lt", const(0.0), a), FLOAT, name="positive")
    for turn in range(6):
        x = rt.from_list([1.0, -1.0, float(turn)], FLOAT)
        assert rt.read(rt.filter(positive, (x,), ())) == [1.0, float(turn)][: 1 + (turn > 0)]
        assert rt.read(rt.concat(x, x)) == [1.0, -1.0, float(turn)] * 2
    assert rt.engine.repeats == 0


def test_a_profile_sees_every_step() -> None:
    rt = Runtime(OracleBackend(), profile=True)
    summed = total()
    for _ in range(5):
        assert rt.fold(summed, (rt.map(DOUBLE, (rt.from_list([1.0, 2.0], FLOAT),), (), 2),), ()) == 6.0
    assert rt.engine.repeats == 0 and rt.profile is not None
    assert {r.runs for r in rt.profile.records} == {5}


def test_who_is_disappointed_waits_longer() -> None:
    """A rehearsal after one run of the same lengths, then after two, four, …; other lengths begin anew."""
    habit = Habit()
    assert [habit.runs([3]) for _ in range(16)] == [k in (1, 3, 7, 15) for k in range(16)]
    other = Habit()
    assert [other.runs([k]) for k in range(8)] == [False] * 8
    assert [other.runs([7]) for _ in range(3)] == [True, False, True]


def test_a_runtime_holds_nothing_of_what_it_repeats() -> None:
    """The script keeps no storage: what is released lies idle, and can be given back."""
    backend = Counting()
    rt = Runtime(backend)
    x = rt.from_list([1.0] * 10_000, FLOAT)
    for _ in range(6):
        y = rt.map(SUM, (rt.map(REVERSED, (x,), (), 10_000), x), (), 10_000)
        del x
        rt.force([y.node])
        x = y
        del y
        assert backend.live_bytes <= 80_000
    assert rt.engine.repeats >= 3
    del x
    assert backend.live_bytes == 0
