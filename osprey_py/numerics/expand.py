"""exp, ln and tanh for compiled backends: kernel IR of an op's correctly rounded value.

Comes in: the operand of an `exp`, `ln` or `tanh` node. Goes out: IR without these ops. Spec: N1-N4; the same bytes as
exact.py, which defines them.

Two phases (after Ziv, and Gal's accurate tables). The fast phase gives hi + lo, an unevaluated sum of doubles, with a
bound e on its error that is derived beside it. Where hi + (lo - e) and hi + (lo + e) round to the same double, that is
the value; elsewhere - one element in some thousands or millions - the exact phase decides in 192-bit integers.
No operation here needs a fixed order for the bytes' sake: any evaluation within the bounds ends at the same double.
"ulp" facts used throughout: a sum of size s rounds with an error below 2^-53 s; `split` makes products exact.
Fast2Sum(a, b), |a| >= |b|: s = a + b, error b - (s - a), exactly.
"""

from __future__ import annotations

from osprey_py.kernel.ir import BOOL, FLOAT, Node, const, rebuild, walk
from osprey_py.numerics import limbs, tables
from osprey_py.numerics.build import V, minimum, rare, select, split, table

_MAGIC = 1.5 * 2.0**52
_MAGIC_BITS = 0x4338000000000000
_INF = float("inf")
_NAN = float("nan")
_EXP_LARGEST = float.fromhex("0x1.62e42fefa39efp+9")
"""The largest x whose e^x is finite."""


def _polynomial(x: V, coefficients: tuple[float, ...]) -> V:
    """Horner; the coefficient of the highest power first."""
    total = V(const(coefficients[0]))
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _significand(bits: V) -> V:
    """The 53-bit significand of a normal double, as an int, from the double's bits."""
    return (bits & ((1 << 52) - 1)) | (1 << 52)


# --- exp ----------------------------------------------------------------------------------------------------


def exp_fast(y: V) -> tuple[V, V, V]:
    """(k, hi, lo) with e^y = 2^(k >> 7) · (hi + lo + d), 0.997 < hi + lo < 2, |lo| < 2^-25, for |y| < 747.

    |d| < 2^-75.2; for |y| < 40 it is below 2^-76.2. Derivation:
      k = round(128 y / ln 2), |k| < 2^17.1. L1 = the head of ln 2 / 128 has 35 bits on the grid of 2^-42, so k·L1 is
      exact; t = y - k·L1 is exact too (|y| > 2^-9 unless k = 0, so both are multiples of 2^-61, and |t| < 2^-8.5).
      w = k·L2 < 2^-24.9 is off by 2^-78 (rounding) + 2^-79 (L2 itself). rh + rl = t - w, exact but for 2^-77 where
      |t| < |w|. So r = rh + rl is off by 2^-76.9 at most, 2^-81 for |y| < 40 (there |k| < 2^12.9).
      e^r - 1 = r + r²/2 + r³ q(r), |r| < 2^-8.5. With rh = ra + rb split: ra²/2 is exact, ra·rb is exact, rb²/2 + rh·rl
      is tiny; r³ q(r) < 2^-28 is off by 2^-79, the series cut after r^7/5040 by 2^-83.
      sh + sl = e^r - 1 with sl < 2^-27.4, its sums off by 2^-79. sh = sa + sb split.
      T = th + tl = 2^(i/128): th has 26 bits, tl is off by 2^-79. T (1 + s) = th + th·sa + [th·sb + (tl + tl·sh + T·sl)]:
      th·sa and th·sb are exact, the first sum is Fast2Sum, the bracket rounds by less than 4 · 2^-79.
    """
    shifted = y * tables.STEPS_OVER_LN2 + _MAGIC
    k = shifted.bits() - _MAGIC_BITS
    steps = shifted - _MAGIC
    l1, l2 = tables.LN2_STEP
    t = y - steps * l1
    w = steps * l2
    rh = t - w
    rl = (t - rh) - w
    ra, rb = split(rh)
    half_square = ra * ra * 0.5
    q = _polynomial(rh, (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6))
    cube = (rh * rh) * rh * q
    sh = rh + half_square
    error = half_square - (sh - rh)
    sl = error + (ra * rb + (cube + (rl + (rb * rb * 0.5 + rh * rl))))
    sa, sb = split(sh)
    heads, tails = tables.exp_table()
    i = k & (tables.STEPS - 1)
    th, tl = table(heads, FLOAT, i), table(tails, FLOAT, i)
    product = th * sa
    hi = th + product
    lo = (product - (hi - th)) + (th * sb + (tl + (tl * sh + (th + tl) * sl)))
    return k, hi, lo


