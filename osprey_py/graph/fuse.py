"""Which launches become one: from the shape of a pending graph to the groups that a plan runs.

Comes in: a `Shape` and the nodes it is of. Goes out: `Fused`: the groups in strict order, each one step of the plan, and
why each result that nobody asked for is stored all the same.

The rules, in units of work (graph/cost.py):
- What reads no memory and is little work (an iota, index arithmetic on one) is computed wherever it is read.
- A map that one launch reads, once an element and at its own index, is computed there: nothing is computed twice and a
  store and a load are saved. That is how bias, activation and residual come to stand behind a contraction. At most one
  launch of a group has folds, so that a contraction stays one.
- A map that several launches read so is computed in each when that is less work than storing and loading it.
- Into a fold over the whole of it, or a scan, a map goes only when it is little work: they are sequential, it is not.
- What may fault goes only where all of its elements are evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from osprey_py.backends.protocol import StepOp
from osprey_py.graph.buffer import STEP_OF, Node
from osprey_py.graph.cost import WORK_OF_A_MOVE, Facts, Place
from osprey_py.graph.kernels import copy_kernel
from osprey_py.graph.schedule import Shape
from osprey_py.kernel.ir import Kernel
from osprey_py.kernel.substitute import Deduped, Inlined, dedupe, inline
from osprey_py.source.span import Span

Pick = tuple[int, int]
"""A uniform of a step: (node, k) is the node's k-th; (node, LENGTH) is how many elements the node has."""
LENGTH = -1

LITTLE = 8
"""Work that is computed again rather than read, or inside something sequential."""
MOST_MEMBERS = 32
"""Launches in a group: code stays of a size that compiles quickly."""


@dataclass(frozen=True, slots=True)
class Group:
    """One step. value: the node whose result it makes. part: which half of a concat it fills, else None.
    extent: the value whose length is the number of elements. inputs: value ids, by slot. members: the nodes that are
    computed in it, value first (a concat's own copy is none)."""

    op: StepOp
    kernel: Kernel | None
    value: int
    part: int | None
    extent: int
    inputs: tuple[int, ...]
    picks: tuple[Pick, ...]
    members: tuple[int, ...]
    risky: bool


@dataclass(frozen=True, slots=True)
class Fused:
    """postponed: nodes that somebody holds and nobody reads here any more (an iota, say); they stay pending."""

    groups: list[Group]
    reasons: dict[int, str]
    postponed: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Base:
    """A launch, or a concat's copy, with what is computed wherever it is read put in. same: by slot, whether the input has
    as many elements as the launch."""

    kernel: Kernel
    inputs: tuple[int, ...]
    same: tuple[bool, ...]
    picks: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class _Use:
    """A launch that reads a node. part: of a concat; place and same: of the slot."""

    by: int
    part: int | None
    place: Place
    same: bool


class Fuser:
    """Fuses graphs; remembers kernels, so that equal parts of graphs get the same `Kernel` (layers of a model share their
    code). enabled: False leaves each launch by itself."""

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self._facts: dict[Kernel, Facts] = {}
        self._inlined: dict[tuple[Kernel, int, Kernel, bool], Inlined | None] = {}
        self._deduped: dict[tuple[Kernel, tuple[int, ...], tuple[int, ...]], Deduped] = {}
        self._named: dict[tuple[Kernel, str, tuple[Span, ...]], Kernel] = {}

    def fuse(self, shape: Shape, nodes: Sequence[Node]) -> Fused:
        return _Fusion(self, shape, nodes).run()

    def facts(self, kernel: Kernel) -> Facts:
        known = self._facts.get(kernel)
        if known is None:
            known = self._facts[kernel] = Facts(kernel)
        return known

    def inline(self, consumer: Kernel, slot: int, producer: Kernel, same: bool) -> Inlined | None:
        key = (consumer, slot, producer, same)
        if key not in self._inlined:
            self._inlined[key] = inline(consumer, slot, producer, same_extent=same)
        return self._inlined[key]

    def dedupe(self, kernel: Kernel, slots: Sequence[object], uniforms: Sequence[object]) -> Deduped:
        key = (kernel, _pattern(slots), _pattern(uniforms))
        if key not in self._deduped:
            self._deduped[key] = dedupe(kernel, key[1], key[2])
        return self._deduped[key]

    def named(self, kernel: Kernel, names: Sequence[str]) -> Kernel:
        """The kernel under its members' names, oldest first."""
        shown = list(dict.fromkeys(names))
        name = "+".join(shown if len(shown) <= 4 else [*shown[:2], "…", *shown[-1:]])
        if name == kernel.name:
            return kernel
        key = (kernel, name, kernel.sources)
        if key not in self._named:
            self._named[key] = replace(kernel, name=name)
        return self._named[key]


