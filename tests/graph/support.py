"""Kernels by hand, and an oracle that counts what it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Report, Step, Storage
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
    walk,
)
from osprey_py.source.span import Source, Span

TEXT = Source("kernels.osp", "\n".join(f"line {k}" for k in range(1, 60)))


def span(line: int) -> Span:
    start = TEXT.line_starts[line - 1]
    return Span(TEXT, start, start + 4)


def op(name: str, *args: Node, line: int = 1) -> Node:
    """An operation, its type by the usual rule, with a site."""
    kinds = {"tofloat": FLOAT, "toint": INT, "lt": BOOL, "le": BOOL, "eq": BOOL, "ne": BOOL, "bnot": BOOL}
    return Node(name, kinds.get(name, args[-1].type), args, None, Site(span(line)))


def at(slot: int, ty: Ty = FLOAT) -> Node:
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


def check_overlap(step: Step) -> None:
    """An output lies over an input only where a map without folds reads it at its index (the oracle would not
    notice)."""
    for slot, storage in enumerate(step.inputs):
        if np.shares_memory(storage.data, step.output.data):
            assert step.op == "map" and step.kernel is not None
            assert storage.address == step.output.address and storage.kind is step.output.kind
            loads = [n for n in walk(step.kernel.roots) if n.op == "load" and n.attr == slot]
            assert all(n.args[0].op == "index" for n in loads)
            assert all(n.op not in ("fold", "loop", "call") for n in walk(step.kernel.roots))


class Counting(OracleBackend):
    """Counts launches and live bytes, and recycles memory so that a use after release is seen."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.live: dict[int, Storage] = {}
        self.allocated = 0
        self.free: dict[tuple[Kind, int], list[Storage]] = {}

    @property
    def live_bytes(self) -> int:
        return sum(s.data.nbytes for s in self.live.values())

    def allocate(self, kind: Kind, n: int) -> Storage:
        self.allocated += 1
        again = self.free.get((kind, n))
        storage = again.pop() if again else super().allocate(kind, n)
        storage.data[:] = 77
        self.live[id(storage)] = storage
        return storage

    def release(self, storage: Storage) -> None:
        if self.live.pop(id(storage), None) is not None:
            self.free.setdefault((storage.kind, storage.length), []).append(storage)

    def run(self, steps: Sequence[Step]) -> Report:
        for step in steps:
            check_overlap(step)
        self.ran.extend(s.op if s.kernel is None else s.kernel.name for s in steps)
        return super().run(steps)
