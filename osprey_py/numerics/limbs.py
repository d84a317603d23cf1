"""192-bit fixed point in kernel IR, and exp in it: the exact phase that settles what the fast phase cannot.

A number is three int64 limbs, least significant first, read as one unsigned integer over 2^190 (tables.FRACTION):
values from 0 to below 4. "Unit" below is 2^-190.
"""

from __future__ import annotations

from osprey_py.kernel.ir import INT, Bound, const, fold, var
from osprey_py.numerics import tables
from osprey_py.numerics.build import V, select, table

Wide = tuple[V, V, V]


def _one_if(c: V) -> V:
    return select(c, 1, 0)


def add(a: Wide, b: Wide) -> Wide:
    """a + b mod 2^192 units."""
    low = a[0] + b[0]
    middle = a[1] + b[1]
    carry = _one_if(low.ltu(a[0]))
    with_carry = middle + carry
    overflow = _one_if(middle.ltu(a[1])) + _one_if(with_carry.ltu(middle))
    return low, with_carry, a[2] + b[2] + overflow


def negate(a: Wide) -> Wide:
    """-a mod 2^192 units."""
    one = V(const(1))
    zero = V(const(0))
    return add((~a[0], ~a[1], ~a[2]), (one, zero, zero))


def choose(c: V, a: Wide, b: Wide) -> Wide:
    return select(c, a[0], b[0]), select(c, a[1], b[1]), select(c, a[2], b[2])


def mul(a: Wide, b: Wide) -> Wide:
    """a · b, where the product is below 4; rounded down, error below 16 units.

    Of the six limbs of the integer product, limb 2 is summed without carries from below (it is off by less than 3 of its
    own ulps, far below a unit), limbs 3 to 5 exactly; the result is limbs 3 to 5 shifted left by two bits, since
    (2^190 a)(2^190 b) / 2^190 = product / 2^192 · 4. The carries of limb 2 are kept.
    """
    (a0, a1, a2), (b0, b1, b2) = a, b
    zero = V(const(0))

    def column(terms: list[V]) -> tuple[V, V]:
        """(sum mod 2^64, number of carries)."""
        total, carries = terms[0], zero
        for t in terms[1:]:
            total = total + t
            carries = carries + _one_if(total.ltu(t))
        return total, carries

    two, c2 = column([a0.mulhigh(b1), a1.mulhigh(b0), a0 * b2, a1 * b1, a2 * b0])
    three, c3 = column([c2, a0.mulhigh(b2), a1.mulhigh(b1), a2.mulhigh(b0), a1 * b2, a2 * b1])
    four, c4 = column([c3, a1.mulhigh(b2), a2.mulhigh(b1), a2 * b2])
    five = a2.mulhigh(b2) + c4
    return shift_left(three, two, 2), shift_left(four, three, 2), shift_left(five, four, 2)


def shift_left(high: V, low: V, by: int) -> V:
    """The upper limb of high:low shifted left by a constant 1 to 63."""
    return (high << by) | low.shru(64 - by)


def shift_right(a: Wide, by: int) -> Wide:
    """a >> by for a constant 1 to 63."""
    return shift_left(a[1], a[0], 64 - by), shift_left(a[2], a[1], 64 - by), a[2].shru(by)


def shift_left_by(a: Wide, by: V) -> Wide:
    """a << by for 0 <= by <= 63."""
    back = V(const(63)) - by
    return (
        a[0] << by,
        (a[1] << by) | a[0].shru(1).shru(back),
        (a[2] << by) | a[1].shru(1).shru(back),
    )


def place(mantissa: V, by: V) -> Wide:
    """mantissa · 2^by units for 0 <= mantissa < 2^55 and 64 <= by (mod 2^192 units); a smaller by gives any value."""
    zero = V(const(0))
    s = by & 63
    carried = mantissa.shru(1).shru(V(const(63)) - s)
    shifted = mantissa << s
    in_middle = by.lt(128)
    return zero, select(in_middle, shifted, 0), select(in_middle, carried, shifted)


def less(a: Wide, b: Wide) -> V:
    """Unsigned a < b."""
    low = a[0].ltu(b[0])
    middle = a[1].ltu(b[1]).either(a[1].eq(b[1]).both(low))
    return a[2].ltu(b[2]).either(a[2].eq(b[2]).both(middle))


def exp(mantissa: V, exponent: V, negative: V, n: V) -> Wide:
    """E with e^(±mantissa · 2^exponent) = E · 2^n · (1 + d), |d| < 2^-177.

    mantissa below 2^55; the argument x in (-2^10, 2^10), a multiple of 2^-126 (so exponent >= -126); n = floor of x / ln 2
    or one less where that floor is within 1/256 of x / ln 2 from below: 0 < x - n·ln 2 < 0.71, so 1 < E < 2.04.

    r = x - n·ln 2: 2^10.1 units, from ln 2's floor times |n| <= 1076. t = r / 2^8, and exp(t) by Horner on 19 terms: the
    rest is below t^19/19! < 2^-210, each product's error shrinks by t < 2^-8.4. Eight squarings double the relative error
    each and add 16 units: (2^10.1 + 2^8·20 + 16·2^9) units in all, below 2^13.
    """
    x = place(mantissa, exponent + tables.FRACTION)
    x = choose(negative, negate(x), x)
    count = select(n.lt(0), V(const(0)) - n, n)
    ln2 = tuple(V(const(limb)) for limb in tables.LN2_LIMBS)
    high01 = ln2[0].mulhigh(count)
    middle = ln2[1] * count + high01
    top = ln2[2] * count + ln2[1].mulhigh(count) + _one_if(middle.ltu(high01))
    multiple = (ln2[0] * count, middle, top)
    r = add(x, choose(n.lt(0), multiple, negate(multiple)))
    t = (shift_left(r[1], r[0], 56), shift_left(r[2], r[1], 56), r[2].shru(8))

    step = Bound(INT, "term")
    sums = tuple(Bound(INT, f"e{j}") for j in range(3))
    coefficients = tuple(table(column, INT, V(var(step))) for column in tables.taylor_limbs())
    total: Wide = (V(var(sums[0])), V(var(sums[1])), V(var(sums[2])))
    zero = const(0)
    horner = add(mul(total, t), (coefficients[0], coefficients[1], coefficients[2]))
    e0, e1, e2 = fold(const(tables.TERMS), step, sums, (zero, zero, zero), tuple(v.node for v in horner))

    turn = Bound(INT, "square")
    powers = tuple(Bound(INT, f"p{j}") for j in range(3))
    base: Wide = (V(var(powers[0])), V(var(powers[1])), V(var(powers[2])))
    squared = mul(base, base)
    p0, p1, p2 = fold(const(8), turn, powers, (e0, e1, e2), tuple(v.node for v in squared))
    return V(p0), V(p1), V(p2)
