"""Functions of one and two numbers on many points: random ones, and those where an implementation is likely to be wrong.

Goes out: `Case`s, one a function, in a fixed order; for the same seed the same on every machine. Points come from a
counter-based generator, in a third of them all 64 bits at random, in the others where the function has its difficulties:
middles between two results, edges of the range, remainders next to a multiple, squares, subnormals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from osprey_py.backends.protocol import Kind, Storage
from osprey_py.conformance.cases import EDGES, SITE, Case
from osprey_py.kernel.ir import FLOAT, INT, OPS, Kernel, Node, Ty, index, load

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Draw:
    """Numbers at random. stream: others for each."""

    def __init__(self, seed: int, stream: int) -> None:
        self._next = (seed << 20) + stream << 36

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """SplitMix64's output function of a counter."""
        z = np.arange(n, dtype=np.uint64) + np.uint64(self._next & (1 << 64) - 1)
        self._next += n
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def anything(self, n: int) -> Floats:
        """All 64 bits at random: every exponent, subnormals and NaN among them."""
        return self.words(n).view(np.float64)

    def between(self, low: float, high: float, n: int) -> Floats:
        return low + (high - low) * ((self.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def ints(self, n: int) -> Ints:
        """Of every size: 64 bits at random, shifted by 0 to 63."""
        return self.words(n).view(np.int64) >> (self.words(n) & np.uint64(63)).view(np.int64)

    def near(self, values: Floats) -> Floats:
        """Each value, or one up to two steps beside it."""
        steps = (self.words(len(values)) % np.uint64(5)).view(np.int64) - 2
        return (values.view(np.int64) + steps).view(np.float64)


def _wide(d: Draw, n: int) -> Floats:
    return np.concatenate([d.anything(n - n // 2), d.between(-30.0, 30.0, n // 2)])


def _exp(d: Draw, n: int) -> Floats:
    return np.concatenate([d.between(-746.0, 710.0, n // 2), d.between(-1.0, 1.0, n - n // 2) * 2.0**-20])


def _ln(d: Draw, n: int) -> Floats:
    return np.concatenate([np.abs(d.anything(n // 2)), d.between(0.96, 1.04, n - n // 2)])


def _tanh(d: Draw, n: int) -> Floats:
    return np.concatenate([d.between(-20.0, 20.0, n // 2), d.between(-1.0, 1.0, n - n // 2) * 2.0**-26])


def _squares(d: Draw, n: int) -> Floats:
    roots = np.abs(d.between(0.0, 2.0**26, n)).round()
    return np.abs(d.near(roots * roots + 1.0))


def _halves(d: Draw, n: int) -> Floats:
    return d.near(d.between(-(2.0**20), 2.0**20, n).round() + 0.5)


def _edge_of_ints(d: Draw, n: int) -> Floats:
    return d.between(-(2.0**63), 2.0**63, n)


ONE: dict[str, Callable[[Draw, int], Any]] = {
    "exp": _exp,
    "ln": _ln,
    "tanh": _tanh,
    "sqrt": _squares,
    "floor": _halves,
    "ceil": _halves,
    "round": _halves,
    "fneg": _wide,
    "fabs": _wide,
    "toint": _edge_of_ints,
}


def _products(d: Draw, a: Floats) -> Floats:
    """Divisors whose quotients lie next to simple ones."""
    with np.errstate(all="ignore"):
        return d.near(a / d.between(1.0, 4096.0, len(a)).round())


def _alike(d: Draw, a: Floats) -> Floats:
    return d.near(np.where(d.words(len(a)) & np.uint64(1), a, -a))


TWO: dict[str, Callable[[Draw, Floats], Floats]] = {
    "fadd": _alike,
    "fsub": _alike,
    "fmul": _products,
    "fdiv": _products,
    "fmod": _products,
    "fmin": _alike,
    "fmax": _alike,
}
OF_INTS = ("quot", "rem", "mulhigh", "wmul")
"""Of two ints; `tofloat` is of one."""


def mathematics(points: int, seed: int = 0) -> Iterator[Case]:
    """Every function on so many points."""
    for stream, (op, hard) in enumerate(ONE.items()):
        d = Draw(seed, stream)
        x = _joined(EDGES[FLOAT], d.anything(points // 3), hard(d, points - points // 3))
        if op == "toint":  # what it takes
            x = np.where(np.abs(x) < 2.0**63, x, 0.5)
        yield _case(op, INT if op == "toint" else FLOAT, x)
    for stream, (op, other) in enumerate(TWO.items(), start=100):
        d = Draw(seed, stream)
        a = _joined(EDGES[FLOAT], d.anything(points // 3), _wide(d, points - points // 3))
        b = np.concatenate([d.anything(len(a) - points // 2), other(d, a[len(a) - points // 2 :])])
        if op in ("fdiv", "fmod"):
            b[b == 0.0] = 3.0
        yield _case(op, FLOAT, a, b)
    for stream, op in enumerate(OF_INTS, start=200):
        d = Draw(seed, stream)
        i, j = d.ints(points), d.ints(points)
        if op in ("quot", "rem"):
            j[(j == 0) | (j == -1)] = 3
        yield _case(op, INT, i, j)
    d = Draw(seed, 300)
    ties = (d.ints(points // 2) | 1) << 10 | 1 << 9  # between two floats, or next to there
    yield _case("tofloat", FLOAT, np.concatenate([d.ints(points - points // 2), ties]))
    bits = d.words(points).astype(np.uint32)
    yield _read("f32", Storage(Kind.F32, bits.view(Kind.F32.dtype)))


def _joined(edges: Any, *parts: Floats) -> Floats:
    return np.concatenate([np.array(edges, np.float64), *parts])


def _case(op: str, result: Ty, *columns: Floats | Ints) -> Case:
    kinds = [Kind.F64 if c.dtype == np.float64 else Kind.I64 for c in columns]
    inputs = tuple(Storage(k, np.ascontiguousarray(c)) for k, c in zip(kinds, columns, strict=True))
    loads = tuple(load(k, s.kind.type, index()) for k, s in enumerate(inputs))
    node = Node(op, result, loads, None, SITE if OPS[op].checked else None)
    n = inputs[0].length
    return Case(f"{op} on {n} points", "map", Kernel(tuple(s.kind.type for s in inputs), (), node), inputs, (), n)


def _read(name: str, source: Storage) -> Case:
    kernel = Kernel((FLOAT,), (), load(0, FLOAT, index()))
    return Case(f"reading {name} on {source.length} points", "map", kernel, (source,), (), source.length)
