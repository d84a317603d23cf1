"""The second module of a program: each built-in is known there for what it does with numbers (spec/gradients, G9, G10)."""

from __future__ import annotations

import re

from osprey_py.check.builtins import SIGNATURES
from osprey_py.eval.prelude import PRELUDE
from osprey_py.eval.registry import BUILTINS
from osprey_py.eval.studio import KEYED, MOVERS, NUMERIC, PLACES
from osprey_py.graph.stand_ins import OPERATIONS

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