EXP_BOUND = 2.0**-74
"""Covers |d| < 2^-75.2 and the rounding of lo ± bound (2^-78)."""


def _pack(e: limbs.Wide, n: V) -> V:
    """E · 2^n rounded to a double, for 1 < E < 2.04 not a midpoint; gradual underflow, overflow to inf.

    Only the top limb is read: below its lowest bit the value is never zero, so rounding half up is rounding to nearest.
    """
    top = e[2]
    above = select(top.lt(0), 1, 0)  # bit 191: E >= 2
    exponent = n + above
    lost = select(exponent.lt(-1022), V(const(-1022)) - exponent, 0)
    lost = select(lost.lt(54), lost, 54)
    mantissa = (top.shru(above + 9).shru(lost) + 1).shru(1)
    field = select(lost.eq(0), exponent + 1022, 0)
    return (mantissa + (field << 52)).float()


def exp(x: V) -> V:
    """Correctly rounded e^x."""
    k, hi, lo = exp_fast(x)
    low, high = hi + (lo - EXP_BOUND), hi + (lo + EXP_BOUND)
    scaled = (low.bits() + ((k >> 7) << 52)).float()
    # Below -707 the result may be subnormal: one rounding at its own precision is wanted, which is the exact phase's.
    undecided = low.ne(high).either(x.lt(-707.0))
    result = rare(undecided, _exp_exact(x, k), scaled)
    result = select(V(const(_EXP_LARGEST)).lt(x), _INF, result)
    result = select(x.lt(-746.0), 0.0, result)
    # x = 0 and subnormal or tiny x are decided as 1 by the fast phase.
    return select(x.ne(x), _NAN, result)


def _exp_exact(x: V, k: V) -> V:
    """For x that the fast phase left undecided: then |x| > 2^-55 (closer to 0 the answer is 1 by a wide margin)."""
    bits = x.bits()
    mantissa = _significand(bits)
    exponent = (bits.shru(52) & 0x7FF) - 1075
    n = (k - 1) >> 7
    return _pack(limbs.exp(mantissa, exponent, bits.lt(0), n), n)


# --- ln -----------------------------------------------------------------------------------------------------

_LN_RELATIVE, _LN_BOUND = 2.0**-66, 2.0**-74


def ln_fast(x: V) -> tuple[V, V, V, V, V]:
    """(bits, e, hi, lo, bound): ln x = hi + lo within the bound, for 0 < x < inf. bits: of x, or of 2^54 x where x is
    subnormal; x = 2^e m with 0.705 <= m < 1.41.

    z = m·c - 1, |z| < 2^-7.9, as zh + zl: with m = ma + mb split, ma·c - 1 and mb·c are exact (c has 20 bits), and
    TwoSum is exact. ln x = (e·ln 2 - ln c) + ln(1 + z); the bracket's head is on the grid of 2^-42 and exact, its tail
    off by 2^-86.
    ln(1 + z) = z - z²/2 + z³ Q(z), Q cut after z^6/9: below z^10/10. With zh = za + zb split: za²/2 and za·zb exact.
    z³ Q < 2^-25 is off by 2^-77; the sums of lo (below 2^-25) by 2^-78 each. In all below 2^-75.
    In the interval of 1.0, with e = 0, the head is 0, zl = 0 and everything shrinks with z: relative to z the cube is
    off by z²/3 · 2^-51 and the sums by z²/3 · 2^-52, below 2^-68 together, Q's rest by z^9/10 < 2^-74.
    So the bound is min(2^-74, 2^-66 |ln x|).
    """
    tiny = x.lt(2.0**-1022)
    scaled = select(tiny, x * 2.0**54, x)
    bits = scaled.bits()
    offset = bits - tables.LN_OFFSET
    i = offset.shru(45) & (tables.STEPS - 1)
    e = (offset >> 52) - select(tiny, 54, 0)
    m = (bits - (offset & (-1 << 52))).float()
    cs, heads, tails = tables.ln_table()
    c, head, tail = (table(column, FLOAT, i) for column in (cs, heads, tails))
    ma, mb = split(m)
    p, q = ma * c - 1.0, mb * c
    zh = p + q
    back = zh - p
    zl = (p - (zh - back)) + (q - back)
    za, zb = split(zh)
    half_square = za * za * 0.5
    series = _polynomial(zh, (1 / 9, -1 / 8, 1 / 7, -1 / 6, 1 / 5, -1 / 4, 1 / 3))
    cube = (zh * zh) * zh * series
    ef = V(Node("tofloat", FLOAT, (e.node,)))
    l1, l2 = tables.LN2_GRID
    base = ef * l1 + head
    first = base + zh
    error1 = zh - (first - base)
    hi = first - half_square
    error2 = (first - hi) - half_square
    lo = error1 + (error2 + ((zl - (za * zb + (zb * zb * 0.5 + zh * zl))) + (cube + (ef * l2 + tail))))
    return bits, e, hi, lo, minimum(hi.abs() * _LN_RELATIVE, _LN_BOUND)


