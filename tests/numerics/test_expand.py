"""N2, N3: the compiled exp, ln and tanh give the bytes of exact.py, in both phases."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest

from osprey_py.backends.host import HostBackend, objects
from osprey_py.backends.host.native import machine
from osprey_py.backends.protocol import Kind, Step, Storage
from osprey_py.kernel.ir import FLOAT, OPS, PRIVATE, Kernel, Node, const, index, load
from osprey_py.kernel.verify import KernelError, verify
from osprey_py.numerics import exact, expand, tables
from osprey_py.numerics.build import V, residue, select

FUNCTIONS = ("exp", "ln", "tanh")
WIDE = gmpy2.context(precision=300)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No code of another run: what is compiled here depends on what is patched."""
    monkeypatch.setattr(objects, "fetch", lambda name: None)
    monkeypatch.setattr(objects, "keep", lambda name, code: None)


def run(node: Node, points: list[float], nests: bool = True) -> bytes:
    """A kernel of one slot on the host. nests: False for scalar code."""
    backend = HostBackend(threads=1, nests=nests)
    source = Storage(Kind.F64, np.array(points, dtype=np.float64))
    kernel = Kernel((FLOAT,), (), node)
    output = backend.allocate(Kind.F64, len(points))
    bare = Step("map", kernel, (source,), (), len(points), output, None)
    compiled = backend.compile("map", kernel, (Kind.F64,), bare)
    assert backend.run([Step("map", kernel, (source,), (), len(points), output, compiled)]).fault is None
    return output.data.tobytes()


def by_definition(name: str, points: list[float]) -> bytes:
    values = [getattr(exact, name)(x) for x in points]
    return struct.pack(f"<{len(values)}d", *values)


