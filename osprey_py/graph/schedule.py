"""From what is asked for to the pending graph, in strict order, and its structural key.

Comes in: the nodes whose values are needed. Goes out: `Pending` (the nodes that have to run, oldest first, and the
data they read), its key for the plan cache, and `Shape`, the same facts laid out for planning.

The key holds what a plan depends on: kernels by identity, who reads whom, how the data lies in memory, which results
are still wanted, which data dies here, which launches may fault, and of lengths one bit an edge: does the input have
as many elements as the launch. Lengths, uniforms and storages are not in it (ideas 3 and 8 of the architecture).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from sys import getrefcount

from osprey_py.backends.protocol import Kind
from osprey_py.graph.buffer import Memory, Node, NodeOp
from osprey_py.kernel.ir import INT, Kernel
from osprey_py.source.span import NO_SPAN

_by_order = attrgetter("order")


@dataclass(frozen=True, slots=True)
class Pending:
    """nodes: to run, in strict order; externals: data they read, by first use.
    needed: which nodes' results somebody outside can still ask for; targets: which are to be there when the plan has run;
    dying: whose memory nobody outside can reach."""

    nodes: list[Node]
    externals: list[Node]
    needed: list[bool]
    targets: list[bool]
    dying: list[bool]
    key: Hashable


def collect(targets: Iterable[Node]) -> list[Node]:
    """The targets and every pending node they depend on, in strict order."""
    found = {t: None for t in targets if t.storage is None and not t.done}
    stack = list(found)
    while stack:
        for x in stack.pop().inputs:
            if x.storage is None and x not in found:
                found[x] = None
                stack.append(x)
    return sorted(found, key=_by_order)


def pending(targets: list[Node]) -> Pending:
    """What has to run for the targets, and the key of the plan that runs it.

    Value ids: a node is its position, data is `len(nodes)` plus its position."""
    nodes = collect(targets)
    position = {node: p for p, node in enumerate(nodes)}
    count = len(nodes)
    externals: list[Node] = []
    uses = [0] * count
    outer: dict[Node, int] = {}
    key: list[Hashable] = [count]
    for node in nodes:
        n = node.length
        key.append(node.op)
        key.append(node.kernel)
        for x in node.inputs:
            at = position.get(x)
            if at is None:
                at = outer.get(x)
                if at is None:
                    at = outer[x] = count + len(externals)
                    externals.append(x)
                    uses.append(0)
            uses[at] += 1
            key.append(at + at + 1 if x.length == n else at + at)
    node = x = None  # type: ignore[assignment]  # these count as references
    needed = _held(nodes, position, uses[:count])
    asked = [False] * count
    for t in targets:
        at = position.get(t)
        if at is not None:
            needed[at] = asked[at] = True
    held = _held(externals, outer, uses[count:])
    dying = [
        not h and x.memory is not None and x.memory.owned and _sole(x) for h, x in zip(held, externals, strict=True)
    ]
    for p, node in enumerate(nodes):
        key.append(needed[p] + 2 * asked[p] + 4 * (node.risky and node.length > 0))
    for x, dies in zip(externals, dying, strict=True):
        key.append(x.kind)
        key.append(dies)
    return Pending(nodes, externals, needed, asked, dying, tuple(key))


def _counts(nodes: list[Node], positions: dict[Node, int], uses: list[int]) -> list[int]:
    """References to each node from outside the graph, plus a constant that the interpreter decides."""
    return [getrefcount(n) - u - n.listed for n, u in zip(nodes, uses, strict=True)]


def _held(nodes: list[Node], positions: dict[Node, int], uses: list[int]) -> list[bool]:
    """Which nodes somebody outside refers to: a handle, or a pending node that is not in this graph. A reference too
    many costs a buffer; one too few cannot be."""
    return [c > _NOT_HELD for c in _counts(nodes, positions, uses)]


def _sole(node: Node) -> bool:
    """Nothing but this node (no view of it, no buffer grown from it) refers to its memory."""
    return getrefcount(node.memory) <= _SOLE


def _calibrate() -> tuple[int, int]:
    """The counts of a node and of a memory that nothing outside refers to."""
    nodes = [Node("data", None, (), (), 0, INT, 0, NO_SPAN)]
    counts = _counts(nodes, {n: p for p, n in enumerate(nodes)}, [0])
    nodes[0].memory = Memory(None, 0, None)  # type: ignore[arg-type]
    return counts[0], getrefcount(nodes[0].memory)


_NOT_HELD, _SOLE = _calibrate()


@dataclass(frozen=True, slots=True)
class Shape:
    """The structure of a pending graph, by position: what planning may look at. inputs: value ids; same: whether the
    input has as many elements as the launch; kinds: of the externals."""

    ops: tuple[NodeOp, ...]
    kernels: tuple[Kernel | None, ...]
    inputs: tuple[tuple[int, ...], ...]
    same: tuple[tuple[bool, ...], ...]
    needed: tuple[bool, ...]
    targets: tuple[bool, ...]
    risky: tuple[bool, ...]
    kinds: tuple[Kind, ...]
    dying: tuple[bool, ...]

    @property
    def count(self) -> int:
        return len(self.ops)


def shape_of(graph: Pending) -> Shape:
    """The facts of the key, laid out."""
    ids = {node: v for v, node in enumerate([*graph.nodes, *graph.externals])}
    nodes = graph.nodes
    return Shape(
        tuple(n.op for n in nodes),
        tuple(n.kernel for n in nodes),
        tuple(tuple(ids[x] for x in n.inputs) for n in nodes),
        tuple(tuple(x.length == n.length for x in n.inputs) for n in nodes),
        tuple(graph.needed),
        tuple(graph.targets),
        tuple(n.risky and n.length > 0 for n in nodes),
        tuple(n.kind for n in graph.externals),
        tuple(graph.dying),
    )