def ln(x: V) -> V:
    """Correctly rounded natural logarithm."""
    bits, e, hi, lo, bound = ln_fast(x)
    low, high = hi + (lo - bound), hi + (lo + bound)
    result = rare(low.ne(high), _ln_exact(bits, e, low, high), low)
    result = select(x.eq(_INF), _INF, result)
    result = select(x.eq(0.0), -_INF, result)
    return select(x.lt(0.0).either(x.ne(x)), _NAN, result)


def _midpoint(low: V, high: V) -> tuple[V, V, V]:
    """(mantissa, exponent, the smaller in size, without its sign) where mantissa · 2^exponent is the middle of the
    neighbouring doubles |low| and |high|, both normal."""
    a, b = low.abs().bits(), high.abs().bits()
    small = select(a.lt(b), a, b)
    mantissa = (_significand(small) << 1) + 1
    exponent = small.shru(52) - 1076
    return mantissa, exponent, small.float()


def _ln_exact(bits: V, e: V, low: V, high: V) -> V:
    """Neighbours low < high around ln x: high when ln x lies above their middle c, that is when e^c < x.

    e^c = E · 2^n is off by 2^-177 (relative), and |ln x - c| > 2^-160: the hardest case known lies 2^-65.2 ulp away
    (ulp > 2^-105 below the interval of 1.0; in it ln x = z - z²/2 + z³/3 - … stays z³/3 - … > 2^-158 away).
    x / 2^n and E lie in (1, 2.04), so x's mantissa is shifted by 0 or 1 against E's top limb; E's lower limbs are never
    all zero, so equal top limbs mean e^c > x.
    """
    mantissa, exponent, size = _midpoint(low, high)
    negative = low.lt(0.0)
    signed = select(negative, V(const(0.0)) - size, size)
    k = (signed * tables.STEPS_OVER_LN2 + _MAGIC).bits() - _MAGIC_BITS
    n = (k - 1) >> 7
    e_top = limbs.exp(mantissa, exponent, negative, n)[2]
    x_mantissa = _significand(bits)
    x_exponent = _exponent(bits, e)
    x_top = x_mantissa << ((x_exponent - n + 10) & 63)
    return select(x_top.leu(e_top), low, high)


def _exponent(bits: V, e: V) -> V:
    """The exponent of x as 1.f · 2^exponent: e, less one where m = x / 2^e is below 1."""
    below_one = (bits & ((1 << 52) - 1)).ltu(V(const(tables.LN_OFFSET & ((1 << 52) - 1))))
    return e - select(below_one, 0, 1)


# --- tanh ---------------------------------------------------------------------------------------------------

_TANH_ONE = 19.07
"""From here on tanh x rounds to 1: 1 - tanh x < 2 e^(-2·19.07) < 2^-54."""

_TANH_SMALL, _TANH_BOUND = 2.0**-67, 2.0**-74


