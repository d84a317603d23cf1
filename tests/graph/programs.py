"""The random programs of osprey_py/conformance/programs.py, chosen by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from osprey_py.conformance import programs as random_programs
from osprey_py.conformance.programs import Action, observe
from tests.fuzz.kernels import Drawn

__all__ = ["Action", "data", "observe", "programs"]


@st.composite
def programs(draw: Callable[..., Any], size: int = 14) -> list[Action]:
    return random_programs.actions(Drawn(draw), size)


@st.composite
def data(draw: Callable[..., Any]) -> list[Any]:
    return list(random_programs.data(Drawn(draw)))
