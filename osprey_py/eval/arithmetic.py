"""Checked arithmetic on the host: what generated code calls when an inline check fails or a type is not known.

Comes in: operands and the span of the operation. Goes out: the result, or MathFault (spec/evaluation V3).
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from osprey_py.kernel.fault import MathFault
from osprey_py.source.span import Span

MIN = -(2**63)
MAX = 2**63 - 1


def overflow(span: Span) -> NoReturn:
    raise MathFault("integer overflow", span)


def by_zero(span: Span) -> NoReturn:
    raise MathFault("division by zero", span)


def checked(value: int, span: Span) -> int:
    """value, when it is an int64."""
    if MIN <= value <= MAX:
        return value
    overflow(span)


def divide(a: float, b: float, span: Span) -> float:
    """IEEE division; faults when b is ±0.0."""
    if b == 0.0:
        by_zero(span)
    return a / b


def float_remainder(a: float, b: float, span: Span) -> float:
    """C's fmod; faults when b is ±0.0."""
    if b == 0.0:
        by_zero(span)
    if a - a != 0.0:  # inf or nan, which math.fmod complains of
        return math.nan
    return math.fmod(a, b)


def int_div(a: int, b: int, span: Span) -> int:
    """The quotient, truncated toward zero."""
    if b == 0:
        by_zero(span)
    q = a // b if (a >= 0) == (b > 0) else -(-a // b)
    return q if q <= MAX else overflow(span)


def remainder(a: int, b: int, span: Span) -> int:
    """a - b · intDiv(a, b): the sign is a's."""
    if b == 0:
        by_zero(span)
    r = abs(a) % abs(b)
    return r if a >= 0 else -r


def add(a: Any, b: Any, span: Span) -> Any:
    return checked(a + b, span) if type(a) is int else a + b


def subtract(a: Any, b: Any, span: Span) -> Any:
    return checked(a - b, span) if type(a) is int else a - b


def multiply(a: Any, b: Any, span: Span) -> Any:
    return checked(a * b, span) if type(a) is int else a * b


def modulo(a: Any, b: Any, span: Span) -> Any:
    return remainder(a, b, span) if type(a) is int else float_remainder(a, b, span)


def negate(a: Any, span: Span) -> Any:
    return checked(-a, span) if type(a) is int else -a
