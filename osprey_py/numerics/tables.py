"""The constants and tables of the compiled exp, ln and tanh, each computed from its definition in big integers.

Goes out: doubles and 64-bit limbs. Nothing here is typed in by hand but sizes and grids.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import factorial

from osprey_py.numerics import exact
from osprey_py.numerics.build import signed

FRACTION = 190
"""Fixed-point numbers of the exact phase are integers over 2^190 in three 64-bit limbs: values below 4."""

_W = 320
LN2 = exact._ln2(_W)
"""2^320 · ln 2, to within a unit."""

STEPS = 128
"""exp and ln use tables of 128 entries."""


def on_grid(value: int, w: int, bits: int) -> tuple[float, float]:
    """value/2^w = head + tail: head a multiple of 2^-bits (rounded down), tail the nearest double to the rest."""
    head = value >> (w - bits)
    return head / (1 << bits), (value - (head << (w - bits))) / (1 << w)


LN2_STEP = on_grid(LN2 // STEPS, _W, 42)
"""ln 2 / 128: the head has 35 significant bits, so k · head is exact for |k| < 2^18."""

LN2_GRID = on_grid(LN2, _W, 42)
"""ln 2 on the grid of 2^-42: e · head is exact for |e| < 2^11."""

STEPS_OVER_LN2 = (STEPS << _W) / LN2


@lru_cache(maxsize=1)
def exp_table() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """2^(i/128) as heads of 26 significant bits and tails, i = 0 … 127: powers of the 128th root of 2."""
    # 2^(i/128) = exp(i/128 · ln 2), in fixed point with 320 bits, by the oracle's own series.
    heads, tails = [], []
    for i in range(STEPS):
        value, _, k = exact._exp_parts(i * LN2, STEPS << _W, 256)
        value = value << k if k >= 0 else value >> -k
        head, tail = on_grid(value, 256, 25)
        heads.append(head)
        tails.append(tail)
    return tuple(heads), tuple(tails)


LN_OFFSET = 0x3FE6900000000000
"""Bits of the least mantissa, 0.705…: the 128 intervals of 2^45 bit patterns from here put 1.0 in the middle of one."""


@lru_cache(maxsize=1)
def ln_table() -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """(c, heads, tails): c = 20 bits of 1/m at each interval's middle, -ln c = head (on the grid of 2^-42) + tail.
    Exactly 1, with ln 0, in the interval that holds 1.0."""
    from struct import pack, unpack

    def from_bits(b: int) -> float:
        return float(unpack("<d", pack("<q", b))[0])

    ends = [from_bits(LN_OFFSET + (i << 45)) for i in range(STEPS + 1)]
    cs, heads, tails = [], [], []
    for low, high in pairwise(ends):
        # Elsewhere 2/(low + high), which is equally far, relatively, from both ends.
        c = 1.0 if low < 1.0 < high else round(2 / (low + high) * 2**20) / 2**20
        head, tail = on_grid(-_ln_fixed(c), _W, 42)
        cs.append(c)
        heads.append(head)
        tails.append(tail)
    return tuple(cs), tuple(heads), tuple(tails)


def _ln_fixed(c: float) -> int:
    """2^320 · ln c for 0.7 < c < 1.5, to within 2^12 units: ln c = 2 atanh((c - 1)/(c + 1))."""
    n, d = c.as_integer_ratio()
    z = ((n - d) << _W) // (n + d)
    square, power, total, odd = z * z >> _W, z, 0, 1
    while power not in (0, -1):
        total += power // odd
        power = power * square >> _W
        odd += 2
    return 2 * total


def limbs(value: int) -> tuple[int, int, int]:
    """A fixed-point value as three int64 limbs, the least significant first."""
    return signed(value), signed(value >> 64), signed(value >> 128)


LN2_LIMBS = limbs(LN2 >> (_W - FRACTION))

TERMS = 19


@lru_cache(maxsize=1)
def taylor_limbs() -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """1/18!, …, 1/1!, 1/0! over 2^190, one tuple for each limb: the coefficients of exp in Horner's order."""
    rows = [limbs((1 << FRACTION) // factorial(i)) for i in reversed(range(TERMS))]
    low, middle, high = zip(*rows, strict=True)
    return low, middle, high
