"""Random buffer programs: what is seen does not depend on fusion, on plans, or on when launches run."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.graph.runtime import Runtime
from tests.graph.programs import Action, data, observe, programs
from tests.graph.support import Counting

LIGHT = settings(max_examples=40, deadline=None)


class Strict(Runtime):
    """Every launch runs at once: the semantics."""

    def _launch(self, *args: Any) -> Any:
        buffer = super()._launch(*args)
        self.force([buffer.node])
        return buffer


@LIGHT
@given(data(), programs())
def test_fused_lazy_runs_see_what_strict_evaluation_sees(initial: list[Any], actions: list[Action]) -> None:
    """S1.1, S1.3, S7.1."""
    expected = observe(Strict(OracleBackend(), fusion=False), initial, actions)
    assert observe(Runtime(Counting(), fusion=True), initial, actions) == expected
    assert observe(Runtime(Counting(), fusion=False), initial, actions) == expected


@LIGHT
@given(data(), data(), programs(), st.booleans())
def test_plans_made_for_other_sizes_serve(one: list[Any], two: list[Any], actions: list[Action], fusion: bool) -> None:
    """The same runtime runs the program on other data first, so most plans are found in the cache."""
    expected = observe(Strict(OracleBackend(), fusion=False), two, actions)
    rt = Runtime(Counting(), fusion=fusion)
    observe(rt, one, actions)
    for node in rt._listed:
        node.listed = False
    rt._listed.clear()
    assert observe(rt, two, actions) == expected


@settings(max_examples=25, deadline=None)
@given(data(), programs(10), st.booleans())
def test_the_host_sees_what_the_oracle_sees(initial: list[Any], actions: list[Action], fusion: bool) -> None:
    """S7.1."""
    expected = observe(Strict(OracleBackend(), fusion=False), initial, actions)
    assert observe(Runtime(HostBackend(threads=2), fusion=fusion), initial, actions) == expected
