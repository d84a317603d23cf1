"""Effect variables and what flows between them.

Comes in: inclusions (`flow`), performed operations (`perform`) and equalities (`join`). Goes out: at every moment, the
least set of labels each variable must hold, and for each label the reason it is there (a chain of calls that ends in a
`perform` or a built-in). Sinks are variables that bound what may reach them: kernels, declared rows.
Spec: types-and-effects, section Effects (L5.*). The graph only grows, so the closure is kept eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from osprey_py.source.span import NO_SPAN, Span

_ids = count(1)


class Label(NamedTuple):
    """One operation: the qualified effect and the operation. `IO` has no operation; an assignment to a `mut` cell is
    (`=`, the cell's key)."""

    effect: str
    operation: str

    @property
    def text(self) -> str:
        if self.effect == ASSIGN:
            return f"assign {self.operation.split('#')[0]}"
        short = self.effect.rsplit("::", 1)[-1]
        return f"{short}.{self.operation}" if self.operation else short


ASSIGN = "="
IO = Label("IO", "")
NOTHING: frozenset[Label] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A call through which effects travel: where it is written, and what is called."""

    span: Span
    callee: str


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """Why a label is in a variable. `step` is a call (then `cause` says why the callee has it) or, with cause None, the
    operation itself at `span`."""

    span: Span
    callee: str
    cause: Reason | None = None

    def chain(self) -> Iterator[Reason]:
        at: Reason | None = self
        while at is not None:
            yield at
            at = at.cause


@dataclass(slots=True, eq=False)
class Sink:
    """A bound. allowed: effects that may arrive (IO is decided by `io`, assignments by `cells`). on_label is told each
    other label that arrives. origin: the sink this one was instantiated from, and the use that did it."""

    allowed: frozenset[str]
    io: bool
    cells: bool
    on_label: Callable[[Sink, Label, Reason], None]
    span: Span
    what: str
    origin: Sink | None = None
    use: Step | None = None

    def admits(self, label: Label) -> bool:
        if label == IO:
            return self.io
        if label.effect == ASSIGN:
            return self.cells
        return label.effect in self.allowed


class Edge(NamedTuple):
    target: EffVar
    minus: frozenset[Label]
    step: Step | None


class EffVar:
    """insts: for a generic effect, the arguments at which it is performed here (one instance a variable).
    passes: names of the parameters' effects that a quantified variable holds or is, for display."""

    __slots__ = ("id", "insts", "labels", "level", "outs", "passes", "ref", "sink", "sources")

    def __init__(self, level: int, sink: Sink | None = None) -> None:
        self.id = next(_ids)
        self.ref: EffVar | None = None
        self.level = level
        self.labels: dict[Label, Reason] = {}
        self.outs: list[Edge] = []
        self.sources: list[EffVar] = []
        self.insts: dict[str, tuple[Any, ...]] = {}
        self.passes: tuple[str, ...] = ()
        self.sink = sink


def find(e: EffVar) -> EffVar:
    while e.ref is not None:
        if e.ref.ref is not None:
            e.ref = e.ref.ref
        e = e.ref
    return e


class Flows:
    """The operations on the graph. same_args makes two instances of a generic effect equal (unification);
    own_args says that an instance now belongs to a binding level."""

    def __init__(
        self,
        same_args: Callable[[tuple[Any, ...], tuple[Any, ...], Span], None],
        own_args: Callable[[tuple[Any, ...], int], None],
    ) -> None:
        self._same_args = same_args
        self._own_args = own_args

    def perform(self, e: EffVar, label: Label, reason: Reason, args: tuple[Any, ...] = ()) -> None:
        """`e` must hold `label`; args: the arguments of a generic effect."""
        work = [(e, label, reason, args)]
        while work:
            e, label, reason, args = work.pop()
            e = find(e)
            if args:
                known = e.insts.get(label.effect)
                if known is None:
                    e.insts[label.effect] = args
                    self._own_args(args, e.level)
                elif known is not args:
                    self._same_args(known, args, reason.span)
                    e = find(e)
            if label in e.labels:
                continue
            e.labels[label] = reason
            if e.sink is not None:
                if not e.sink.admits(label):
                    e.sink.on_label(e.sink, label, reason)
                continue
            for edge in e.outs:
                if label not in edge.minus:
                    work.append((edge.target, label, extend(reason, edge.step), args))

    def flow(self, source: EffVar, target: EffVar, minus: frozenset[Label] = NOTHING, step: Step | None = None) -> None:
        """Whatever is in `source`, except `minus`, is in `target`."""
        source, target = find(source), find(target)
        if source is target:
            return
        for edge in source.outs[-16:]:
            if find(edge.target) is target and edge.minus <= minus:
                return
        source.outs.append(Edge(target, minus, step))
        target.sources.append(source)
        for label, reason in list(source.labels.items()):
            if label not in minus:
                self.perform(target, label, extend(reason, step), source.insts.get(label.effect, ()))

    def join(self, a: EffVar, b: EffVar) -> None:
        """The two are one variable from now on."""
        a, b = find(a), find(b)
        if a is b:
            return
        assert a.sink is None and b.sink is None
        if len(a.outs) + len(a.labels) > len(b.outs) + len(b.labels):
            a, b = b, a
        a.ref = b
        b.level = min(a.level, b.level)
        outs, labels, insts = a.outs, a.labels, a.insts
        old = [(label, reason, b.insts.get(label.effect, ())) for label, reason in b.labels.items()]
        b.outs.extend(outs)
        b.sources.extend(a.sources)
        a.labels, a.outs, a.sources, a.insts = {}, [], [], {}
        # Making instances equal may join further variables, b among them: from here on, only through `find`.
        for effect, args in insts.items():
            known = find(b).insts.setdefault(effect, args)
            if known is not args:
                span = next((r.span for label, r in labels.items() if label.effect == effect), NO_SPAN)
                self._same_args(known, args, span)
        for edge in outs:
            for label, reason, args in old:
                if label not in edge.minus:
                    self.perform(edge.target, label, extend(reason, edge.step), args)
        for label, reason in labels.items():
            self.perform(b, label, reason, insts.get(label.effect, ()))


def extend(reason: Reason, step: Step | None) -> Reason:
    """The reason seen from the caller's side of a call."""
    return reason if step is None else Reason(step.span, step.callee, reason)
