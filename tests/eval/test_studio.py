"""The second module of a program: each built-in is known there for what it does with numbers (spec/gradients, G9, G10)."""

from __future__ import annotations

import re

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check.builtins import SIGNATURES
from osprey_py.eval.arithmetic import add
from osprey_py.eval.prelude import PRELUDE
from osprey_py.eval.registry import BUILTINS
from osprey_py.eval.studio import KEYED, MOVERS, NUMERIC, PLACES, knowing
from osprey_py.graph.replay import Recording
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.stand_ins import OPERATIONS
from osprey_py.graph.symbols import seen
from osprey_py.kernel.fault import MathFault
from osprey_py.source.span import NO_SPAN

STEPS = {"floor", "ceil", "round"}
"""Constant but for jumps: they pass nothing on."""

FLOATS = re.compile(r"\bfloat\b|\b[A-Z]\b")
"""A type that is float, or may be: the variables of signatures are single letters."""


def hands_on_floats(signature: str) -> bool:
    """Whether a float can come out that went in, or that was computed of one."""
    given, arrow, result = signature.removeprefix("<").rpartition(") -> ")
    arguments = given[given.index("(") :] if arrow else ""
    return "!IO" not in result and FLOATS.search(arguments) is not None and FLOATS.search(result) is not None


def test_no_built_in_loses_a_gradient() -> None:
    """What may hand a float on moves it, has a derivative, or is a step."""
    known = MOVERS | PLACES | KEYED | set(OPERATIONS) | STEPS
    assert {name for name, s in SIGNATURES.items() if hands_on_floats(s)} - known == set()
    assert hands_on_floats("<K: equal, V>(Map<K, V>, K) -> Result<V, Error>")
    assert not hands_on_floats("(string, string) -> bool")


def test_the_tables_name_what_there_is() -> None:
    """A name that is nowhere would be a built-in that nobody looks after any more."""
    there = set(BUILTINS) | set(PRELUDE)
    assert (MOVERS | PLACES | KEYED | NUMERIC | set(OPERATIONS) | STEPS) - there == set()
    assert not MOVERS & (PLACES | KEYED | NUMERIC)
    assert set(OPERATIONS) <= NUMERIC


def test_arithmetic_of_any_type_still_overflows() -> None:
    """Code that looks at the values adds symbols of ints under the same check."""
    number = Recording(Runtime(OracleBackend())).leaf(2**62)
    assert seen(knowing("_add", add, False)(number, 1, NO_SPAN)) == 2**62 + 1
    with pytest.raises(MathFault, match="integer overflow"):
        knowing("_add", add, False)(number, number, NO_SPAN)
