"""Plans that run again for the same lengths: what a run decided is kept, and later runs only bring storage and uniforms.

Comes in: a plan's recipes, and runs of it. Goes out: `Rehearsal`, a run that is noted down; `Repeat`, what came of it; and
`Habit`, which says when a plan is worth a rehearsal.

What a run of a plan decides depends on its structure (the key of graph/schedule.py), on lengths, and on whether the memory
of the data that dies in it is as large as that data. A repeat compares these, and a backend's script the uniforms that
code was chosen by (backends/protocol.py). Storage is told by slots: the data from outside, the memory of what of it
dies, then what is asked for. A repeat asks for memory and gives it back in the order in which the rehearsal did, so it
holds as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Any

from osprey_py.backends.protocol import Backend, DeviceError, Kind, Report, Scalar, Script, Step, Storage
from osprey_py.backends.taking import taker
from osprey_py.graph.buffer import Memory, Node
from osprey_py.graph.frame import Frame, Recipe, Spare
from osprey_py.graph.fuse import LENGTH
from osprey_py.graph.refusal import refusal

Scripting = Callable[[Sequence[Step], Sequence[Storage]], Script | None]
"""A backend's `script`."""


@dataclass(slots=True)
class Habit:
    """Whether a plan repeats itself. lengths: of the last run that was no repeat. wait: how many runs of the same
    lengths make it likely; twice as many after each rehearsal, so that a program whose integers always differ soon
    stops rehearsing."""

    lengths: list[int] = field(default_factory=list)
    repeat: Repeat | None = None
    wait: int = 1
    left: int = 1

    def runs(self, lengths: list[int]) -> bool:
        """A run without a repeat comes; whether it should be a rehearsal."""
        if lengths != self.lengths:
            self.lengths, self.left = lengths, self.wait
            return False
        self.left -= 1
        if self.left:
            return False
        self.wait = self.left = 2 * self.wait
        return True


class Steps:
    """The script of a backend that has none of its own: the steps, made again."""

    def __init__(self, steps: Sequence[Step], storages: Sequence[Storage], run: Callable[[list[Step]], Report]) -> None:
        slots = {id(s): k for k, s in enumerate(storages)}
        self._run = run
        self._parts: list[tuple[Any, ...]] = []
        at = 0
        for s in steps:
            inputs = tuple(slots[id(x)] for x in s.inputs)
            count = len(s.uniforms)
            self._parts.append((s.op, s.kernel, inputs, at, at + count, s.n, slots[id(s.output)], s.compiled))
            at += count

    def ready(self, uniforms: Sequence[Scalar]) -> bool:
        return True

    def run(self, storages: Sequence[Storage], uniforms: Sequence[Scalar]) -> Report:
        steps = []
        for op, kernel, inputs, begin, end, n, output, compiled in self._parts:
            read = tuple([storages[k] for k in inputs])
            steps.append(Step(op, kernel, read, tuple(uniforms[begin:end]), n, storages[output], compiled))
        return self._run(steps)


