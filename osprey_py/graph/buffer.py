"""Buffers and the graph of what computes them.

Comes in: nothing. Goes out: `Node` (one launch, or data), `Buffer` (the language's handle on one) and `Memory` (a
block of storage and who owns it).

A handle holds its node, a node holds the nodes it reads, and nobody holds a handle from inside: when the last handle
on a pending node dies and no pending node outside a plan reads it, the node needs no storage of its own
(docs/graph.md). What a node computes never changes; running it only attaches the storage and lets go of what it read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from osprey_py.backends.protocol import KIND_OF, Kind, Scalar, StepOp, Storage
from osprey_py.kernel.ir import Kernel, Ty
from osprey_py.source.span import Span

NodeOp = Literal["data", "map", "fold", "scan", "filter", "concat", "accumulate"]
STEP_OF: dict[NodeOp, StepOp] = {
    "map": "map",
    "fold": "map",
    "scan": "scan",
    "filter": "filter",
    "concat": "map",
    "accumulate": "accumulate",
}
"""What a backend runs for a launch: a fold is a map of one element, a concat is copies."""


class Memory:
    """A block of storage, handed back when nobody holds it any more.

    used: how many of its elements, from the front, belong to some buffer. Appending to a buffer that ends exactly
    there disturbs nobody, so it happens in place while the block has room.
    grown: made by an append, so the next one may ask for room to spare."""

    __slots__ = ("_release", "grown", "storage", "used")

    def __init__(
        self, storage: Storage, used: int, release: Callable[[Storage], None] | None, grown: bool = False
    ) -> None:
        self.storage = storage
        self.used = used
        self.grown = grown
        self._release = release

    @property
    def owned(self) -> bool:
        """Made by the backend's allocator, so writable and recyclable; False for a mapped file."""
        return self._release is not None

    def disown(self) -> Storage:
        """The storage, which the caller now answers for."""
        self._release = None
        return self.storage

    def __del__(self) -> None:
        if self._release is not None:
            self._release(self.storage)


class Node:
    """One launch, pending until `storage` is there.

    op: data: storage given; map and fold: element i is kernel(i), fold having n = 1; scan, filter and accumulate: as
    Step says; concat: the inputs one after the other.
    length: elements of the result (for a pending filter, how many it looks at).
    order: its place among all launches of the runtime, which is the order faults are looked for in.
    risky: not proven free of faults; it has to have run before the next observable effect.
    listed: risky and on the runtime's list of launches that still have to run.
    done: its launch has run (a dead node's storage may be gone all the same)."""

    __slots__ = (
        "__weakref__",
        "done",
        "inputs",
        "kernel",
        "length",
        "listed",
        "memory",
        "offset",
        "op",
        "order",
        "risky",
        "span",
        "storage",
        "type",
        "uniforms",
    )

    def __init__(
        self,
        op: NodeOp,
        kernel: Kernel | None,
        inputs: tuple[Node, ...],
        uniforms: tuple[Scalar, ...],
        length: int,
        type: Ty,
        order: int,
        span: Span,
        risky: bool = False,
    ) -> None:
        self.op = op
        self.kernel = kernel
        self.inputs = inputs
        self.uniforms = uniforms
        self.length = length
        self.type = type
        self.order = order
        self.span = span
        self.risky = risky
        self.listed = False
        self.done = False
        self.storage: Storage | None = None
        self.memory: Memory | None = None
        self.offset = 0

    @property
    def kind(self) -> Kind:
        return KIND_OF[self.type] if self.storage is None else self.storage.kind

    def attach(self, storage: Storage, memory: Memory, offset: int = 0) -> None:
        """The result is there: `length` elements of the block from `offset` on."""
        self.storage = storage
        self.memory = memory
        self.offset = offset
        self.length = storage.length
        self.done = True
        self.inputs = ()

    def finish(self) -> None:
        """The launch has run: what it read may die."""
        self.done = True
        self.inputs = ()


class Buffer:
    """`GpuBuffer<T>`: immutable, dense, rank 1. type: T."""

    __slots__ = ("__weakref__", "node", "type")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.type = node.type

    def __len__(self) -> int:
        return self.node.length

    @property
    def length(self) -> Any:
        """The number of elements: an int, or a symbol while a function is recorded (graph/replay.py)."""
        return self.node.length

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Buffer<{self.type.value}>[{len(self)}]"
