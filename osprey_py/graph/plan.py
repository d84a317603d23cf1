"""Plans: a pending graph made into steps once, and bound to lengths, uniforms and storage at each run.

Comes in: `Group`s and the `Shape` they were made for. Goes out: `Plan`, whose `run` allocates, launches, and leaves
the needed results on their nodes, or says that something faulted.

Memory. Steps run in order, so what a step reads for the last time is free for the step after it, while the list of
steps is still being written. Data that comes from outside the plan and dies in it is taken only behind the last step
that may fault: until the flags are read, the launches must be repeatable (graph/locate.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from osprey_py.backends.protocol import KIND_OF, Backend, Kind, Step, StepOp, Storage
from osprey_py.graph.buffer import Memory, Node
from osprey_py.graph.fuse import LENGTH, Fused, Group
from osprey_py.graph.kernels import has_folds, reads_only_at_index
from osprey_py.graph.schedule import Shape
from osprey_py.kernel.ir import Kernel, Ty

CompiledCache = dict[tuple[StepOp, Kernel | None, tuple[Kind, ...]], Any]


class Watcher(Protocol):
    """Told of every plan and of every step that ran, in profiles only (graph/trace.py)."""

    clock: Callable[[], float]

    def planned(self, plan: Plan, nodes: list[Node]) -> None: ...

    def ran(self, recipe: Recipe, step: Step, nodes: list[Node], seconds: float) -> None: ...


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


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """segments: the recipes up to the last that may fault, and, where these take data that dies, the rest. kept:
    nodes whose results stay; postponed: nodes that stay pending.
    reasons: why a node nobody asked for is stored."""

    segments: tuple[tuple[Recipe, ...], tuple[Recipe, ...]]
    count: int
    kept: tuple[int, ...]
    postponed: frozenset[int]
    reasons: dict[int, str]

    @property
    def steps(self) -> int:
        return len(self.segments[0]) + len(self.segments[1])

    def run(
        self,
        nodes: list[Node],
        externals: list[Node],
        backend: Backend,
        compiled: CompiledCache,
        watcher: Watcher | None = None,
    ) -> bool:
        """Run for these nodes and data. True: every needed node has its storage. False: something faulted; no node
        has changed."""
        frame = _Frame(self.count, nodes, externals, backend)
        counts: dict[int, int] = {}
        for recipes in self.segments:
            steps: list[Step] = []
            made: list[Recipe] = []
            for recipe in recipes:
                step = frame.bind(recipe)
                if step is None:
                    continue
                if not recipe.ready:
                    step = _prepare(recipe, step, backend, compiled)
                steps.append(step)
                made.append(recipe)
            if watcher is not None:
                if not _watched(watcher, steps, made, nodes, backend, counts):
                    return False
                continue
            if not steps:
                continue
            report = backend.run(steps)
            if report.fault is not None:
                assert recipes is self.segments[0], "a step proven free of faults faulted"
                return False
            for at, kept in report.counts.items():
                counts[made[at].group.value] = kept
        frame.leave(self.kept, self.postponed, counts)
        return True


class _Frame:
    """One run of a plan: the storage and the memory of every value, by id."""

    __slots__ = ("backend", "count", "lengths", "memories", "nodes", "offsets", "release", "stores")

    def __init__(self, count: int, nodes: list[Node], externals: list[Node], backend: Backend) -> None:
        self.count = count
        self.nodes = nodes
        self.backend = backend
        self.release: Callable[[Storage], None] = backend.release
        blank: list[Any] = [None] * count
        self.lengths = [n.length for n in nodes] + [x.length for x in externals]
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
        release = self.release
        for v in recipe.spent:
            if v != over:
                release(stores[v])
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
            storage = self.backend.allocate(recipe.out, n)
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
            return Storage(block.kind, block.data[:n])
        whole = self.stores[value]
        return Storage(whole.kind, whole.data[total - n :])

    def _place(self, value: int, memory: Memory, n: int) -> None:
        block = memory.storage
        self.memories[value] = memory
        self.stores[value] = block if block.length == n else Storage(block.kind, block.data[:n])

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
        part = Storage(block.kind, block.data[:n])
        if 2 * n >= block.length:
            memory.used = n
            return memory, part
        small = self.backend.allocate(block.kind, n)
        small.data[:] = part.data
        return Memory(small, n, self.release), small


def _prepare(recipe: Recipe, step: Step, backend: Backend, compiled: CompiledCache) -> Step:
    """Compile at the first launch, whose sizes are the backend's example."""
    group = recipe.group
    key = (group.op, group.kernel, recipe.kinds)
    if key not in compiled:
        compiled[key] = backend.compile(group.op, group.kernel, recipe.kinds, step)
    recipe.compiled = compiled[key]
    recipe.ready = True
    return Step(step.op, step.kernel, step.inputs, step.uniforms, step.n, step.output, recipe.compiled)