Act = tuple[Kind | None, int, int]
"""(kind, n, node): the next slot is asked for. (None, slot, node): it is given back. node: whose step that is for."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """Steps that run together, and what is asked for and given back before. uniforms: the steps', of all uniforms and
    lengths of the graph. values: of each step, its node. proven: free of faults; what dies may go."""

    acts: tuple[Act, ...]
    script: Script | None
    uniforms: Callable[[Sequence[Any]], tuple[Any, ...]]
    values: tuple[int, ...]
    proven: bool


@dataclass(frozen=True, eq=False, slots=True)
class Repeat:
    """lengths: of nodes and data. taken: which data dies here and gives its memory; sizes: of that. kept: nodes that
    get storage, and their slots; spent: small temporaries that are at hand again in the end; done: the other nodes that
    have run."""

    lengths: list[int]
    taken: tuple[int, ...]
    sizes: list[int]
    segments: tuple[_Segment, ...]
    kept: tuple[tuple[int, int], ...]
    spent: tuple[tuple[int, Kind, int], ...]
    done: tuple[int, ...]

    def run(self, nodes: list[Node], externals: list[Node], backend: Backend, spare: Spare) -> bool | None:
        """Run for nodes and data of these lengths, as `Plan.run`. None: it is not for them, and nothing has happened."""
        memories: list[Any] = [externals[k].memory for k in self.taken]
        if [m.storage.length for m in memories] != self.sizes:
            return None
        values: list[Scalar] = list(chain.from_iterable([n.uniforms for n in nodes]))
        values += self.lengths
        uniforms = [segment.uniforms(values) for segment in self.segments]
        if not all(s.script is None or s.script.ready(u) for s, u in zip(self.segments, uniforms, strict=True)):
            return None
        storages: list[Any] = [x.storage for x in externals]
        storages += [m.storage for m in memories]
        allocate, release, stocks = backend.allocate, backend.release, spare.stocks
        failed = 0
        try:
            for segment, u in zip(self.segments, uniforms, strict=True):
                if segment.proven:
                    for m in memories:
                        m.disown()
                for kind, n, node in segment.acts:
                    failed = node
                    if kind is None:
                        release(storages[n])
                    else:
                        stock = stocks[kind].get(n)
                        storages.append(stock.pop() if stock else allocate(kind, n))
                if segment.script is not None:
                    failed = segment.values[0]
                    if segment.script.run(storages, u).fault is not None:
                        assert not segment.proven, "a step proven free of faults faulted"
                        return False
        except DeviceError as error:
            if error.step is not None:
                failed = segment.values[error.step]
            raise refusal(error, backend.name, nodes[failed].span) from None
        for p, slot in self.kept:
            storage = storages[slot]
            nodes[p].attach(storage, Memory(storage, storage.length, release))
        for slot, kind, n in self.spent:
            stocks[kind].setdefault(n, []).append(storages[slot])
        for p in self.done:
            nodes[p].finish()
        return True


class _Log:
    """Which slot a storage is in, and what was asked for and given back."""

    def __init__(self, release: Callable[[Storage], None], storages: list[Storage], memories: list[Storage]) -> None:
        self._release = release
        self.storages = [*storages, *memories]
        """Of every slot."""
        self.slots = {id(s): len(storages) + k for k, s in enumerate(memories)}
        """Of storage that is in use and that values may come to lie in."""
        self.acts: list[Act] = []
        self.node = 0

    def take(self, storage: Storage) -> None:
        """A step writes there."""
        if id(storage) not in self.slots:
            self.acts.append((storage.kind, storage.length, self.node))
            self.slots[id(storage)] = len(self.storages)
            self.storages.append(storage)

    def release(self, storage: Storage) -> None:
        self.acts.append((None, self.slots.pop(id(storage)), self.node))
        self._release(storage)


class Rehearsal(Frame):
    """A run that notes which slot each step reads and writes. taken: the data whose memory its steps may take, by value
    id."""

    __slots__ = ("_log", "_noted", "_sizes", "_slots", "_taken")

    def __init__(
        self,
        lengths: list[int],
        nodes: list[Node],
        externals: list[Node],
        backend: Backend,
        spare: Spare,
        taken: tuple[int, ...],
    ) -> None:
        super().__init__(lengths, nodes, externals, backend, spare)
        memories = [m.storage for v in taken if (m := self.memories[v]) is not None]
        self._taken = tuple(v - self.count for v in taken)
        self._sizes = [s.length for s in memories]
        self._log = _Log(backend.release, self.stores[self.count :], memories)
        self.free = self._log.release
        self._slots = [-1] * self.count + list(range(len(externals)))
        """Of every value."""
        self._noted: list[_Note] = []

    def bind(self, recipe: Recipe) -> Step | None:
        self._log.node = recipe.group.value
        inputs = tuple([self._slots[v] for v in recipe.group.inputs])
        step = super().bind(recipe)
        output = self._slots[recipe.group.value]
        self._noted.append(_Note(recipe, inputs, output, len(self._log.acts), step))
        return step

    def _output(self, recipe: Recipe, n: int) -> tuple[Storage, int]:
        storage, over = super()._output(recipe, n)
        self._log.take(storage)
        self._slots[recipe.group.value] = self._log.slots[id(storage)]
        return storage, over

    def end(
        self,
        segments: Sequence[Sequence[Recipe]],
        kept: tuple[int, ...],
        postponed: frozenset[int],
        scripting: Scripting,
    ) -> Repeat | None:
        """What the run noted, for later ones; None when the backend keeps no script of it. segments: the plan's; the
        second is proven free of faults."""
        handles = [s.part(0, s.length) for s in self._log.storages]
        offsets = list(accumulate((len(n.uniforms) for n in self.nodes), initial=0))
        found: list[_Segment] = []
        begin, noted = 0, iter(self._noted)
        there = len(self._slots) - self.count + len(self._taken)
        for recipes, proven in zip(segments, (False, True), strict=True):
            notes = list(islice(noted, len(recipes)))
            end = notes[-1].acts if notes else begin
            steps = [s for n in notes if (s := n.held(handles)) is not None]
            made = [n.recipe for n in notes if n.step is not None]
            acts = self._log.acts[begin:end]
            there += sum(kind is not None for kind, *_ in acts)
            script = scripting(steps, handles[:there]) if steps else None
            if steps and script is None:
                return None
            places = taker([at for recipe in made for at in _places(recipe, self.nodes, offsets)])
            values = tuple(recipe.group.value for recipe in made)
            found.append(_Segment(tuple(acts), script, places, values, proven))
            begin = end
        stay = {self._slots[p] for p in kept}
        spent = [(k, self._log.storages[k]) for k in self._log.slots.values() if k not in stay]
        return Repeat(
            self.lengths,
            self._taken,
            self._sizes,
            tuple(found),
            tuple((p, self._slots[p]) for p in kept),
            tuple((k, storage.kind, storage.length) for k, storage in spent),
            tuple(p for p in range(self.count) if p not in kept and p not in postponed),
        )


@dataclass(frozen=True, slots=True)
class _Note:
    """A step of a rehearsal: the slots it reads and writes, how much had been asked for and given back when it was
    bound, and the step, where there was something to launch."""

    recipe: Recipe
    inputs: tuple[int, ...]
    output: int
    acts: int
    step: Step | None

    def held(self, handles: list[Storage]) -> Step | None:
        """The step on one object for each slot."""
        s = self.step
        if s is None:
            return None
        read = tuple([handles[k] for k in self.inputs])
        return Step(s.op, s.kernel, read, s.uniforms, s.n, handles[self.output], self.recipe.compiled)


def _places(recipe: Recipe, nodes: list[Node], offsets: list[int]) -> list[int]:
    """Where a step's uniforms are among those of all nodes, one after the other, and the lengths of all values behind
    them."""
    if recipe.whole >= 0:
        first = offsets[recipe.whole]
        return list(range(first, first + len(nodes[recipe.whole].uniforms)))
    return [offsets[p] + k if k != LENGTH else offsets[-1] + p for p, k in recipe.group.picks]
