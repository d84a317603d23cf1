"""N2, N3: the compiled exp, ln and tanh give the bytes of exact.py, in both phases."""

from __future__ import annotations

import struct
from typing import Any

import gmpy2
import numpy as np
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Kind, Step, Storage
from osprey_py.kernel.ir import FLOAT, Kernel, Node, index, load, walk
from osprey_py.numerics import exact, expand
from osprey_py.numerics.build import V

FUNCTIONS = ("exp", "ln", "tanh")
X = V(load(0, FLOAT, index()))


def run(node: Node, points: list[float]) -> bytes:
    """A kernel of one slot on the host."""
    backend = HostBackend(threads=1)
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


def always_exact(node: Node) -> Node:
    """The expansion with the exact phase's answer taken everywhere."""
    (root,) = expand.expand((node,))
    made: dict[Node, Node] = {}
    for n in walk((root,)):
        args = tuple(made[a] for a in n.args)
        made[n] = args[1] if n.op == "rare" else Node(n.op, n.type, args, n.attr, n.site)
    return made[root]


def test_the_exact_phase_of_exp() -> None:
    # Below 2^-55 the fast phase always decides, and the exact phase is not made for such arguments.
    points = [x for x in points_for("exp", seed=2) if 2.0**-55 < abs(x) < 746.0]
    assert run(always_exact(Node("exp", FLOAT, (load(0, FLOAT, index()),))), points) == by_definition("exp", points)


@pytest.mark.parametrize(
    ("name", "bound", "low", "high"),
    [
        ("ln", "_LN_RELATIVE", 2.0**-1074, 2.0**1000),
        ("tanh", "_TANH_SMALL", 2.0**-26, 2.0**-8),
        ("tanh", "_TANH_BOUND", 0.55, 19.0),
    ],
)
def test_the_exact_phase_decides_between_neighbours(
    monkeypatch: pytest.MonkeyPatch, name: str, bound: str, low: float, high: float
) -> None:
    """With the bound widened to just under half an ulp most elements go through the exact phase, with neighbours to
    choose from as in earnest."""
    monkeypatch.setattr(expand, bound, 2.0**-54.2)
    if name == "ln":
        monkeypatch.setattr(expand, "_LN_BOUND", 1e9)
    points = [x for x in points_for(name, seed=3) if low < abs(x) < high and (name == "tanh" or x > 0.0)]
    assert len(points) > 500
    assert run(Node(name, FLOAT, (load(0, FLOAT, index()),)), points) == by_definition(name, points)


# --- the error bounds ---------------------------------------------------------------------------------------------
# A bound that is too small passes millions of random points, so the fast phase's error itself is measured.

WIDE = gmpy2.context(precision=300)


def floats(expression: V, points: list[float]) -> list[float]:
    raw = run(expression.node, points)
    return list(struct.unpack(f"<{len(points)}d", raw))


def octaves(low: int, high: int, seed: int) -> list[float]:
    """A few points in each octave from 2^low to 2^high."""
    rng = np.random.default_rng(seed)
    return [float(rng.uniform(1, 2) * 2.0**e) for e in range(low, high) for _ in range(60)]


def worst(value: list[tuple[float, float]], truth: list[Any], bound: list[float]) -> float:
    """The largest |hi + lo - truth| in units of the bound."""
    with WIDE:
        return max(
            float(abs(gmpy2.mpfr(hi) + gmpy2.mpfr(lo) - t) / gmpy2.mpfr(b))
            for (hi, lo), t, b in zip(value, truth, bound, strict=True)
        )


def test_the_error_of_exp() -> None:
    points = [s * x for x in [*octaves(-12, 9, 5), 700.0, 708.9] for s in (1.0, -1.0)]
    k, hi, lo = (floats(e, points) for e in _exp_parts())
    with WIDE:
        truth = [gmpy2.exp(gmpy2.mpfr(x)) / gmpy2.exp2(int(n) >> 7) for x, n in zip(points, k, strict=True)]
    assert worst(list(zip(hi, lo, strict=True)), truth, [expand.EXP_BOUND] * len(points)) < 0.5


def _exp_parts() -> tuple[V, V, V]:
    k, hi, lo = expand.exp_fast(X)
    return V(Node("tofloat", FLOAT, (k.node,))), hi, lo


def test_the_error_of_ln() -> None:
    points = octaves(-20, 20, 6) + [1.0 + s * x for x in octaves(-52, -1, 7) for s in (1.0, -0.5)] + [5e-324, 1.7e308]
    points = [x for x in points if x != 1.0]
    hi, lo, bound = (floats(e, points) for e in expand.ln_fast(X)[2:])
    with WIDE:
        truth = [gmpy2.log(gmpy2.mpfr(x)) for x in points]
    assert worst(list(zip(hi, lo, strict=True)), truth, bound) < 0.6


def test_the_error_of_tanh() -> None:
    points = [*octaves(-27, 4, 8), 17.0, 19.0]
    hi, lo, bound = (floats(e, points) for e in expand.tanh_fast(X)[1:])
    with WIDE:
        truth = [gmpy2.tanh(gmpy2.mpfr(x)) for x in points]
    assert worst(list(zip(hi, lo, strict=True)), truth, bound) < 0.6
