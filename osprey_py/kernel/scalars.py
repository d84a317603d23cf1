"""The meaning of every scalar op, one plain Python function each.

Comes in: ints in int64, binary64 floats, bools. Goes out: the same, or a `MathFault` from a checked op (its last
argument is then its `Site`). These functions define what every backend is compared with (spec/gpu-surface, S2).
A NaN may carry any payload here; `store` and `floatbits` are where it is looked at, and there it is canonical.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import MESSAGES, Site
from osprey_py.numerics import exact

MIN, MAX = -(2**63), 2**63 - 1
NAN = math.nan
INTEGRAL = 2.0**52
"""From here on every float is an integer."""


def fault(message: str, site: Site) -> MathFault:
    return MathFault(message, site.span)


def wrap(a: int) -> int:
    """a mod 2^64 as int64."""
    return ((a - MIN) & (2**64 - 1)) + MIN


def _in_range(a: int, op: str, site: Site) -> int:
    if MIN <= a <= MAX:
        return a
    raise fault(MESSAGES[op], site)


def add(a: int, b: int, site: Site) -> int:
    return _in_range(a + b, "add", site)


def sub(a: int, b: int, site: Site) -> int:
    return _in_range(a - b, "sub", site)


def mul(a: int, b: int, site: Site) -> int:
    return _in_range(a * b, "mul", site)


def neg(a: int, site: Site) -> int:
    return _in_range(-a, "neg", site)


def iabs(a: int, site: Site) -> int:
    return _in_range(abs(a), "iabs", site)


def uquot(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def urem(a: int, b: int) -> int:
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def quot(a: int, b: int, site: Site) -> int:
    if b == 0:
        raise fault("division by zero", site)
    if a == MIN and b == -1:
        raise fault("integer overflow", site)
    return uquot(a, b)


def rem(a: int, b: int, site: Site) -> int:
    if b == 0:
        raise fault("division by zero", site)
    return urem(a, b)


def ushl(a: int, b: int) -> int:
    return wrap(a << b)


def ushr(a: int, b: int) -> int:
    return a >> b


def ushru(a: int, b: int) -> int:
    return wrap((a & (2**64 - 1)) >> b)


def _shift(op: str, shifted: Callable[[int, int], int]) -> Callable[[int, int, Site], int]:
    def checked(a: int, b: int, site: Site) -> int:
        if not 0 <= b <= 63:
            raise fault(MESSAGES[op], site)
        return shifted(a, b)

    return checked


def mulhigh(a: int, b: int) -> int:
    mask = 2**64 - 1
    return wrap(((a & mask) * (b & mask)) >> 64)


def fdivi(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return NAN
    return math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))


def fmodi(a: float, b: float) -> float:
    if b == 0.0 or math.isinf(a) or a != a or b != b:
        return NAN
    return math.fmod(a, b)


def fdiv(a: float, b: float, site: Site) -> float:
    if b == 0.0:
        raise fault(MESSAGES["fdiv"], site)
    return a / b


def fmod(a: float, b: float, site: Site) -> float:
    if b == 0.0:
        raise fault(MESSAGES["fmod"], site)
    return fmodi(a, b)


def _is_negative(a: float) -> bool:
    return math.copysign(1.0, a) < 0.0


def fmin(a: float, b: float) -> float:
    if a != a or b != b:
        return NAN
    if a == b:
        return a if _is_negative(a) else b
    return a if a < b else b


def fmax(a: float, b: float) -> float:
    if a != a or b != b:
        return NAN
    if a == b:
        return b if _is_negative(a) else a
    return a if a > b else b


def _integral(rounded: Callable[[float], int]) -> Callable[[float], float]:
    def op(a: float) -> float:
        if not abs(a) < INTEGRAL:
            return a
        return math.copysign(float(rounded(a)), a)

    return op


def sqrt(a: float) -> float:
    return NAN if a < 0.0 else math.sqrt(a)


def toint(a: float, site: Site) -> int:
    if not -(2.0**63) <= a < 2.0**63:
        raise fault(MESSAGES["toint"], site)
    return int(a)


def utoint(a: float) -> int:
    return int(a) if -(2.0**63) <= a < 2.0**63 else 0


def floatbits(a: float) -> int:
    bits: int = struct.unpack("<q", struct.pack("<d", NAN if a != a else a))[0]
    return bits


def bitsfloat(a: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", a))[0]
    return value


SCALARS: dict[str, Callable[..., Any]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "neg": neg,
    "iabs": iabs,
    "quot": quot,
    "rem": rem,
    "shl": _shift("shl", ushl),
    "shr": _shift("shr", ushr),
    "shru": _shift("shru", ushru),
    "wadd": lambda a, b: wrap(a + b),
    "wsub": lambda a, b: wrap(a - b),
    "wmul": lambda a, b: wrap(a * b),
    "uquot": uquot,
    "urem": urem,
    "ushl": ushl,
    "ushr": ushr,
    "ushru": ushru,
    "mulhigh": mulhigh,
    "addo": lambda a, b: not MIN <= a + b <= MAX,
    "subo": lambda a, b: not MIN <= a - b <= MAX,
    "mulo": lambda a, b: not MIN <= a * b <= MAX,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "inot": lambda a: ~a,
    "imin": min,
    "imax": max,
    "fadd": lambda a, b: a + b,
    "fsub": lambda a, b: a - b,
    "fmul": lambda a, b: a * b,
    "fdiv": fdiv,
    "fmod": fmod,
    "fdivi": fdivi,
    "fmodi": fmodi,
    "fneg": lambda a: -a,
    "fabs": abs,
    "fmin": fmin,
    "fmax": fmax,
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "round": _integral(round),
    "sqrt": sqrt,
    "exp": exact.exp,
    "ln": exact.ln,
    "tanh": exact.tanh,
    "stop": lambda a: a,
    "tofloat": float,
    "toint": toint,
    "utoint": utoint,
    "floatbits": floatbits,
    "ubits": floatbits,
    "bitsfloat": bitsfloat,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "band": lambda a, b: a and b,
    "bor": lambda a, b: a or b,
    "bnot": lambda a: not a,
}
"""Every scalar op but `table`, which needs its attribute."""