def tanh_fast(size: V) -> tuple[V, V, V, V]:
    """(k, hi, lo, bound): tanh x = hi + lo within the bound, for x = size >= 2^-27; k is exp_fast's, for 2x.

    x < 2^-8: x + x³ P(x²), cut after 62/2835 x^9: the rest is below 2^-85 x; the cube, below 2^-17.5 x, is off by
    2^-69 x. Bound 2^-67 x.
    Else y = 2x >= 2^-7: N/D = (E - 1)/(E + 1) with E = e^y from the core as a normalised sum of two doubles, scaled
    exactly; N and D as sums of two doubles whose tails are below 2^-52 of the heads, so that first-order corrections do.
    q0 = nh · (1/dh) is within 2^-51.4 of nh/dh; its residual nh - q0·dh is taken exactly but for 2^-77 by
    split products, and one more term gives N/D to 2^-77 (relative). E's own error, 2^-76.2 E, moves the quotient by
    2E/(E + 1)² · 2^-76.2 < 2^-77.2. Bound 2^-75 + rounding: 2^-74.
    """
    square = size * size
    small_cube = size * (square * _polynomial(square, (62 / 2835, -17 / 315, 2 / 15, -1 / 3)))
    y = size + size
    k, uh, ul = exp_fast(y)
    power = (((k >> 7) + 1023) << 52).float()
    eh = (uh + ul) * power
    el = (ul - ((uh + ul) - uh)) * power
    nh = eh - 1.0
    nl = ((eh - nh) - 1.0) + el
    dh = eh + 1.0
    dl = ((eh - dh) + 1.0) + el
    reciprocal = 1.0 / dh
    q0 = nh * reciprocal
    (qa, qb), (da, db) = split(q0), split(dh)
    product = q0 * dh
    product_error = ((qa * da - product) + (qa * db + qb * da)) + qb * db
    residual = (nh - product) - product_error
    q1 = (residual + (nl - q0 * dl)) * reciprocal
    is_small = size.lt(2.0**-8)
    hi = select(is_small, size, q0)
    lo = select(is_small, small_cube, q1)
    bound = select(is_small, size * _TANH_SMALL, _TANH_BOUND)
    return k, hi, lo, bound


def tanh(x: V) -> V:
    """Correctly rounded hyperbolic tangent, computed on |x|."""
    size = x.abs()
    k, hi, lo, bound = tanh_fast(size)
    low, high = hi + (lo - bound), hi + (lo + bound)
    result = rare(low.ne(high), _tanh_exact(size, k, low, high), low)
    result = select(size.lt(2.0**-27), size, result)
    result = select(V(const(_TANH_ONE)).lt(size), 1.0, result)
    sign = x.bits() & (-1 << 63)
    return select(x.ne(x), _NAN, (result.bits() | sign).float())


def _tanh_exact(size: V, k: V, low: V, high: V) -> V:
    """Neighbours low < high around tanh|x|: high when it lies above their middle c, that is when E (1 - c) > 1 + c.

    1 - c is exact over 2^190 (2^-28 < c < 1 has at most 54 bits). With E·2^n off by 2^-176 E: the two sides differ by
    (E + 1) |tanh - c| > E · 2^-27 · 2^-114. Both are divided by 8 or 4 so that nothing leaves the three limbs.
    """
    bits = size.bits()
    mantissa = _significand(bits)
    exponent = bits.shru(52) - 1074  # of 2|x|
    n = (k - 1) >> 7
    e = limbs.exp(mantissa, exponent, V(Node("const", BOOL, (), False)), n)
    c_mantissa, c_exponent, _ = _midpoint(low, high)
    c = limbs.place(c_mantissa, c_exponent + tables.FRACTION)
    zero = V(const(0))
    one = (zero, zero, V(const(1 << 62)))
    left = limbs.mul(e, limbs.add(one, limbs.negate(c)))
    left = limbs.shift_left_by(limbs.shift_right(left, 3), (n + 1) & 63)
    right = limbs.shift_right(limbs.add(one, c), 2)
    return select(limbs.less(right, left), high, low)


# --- the pass -----------------------------------------------------------------------------------------------

EXPANSIONS = {"exp": exp, "ln": ln, "tanh": tanh}


def expand(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """The roots with every exp, ln and tanh replaced by its expansion."""
    done: dict[Node, Node] = {}
    for node in walk(roots):
        new = rebuild(node, tuple(done[a] for a in node.args))
        done[node] = EXPANSIONS[new.op](V(new.args[0])).node if new.op in EXPANSIONS else new
    return tuple(done[r] for r in roots)
