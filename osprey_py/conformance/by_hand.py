"""Small kernels written by hand, with places in a text that is not there: what random programs launch beside random
kernels, and what the tests of the graph begin with."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    Bound,
    Kernel,
    Node,
    Site,
    Ty,
    const,
    fold,
    index,
    inrange,
    length,
    load,
    select,
    uniform,
    var,
)
from osprey_py.source.span import Source, Span

TEXT = Source("kernels.osp", "\n".join(f"line {k}" for k in range(1, 60)))


def span(line: int) -> Span:
    """A place on a line of TEXT."""
    start = TEXT.line_starts[line - 1]
    return Span(TEXT, start, start + 4)


def op(name: str, *args: Node, line: int = 1) -> Node:
    """An operation, its type by the usual rule, with a site."""
    kinds = {"tofloat": FLOAT, "toint": INT, "lt": BOOL, "le": BOOL, "eq": BOOL, "ne": BOOL, "bnot": BOOL}
    return Node(name, kinds.get(name, args[-1].type), args, None, Site(span(line)))


def at(slot: int, ty: Ty = FLOAT) -> Node:
    """The slot's element at the index."""
    return load(slot, ty, index())


def gather(slot: int, place: Node, default: Node) -> Node:
    """gpuGet(slot, place) ?: default."""
    return select(inrange(slot, place), load(slot, default.type, place), default)


def elementwise(body: Callable[..., Node], *slots: Ty, uniforms: tuple[Ty, ...] = (), name: str = "k") -> Kernel:
    """A map whose body is given the elements at index, then the uniforms."""
    leaves = [load(s, t, index()) for s, t in enumerate(slots)] + [uniform(k, t) for k, t in enumerate(uniforms)]
    return Kernel(slots, uniforms, body(*leaves), name=name)


def total(ty: Ty = FLOAT) -> Kernel:
    """gpuFold(b, 0, +)."""
    i, acc = Bound(INT, "i"), Bound(ty, "acc")
    zero = const(0.0) if ty is FLOAT else const(0)
    step = op("fadd" if ty is FLOAT else "add", var(acc), load(0, ty, var(i)))
    return Kernel((ty,), (), fold(length(0), i, (acc,), (zero,), (step,))[0], name="total")


def running(ty: Ty = FLOAT) -> Kernel:
    """gpuScan(b, 0, +)."""
    acc = Bound(ty, "acc")
    zero = const(0.0) if ty is FLOAT else const(0)
    step = op("fadd" if ty is FLOAT else "add", var(acc), at(0, ty))
    return Kernel((ty,), (), step, acc=acc, init=zero, name="running")
