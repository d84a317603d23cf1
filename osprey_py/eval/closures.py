"""From run-time functions back to the typed program: what kernel extraction asks.

Comes in: function values as the evaluator makes them. Goes out: their Core code, and the values they captured.

    core_of(f)            the core.Function whose code f runs; None for what is not a Python function of ours
    captured(f)           {Var: value} of a closure's free variables; a `mut` cell is read now
    global_value(f, name) what a GlobalRef in f's code refers to: a function, or a file-scope `let`'s value
    BuiltinFunction       a built-in used as a value; `.name` is its name in check/builtins.py
    ConstructorFunction   a positional variant used as a function; `.constructor`

Two closures of one code have the same `f.__code__`, so what depends on the code alone can be cached by it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from osprey_py.check import core
from osprey_py.eval.world import Cell

_functions: dict[CodeType, core.Function] = {}
_variables: dict[str, core.Var] = {}

GLOBALS = "__osprey_globals__"
"""In a module's namespace: qualified name -> Python name of every function and file-scope let."""

HOME = "__osprey_home__"
"""In the namespace of a module that was made once more: the namespace of the first."""


def register(code: CodeType, function: core.Function) -> None:
    _functions[code] = function


def register_variables(variables: dict[str, core.Var]) -> None:
    """Python name -> Var, of variables that closures capture."""
    _variables.update(variables)


def core_of(f: Any) -> core.Function | None:
    return of_code(getattr(f, "__code__", None))


def of_code(code: CodeType | None) -> core.Function | None:
    return _functions.get(code) if code is not None else None


def captured(f: Any) -> dict[core.Var, Any]:
    closure = f.__closure__
    if not closure:
        return {}
    found = {}
    for name, cell in zip(f.__code__.co_freevars, closure, strict=True):
        value = cell.cell_contents
        found[_variables[name]] = value.v if type(value) is Cell else value
    return found


def global_value(f: Any, name: str) -> Any:
    namespace = f.__globals__
    value = namespace[namespace[GLOBALS][name]]
    return value.v if type(value) is Cell else value


class BuiltinFunction:
    """A built-in as a value."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


class ConstructorFunction:
    """A positional variant as a value."""

    __slots__ = ("constructor", "make")

    def __init__(self, constructor: core.Constructor, make: Callable[..., Any]) -> None:
        self.constructor = constructor
        self.make = make

    def __call__(self, *args: Any) -> Any:
        return self.make(*args)
