"""What is drawn by fixed keys is distributed as it should be (R3, R4, R5, R7)."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import mpmath

from tests.random.support import evenly, printed

N = 100_000


def counted(draw: str, bins: int) -> list[int]:
    """How often each of 0 … bins - 1 comes of `draw`, an expression of i, for N values of i."""
    (found,) = printed(f"""
        import random::{{key, foldIn, bitsAt, uniformAt, normalAt, belowAt, permutedAt}}
        let drawn = gpuMap(gpuIota({N}), fn(i) => {draw})
        let counts = gpuIota({bins}) |> gpuMap(fn(b) => gpuFold(drawn, 0, fn(n, x) => x == b ? n + 1 : n))
        print(fromGpu(counts))
    """)
    counts: list[int] = found
    assert sum(counts) == N
    return counts


def test_uniforms_are_spread_evenly() -> None:
    evenly(counted("toInt(uniformAt(key(11), i) * 200.0)", 200))


def test_neighbours_are_independent() -> None:
    evenly(counted("toInt(uniformAt(key(12), i) * 12.0) * 12 + toInt(uniformAt(key(12), i + 1) * 12.0)", 144))


def test_keys_are_independent() -> None:
    """The same index under neighbouring seeds, and under derived keys."""
    evenly(counted("toInt(uniformAt(key(i), 0) * 12.0) * 12 + toInt(uniformAt(key(i + 1), 0) * 12.0)", 144))
    evenly(counted("toInt(uniformAt(foldIn(key(3), i), 7) * 12.0) * 12 + toInt(uniformAt(key(3), i) * 12.0)", 144))


def test_every_bit_is_set_half_the_time() -> None:
    (ones,) = printed(f"""
        import random::{{key, bitsAt}}
        let drawn = gpuMap(gpuIota({N}), fn(i) => bitsAt(key(13), i))
        print(fromGpu(gpuMap(gpuIota(64), fn(b) => gpuFold(drawn, 0, fn(n, x) => n + bitAnd(shiftRightLogical(x, b), 1)))))
    """)
    for n in ones:
        evenly([n, N - n])


def test_ints_below_a_bound_are_spread_evenly() -> None:
    evenly(counted("belowAt(key(14), i, 6)", 6))
    evenly(counted("belowAt(key(15), i, 97)", 97))


def test_normals_have_the_moments_and_the_shape() -> None:
    (moments,) = printed(f"""
        import random::{{key, normals}}
        let z = normals(key(16), {N})
        fn moment(k) = gpuFold(gpuMap(z, fn(x) => k == 1 ? x : k == 2 ? x * x : k == 3 ? x * x * x : x * x * x * x), 0.0,
            fn(s, x) => s + x) / {N}.0
        print([moment(1), moment(2), moment(3), moment(4)])
    """)
    # The variances of x, x^2, x^3 and x^4 are 1, 2, 15 and 96.
    for found, expected, variance in zip(moments, (0, 1, 0, 3), (1, 2, 15, 96), strict=True):
        assert abs(found - expected) < 4 * (variance / N) ** 0.5
    edges = [mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(2 * b) / 50 - 1) for b in range(1, 50)]
    choice = " : ".join(f"x < {float(e)!r} ? {b}" for b, e in enumerate(edges))
    evenly(counted(f"{{ let x = normalAt(key(17), i)  {choice} : 49 }}", 50))


def test_orders_are_equally_likely() -> None:
    """All 6 orders of three and all 24 of four, over as many keys; the place of each of 12 items."""
    for n in (3, 4):
        digits = " + ".join(f"{n**p} * permutedAt(foldIn(key(18), i), {p}, {n})" for p in range(n))
        counts = counted(digits, n**n)
        orders = {sum(n**p * x for p, x in enumerate(order)) for order in permutations(range(n))}
        assert {b for b, count in enumerate(counts) if count} == orders
        evenly([counts[b] for b in sorted(orders)])
    for place in (0, 5, 11):
        evenly(counted(f"permutedAt(key(i), {place}, 12)", 12))


def test_odd_and_even_orders_are_equally_likely() -> None:
    """A Feistel network is an even permutation of its own domain; what is left of it below n is not."""
    parities: Counter[int] = Counter()
    (orders,) = printed("""
        import random::{key, permutedAt}
        print(fromGpu(gpuMap(gpuIota(32000), fn(i) => permutedAt(key(intDiv(i, 16)), i % 16, 16))))
    """)
    for start in range(0, len(orders), 16):
        order = orders[start : start + 16]
        parities[sum(a > b for k, a in enumerate(order) for b in order[k + 1 :]) % 2] += 1
    evenly([parities[0], parities[1]])
