"""What a device can do at most: bytes a second from and to its memory, and operations on floats a second, each rounded.

Comes in: a backend. Goes out: `Limits` (backends/limits.py), from two kernels that do little else: an addition to many
elements, and long chains of multiplications and additions, eight beside each other.
"""

from __future__ import annotations

import time
from typing import Any

from osprey_py.backends.limits import Limits
from osprey_py.backends.protocol import Kind, Step, Storage
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, load, var

TURNS, CHAINS = 4096, 8


def _best(backend: Any, kernel: Kernel, source: Storage, n: int) -> float:
    """Seconds of the quickest of five launches; an element is read to know that one has run."""
    output = backend.allocate(Kind.F64, n)
    bare = Step("map", kernel, (source,), (), n, output, None)
    step = Step("map", kernel, (source,), (), n, output, backend.compile("map", kernel, (Kind.F64,), bare))
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        backend.run([step])
        assert len(output.part(0, 1).data) == 1
        seconds.append(time.perf_counter() - start)
    backend.release(output)
    return min(seconds[1:])


def _op(op: str, *args: Node) -> Node:
    return Node(op, FLOAT, args)


def measured(backend: Any) -> Limits:
    """A few seconds."""
    c = backend.capabilities
    large = 1 << (26 if c.units > 16 else 22)
    source = backend.allocate(Kind.F64, large)
    iota = Kernel((), (), Node("tofloat", FLOAT, (index(),)))
    bare = Step("map", iota, (), (), large, source, None)
    backend.run([Step("map", iota, (), (), large, source, backend.compile("map", iota, (), bare))])
    more = Kernel((FLOAT,), (), _op("fadd", load(0, FLOAT, index()), const(1.0)))
    rate = 16 * large / _best(backend, more, source, large)

    x, k, accs = load(0, FLOAT, index()), Bound(INT, "k"), tuple(Bound(FLOAT, f"a{j}") for j in range(CHAINS))
    following = tuple(_op("fadd", _op("fmul", var(a), const(0.5 + j / 64)), x) for j, a in enumerate(accs))
    chains = fold(const(TURNS), k, accs, (const(1.0),) * CHAINS, following)
    total = chains[0]
    for chain in chains[1:]:
        total = _op("fadd", total, chain)
    items = c.units * 2048
    operations = 2 * CHAINS * TURNS * items / _best(backend, Kernel((FLOAT,), (), total), source, items)
    backend.release(source)
    described = f"{operations / 1e9:.4g}e9 operations and {rate / 1e9:.4g}e9 bytes a second, measured"
    return Limits(operations, ((0, rate),), described)
