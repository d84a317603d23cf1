"""Scalars that remember how they were computed, for recording what a function of the host does (graph/replay.py).

Comes in: a `Ledger` to write to, names and values. Goes out: `SymInt` and `SymFloat`, which compute as ints and
floats do and write down each operation, and, for whatever is decided by their value, a guard that says what the value
decided.

Nothing escapes unseen: a comparison is a guard on its outcome; what needs the number itself (an index, a key, text)
is a guard on the number; what has no meaning here raises `Unrecordable`. Neither class is an int or a float, so that
no C code takes the number without asking.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Unrecordable(Exception):
    """The function does something that cannot be recorded; it is to be evaluated plainly."""


class Ledger(Protocol):
    """Where operations and guards are written."""

    def scalar(self, text: str, value: int | float) -> Sym:
        """A new scalar, computed by the text."""
        ...

    def guard(self, text: str, outcome: bool) -> None:
        """The text has this outcome, or the recording does not apply."""
        ...

    def name(self, value: Any) -> str:
        """The text that stands for a symbol or a constant."""
        ...

    def call(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The result of a pure function of numbers."""
        ...


class Sym(ABC):
    """name: what the recording calls it; value: what it was when it was recorded."""

    __slots__ = ("ledger", "name", "value")

    def __init__(self, ledger: Ledger, name: str, value: Any) -> None:
        self.ledger = ledger
        self.name = name
        self.value = value

    @abstractmethod
    def concrete(self) -> Any:
        """The number, under a guard that it is this one."""

    def __bool__(self) -> bool:
        raise Unrecordable("a number is no condition")

    def __hash__(self) -> int:
        return hash(self.concrete())

    def __str__(self) -> str:
        return str(self.concrete())

    def __repr__(self) -> str:
        return repr(self.concrete())

    def __format__(self, spec: str) -> str:
        return format(self.concrete(), spec)

    def __float__(self) -> float:
        raise Unrecordable("a float is asked for")

    def __iter__(self) -> Any:
        raise Unrecordable("a number has no elements")


class SymInt(Sym):
    __slots__ = ()

    def concrete(self) -> int:
        value: int = self.value
        self.ledger.guard(f"{self.name} == {value!r}", True)
        return value

    def __index__(self) -> int:
        return self.concrete()


class SymFloat(Sym):
    __slots__ = ()

    def concrete(self) -> float:
        value: float = self.value
        self.ledger.guard(f"_bits({self.name}) == {bits(value)}", True)
        return value

    def __float__(self) -> float:
        return self.concrete()


def bits(x: float) -> int:
    """The bits of a float as an int: equal floats with equal bits are the same float."""
    found: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return found


def concrete(value: Any) -> Any:
    """The number of a symbol, under its guard; anything else as it is."""
    return value.concrete() if isinstance(value, Sym) else value


def seen(value: Any) -> Any:
    """The number of a symbol, without a guard: for computing along."""
    return value.value if isinstance(value, Sym) else value


# --- operators ------------------------------------------------------------------------------------------------


def _binary(sign: str, compute: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(a: Sym, b: Any) -> Any:
        if not isinstance(b, Sym | int | float):
            return NotImplemented
        return a.ledger.scalar(f"{a.name} {sign} {a.ledger.name(b)}", compute(a.value, seen(b)))

    def reflected(a: Sym, b: Any) -> Any:
        if not isinstance(b, int | float):
            return NotImplemented
        return a.ledger.scalar(f"{a.ledger.name(b)} {sign} {a.name}", compute(b, a.value))

    return forward, reflected


def _comparison(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def compared(a: Sym, b: Any) -> Any:
        if not isinstance(b, Sym | int | float):
            return NotImplemented
        outcome = compare(a.value, seen(b))
        a.ledger.guard(f"{a.name} {sign} {a.ledger.name(b)}", outcome)
        return outcome

    return compared


def _unary(text: str, compute: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a: a.ledger.scalar(text.format(a.name), compute(a.value))


def _equip() -> None:
    """Give the classes their operators: ints those of ints, floats those of floats."""
    both: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
        ("add", "+", lambda a, b: a + b),
        ("sub", "-", lambda a, b: a - b),
        ("mul", "*", lambda a, b: a * b),
    ]
    ints: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
        ("floordiv", "//", lambda a, b: a // b),
        ("mod", "%", lambda a, b: a % b),
        ("and", "&", lambda a, b: a & b),
        ("or", "|", lambda a, b: a | b),
        ("xor", "^", lambda a, b: a ^ b),
        ("lshift", "<<", lambda a, b: a << b),
        ("rshift", ">>", lambda a, b: a >> b),
    ]
    floats: list[tuple[str, str, Callable[[Any, Any], Any]]] = [("truediv", "/", lambda a, b: a / b)]
    for cls, table in ((SymInt, both + ints), (SymFloat, both + floats)):
        for word, sign, compute in table:
            forward, reflected = _binary(sign, compute)
            setattr(cls, f"__{word}__", forward)
            setattr(cls, f"__r{word}__", reflected)
        setattr(cls, "__neg__", _unary("-{}", lambda a: -a))  # noqa: B010
    setattr(SymInt, "__invert__", _unary("~{}", lambda a: ~a))  # noqa: B010
    compare: list[tuple[str, str, Callable[[Any, Any], bool]]] = [
        ("eq", "==", lambda a, b: bool(a == b)),
        ("ne", "!=", lambda a, b: bool(a != b)),
        ("lt", "<", lambda a, b: bool(a < b)),
        ("le", "<=", lambda a, b: bool(a <= b)),
        ("gt", ">", lambda a, b: bool(a > b)),
        ("ge", ">=", lambda a, b: bool(a >= b)),
    ]
    for word, sign, test in compare:
        setattr(Sym, f"__{word}__", _comparison(sign, test))


_equip()
