"""The constants and tables of the compiled exp, ln and tanh, each computed from its definition in big integers.

Goes out: doubles and 64-bit limbs. Nothing here is typed in by hand but sizes and grids.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import factorial
from struct import pack, unpack

from osprey_py.numerics import exact
from osprey_py.numerics.build import signed

FRACTION = 190
"""Fixed-point numbers of the exact phase are integers over 2^190 in three 64-bit limbs: values below 4."""

_W = 320
LN2 = exact._ln2(_W)
"""2^320 · ln 2, to within a unit."""

STEPS = 16
"""The fast phase of exp steps by the 16th root of 2: two registers of AVX-512 hold such a table."""

EXACT_STEPS = 128
"""The exact phases find floor(x / ln 2) to within a 128th."""


def on_grid(value: int, w: int, bits: int) -> tuple[float, float]:
    """value/2^w = head + tail: head a multiple of 2^-bits (rounded down), tail the nearest double to the rest."""
    head = value >> (w - bits)
    return head / (1 << bits), (value - (head << (w - bits))) / (1 << w)


LN2_STEP = on_grid(LN2 // STEPS, _W, 56)
"""ln 2 / 16: the head has 52 significant bits, the tail is below 2^-56."""

LN2_GRID = on_grid(LN2, _W, 42)
"""ln 2 on the grid of 2^-42: e · head is exact for |e| < 2^11."""

STEPS_OVER_LN2 = (STEPS << _W) / LN2
EXACT_STEPS_OVER_LN2 = (EXACT_STEPS << _W) / LN2


@lru_cache(maxsize=1)
def exp_table() -> tuple[tuple[int, ...], tuple[float, ...]]:
    """2^(i/16) = T (1 + tail), i = 0 … 15: the bits of the nearest double T less i·2^48, and the tail, below 2^-53.

    With k·2^48 added, k = 16 n + i, the bits are those of 2^n T."""
    # 2^(i/16) = exp(i/16 · ln 2), in fixed point with 256 bits, by the oracle's own series.
    bits, tails = [], []
    for i in range(STEPS):
        value, _, k = exact._exp_parts(i * LN2, STEPS << _W, 256)
        value = value << k if k >= 0 else value >> -k
        nearest = value / (1 << 256)
        rest = (value << 52) - (round(nearest * 2**52) << 256)
        bits.append(_bits(nearest) - (i << 48))
        tails.append(rest / (round(nearest * 2**52) << 256))
    return tuple(bits), tuple(tails)


EXP_REACH = Fraction(2167, 100_000)
"""The fast phase's reduced arguments are smaller: half a step is 0.021661, and rounding y · 16 / ln 2 adds 2^-40."""


@lru_cache(maxsize=1)
def exp_series() -> tuple[float, ...]:
    """Of q in e^t = 1 + t + t²/2 + t³ q(t), for |t| <= EXP_REACH, the highest power first."""
    return economised([Fraction(1, factorial(j + 3)) for j in range(12)], 5, EXP_REACH)


LN_STEPS = 32
LN_OFFSET = 0x3FE8A80000000000
"""Bits of the least mantissa, 0.7706…: the 32 intervals of 2^47 bit patterns from here end at twice that; 1.0 is well
inside one of them."""

LN_REACH = Fraction(2201, 100_000)
"""|m c - 1| is no larger (the tests look at the ends of each interval)."""


@lru_cache(maxsize=1)
def ln_table() -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """(c, heads, tails): c near 1/m in each interval, -ln c = head (on the grid of 2^-42) + tail.

    c is a multiple of 1/32 where m < 1, of 1/64 where m >= 1, so that m c - 1 is a multiple of 2^-58: below 2^-5 it is a
    double. Of these c, the one that is best at the ends of its interval and 1, or at least so far from it that
    |ln c| > |m c - 1|: sums that begin with -ln c are then in order."""
    ends = [_float(LN_OFFSET + (i << 47)) for i in range(LN_STEPS + 1)]
    cs, heads, tails = [], [], []
    for low, high in pairwise(ends):
        grid = 64 if low >= 1.0 else 32
        middle = round(2 * grid / (low + high))
        reach = {
            j / grid: max(abs(low * j / grid - 1), abs(high * j / grid - 1)) for j in range(middle - 2, middle + 3)
        }
        # |ln c| is more than this.
        usable = [c for c in reach if c == 1.0 or abs(c - 1) / max(c, 1) >= reach[c]]
        c = min(usable, key=lambda c: reach[c])
        cs.append(c)
        head, tail = on_grid(-_ln_fixed(c), _W, 42)
        heads.append(head)
        tails.append(tail)
    return tuple(cs), tuple(heads), tuple(tails)


@lru_cache(maxsize=1)
def ln_series() -> tuple[float, ...]:
    """Of Q in ln(1 + z) = z - z²/2 + z³ Q(z), for |z| <= LN_REACH, the highest power first."""
    return economised([Fraction((-1) ** j, j + 3) for j in range(16)], 7, LN_REACH)


def economised(series: list[Fraction], degree: int, reach: Fraction) -> tuple[float, ...]:
    """A power series (its constant first) cut to a degree with little error on |x| <= reach (Lanczos): from the highest
    power c x^n down, c reach^n T_n(x / reach) / 2^(n-1) is taken away, whose values are below c reach^n / 2^(n-1) and
    whose highest term is c x^n. The coefficients rounded, the highest power first."""
    left = list(series)
    for n in range(len(left) - 1, degree, -1):
        before, chebyshev = [Fraction(1)], [Fraction(0), Fraction(1)]
        for _ in range(n - 1):
            twice = [Fraction(0), *(2 * c for c in chebyshev)]
            longer = [*before, Fraction(0), Fraction(0)]
            before, chebyshev = chebyshev, [a - b for a, b in zip(twice, longer, strict=True)]
        top = left[n]
        for j, c in enumerate(chebyshev):
            left[j] -= top * c / chebyshev[n] * reach ** (n - j)
    return tuple(float(c) for c in reversed(left[: degree + 1]))


def _float(bits: int) -> float:
    return float(unpack("<d", pack("<q", bits))[0])


def _bits(x: float) -> int:
    return int(unpack("<q", pack("<d", x))[0])


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
