"""Plans: a pending graph made into recipes once, and run for other lengths, uniforms and storage any number of times.

Comes in: `Group`s and the `Shape` they were made for. Goes out: `Plan`, whose `run` leaves the needed results on their
nodes, or says that something faulted.

Memory. What dies inside a plan serves the steps after it (graph/frame.py). Data that comes from outside the plan and dies
in it is taken only behind the last step that may fault: until the flags are read, the launches must be repeatable
(graph/locate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from osprey_py.backends.protocol import KIND_OF, Backend, DeviceError, Kind, Report, Running, Step, StepOp
from osprey_py.graph.buffer import Node
from osprey_py.graph.frame import Frame, Recipe, Spare
from osprey_py.graph.fuse import LENGTH, Fused, Group
from osprey_py.graph.kernels import has_folds, reads_only_at_index
from osprey_py.graph.refusal import refusal
from osprey_py.graph.repeat import Habit, Rehearsal, Scripting, Steps
from osprey_py.graph.schedule import Shape
from osprey_py.kernel.ir import Kernel, Ty

CompiledCache = dict[tuple[StepOp, Kernel | None, tuple[Kind, ...]], Any]


class Watcher(Protocol):
    """Told of every plan and of every step that ran, in profiles only (graph/trace.py)."""

    clock: Callable[[], float]

    def planned(self, plan: Plan, nodes: list[Node], seconds: float) -> None: ...

    def ran(self, recipe: Recipe, step: Step, nodes: list[Node], seconds: float, making: float) -> None: ...


class Engine:
    """What plans run on: a backend, its compiled kernels, and small memory at hand. repeating: whether plans that run
    again for the same lengths repeat what they did. repeats: how often they have."""

    def __init__(self, backend: Backend, repeating: bool = True) -> None:
        self.backend = backend
        self.compiled: CompiledCache = {}
        self.spare = Spare(backend.release)
        self.repeating = repeating
        self.script: Scripting = getattr(backend, "script", lambda steps, storages: Steps(steps, storages, backend.run))
        self.begin: Callable[[int], Running] = getattr(backend, "begin", None) or (lambda count: Collected(backend))
        self.repeats = 0


class Collected:
    """A run of a backend that takes all steps together."""

    def __init__(self, backend: Backend) -> None:
        self._steps: list[Step] = []
        self.add = self._steps.append
        self._run = backend.run

    def end(self) -> Report:
        return self._run(self._steps) if self._steps else Report(None, {})

    def abandon(self) -> None:
        pass


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """segments: the recipes up to the last that may fault, and, where these take data that dies, the rest. kept:
    nodes whose results stay; postponed: nodes that stay pending.
    reasons: why a node nobody asked for is stored. habit: None where no run is like another: an append goes where its
    left side lies, and a filter's result is as long as its data says."""

    segments: tuple[tuple[Recipe, ...], tuple[Recipe, ...]]
    count: int
    kept: tuple[int, ...]
    postponed: frozenset[int]
    reasons: dict[int, str]
    habit: Habit | None

    @property
    def steps(self) -> int:
        return len(self.segments[0]) + len(self.segments[1])

    def run(
        self,
        nodes: list[Node],
        externals: list[Node],
        engine: Engine,
        watcher: Watcher | None = None,
    ) -> bool:
        """Run for these nodes and data. True: every needed node has its storage. False: something faulted; no node
        has changed."""
        backend = engine.backend
        lengths = [n.length for n in nodes] + [x.length for x in externals]
        frame: Frame | None = None
        rehearsal: Rehearsal | None = None
        habit = self.habit
        if habit is not None and watcher is None and engine.repeating:
            if habit.repeat is not None and habit.repeat.lengths == lengths:
                done = habit.repeat.run(nodes, externals, backend, engine.spare)
                if done is not None:
                    engine.repeats += 1
                    return done
            if habit.runs(lengths):
                taken = tuple(v for recipes in self.segments for recipe in recipes for v in recipe.taken)
                frame = rehearsal = Rehearsal(lengths, nodes, externals, backend, engine.spare, taken)
        if frame is None:
            frame = Frame(lengths, nodes, externals, backend, engine.spare)
        counts: dict[int, int] = {}
        for recipes in self.segments:
            if watcher is None:
                ran = _ran(engine, frame, recipes, counts)
            else:
                ran = _watched(watcher, engine, frame, recipes, counts)
            if not ran:
                assert recipes is self.segments[0], "a step proven free of faults faulted"
                return False
        frame.leave(self.kept, self.postponed, counts)
        if habit is not None and rehearsal is not None:
            habit.repeat = rehearsal.end(self.segments, self.kept, self.postponed, engine.script)
        engine.spare.tidy()
        return True