def points_for(name: str, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    parts = [
        rng.uniform(-30, 30, 2000),
        rng.uniform(-750, 712, 1000),
        rng.integers(-(2**63), 2**63 - 1, 2000).view(np.float64),
        rng.uniform(0.6, 1.5, 2000),
        1 + rng.integers(-60, 60, 200) * 2.0**-53,
        rng.uniform(-1, 1, 2000) * 2.0 ** rng.integers(-60, 0, 2000),
    ]
    return [float(x) for x in np.concatenate(parts)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_points(name: str) -> None:
    points = points_for(name, seed=1)
    assert run(Node(name, FLOAT, (load(0, FLOAT, index()),)), points) == by_definition(name, points)


def compute(monkeypatch: pytest.MonkeyPatch, name: str, part: Callable[[V], V], points: list[float]) -> list[float]:
    """A part of a function's expansion at the points: the host's code for it in vectors."""
    with monkeypatch.context() as m:
        m.setattr(expand, "EXPANSIONS", {name: part})
        raw = run(Node(name, FLOAT, (load(0, FLOAT, index()),)), points)
    return list(struct.unpack(f"<{len(points)}d", raw))


@pytest.mark.parametrize("fused", [True, False])
def test_every_point_without_fused_operations(monkeypatch: pytest.MonkeyPatch, fused: bool) -> None:
    """The same bytes from a processor that has them and one that has not, from tables in registers and in memory."""
    monkeypatch.setattr(machine(), "fma", machine().fma and fused)
    if not fused:
        monkeypatch.setattr(machine(), "lanes", min(machine().lanes, 4))
    for name in FUNCTIONS:
        points = points_for(name, seed=11)
        assert run(Node(name, FLOAT, (load(0, FLOAT, index()),)), points) == by_definition(name, points)


def test_the_exact_phase_of_exp(monkeypatch: pytest.MonkeyPatch) -> None:
    # Below 2^-55 the fast phase always decides, and the exact phase is not made for such arguments.
    points = [x for x in points_for("exp", seed=2) if not abs(x) <= 2.0**-55 and x == x]
    found = compute(monkeypatch, "exp", lambda x: expand._exp_exact(x), points)
    assert struct.pack(f"<{len(points)}d", *found) == by_definition("exp", points)


@pytest.mark.parametrize(
    ("name", "constant", "low", "high"),
    [
        ("ln", "LN_REST", 2.0**-1074, 2.0**1000),
        ("tanh", "TANH_REST", 2.0**-26, 19.0),
    ],
)
def test_the_exact_phase_decides_between_neighbours(
    monkeypatch: pytest.MonkeyPatch, name: str, constant: str, low: float, high: float
) -> None:
    """With the bound widened to just under half an ulp most elements go through the exact phase, with neighbours to
    choose from as in earnest."""
    monkeypatch.setattr(expand, constant, 2.0**-54.2)
    points = [x for x in points_for(name, seed=3) if low < abs(x) < high and (name == "tanh" or x > 0.0)]
    assert len(points) > 500
    assert run(Node(name, FLOAT, (load(0, FLOAT, index()),)), points) == by_definition(name, points)


def test_what_the_fast_phase_is_not_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """N3: results and arguments that are subnormal, infinite or NaN, too large, zero; in vectors and in
    scalar code."""
    rng = np.random.default_rng(4)
    special = [
        0.0,
        5e-324,
        2.0**-1022,
        2.0**-1021,
        1e300,
        math.inf,
        math.nan,
        20.0,
        709.78,
        709.79,
        745.2,
        746.0,
        747.0,
    ]
    special += [math.nextafter(p, q) for p in (2.0**-1022, 709.78, 660.0, 745.13, 20.0) for q in (0.0, 1e9)]
    special += [
        float(x) for x in (*rng.uniform(600, 800, 500), *rng.uniform(1e3, 1e6, 500), *rng.uniform(0, 2.0**-1020, 500))
    ]
    points = [s * x for x in special for s in (1.0, -1.0)]
    for name in FUNCTIONS:
        want = by_definition(name, points)
        node = Node(name, FLOAT, (load(0, FLOAT, index()),))
        assert run(node, points) == want
        assert run(node, points, nests=False) == want


@pytest.mark.parametrize(("name", "low", "high"), [("exp", -30.0, 30.0), ("ln", 2.0, 10.0), ("tanh", 0.5, 3.0)])
def test_what_the_fast_phase_leaves_undecided(
    monkeypatch: pytest.MonkeyPatch, name: str, low: float, high: float
) -> None:
    """Few elements, and right in the end: their images lie within 2^-13 ulp of the middle of two doubles."""
    points = [float(x) for x in np.random.default_rng(12).uniform(low, high, 1_000_000)]
    with monkeypatch.context() as m:
        m.setattr(expand, "rare", lambda c, slow, fast: select(c, 1e9, V(const(0.0))))
        found = compute(m, name, expand.EXPANSIONS[name], points)
    left = [x for x, y in zip(points, found, strict=True) if abs(y) == 1e9]
    assert 0 < len(left) < 200
    assert run(Node(name, FLOAT, (load(0, FLOAT, index()),)), left) == by_definition(name, left)
    with WIDE:
        truth = {"exp": gmpy2.exp, "ln": gmpy2.log, "tanh": gmpy2.tanh}[name]
        for x in left:
            value = abs(truth(gmpy2.mpfr(x)))
            unit = math.ulp(float(value))
            place = value / unit - gmpy2.floor(value / unit)
            assert abs(place - 0.5) < 2.0**-13


# --- the error bounds ---------------------------------------------------------------------------------------------
# A bound that is too small passes millions of random points, so the fast phase's error itself is measured: at random
# points, and where reduced arguments are largest and tables change.


@pytest.fixture(params=[True, False], ids=["fused", "split"])
def fused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine(), "fma", machine().fma and request.param)


def octaves(low: int, high: int, seed: int) -> list[float]:
    """Some points in each octave from 2^low to 2^high."""
    rng = np.random.default_rng(seed)
    return [float(x) for e in range(low, high) for x in rng.uniform(1, 2, 60) * 2.0**e]


def half_steps(steps: list[int]) -> list[float]:
    """Arguments of exp whose reduced arguments are largest: (k + 1/2) ln 2 / 16, and a little to both sides."""
    middles = [(k + 0.5) * math.log(2.0) / tables.STEPS for k in steps]
    return [x * (1.0 + s * 2.0**-j) for x in middles for s in (1.0, -1.0) for j in (30, 40, 50)]


def worst(his: list[float], los: list[float], truth: list[Any], bounds: list[float]) -> float:
    """The largest |hi + lo - truth| in units of the bound."""
    with WIDE:
        return max(
            float(abs(gmpy2.mpfr(hi) + gmpy2.mpfr(lo) - t) / gmpy2.mpfr(b))
            for hi, lo, t, b in zip(his, los, truth, bounds, strict=True)
        )


@pytest.mark.usefixtures("fused")
def test_the_error_of_exp(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [s * x for x in [*octaves(-12, 9, 5), 650.0, 659.9] for s in (1.0, -1.0)]
    points += half_steps([*range(-200, 200), *range(-15_200, 15_200, 101)])
    points = [x for x in points if -660.0 < x < 660.0]
    scale, hi, lo, cube = (compute(monkeypatch, "exp", lambda x, j=j: expand.exp_fast(x)[j], points) for j in range(4))
    with WIDE:
        truth = [gmpy2.exp(gmpy2.mpfr(x)) for x in points]
    assert worst(hi, lo, truth, [s * 2.0**-expand.EXP_BOUND_BITS for s in scale]) < 0.5
    # What tanh builds on: relative to the cube of the reduced argument.
    bounds = [s * (abs(c) * 2.0**-51.1 + 2.0**-84) for s, c in zip(scale, cube, strict=True)]
    assert worst(hi, lo, truth, bounds) < 0.7
    bounds = [s * (abs(c) * 2.0**-51.1 + 2.0**-92) for s, c in zip(scale, cube, strict=True)]
    near = [j for j, x in enumerate(points) if abs(x) < 40.0]
    assert worst(*([column[j] for j in near] for column in (hi, lo, truth, bounds))) < 0.7
    assert max(abs(c) for c in cube) < 2.0**-17.5
    assert max(abs(x / s) for x, s in zip(lo, scale, strict=True)) < 2.0**-18


@pytest.mark.usefixtures("fused")
def test_the_error_of_ln(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [tables._float(tables.LN_OFFSET + (i << 47)) for i in range(tables.LN_STEPS + 1)]
    points = (
        octaves(-20, 20, 6) + [1.0 + s * x for x in octaves(-52, -1, 7) for s in (1.0, -0.5)] + [1.7e308, 2.0**-1022]
    )
    points += [
        m * (1.0 + d) * 2.0**e for m in ends for d in (0.0, 1e-15, -1e-15, 1e-7, -1e-7) for e in (0, -1, 1, -900, 900)
    ]
    points = [x for x in points if x != 1.0]
    hi, lo, bound = (compute(monkeypatch, "ln", lambda x, j=j: expand.ln_fast(x)[j], points) for j in (1, 2, 3))
    with WIDE:
        truth = [gmpy2.log(gmpy2.mpfr(x)) for x in points]
    assert worst(hi, lo, truth, bound) < 0.6


@pytest.mark.usefixtures("fused")
def test_the_error_of_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [*octaves(-27, 4, 8), 17.0, 19.0, 20.0, *(x / 2.0 for x in half_steps([*range(900)]))]
    hi, lo, bound = (compute(monkeypatch, "tanh", lambda x, j=j: expand.tanh_fast(x)[j], points) for j in range(3))
    with WIDE:
        truth = [gmpy2.tanh(gmpy2.mpfr(x)) for x in points]
    assert worst(hi, lo, truth, bound) < 0.6


@pytest.mark.usefixtures("fused")
def test_a_residue_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a product and what it rounds to; and of m c - 1 in ln, for every interval's ends and places between."""
    points = [float(x) for x in np.random.default_rng(9).uniform(1, 2, 3000)]

    def own(x: V) -> V:
        y = V(const(1.9 / 1.3)) * x
        return residue(x, y, -(x * y))

    for x, got in zip(points, compute(monkeypatch, "exp", own, points), strict=True):
        y = 1.9 / 1.3 * x
        want = Fraction(x) * Fraction(y) - Fraction(x * y)
        assert abs(Fraction(got) - want) <= Fraction(x * y) / 2**103


# --- tables and series --------------------------------------------------------------------------------------------


def test_the_table_of_ln() -> None:
    """What ln_fast says of it: z = m c - 1 is a double and small; the head is no smaller than z, but where it is 0."""
    ends = [tables._float(tables.LN_OFFSET + (i << 47)) for i in range(tables.LN_STEPS + 1)]
    assert ends[-1] == 2.0 * ends[0]
    cs, heads, tails = tables.ln_table()
    for low, high, c, head, tail in zip(ends[:-1], ends[1:], cs, heads, tails, strict=True):
        reach = max(abs(Fraction(m) * Fraction(c) - 1) for m in (low, high))
        assert reach <= tables.LN_REACH
        for m in (low, math.nextafter(high, 0.0), math.nextafter(low, 2.0), (low + high) / 2.0 * (1.0 + 2.0**-52)):
            z = Fraction(m) * Fraction(c) - 1
            assert Fraction(float(z)) == z
        assert (c == 1.0 and head == tail == 0.0) or abs(head) >= reach
        with WIDE:
            assert abs(gmpy2.mpfr(head) + gmpy2.mpfr(tail) + gmpy2.log(gmpy2.mpfr(c))) < 2.0**-95
        assert head * 2.0**42 == int(head * 2.0**42)
    # 1.0 is inside an interval of c = 1.
    assert any(low < 0.99 and high > 1.009 and c == 1.0 for low, high, c in zip(ends[:-1], ends[1:], cs, strict=True))


def test_the_table_of_exp() -> None:
    bits, tails = tables.exp_table()
    for i, (b, tail) in enumerate(zip(bits, tails, strict=True)):
        with WIDE:
            value = gmpy2.mpfr(tables._float(b + (i << 48))) * (1 + gmpy2.mpfr(tail))
            assert abs(value - gmpy2.exp2(gmpy2.mpfr(i) / 16)) < 2.0**-104
        assert abs(tail) <= 2.0**-53


@pytest.mark.parametrize(
    ("coefficients", "reach", "function", "bound"),
    [
        (tables.exp_series(), tables.EXP_REACH, lambda t: (gmpy2.exp(t) - 1 - t - t * t / 2) / t**3, 2.0**-55.2),
        (tables.ln_series(), tables.LN_REACH, lambda z: (gmpy2.log(1 + z) - z + z * z / 2) / z**3, 2.0**-53.4),
    ],
)
def test_the_series(
    coefficients: tuple[float, ...], reach: Fraction, function: Callable[[Any], Any], bound: float
) -> None:
    """With rounded coefficients: exp's cut below 2^-56.6 plus half an ulp of 1/6; ln's 2^-54.5 plus that of 1/3."""
    with WIDE:
        for j in range(-400, 401):
            x = gmpy2.mpfr(j or 1) / 400 * gmpy2.mpfr(reach.numerator) / reach.denominator
            value = gmpy2.mpfr(0)
            for c in coefficients:
                value = value * x + gmpy2.mpfr(c)
            assert abs(value - function(x)) < bound


# --- private operations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVATE)
def test_no_kernel_may_hold_a_private_operation(name: str) -> None:
    """N1: what may be fused is in no kernel that is verified, and in the expansions alone."""
    assert name not in OPS
    x = load(0, FLOAT, index())
    with pytest.raises(KernelError):
        verify(Kernel((FLOAT,), (), Node(name, FLOAT, (x, x, x))))
