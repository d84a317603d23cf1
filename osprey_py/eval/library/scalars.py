"""Scalar functions: the host's own, byte for byte what kernels compute (spec/numerics)."""

from __future__ import annotations

import math
import struct
from typing import Any

from osprey_py.eval.arithmetic import MIN, checked, int_div
from osprey_py.eval.registry import builtin, constant
from osprey_py.kernel.fault import MathFault
from osprey_py.numerics import exact
from osprey_py.source.span import Span

constant("inf", math.inf)
constant("nan", math.nan)

builtin("exp")(exact.exp)
builtin("ln")(exact.ln)
builtin("tanh")(exact.tanh)
builtin("intDiv", span=True)(int_div)


@builtin("sqrt")
def sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


@builtin("floor")
def floor(x: float) -> float:
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


@builtin("ceil")
def ceil(x: float) -> float:
    return math.copysign(float(math.ceil(x)), x) if math.isfinite(x) else x


@builtin("round")
def round_even(x: float) -> float:
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


builtin("toFloat")(float)


@builtin("toInt", span=True)
def to_int(x: float, span: Span) -> int:
    """Truncates. Faults on NaN and out of range."""
    if -9223372036854775808.0 <= x < 9223372036854775808.0:
        return int(x)
    raise MathFault("not an integer in range", span)


@builtin("min")
def minimum(a: Any, b: Any) -> Any:
    """IEEE 754-2019's minimum on floats: NaN wins, -0.0 < 0.0."""
    if type(a) is float:
        if a != a or b != b:
            return math.nan
        if a == b:
            return a if math.copysign(1.0, a) < 0.0 else b
    return a if a <= b else b


@builtin("max")
def maximum(a: Any, b: Any) -> Any:
    if type(a) is float:
        if a != a or b != b:
            return math.nan
        if a == b:
            return b if math.copysign(1.0, a) < 0.0 else a
    return a if a >= b else b


@builtin("abs", span=True)
def absolute(x: Any, span: Span) -> Any:
    return checked(abs(x), span) if type(x) is int else abs(x)


@builtin("ieeeDiv")
def ieee_divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a != a or a == 0.0:
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))


def _wrap(x: int) -> int:
    return ((x - MIN) & 0xFFFFFFFFFFFFFFFF) + MIN


@builtin("wrapAdd")
def wrap_add(a: int, b: int) -> int:
    return _wrap(a + b)


@builtin("wrapSub")
def wrap_subtract(a: int, b: int) -> int:
    return _wrap(a - b)


@builtin("wrapMul")
def wrap_multiply(a: int, b: int) -> int:
    return _wrap(a * b)


@builtin("mulHigh")
def multiply_high(a: int, b: int) -> int:
    """The high 64 bits of the product of the two as unsigned numbers."""
    return _wrap((a & 0xFFFFFFFFFFFFFFFF) * (b & 0xFFFFFFFFFFFFFFFF) >> 64)


@builtin("bitAnd")
def bit_and(a: int, b: int) -> int:
    return a & b


@builtin("bitOr")
def bit_or(a: int, b: int) -> int:
    return a | b


@builtin("bitXor")
def bit_xor(a: int, b: int) -> int:
    return a ^ b


@builtin("bitNot")
def bit_not(a: int) -> int:
    return ~a


def _shift(k: int, span: Span) -> int:
    if 0 <= k <= 63:
        return k
    raise MathFault("shift out of range", span)


@builtin("shiftLeft", span=True)
def shift_left(a: int, k: int, span: Span) -> int:
    """Bits that leave at the top are lost."""
    return _wrap(a << _shift(k, span))


@builtin("shiftRight", span=True)
def shift_right(a: int, k: int, span: Span) -> int:
    return a >> _shift(k, span)


@builtin("shiftRightLogical", span=True)
def shift_right_logical(a: int, k: int, span: Span) -> int:
    return _wrap((a & 0xFFFFFFFFFFFFFFFF) >> _shift(k, span))


@builtin("floatBits")
def float_bits(x: float) -> int:
    """A NaN is the canonical one."""
    bits: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits if x == x else 0x7FF8000000000000


@builtin("floatFromBits")
def float_from_bits(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value if value == value else math.nan


@builtin("isNan")
def is_nan(x: float) -> bool:
    return x != x
