"""Types after inference.

Comes in: nothing. Goes out: the `Type` algebra shared by the checker, the typed program and its readers.
A `Type` in a typed program may still hold a `TypeVar` inside a generic function: such code is compiled once and
looks at its values (spec: each use is specialised; how is not observable).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class TypeVar(Type):
    """A rigid or generalised variable that is left in a generic function. `name` as written, or a, b, c …"""

    name: str
    uid: int


@dataclass(frozen=True, slots=True)
class Named(Type):
    """A type constructor applied. `name` is unique in the program: built-ins are bare (`int float bool string Unit List
    Map Iterator Result GpuBuffer Error MathError` …), declared types qualified (`gpt2::Layer`)."""

    name: str
    args: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class RecordType(Type):
    """An anonymous record; fields sorted by name."""

    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    """effects: the names of what a call may perform (`IO`, `Log.write`, …), for display and for readers that ask
    "is this pure?"; the checker's own constraint variables do not survive into a typed program."""

    params: tuple[Type, ...]
    result: Type
    effects: frozenset[str] = frozenset()


INT = Named("int")
FLOAT = Named("float")
BOOL = Named("bool")
STRING = Named("string")
UNIT = Named("Unit")


def show(t: Type) -> str:
    """The type the way people write it."""
    match t:
        case TypeVar(name=name):
            return name
        case Named(name=name, args=()):
            return name.rsplit("::", 1)[-1]
        case Named(name=name, args=args):
            return f"{name.rsplit('::', 1)[-1]}<{', '.join(map(show, args))}>"
        case TupleType(items=items):
            return f"({', '.join(map(show, items))})"
        case RecordType(fields=fields):
            return "{ " + ", ".join(f"{n}: {show(f)}" for n, f in fields) + " }"
        case FunctionType(params=params, result=result, effects=effects):
            row = f" ![{', '.join(sorted(effects))}]" if effects else ""
            return f"({', '.join(map(show, params))}) -> {show(result)}{row}"
    raise TypeError(t)
