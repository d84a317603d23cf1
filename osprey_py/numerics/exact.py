"""exp, ln and tanh of one binary64, correctly rounded, by integer arithmetic: the definition that the oracle runs.

Comes in: a float. Goes out: the binary64 nearest to the mathematical value, ties to even (spec/numerics, N1-N4).

Method. A value is enclosed between two integers over 2^w, both ends are rounded, and when they round to the same double
that is the answer; otherwise w is doubled (Ziv's strategy). exp, ln and tanh of a binary64 other than the exact cases
handled first are transcendental (Lindemann), never a midpoint of two doubles, so the loop ends. Python's int / int is
correctly rounded, subnormals included, which makes the final rounding a single division.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_START_BITS = 160


def _round(enclose: Callable[[int], tuple[tuple[int, int], tuple[int, int]]]) -> float:
    """enclose(w) gives two fractions (numerator, denominator) around the value, closer as w grows."""
    w = _START_BITS
    while True:
        (low_n, low_d), (high_n, high_d) = enclose(w)
        low, high = _divide(low_n, low_d), _divide(high_n, high_d)
        if low == high:
            return low
        w *= 2


def _divide(n: int, d: int) -> float:
    try:
        return n / d
    except OverflowError:
        return math.inf if n > 0 else -math.inf


def _atanh_inverse(k: int, w: int) -> int:
    """2^w · atanh(1/k) for an integer k >= 2; error below w units (each term is floored, and there are fewer than w)."""
    power, square, total, odd = (1 << w) // k, k * k, 0, 1
    while power:
        total += power // odd
        power //= square
        odd += 2
    return total


@lru_cache(maxsize=16)
def _ln2(w: int) -> int:
    """2^w · ln 2 = 2^w · (18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749)); error below 1 unit."""
    guard = w.bit_length() + 6  # 28 series errors of w + guard units, in units of 2^-guard
    v = w + guard
    total = 18 * _atanh_inverse(26, v) - 2 * _atanh_inverse(4801, v) + 8 * _atanh_inverse(8749, v)
    return total >> guard


def _exp_parts(n: int, d: int, w: int) -> tuple[int, int, int]:
    """(a, e, k) with |exp(n/d) - a·2^(k-w)| <= e·2^(k-w); d is a power of two, |n/d| < 2^11.

    r = x - k·ln 2 with |r| <= 0.35, in fixed point: 1 unit from flooring x, |k| + 1 from ln 2. exp(r) = exp(r/2^8)^(2^8)
    by Taylor: each of fewer than w/8 terms errs by 2 units and what the argument's error adds is below it; every squaring
    doubles the relative error and adds 1 unit, values below 2 throughout.
    """
    ln2 = _ln2(w)
    x = (n << w) // d
    k = (2 * x + ln2) // (2 * ln2)
    t = (x - k * ln2) >> 8
    term = total = 1 << w
    i = 1
    while term not in (0, -1):
        term = term * t >> w
        term //= i
        total += term
        i += 1
    for _ in range(8):
        total = total * total >> w
    error = (3 * i + abs(k) + 8) << 10
    return total, error, k


def exp(x: float) -> float:
    """e^x; exp(+-0) = 1, exp(-inf) = 0, overflow to inf, gradual underflow, NaN for NaN."""
    if x != x:
        return math.nan
    if x == 0.0:
        return 1.0
    if x > 710.0:
        return math.inf
    if x < -746.0:
        return 0.0
    n, d = x.as_integer_ratio()

    def enclose(w: int) -> tuple[tuple[int, int], tuple[int, int]]:
        a, e, k = _exp_parts(n, d, w)
        low, high = a - e, a + e
        if k >= w:
            return (low << (k - w), 1), (high << (k - w), 1)
        return (low, 1 << (w - k)), (high, 1 << (w - k))

    return _round(enclose)


def ln(x: float) -> float:
    """The natural logarithm; ln(+-0) = -inf, ln(x < 0) = NaN, ln(1) = +0, ln(inf) = inf."""
    if x != x or x < 0.0:
        return math.nan
    if x == 0.0:
        return -math.inf
    if x == math.inf:
        return x
    if x == 1.0:
        return 0.0
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    m, scale = mantissa.as_integer_ratio()

    def enclose(w: int) -> tuple[tuple[int, int], tuple[int, int]]:
        # ln m = 2 atanh(z), z = (m - 1)/(m + 1), |z| < 0.18: fewer than w terms, each off by less than 4 units
        z = ((m - scale) << w) // (m + scale)
        square = z * z >> w
        power, total, odd = z, 0, 1
        while power not in (0, -1):
            total += power // odd
            power = power * square >> w
            odd += 2
        value = 2 * total + exponent * _ln2(w)
        error = 8 * w + abs(exponent) + 8
        return (value - error, 1 << w), (value + error, 1 << w)

    return _round(enclose)


def tanh(x: float) -> float:
    """The hyperbolic tangent; tanh(+-0) = +-0, tanh(+-inf) = +-1.

    Below 2^-27 the answer is x: |x - tanh x| < |x|^3/3 < 2^-55·|x|, less than half the gap to either neighbour of x (a
    quarter of an ulp at a power of two, 2^-54·|x|). Above 19.07 it is 1: 1 - tanh x < 2·exp(-2·19.07) < 2^-54.
    """
    if x != x:
        return math.nan
    if abs(x) < 2.0**-27:
        return x
    if abs(x) > 19.07:
        return math.copysign(1.0, x)
    n, d = abs(x).as_integer_ratio()

    def enclose(w: int) -> tuple[tuple[int, int], tuple[int, int]]:
        # tanh = (E - 1)/(E + 1) with E = exp(2x) > 1, increasing in E
        a, e, k = _exp_parts(2 * n, d, w)
        one = 1 << w
        low, high = (a - e) << k, (a + e) << k
        return (max(low - one, 0), low + one), (high - one, high + one)

    return math.copysign(_round(enclose), x)
