"""One run of a plan: recipes bound to lengths, uniforms and storage.

Comes in: `Recipe`s, and the nodes and data of this run. Goes out: `Step`s; afterwards, results on their nodes.

Steps run in order, so what a step reads for the last time is free for the step after it, while the list of steps is still
being written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from osprey_py.backends.protocol import KIND_OF, Backend, Kind, Step, Storage
from osprey_py.graph.buffer import Memory, Node
from osprey_py.graph.fuse import Group

SMALL = 8192
"""Elements up to which a temporary is kept at hand between steps and runs: asking the backend takes longer than reading
it. Larger ones go back to the backend, which serves all sizes from them."""
MOST_SPARE = 512
"""Small temporaries kept at hand; when there are more, sizes have changed, and all are given back."""


class Spare:
    """Small temporaries that are free, by kind and length."""

    __slots__ = ("_release", "stocks")

    def __init__(self, release: Callable[[Storage], None]) -> None:
        self._release = release
        self.stocks: dict[Kind, dict[int, list[Storage]]] = {kind: {} for kind in Kind}

    def tidy(self, most: int = MOST_SPARE) -> None:
        """Give all back when there are too many."""
        if sum([len(s) for stock in self.stocks.values() for s in stock.values()]) > most:
            for stock in self.stocks.values():
                for storages in stock.values():
                    for storage in storages:
                        self._release(storage)
                stock.clear()


@dataclass(slots=True)
class Recipe:
    """A step to be bound. kinds: of the inputs. temporary: the result is for this plan alone.
    Values nobody reads after this step: `spent` are temporaries; `taken` is data that dies here; `let_go` may share
    their block with others. over: which of the first two the output may take the memory of, when it has as many
    elements."""

    group: Group
    kinds: tuple[Kind, ...]
    out: Kind
    temporary: bool
    over: tuple[int, ...]
    spent: tuple[int, ...]
    taken: tuple[int, ...]
    let_go: tuple[int, ...]
    whole: int
    compiled: Any = None
    ready: bool = False


class Frame:
    """One run of a plan: the storage and the memory of every value, by id."""

    __slots__ = (
        "backend",
        "count",
        "free",
        "lengths",
        "memories",
        "nodes",
        "offsets",
        "release",
        "stocks",
        "stores",
    )

    def __init__(
        self, lengths: list[int], nodes: list[Node], externals: list[Node], backend: Backend, spare: Spare
    ) -> None:
        """lengths: of the nodes and the data."""
        self.count = count = len(nodes)
        self.nodes = nodes
        self.backend = backend
        self.stocks = spare.stocks
        self.release: Callable[[Storage], None] = backend.release
        self.free: Callable[[Storage], None] = backend.release
        """What takes the storage of values that die in the plan."""
        blank: list[Any] = [None] * count
        self.lengths = lengths
        self.stores: list[Storage] = blank + [x.storage for x in externals]
        self.memories: list[Memory | None] = blank + [x.memory for x in externals]
        self.offsets = [0] * count + [x.offset for x in externals]

    def bind(self, recipe: Recipe) -> Step | None:
        """The step with its storage; None when there is nothing to launch."""
        group = recipe.group
        stores, nodes = self.stores, self.nodes
        n = self.lengths[group.extent]
        inputs = tuple([stores[v] for v in group.inputs])
        output: Storage | None
        output, over = self._output(recipe, n) if group.part is None else (self._append(group, n), -1)
        if recipe.whole >= 0:
            uniforms = nodes[recipe.whole].uniforms
        else:
            uniforms = tuple([nodes[p].uniforms[k] if k >= 0 else self.lengths[p] for p, k in group.picks])
        release = self.free
        for v in recipe.spent:
            if v != over:
                storage = stores[v]
                size = self.lengths[v]
                if size <= SMALL:
                    self.stocks[storage.kind].setdefault(size, []).append(storage)
                else:
                    release(storage)
        for v in recipe.taken:
            memory = self.memories[v]
            if v != over and memory is not None:
                release(memory.disown())
        for v in recipe.let_go:
            self.memories[v] = None
        if n == 0 or output is None:
            return None
        return Step(group.op, group.kernel, inputs, uniforms, n, output, recipe.compiled)

    def _output(self, recipe: Recipe, n: int) -> tuple[Storage, int]:
        """Where the result goes, and the value whose memory that was, or -1."""
        value = recipe.group.value
        over = -1
        for v in recipe.over:
            if self.lengths[v] == n and self._takes(v, n):
                storage, over = self.stores[v], v
                break
        else:
            stock = self.stocks[recipe.out].get(n)
            storage = stock.pop() if stock else self.backend.allocate(recipe.out, n)
        if not recipe.temporary:
            self.memories[value] = Memory(storage, n, self.release)
        self.stores[value] = storage
        return storage, over

    def _takes(self, v: int, n: int) -> bool:
        """Take the memory of a value if it is the value's alone and no larger."""
        memory = self.memories[v]
        if v >= self.count:
            if memory is None or memory.storage.length != n:
                return False
            self.stores[v] = memory.disown()
        return True

    def _append(self, group: Group, n: int) -> Storage | None:
        """Where one half of a concat goes. The first half is already there when the left side ends where its block's
        used part ends and the block has room."""
        value = group.value
        total = self.lengths[value]
        if group.part == 0:
            left = group.extent if group.inputs == (group.extent,) else -1
            memory = self.memories[left] if left >= 0 else None
            grown = memory is not None and memory.grown
            if (
                memory is not None
                and memory.owned
                and self.offsets[left] == 0
                and memory.used == n
                and memory.storage.length >= total
                and memory.storage.kind is KIND_OF[self.nodes[value].type]
            ):
                memory.used = total
                self._place(value, memory, total)
                return None
            capacity = 2 * total if grown else total
            block = self.backend.allocate(KIND_OF[self.nodes[value].type], capacity)
            self._place(value, Memory(block, total, self.release, grown=True), total)
            return block.part(0, n)
        whole = self.stores[value]
        return whole.part(total - n, whole.length)

    def _place(self, value: int, memory: Memory, n: int) -> None:
        block = memory.storage
        self.memories[value] = memory
        self.stores[value] = block if block.length == n else block.part(0, n)

    def leave(self, kept: tuple[int, ...], postponed: frozenset[int], counts: dict[int, int]) -> None:
        """Attach the results that stay; every launch of the plan but those postponed has run."""
        for p in kept:
            memory, storage = self.memories[p], self.stores[p]
            assert memory is not None
            if self.nodes[p].op == "filter":
                memory, storage = self._trim(memory, counts.get(p, 0))
            self.nodes[p].attach(storage, memory)
        for p, node in enumerate(self.nodes):
            if not node.done and p not in postponed:
                node.finish()

    def _trim(self, memory: Memory, n: int) -> tuple[Memory, Storage]:
        """The elements a filter kept, in memory of a size to match."""
        block = memory.storage
        part = block.part(0, n)
        if 2 * n >= block.length:
            memory.used = n
            return memory, part
        small = self.backend.allocate(block.kind, n)
        small.put(part.data)
        return Memory(small, n, self.release), small
