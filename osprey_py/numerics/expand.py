"""exp, ln and tanh for compiled backends: kernel IR of an op's correctly rounded value.

Comes in: the operand of an `exp`, `ln` or `tanh` node. Goes out: IR without these ops. Spec: N1-N4; the same bytes as
exact.py, which defines them.

Two phases (after Ziv, and Tang's tables). The fast phase gives hi + lo, an unevaluated sum of doubles, with a bound
on its error that is derived beside it. Where hi + (lo - bound) and hi + (lo + bound) round to the same double, that is
the value; elsewhere - one element in some ten thousand - the exact phase decides in 192-bit integers.
No operation here needs a fixed order for the bytes' sake: any evaluation within the bounds ends at the same double. So
targets may fuse what `muladd` and `residue` say, and nothing else (build.py).
Used throughout: u = 2^-53; a result of size s rounds with an error below u s. Fast2Sum(a, b), |a| >= |b|: s = a + b,
error b - (s - a), exactly. What is of second order (u times what is said to be off) is left out; every bound has room.
"""

from __future__ import annotations

from osprey_py.kernel.ir import BOOL, FLOAT, INT, Node, const, rebuild, walk
from osprey_py.numerics import limbs, tables
from osprey_py.numerics.build import V, muladd, rare, residue, select, smaller, table

_MAGIC = 1.5 * 2.0**52
_MAGIC_BITS = 0x4338000000000000
_INF = float("inf")
_NAN = float("nan")
_EXP_LARGEST = float.fromhex("0x1.62e42fefa39efp+9")
"""The largest x whose e^x is finite."""


def _polynomial(x: V, half_square: V, coefficients: tuple[float, ...]) -> V:
    """Odd and even powers by Horner side by side, then even + x · odd: as many steps, half the waiting. They go up by
    h = x²/2, their coefficients doubled at each step. The coefficient of the highest power, which is odd, first."""
    steps = len(coefficients) // 2 - 1
    odd, even = (V(const(c * 2.0**steps)) for c in coefficients[:2])
    for one, other in zip(coefficients[2::2], coefficients[3::2], strict=True):
        steps -= 1
        odd, even = muladd(odd, half_square, one * 2.0**steps), muladd(even, half_square, other * 2.0**steps)
    return muladd(odd, x, even)


def _significand(bits: V) -> V:
    """The 53-bit significand of a normal double, as an int, from the double's bits."""
    return (bits & ((1 << 52) - 1)) | (1 << 52)


def _floor_over_ln2(y: V) -> V:
    """The n that limbs.exp asks for, for |y| < 747: of k = 128 y / ln 2 rounded, (k - 1) >> 7."""
    return ((y * tables.EXACT_STEPS_OVER_LN2 + _MAGIC).bits() - _MAGIC_BITS - 1) >> 7


# --- exp ----------------------------------------------------------------------------------------------------


def exp_fast(y: V) -> tuple[V, V, V, V]:
    """(scale, hi, lo, cube) with e^y = hi + lo + d for -660 < y < 709: |d| < scale · (|cube| · 2^-51.1 + 2^-84), for
    |y| < 40 even scale · (|cube| · 2^-51.1 + 2^-92); |hi + lo - scale| < 0.022 scale, |lo| < scale · 2^-18; cube is t³/2,
    below 2^-17.5.

      k = round(16 y / ln 2), |k| < 2^14.1. With L1 = the head of ln 2 / 16 (52 bits), t = y - k·L1 is exact: k = 0, or
      |y| > 2^-5.6 and both are multiples of 2^-58, |t| < 0.02167 < 2^-5.5. k·L2 < 2^-41.9 is off by 2^-95.
      e^y = 2^(k/16) · e^t · (1 - k·L2) but for half the square of k·L2: 2^-84.8, for |y| < 40 2^-93. 2^(k/16) =
      scale · (1 + tail), scale = 2^n T to the nearest double; c = tail - k·L2.
      e^t = 1 + t + t²/2 + t³ q(t). t²/2 is exact in two doubles; sh + se = t + its head exactly (Fast2Sum). With
      sl = se + its tail + t³ q, e^t - 1 = sh + sl.
      t³ q, q < 0.168, is off by u t³/6 each for the square, the cube, the last step of q, its constant, the product
      (if not fused), and by 0.02 for its other steps: 5.1 u t³/6. q's series is cut below t³ · 2^-56.6 = 0.5 u t³/6.
      scale (1 + sh) = hi + the error of the product (residue) + that of the sum (Fast2Sum), both below 2^-57 scale. lo adds
      scale · sl, these and c times all of it (hi alone would leave c · 2^-19 out); four roundings of t³ q's size, and one
      when the bound is added: 5 u t³/6.
      In all below 10.6 u t³/6 < 2^-52.18 t³ by adding up the worst of each.
    """
    shifted = muladd(y, tables.STEPS_OVER_LN2, _MAGIC)
    steps = shifted - _MAGIC
    l1, l2 = tables.LN2_STEP
    t = residue(steps, -l1, y)
    bits, tails = tables.exp_table()
    i = shifted.bits() & (tables.STEPS - 1)
    scale = (table(bits, INT, i) + (shifted.bits() << 48)).float()
    c = muladd(steps, -l2, table(tails, FLOAT, i))
    half = t * 0.5
    half_square = t * half
    cube = half_square * t
    sh = t + half_square
    se = (t - sh) + half_square
    q = _polynomial(t, half_square, tuple(2.0 * a for a in tables.exp_series()))
    sl = muladd(cube, q, se + residue(t, half, -half_square))
    product = scale * sh
    hi = scale + product
    rest = (product - (hi - scale)) + muladd(scale, sl, residue(scale, sh, -product))
    return scale, hi, muladd(hi + rest, c, rest), cube


