"""Graphs run as two plans: memory that dies early is used again, and nothing else is seen of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Storage
from osprey_py.graph import cut
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.locate import LaunchFault
from osprey_py.graph.plan import Plan
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.schedule import Pending
from osprey_py.kernel.ir import FLOAT, const
from tests.graph.programs import Action, data, observe, programs
from tests.graph.support import Counting, elementwise, op, span
from tests.graph.test_programs import Strict

STEP = elementwise(lambda w, g: op("fsub", w, g), FLOAT, FLOAT, name="step")
DIVIDE = elementwise(lambda w: op("fdiv", const(1.0), w, line=30), FLOAT, name="divide")
N = 8


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is worth a cut."""
    monkeypatch.setattr(cut, "LARGE", 0)
    monkeypatch.setattr(cut, "WORTH", 1)


def update(rt: Runtime, values: list[float], slopes: list[float]) -> Buffer:
    """Parameters less their gradient, of which nobody holds anything else."""
    w, g = rt.from_list(values, FLOAT), rt.from_list(slopes, FLOAT)
    return rt.map(STEP, (w, g), (), N, span(20))


def test_an_update_is_made_in_place_before_what_may_fault(eager: None) -> None:
    backend = Counting()
    rt = Runtime(backend)
    new = update(rt, [2.0] * N, [1.0] * N)
    out = rt.map(DIVIDE, (new,), (), N, span(30))
    before = backend.allocated
    assert rt.read(out) == [1.0] * N
    assert backend.ran == ["step", "divide"]
    assert backend.allocated == before + 1, "the quotients; the update lies where one of its operands was"
    assert rt.stats.forces == 2
    assert rt.read(new) == [1.0] * N


def test_without_worth_there_is_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "LARGE", 0)
    monkeypatch.setattr(cut, "WORTH", 2 * N * 8 + 1)
    backend = Counting()
    rt = Runtime(backend)
    out = rt.map(DIVIDE, (update(rt, [2.0] * N, [1.0] * N),), (), N, span(30))
    assert rt.read(out) == [1.0] * N
    assert rt.stats.forces == 1


def test_what_is_held_is_never_written_over(eager: None) -> None:
    rt = Runtime(Counting())
    w, g = rt.from_list([2.0] * N, FLOAT), rt.from_list([1.0] * N, FLOAT)
    new = rt.map(STEP, (w, g), (), N, span(20))
    assert rt.read(rt.map(DIVIDE, (new,), (), N, span(30))) == [1.0] * N
    assert rt.stats.forces == 1
    assert rt.read(w) == [2.0] * N and rt.read(g) == [1.0] * N


def test_a_fault_behind_the_cut_is_found_where_it_is(eager: None) -> None:
    """The parameters it was made of are gone; their update is there."""
    rt = Runtime(Counting())
    new = update(rt, [float(k) for k in range(N)], [3.0] * N)
    out = rt.map(DIVIDE, (new,), (), N, span(30))
    with pytest.raises(LaunchFault) as told:
        rt.read(out)
    assert told.value.element == 3
    assert rt.read(new) == [k - 3.0 for k in range(N)]


def test_a_fault_before_the_update_keeps_what_it_needs(eager: None) -> None:
    """The gradient is a quotient: the update must wait for its flag, and the parameters are there afterwards."""
    backend = Counting()
    rt = Runtime(backend)
    w, d = rt.from_list([2.0] * N, FLOAT), rt.from_list([1.0] * 5 + [0.0] * 3, FLOAT)
    g = rt.map(DIVIDE, (d,), (), N, span(29))
    new = rt.map(STEP, (w, g), (), N, span(20))
    del g, d, w
    with pytest.raises(LaunchFault) as told:
        rt.read(rt.map(DIVIDE, (new,), (), N, span(30)))
    assert told.value.element == 5


DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")


def test_what_the_update_computes_itself_is_not_stored_for_a_cut(eager: None) -> None:
    """All that dies, dies in the gradient; a cut behind that would store it."""
    backend = Counting()
    rt = Runtime(backend)
    w, x = rt.from_list([2.0] * N, FLOAT), rt.from_list([0.5] * N, FLOAT)
    g = rt.map(DOUBLE, (x,), (), N, span(19))
    new = rt.map(STEP, (w, g), (), N, span(20))
    del g, x
    assert rt.read(rt.map(DIVIDE, (new,), (), N, span(30))) == [1.0] * N
    assert backend.ran == ["double+step", "divide"]
    assert rt.stats.forces == 2
    assert rt.read(w) == [2.0] * N and rt.read(new) == [1.0] * N


def test_a_cut_is_made_where_most_has_died(eager: None) -> None:
    rt = Runtime(Counting())
    x = rt.from_list([0.5] * N, FLOAT)
    twice = rt.map(DOUBLE, (x,), (), N, span(18))
    del x
    new = update(rt, [2.0] * N, [1.0] * N)
    divided = rt.map(DIVIDE, (new,), (), N, span(30))
    rt.force([twice.node, divided.node])
    assert rt.stats.forces == 2
    assert rt.read(divided) == rt.read(twice) == [1.0] * N


def test_what_dies_before_something_else_may_fault_is_no_gain(eager: None) -> None:
    """It could not be written over in the first plan either."""
    rt = Runtime(Counting())
    w, d, x = (rt.from_list([v] * N, FLOAT) for v in (2.0, 4.0, 0.5))
    g = rt.map(DOUBLE, (x,), (), N, span(19))
    del x
    quotient = rt.map(DIVIDE, (d,), (), N, span(29))
    new = rt.map(STEP, (w, g), (), N, span(20))
    del g
    divided = rt.map(DIVIDE, (new,), (), N, span(30))
    rt.force([quotient.node, divided.node])
    assert rt.stats.forces == 1
    assert (rt.read(quotient), rt.read(divided), rt.read(w)) == ([0.25] * N, [1.0] * N, [2.0] * N)


def test_the_second_time_the_cut_is_known(eager: None) -> None:
    rt = Runtime(Counting())
    for _ in range(3):
        assert rt.read(rt.map(DIVIDE, (update(rt, [2.0] * N, [1.0] * N),), (), N, span(30))) == [1.0] * N
    assert (rt.stats.planned, rt.stats.forces) == (2, 6)


def owned(rt: Runtime, storage: Storage) -> Buffer:
    """The elements in memory of their own, which can die and be written over."""
    found = Runtime.data(rt, storage)
    return rt.from_list(rt.read(found), found.type)


class Owned(Strict):
    data = owned


class Owning(Runtime):
    """cuts: how many graphs were cut."""

    cuts = 0
    data = owned

    def _plan(self, graph: Pending) -> Plan | cut.Cut:
        made = super()._plan(graph)
        Owning.cuts += isinstance(made, cut.Cut)
        return made


@settings(max_examples=60, deadline=None)
@given(data(), programs(20))
def test_random_programs_see_nothing_of_it(initial: list[Any], actions: list[Action]) -> None:
    """What there was at first dies half way."""
    half = len(actions) // 2
    actions = [*actions[:half], *[Action("drop", (0, 0, 0, 0))] * 4, *actions[half:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "LARGE", 0)
        patch.setattr(cut, "WORTH", 1)
        expected = observe(Owned(OracleBackend(), fusion=False), initial, actions)
        for fusion in (True, False):
            assert observe(Owning(Counting(), fusion=fusion), initial, actions) == expected


def test_random_programs_were_cut() -> None:
    """The test above has something to see."""
    assert Owning.cuts > 0
