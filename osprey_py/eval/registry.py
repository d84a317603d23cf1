"""Where the implementations of built-ins register themselves.

Comes in: functions of eval/builtins/*.py. Goes out: BUILTINS, by the names of check/builtins.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Builtin:
    """call: takes (World if `world`), the arguments, (the call's Span if `span`), (its static result Type if `typed`)."""

    name: str
    call: Callable[..., Any]
    world: bool = False
    span: bool = False
    typed: bool = False


BUILTINS: dict[str, Builtin] = {}
CONSTANTS: dict[str, Any] = {}


def builtin(name: str, *, world: bool = False, span: bool = False, typed: bool = False) -> Callable[[F], F]:
    def register(f: F) -> F:
        BUILTINS[name] = Builtin(name, f, world, span, typed)
        return f

    return register


def constant(name: str, value: Any) -> None:
    CONSTANTS[name] = value