EXP_BOUND_BITS = 68
"""The bound of exp is scale · 2^-68: it covers t³ · 2^-52.18 < 2^-68.7 and 2^-84."""


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
    scale, hi, lo, _ = exp_fast(x)
    bound = (scale.bits() - (EXP_BOUND_BITS << 52)).float()
    low, high = hi + (lo - bound), hi + (lo + bound)
    zero = x.lt(-746.0)
    # Below -660 parts of lo may be subnormal, below -707 the result: one rounding at its own precision is wanted.
    outside = V(const(660.0)).lt(x.abs()).both(zero.negated())
    # x = 0 and subnormal or tiny x are decided as 1; NaN comes out of every step as NaN and is never undecided.
    return rare(low.lt(high).either(outside), _exp_exact(x), select(zero, 0.0, low))


def _exp_exact(x: V) -> V:
    """For x that the fast phase left undecided: then |x| > 2^-55 (closer to 0 the answer is 1 by a wide margin). Beyond
    ±746, where anything may look undecided, 0 and infinity."""
    bits = x.bits()
    mantissa = _significand(bits)
    exponent = (bits.shru(52) & 0x7FF) - 1075
    n = _floor_over_ln2(x)
    finite = select(x.lt(-746.0), 0.0, _pack(limbs.exp(mantissa, exponent, bits.lt(0), n), n))
    return select(V(const(_EXP_LARGEST)).lt(x), _INF, finite)


# --- ln -----------------------------------------------------------------------------------------------------

LN_CUBE, LN_REST = 2.0**-50, 2.0**-74
"""The bound of ln is LN_CUBE |z³/2| + LN_REST |hi|."""


def ln_fast(x: V, shift: V | int = 0) -> tuple[V, V, V, V]:
    """(e, hi, lo, bound): ln (x / 2^shift) = hi + lo within the bound, for normal x > 0; x = 2^(e + shift) m with
    0.770 < m < 1.541.

    z = m·c - 1 is exact, |z| < 2^-5.5: tables.ln_table chooses c so. ln x = (e·ln 2 - ln c) + ln(1 + z); the bracket's head
    is on the grid of 2^-42 and exact, its tail, below 2^-31, off by 2^-84 (relative to ln x, 2^-78).
    ln(1 + z) = z - z²/2 + z³ Q(z). z²/2 is exact in two doubles, and both sums are Fast2Sum: the head is 0 or at least |z|,
    and what comes out is then larger than z²/2.
    z³ Q, Q < 0.341, is off by u each for the square, the cube, the last step of Q, its constant, the product (if not fused)
    and 0.1 u for its other steps: 5.1 u · 0.341 z³. Q's series is cut below z³ · 2^-54.5 = 0.36 u z³. lo adds four terms
    and the bound: 5 u · 0.341 z³, and 5 u of what the sums left, below u |hi| each. In all 3.8 u z³ + 2^-77 |hi|.
    In the interval of 1.0, with e = 0, head and tail are 0 and everything else is relative to z.
    """
    bits = x.bits()
    offset = bits - tables.LN_OFFSET
    i = offset.shru(47) & (tables.LN_STEPS - 1)
    e = (offset >> 52) - shift
    m = (bits - (offset & (-1 << 52))).float()
    c, head, tail = (table(column, FLOAT, i) for column in tables.ln_table())
    z = residue(m, c, -1.0)
    half = z * 0.5
    half_square = z * half
    cube = half_square * z
    ef = V(Node("tofloat", FLOAT, (e.node,)))
    l1, l2 = tables.LN2_GRID
    base = muladd(ef, l1, head)
    first = base + z
    error1 = z - (first - base)
    hi = first - half_square
    error2 = (first - hi) - half_square
    errors = (error1 + error2) - residue(z, half, -half_square)
    series = _polynomial(z, half_square, tuple(2.0 * a for a in tables.ln_series()))
    lo = errors + muladd(cube, series, muladd(ef, l2, tail))
    return e, hi, lo, muladd(cube.abs(), LN_CUBE, hi.abs() * LN_REST)