def _watched(
    watcher: Watcher,
    steps: list[Step],
    made: list[Recipe],
    nodes: list[Node],
    backend: Backend,
    counts: dict[int, int],
) -> bool:
    """The steps one by one, each timed."""
    for step, recipe in zip(steps, made, strict=True):
        start = watcher.clock()
        report = backend.run((step,))
        seconds = watcher.clock() - start
        if report.fault is not None:
            return False
        for kept in report.counts.values():
            counts[recipe.group.value] = kept
        watcher.ran(recipe, step, nodes, seconds)
    return True


def make_plan(shape: Shape, fused: Fused, types: tuple[Ty, ...]) -> Plan:
    """Decide, once for the shape, what each step may overwrite and what it frees. types: of the nodes' results.

    An append may leave its result in its left side's block, so those two are never overwritten, and die with the
    block."""
    count, groups = shape.count, fused.groups
    kinds = [KIND_OF[t] for t in types] + list(shape.kinds)
    last: dict[int, int] = {}
    for at, group in enumerate(groups):
        last[group.value] = at
        for v in group.inputs:
            last[v] = at
    split = 1 + max((at for at, g in enumerate(groups) if g.risky), default=-1)
    appends = [g for g in groups if g.part is not None]
    shared = {g.value for g in appends} | {g.extent for g in appends if g.part == 0}
    stays = {p for p in range(count) if shape.needed[p]} - fused.postponed
    recipes: list[Recipe] = []
    for at, group in enumerate(groups):
        ends = [v for v in dict.fromkeys((*group.inputs, group.value)) if last[v] == at]
        let_go = tuple(v for v in ends if v in shared and v not in stays)
        spent = tuple(v for v in ends if v < count and v not in stays and v not in shared)
        taken = tuple(v for v in ends if v >= count and v not in shared and at >= split and shape.dying[v - count])
        recipes.append(
            Recipe(
                group,
                tuple(kinds[v] for v in group.inputs),
                kinds[group.value],
                group.value not in stays and group.value not in shared,
                _overwritable(group, (*spent, *taken), kinds),
                spent,
                taken,
                let_go,
                _whole(group, shape),
            )
        )
    return Plan(
        (tuple(recipes[:split]), tuple(recipes[split:])), count, tuple(sorted(stays)), fused.postponed, fused.reasons
    )


def _overwritable(group: Group, frees: tuple[int, ...], kinds: list[Kind]) -> tuple[int, ...]:
    """Inputs that a map may write over: they die here, lie as the output does, and are read at `index` only. A kernel
    with folds may write its sums before it reads the rest."""
    if group.op != "map" or group.part is not None or group.kernel is None or has_folds(group.kernel):
        return ()
    only = reads_only_at_index(group.kernel)
    return tuple(
        v
        for v in frees
        if v != group.value
        and kinds[v] is kinds[group.value]
        and all(s in only for s, w in enumerate(group.inputs) if w == v)
    )


def _whole(group: Group, shape: Shape) -> int:
    """The node whose uniforms are the step's, just as they are; -1 when they are picked."""
    picks = group.picks
    if not picks or picks[0][1] == LENGTH:
        return -1
    node = picks[0][0]
    kernel = shape.kernels[node]
    assert kernel is not None
    return node if picks == tuple((node, k) for k in range(len(kernel.uniforms))) else -1