def _bound(engine: Engine, frame: Frame, recipes: Sequence[Recipe]) -> Iterator[tuple[Recipe, Step]]:
    """The steps, each made when it is asked for."""
    for recipe in recipes:
        try:
            step = frame.bind(recipe)
            if step is None:
                continue
            if not recipe.ready:
                step = _prepare(recipe, step, engine)
        except DeviceError as error:
            raise refusal(error, engine.backend.name, frame.nodes[recipe.group.value].span) from None
        yield recipe, step


def _prepare(recipe: Recipe, step: Step, engine: Engine) -> Step:
    """Compile at the first launch, whose sizes are the backend's example."""
    group = recipe.group
    key = (group.op, group.kernel, recipe.kinds)
    compiled = engine.compiled
    if key not in compiled:
        compiled[key] = engine.backend.compile(group.op, group.kernel, recipe.kinds, step)
    recipe.compiled = compiled[key]
    recipe.ready = True
    return Step(step.op, step.kernel, step.inputs, step.uniforms, step.n, step.output, recipe.compiled)


def _ran(engine: Engine, frame: Frame, recipes: Sequence[Recipe], counts: dict[int, int]) -> bool:
    """All steps, in one run of the backend; whether none faulted."""
    if not recipes:
        return True
    made: list[Recipe] = []
    running = engine.begin(len(recipes))
    try:
        for recipe, step in _bound(engine, frame, recipes):
            made.append(recipe)
            running.add(step)
        report = running.end()
    except BaseException as error:
        running.abandon()
        if isinstance(error, DeviceError):
            failed = made[0 if error.step is None else error.step]
            raise refusal(error, engine.backend.name, frame.nodes[failed.group.value].span) from None
        raise
    if report.fault is not None:
        return False
    for at, kept in report.counts.items():
        counts[made[at].group.value] = kept
    return True


def _watched(watcher: Watcher, engine: Engine, frame: Frame, recipes: Sequence[Recipe], counts: dict[int, int]) -> bool:
    """The steps one by one, each timed; whether none faulted."""
    backend, nodes = engine.backend, frame.nodes
    ready: Callable[[Step], None] | None = getattr(backend, "ready", None)
    for recipe, step in _bound(engine, frame, recipes):
        begun = watcher.clock()
        if ready is not None:
            ready(step)
        start = watcher.clock()
        try:
            report = backend.run((step,))
        except DeviceError as error:
            raise refusal(error, backend.name, nodes[recipe.group.value].span) from None
        seconds = watcher.clock() - start
        if report.fault is not None:
            return False
        for kept in report.counts.values():
            counts[recipe.group.value] = kept
        watcher.ran(recipe, step, nodes, seconds, start - begun)
    return True


def make_plan(shape: Shape, fused: Fused, types: tuple[Ty, ...], in_place: bool = True) -> Plan:
    """Decide, once for the shape, what each step may overwrite (nothing unless in_place) and what it frees. types: of the
    nodes' results.

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
    waiting = _waiting(shape, fused.postponed, stays)
    wanted = {v for p in waiting for v in shape.inputs[p]}
    recipes: list[Recipe] = []
    for at, group in enumerate(groups):
        ends = [v for v in dict.fromkeys((*group.inputs, group.value)) if last[v] == at]
        let_go = tuple(v for v in ends if v in shared and v not in stays)
        spent = tuple(v for v in ends if v < count and v not in stays and v not in shared)
        taken = tuple(
            v
            for v in ends
            if v >= count and v not in shared and at >= split and shape.dying[v - count] and v not in wanted
        )
        recipes.append(
            Recipe(
                group,
                tuple(kinds[v] for v in group.inputs),
                kinds[group.value],
                group.value not in stays and group.value not in shared,
                _overwritable(group, (*spent, *taken), kinds) if in_place else (),
                spent,
                taken,
                let_go,
                _whole(group, shape),
            )
        )
    alike = not appends and not any(g.op == "filter" for g in groups)
    return Plan(
        (tuple(recipes[:split]), tuple(recipes[split:])),
        count,
        tuple(sorted(stays)),
        waiting,
        fused.reasons,
        Habit() if alike else None,
    )


def _waiting(shape: Shape, postponed: frozenset[int], stays: set[int]) -> frozenset[int]:
    """What stays pending: the nodes that are postponed, and what they need that has no storage after the plan."""
    found = set(postponed)
    for p in reversed(range(shape.count)):
        if p in found:
            found.update(q for q in shape.inputs[p] if q < shape.count and q not in stays)
    return frozenset(found)


def _overwritable(group: Group, frees: tuple[int, ...], kinds: list[Kind]) -> tuple[int, ...]:
    """Inputs that a map may write over: they die here, lie as the output does, and are read at `index` only. A kernel
    with folds may write its sums before it reads the rest. An accumulate may write over its base."""
    if group.op == "accumulate" and len(group.inputs) == 3:
        base = group.inputs[2]
        return (base,) if base in frees and group.inputs.count(base) == 1 and kinds[base] is Kind.F64 else ()
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
