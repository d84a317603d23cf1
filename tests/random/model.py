"""The rules R1 to R9 in plain Python, written from the rules: what stdlib/random.osp must give, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from osprey_py.numerics import exact

MASK = (1 << 64) - 1


def signed(word: int) -> int:
    """64 bits as the language's int."""
    return word - (1 << 64) if word >> 63 else word


def philox2x64(key: int, i: int, j: int, rounds: int = 10) -> tuple[int, int]:
    """The generator of Salmon et al. (SC'11) on unsigned words."""
    for _ in range(rounds):
        product = i * 0xD2B74407B1CE6E93
        i, j = (product >> 64) ^ key ^ j, product & MASK
        key = (key + 0x9E3779B97F4A7C15) & MASK
    return i, j


def bits(key: int, i: int) -> int:
    return philox2x64(key & MASK, i & MASK, 0)[0]


def folded(key: int, n: int) -> int:
    return signed(philox2x64(key & MASK, n & MASK, 1)[0])


def uniform(key: int, i: int) -> float:
    return (bits(key, i) >> 11) / 2.0**53


def below(key: int, i: int, n: int) -> int:
    return bits(key, i) * max(n, 0) >> 64


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


# AS 241's coefficients, upper polynomial and lower, constant term first.
MIDDLE = (
    numbers("""3.3871328727963666080 133.14166789178437745 1971.5909503065514427 13731.693765509461125
               45921.953931549871457 67265.770927008700853 33430.575583588128105 2509.0809287301226727"""),
    numbers("""1.0 42.313330701600911252 687.18700749205790830 5394.1960214247511077
               21213.794301586595867 39307.895800092710610 28729.085735721942674 5226.4952788528545610"""),
)
SLOPE = (
    numbers("""1.42343711074968357734 4.63033784615654529590 5.76949722146069140550 3.64784832476320460504
               1.27045825245236838258 0.241780725177450611770 0.0227238449892691845833 7.74545014278341407640e-4"""),
    numbers("""1.0 2.05319162663775882187 1.67638483018380384940 0.689767334985100004550
               0.148103976427480074590 0.0151986665636164571966 5.47593808499534494600e-4 1.05075007164441684324e-9"""),
)
FAR = (
    numbers("""6.65790464350110377720 5.46378491116411436990 1.78482653991729133580 0.296560571828504891230
               0.0265321895265761230930 1.24266094738807843860e-3 2.71155556874348757815e-5 2.01033439929228813265e-7"""),
    numbers("""1.0 0.599832206555887937690 0.136929880922735805310 0.0148753612908506148525
               7.86869131145613259100e-4 1.84631831751005468180e-5 1.42151175831644588870e-7 2.04426310338993978564e-15"""),
)


def horner(coefficients: Sequence[float], r: float) -> float:
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * r + c
    return value


def quotient(pair: tuple[Sequence[float], Sequence[float]], r: float) -> float:
    return horner(pair[0], r) / horner(pair[1], r)


def upper_quantile(p: float) -> float:
    q = 0.5 - p
    if q <= 0.425:
        return q * quotient(MIDDLE, 0.180625 - q * q)
    r = math.sqrt(-exact.ln(p))
    return quotient(SLOPE, r - 1.6) if r <= 5.0 else quotient(FAR, r - 5.0)


def normal(key: int, i: int) -> float:
    word = bits(key, i)
    size = upper_quantile(float(Fraction(2 * (word >> 12) + 1, 1 << 54)))
    return -size if word & 1 else size


def permuted(key: int, i: int, n: int) -> int:
    half = 3
    while 4**half <= n:
        half += 1
    while True:
        left, right = i >> half, i & ((1 << half) - 1)
        for j in range(2, 10):
            left, right = right, left ^ (philox2x64(key & MASK, right, j)[0] & ((1 << half) - 1))
        i = left << half | right
        if i < n:
            return i


def choice(key: int, scores: Sequence[float], temperature: float, top: int) -> int:
    clean = [-math.inf if math.isnan(s) else s for s in scores]
    ranked = sorted(range(len(clean)), key=lambda i: -clean[i])
    if not temperature > 0.0 or not ranked:
        return ranked[0] if ranked else 0
    best = clean[ranked[0]]
    running = 0.0
    sums = []
    for i in sorted(ranked[:top] if top > 0 else ranked):
        if clean[i] == best:
            running += 1.0
        elif clean[i] - best != -math.inf:
            running += exact.exp((clean[i] - best) / temperature)
        sums.append((running, i))
    target = uniform(key, 0) * running
    return next(i for total, i in sums if total > target)