def ln(x: V) -> V:
    """Correctly rounded natural logarithm."""
    _, hi, lo, bound = ln_fast(x)
    low, high = hi + (lo - bound), hi + (lo + bound)
    # One unsigned comparison for the bits of a normal positive number; those of a NaN are larger, or negative.
    least, above = 1 << 52, 0x7FF << 52
    usual = (x.bits() - least).ltu(V(const(above - least)))
    return rare(low.lt(high).either(usual.negated()), _ln_slow(x), low)


def _ln_slow(x: V) -> V:
    """For what the fast phase leaves undecided and what it is not made for: subnormal x are scaled first."""
    tiny = x.lt(2.0**-1022)
    scaled = select(tiny, x * 2.0**54, x)
    e, hi, lo, bound = ln_fast(scaled, select(tiny, 54, 0))
    low, high = hi + (lo - bound), hi + (lo + bound)
    special = select(x.eq(_INF), _INF, select(x.eq(0.0), -_INF, _NAN))
    decided = rare(low.lt(high), _ln_exact(scaled.bits(), e, low, high), low)
    return rare(V(const(0.0)).lt(x).both(x.lt(_INF)), decided, special)


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
    n = _floor_over_ln2(signed)
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

TANH_CUBE, TANH_REST = 2.0**-52, 2.0**-74
"""The bound of tanh is TANH_CUBE · |t³/2| + TANH_REST · hi, with exp_fast's t for 2x."""


def tanh_fast(size: V) -> tuple[V, V, V]:
    """(hi, lo, bound): tanh x = hi + lo within the bound, for x = size, 2^-27 <= x <= 20.

    N/D = (E - 1)/(E + 1) with E = e^2x, the core's sum normalised to h + tail (Fast2Sum). N = nh + nl and D = dh + dl with
    nh = h - 1, dh = h + 1 and tails below 2^-52 (of 1 and of dh), so that first-order corrections do. Where k = 0, all of
    h - 1 is exact, and what the core is off by is relative to t: nothing is lost for small x.
    q0 = nh · (1/dh) is within 2^-51.4 of nh/dh; its residual nh - q0·dh is exact but for 2^-103, and one more term gives
    N/D: |nl| < 2^-26 nh, so what it rounds by stays below 2^-77 (relative).
    E's own error d moves the quotient by 2 d/(E + 1)². With d < scale · t³ · 2^-52.18, scale < 1.023 E and
    E/(E + 1)² <= 1/4 that is below t³ · 2^-53.14, the first part of the bound. scale · 2^-92 is far below the second:
    where k > 0, tanh x > 2^-6.6.
    """
    _, eh, el, cube = exp_fast(size + size)
    h = eh + el
    tail = el - (h - eh)
    nh = h - 1.0
    nl = ((h - nh) - 1.0) + tail
    dh = h + 1.0
    dl = ((h - dh) + 1.0) + tail
    reciprocal = 1.0 / dh
    q0 = nh * reciprocal
    minus = -q0
    q1 = (residue(minus, dh, nh) + muladd(minus, dl, nl)) * reciprocal
    bound = muladd(cube.abs(), TANH_CUBE, q0 * TANH_REST)
    return q0, q1, bound


def tanh(x: V) -> V:
    """Correctly rounded hyperbolic tangent, computed on |x|, from 20 on as that of 20: 1. (A NaN stays one.)"""
    size = smaller(20.0, x.abs())
    hi, lo, bound = tanh_fast(size)
    low, high = hi + (lo - bound), hi + (lo + bound)
    tiny = size.lt(2.0**-27)
    undecided = low.lt(high).both(tiny.negated())
    result = rare(undecided, _tanh_exact(size, low, high), select(tiny, size, low))
    sign = x.bits() & (-1 << 63)
    return (result.bits() | sign).float()


def _tanh_exact(size: V, low: V, high: V) -> V:
    """Neighbours low < high around tanh|x|: high when it lies above their middle c, that is when E (1 - c) > 1 + c.

    1 - c is exact over 2^190 (2^-28 < c < 1 has at most 54 bits). With E·2^n off by 2^-176 E: the two sides differ by
    (E + 1) |tanh - c| > E · 2^-27 · 2^-114. Both are divided by 8 or 4 so that nothing leaves the three limbs.
    """
    bits = size.bits()
    mantissa = _significand(bits)
    exponent = bits.shru(52) - 1074  # of 2|x|
    n = _floor_over_ln2(size + size)
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