def _pattern(keys: Sequence[object]) -> tuple[int, ...]:
    """Which keys are equal, whatever they are: the first place of each."""
    first: dict[object, int] = {}
    return tuple([first.setdefault(key, at) for at, key in enumerate(keys)])


@dataclass(slots=True)
class _Sink:
    """What a launch ends up in: a group, told by its value and part, with what is in it so far."""

    members: int = 1
    heavy: bool = False
    work: int = 0
    sequential: bool = False


@dataclass
class _Fusion:
    """One graph being fused."""

    fuser: Fuser
    shape: Shape
    nodes: Sequence[Node]
    bases: dict[tuple[int, int | None], _Base] = field(default_factory=dict)
    uses: dict[int, list[_Use]] = field(default_factory=dict)
    inside: set[int] = field(default_factory=set)
    reasons: dict[int, str] = field(default_factory=dict)
    sinks: dict[tuple[int, int | None], _Sink] = field(default_factory=dict)
    sinks_of: dict[int, list[_Sink]] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)

    def run(self) -> Fused:
        self._bases()
        if self.fuser.enabled:
            for p in reversed(range(self.shape.count)):
                reason = self._decide(p)
                if reason:
                    self.reasons[p] = reason
        groups = []
        for p in range(self.shape.count):
            if p in self.inside or p in self.dropped:
                continue
            if self.shape.ops[p] == "concat":
                groups.append(self._group(p, 0))
                groups.append(self._group(p, 1))
            else:
                groups.append(self._group(p, None))
        return Fused(groups, self.reasons, frozenset(p for p in self.dropped if self.shape.needed[p]))

    # --- what is computed wherever it is read -----------------------------------------------------------------

    def _bases(self) -> None:
        shape = self.shape
        for p in range(shape.count):
            kernel, inputs, same = shape.kernels[p], shape.inputs[p], shape.same[p]
            if shape.ops[p] == "concat":
                copy = copy_kernel(self.nodes[p].type)
                for part, source in enumerate(inputs):
                    self._add(p, part, self._simplest(p, _Base(copy, (source,), (True,), ())))
            elif kernel is not None:
                picks = tuple((p, k) for k in range(len(kernel.uniforms)))
                self._add(p, None, self._simplest(p, _Base(kernel, inputs, same, picks)))
            else:
                for source in inputs:
                    self.uses.setdefault(source, []).append(_Use(p, None, Place.OTHER, False))

    def _simplest(self, p: int, base: _Base) -> _Base:
        if not self.fuser.enabled or self.shape.ops[p] == "filter":
            return base
        while True:
            base = self._merged(base)
            for slot, source in enumerate(base.inputs):
                if self._trivial(source):
                    inlined = self._inline(base, slot, self.bases[source, None])
                    if inlined is not None:
                        base = inlined
                        break
            else:
                return base

    def _trivial(self, source: int) -> bool:
        """It reads no memory, is little work and cannot fault."""
        if source >= self.shape.count or self.shape.ops[source] != "map" or self.shape.risky[source]:
            return False
        kernel = self.bases[source, None].kernel
        facts = self.fuser.facts(kernel)
        return not kernel.slots and not facts.heavy and facts.work <= LITTLE

    def _add(self, p: int, part: int | None, base: _Base) -> None:
        self.bases[p, part] = base
        facts = self.fuser.facts(base.kernel)
        op = self.shape.ops[p]
        for slot, source in enumerate(base.inputs):
            place = facts.places[slot]
            again = place is Place.FOLD and op != "fold"
            if again or base.kernel.functions or (op == "filter" and slot == 0):
                place = Place.OTHER
            self.uses.setdefault(source, []).append(_Use(p, part, place, base.same[slot]))

    # --- what goes into its readers ---------------------------------------------------------------------------

    def _decide(self, p: int) -> str:
        """Put the node into its readers, or say why not; nothing to say of what is asked for or only made there."""
        shape, uses = self.shape, self.uses.get(p, [])
        base = self.bases.get((p, None))
        if not uses and not shape.risky[p] and not shape.targets[p]:
            self.dropped.add(p)
            return ""
        if shape.needed[p]:
            return self._root(p, "")
        if shape.ops[p] != "map" or base is None:
            return self._root(p, f"a {shape.ops[p]} is stored")
        facts = self.fuser.facts(base.kernel)
        if facts.general:
            return self._root(p, "a loop of unknown length runs by itself")
        if any(u.place is Place.OTHER for u in uses):
            return self._root(p, "it is read at computed places, so elements would be computed again")
        if shape.risky[p] and not any(self._sees_all(u) for u in uses):
            return self._root(p, "it may fault, and its reader may not evaluate all of it")
        # Two readers in one group share what they read there.
        sinks = list({id(s): s for u in uses for s in self._sinks(u)}.values())
        if facts.heavy and (len(sinks) != 1 or sinks[0].sequential or uses[0].place is not Place.INDEX):
            return self._root(p, "its folds would run again, or one after the other")
        if facts.heavy and sinks[0].heavy:
            return self._root(p, "its reader has folds of its own")
        again, saved = (len(sinks) - 1) * facts.work, (len(sinks) + 1) * WORK_OF_A_MOVE
        if again > saved:
            return self._root(p, f"{len(sinks)} readers would do {again} units of work again to save {saved}")
        if any(s.sequential and s.work + facts.work > LITTLE for s in sinks):
            return self._root(p, "its reader is sequential, and it is not")
        if any(s.members >= MOST_MEMBERS for s in sinks):
            return self._root(p, f"its reader is {MOST_MEMBERS} launches already")
        for sink in sinks:
            sink.members += 1
            sink.work += facts.work
            sink.heavy = sink.heavy or facts.heavy
        self.inside.add(p)
        self.sinks_of[p] = sinks
        return ""

    def _root(self, p: int, reason: str) -> str:
        for part in (0, 1) if self.shape.ops[p] == "concat" else (None,):
            base = self.bases.get((p, part))
            sink = self.sinks[p, part] = _Sink()
            if base is not None:
                facts = self.fuser.facts(base.kernel)
                sink.sequential = self.shape.ops[p] == "scan"
                sink.heavy = facts.heavy
        return reason

    def _sinks(self, use: _Use) -> list[_Sink]:
        """The groups that the reader is computed in."""
        if use.by in self.inside:
            return self.sinks_of[use.by]
        sink = self.sinks[use.by, use.part]
        if use.place is Place.FOLD:
            sink.sequential = True
        return [sink]

    def _sees_all(self, use: _Use) -> bool:
        """Whether the reader evaluates every element of what it reads."""
        if use.place is Place.FOLD:
            return use.by not in self.inside
        if not use.same:
            return False
        return use.by not in self.inside or any(self._sees_all(u) for u in self.uses[use.by])

    # --- groups -------------------------------------------------------------------------------------------------

    def _group(self, p: int, part: int | None) -> Group:
        shape = self.shape
        base = self.bases.get((p, part))
        extent = p if part is None else shape.inputs[p][part]
        if base is None:
            return Group(STEP_OF[shape.ops[p]], None, p, part, extent, shape.inputs[p], (), (p,), shape.risky[p])
        members = [p] if part is None else []
        while True:
            base = self._merged(base)
            latest = max((q for q in base.inputs if q in self.inside), default=-1)
            if latest < 0:
                break
            inlined = self._inline(base, base.inputs.index(latest), self.bases[latest, None])
            assert inlined is not None
            base = inlined
            members.append(latest)
        kernel = base.kernel
        if members != [p]:
            names = [k.name for k in (shape.kernels[q] for q in sorted(members)) if k is not None]
            kernel = self.fuser.named(kernel, names or [kernel.name])
        risky = any(shape.risky[q] for q in members)
        return Group(STEP_OF[shape.ops[p]], kernel, p, part, extent, base.inputs, base.picks, tuple(members), risky)

    def _inline(self, base: _Base, slot: int, producer: _Base) -> _Base | None:
        source, same = base.inputs[slot], base.same[slot]
        inlined = self.fuser.inline(base.kernel, slot, producer.kernel, same)
        if inlined is None:
            return None
        picks = base.picks + producer.picks
        return _Base(
            inlined.kernel,
            base.inputs[:slot] + base.inputs[slot + 1 :] + producer.inputs,
            base.same[:slot] + base.same[slot + 1 :] + (producer.same if same else (False,) * len(producer.same)),
            (*picks, (source, LENGTH)) if inlined.reads_length else picks,
        )

    def _merged(self, base: _Base) -> _Base:
        """Slots of the same buffer and uniforms of the same origin made one."""
        if len(set(base.inputs)) == len(base.inputs) and len(set(base.picks)) == len(base.picks):
            return base
        deduped = self.fuser.dedupe(base.kernel, base.inputs, base.picks)
        return _Base(
            deduped.kernel,
            tuple(base.inputs[k] for k in deduped.slots),
            tuple(base.same[k] for k in deduped.slots),
            tuple(base.picks[k] for k in deduped.uniforms),
        )
