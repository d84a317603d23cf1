"""Generalisation and instantiation of types with their effects.

Comes in: an inferred type and the level of the binding it belongs to. Goes out: a `Scheme`, and fresh instances of it.
A scheme keeps, of the effect graph, only what joins its own variables (and outer ones): everything in between is composed
away, so a helper that calls a helper twenty deep costs no more than the first (spec: types-and-effects L5.8, L6.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from osprey_py.check.effects import NOTHING, EffVar, Label, Sink, Step, find
from osprey_py.check.terms import Need, TCon, Term, TFun, TRecord, TTuple, TVar, prune, walk
from osprey_py.check.unify import Unifier
from osprey_py.source.span import NO_SPAN


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    source: EffVar
    target: EffVar
    minus: frozenset[Label]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What `source` performs of a generic effect, except `minus`, it performs at these arguments: a handler of that effect
    is on the way."""

    source: EffVar
    minus: frozenset[Label]
    effect: str
    args: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """type with its own (quantified) variables, the effect variables of its arrows, the flows among those, and what is
    demanded of them."""

    type: Term
    vars: tuple[TVar, ...] = ()
    effs: tuple[EffVar, ...] = ()
    flows: tuple[Flow, ...] = ()
    demands: tuple[Demand, ...] = ()

    @property
    def is_mono(self) -> bool:
        return not self.vars and not self.effs


def own_variables(t: Term, level: int, more: Iterable[tuple[object, ...]] = ()) -> tuple[list[TVar], list[EffVar]]:
    """The type and effect variables of `t` that belong to bindings inside `level`, in order of appearance; then those of
    further arguments of effects."""
    tvars: list[TVar] = []
    effs: list[EffVar] = []
    seen_t: set[int] = set()
    seen_e: set[int] = set()
    work: list[Term] = [t]

    def add_effect(e: EffVar) -> None:
        e = find(e)
        if e.level <= level or e.id in seen_e:
            return
        seen_e.add(e.id)
        effs.append(e)
        for args in e.insts.values():
            add_args(args)

    def add_args(args: tuple[object, ...]) -> None:
        for arg in args:
            if isinstance(arg, Term):
                work.append(arg)
            elif isinstance(arg, EffVar):
                add_effect(arg)

    for args in more:
        add_args(args)
    while work:
        for u in walk(work.pop()):
            if isinstance(u, TVar):
                if u.level > level and u.id not in seen_t:
                    seen_t.add(u.id)
                    tvars.append(u)
            elif isinstance(u, TFun):
                add_effect(u.eff)
            elif isinstance(u, TCon):
                for e in u.effs:
                    add_effect(e)
    return tvars, effs


def generalise(t: Term, level: int) -> Scheme:
    """The scheme of `t` for a binding whose body was inferred at a level above `level`."""
    tvars, effs = own_variables(t, level)
    flows, demands = _flows(effs, level)
    while demands:
        tvars, found = own_variables(t, level, [d.args for d in demands])
        if len(found) == len(effs):
            break
        effs = found
        flows, demands = _flows(effs, level)
    for v in tvars:
        v.generic = True
    _name_passing(flows)
    return Scheme(t, tuple(tvars), tuple(effs), tuple(flows), tuple(demands))


def _name_passing(flows: list[Flow]) -> None:
    """Names for effects that pass from an argument to a call: `e`, `e1`, …"""
    names: dict[int, str] = {}
    for f in flows:
        if f.target.sink is None:
            name = names.setdefault(f.source.id, f"e{len(names) or ''}")
            f.source.passes = (name,)
            if name not in f.target.passes:
                f.target.passes = (*f.target.passes, name)


def _flows(effs: list[EffVar], level: int) -> tuple[list[Flow], list[Demand]]:
    interface = {e.id for e in effs}
    flows: list[Flow] = []
    demands: dict[tuple[object, ...], Demand] = {}
    for e in effs:
        sinks: dict[tuple[frozenset[str], bool, bool, frozenset[Label]], EffVar] = {}
        ends, inner = _reach(e, lambda v: v.id not in interface and v.level > level and v.sink is None)
        for end, minus in ends.items():
            if end is e:
                continue
            if end.sink is not None:
                s = end.sink
                sinks.setdefault((s.allowed, s.io, s.cells, minus), end)
            else:
                flows.append(Flow(e, end, minus))
        flows.extend(Flow(e, end, key[3]) for key, end in sinks.items())
        for v, minus in (*inner.items(), *ends.items()):
            if v is not e and (v.sink is not None or v in inner):
                for effect, args in v.insts.items():
                    key = (e.id, minus, effect, *map(_key, args))
                    demands.setdefault(key, Demand(e, minus, effect, args))
    for e in effs:
        for start in _outer_sources(e, interface, level):
            ends, _ = _reach(start, lambda v: v.id not in interface and v.level > level and v.sink is None)
            taken = ends.get(e)
            if taken is not None:
                flows.append(Flow(start, e, taken))
    return flows, list(demands.values())


def _key(arg: object) -> object:
    """Equal for arguments of effects that are the same."""
    if isinstance(arg, EffVar):
        return find(arg).id
    assert isinstance(arg, Term)
    t = prune(arg)
    return t.name if isinstance(t, TCon) and not t.args and not t.effs else id(t)


def _reach(
    start: EffVar, through: Callable[[EffVar], bool]
) -> tuple[dict[EffVar, frozenset[Label]], dict[EffVar, frozenset[Label]]]:
    """Where `start` flows to, by paths whose inner variables satisfy `through`: the ends, and the inner variables with
    `start`, each with what every path takes away."""
    ends: dict[EffVar, frozenset[Label]] = {}
    best: dict[EffVar, frozenset[Label]] = {start: NOTHING}
    work = [start]
    while work:
        e = work.pop()
        taken = best[e]
        for edge in e.outs:
            target = find(edge.target)
            if target is start:
                continue
            minus = taken | edge.minus
            table = best if through(target) else ends
            known = table.get(target)
            if known is None:
                table[target] = minus
            elif known <= minus:
                continue
            else:
                table[target] = known & minus
            if table is best:
                work.append(target)
    return ends, best


def _outer_sources(e: EffVar, interface: set[int], level: int) -> list[EffVar]:
    """Variables of outer bindings that flow into `e` through inner ones."""
    found: list[EffVar] = []
    seen = {e.id}
    work = [e]
    while work:
        for source in work.pop().sources:
            s = find(source)
            if s.id in seen:
                continue
            seen.add(s.id)
            if s.level <= level:
                found.append(s)
            elif s.id not in interface:
                work.append(s)
    return found


class Instance:
    """One use of a scheme: maps its variables to fresh ones."""

    def __init__(self, unifier: Unifier, level: int, use: Step | None) -> None:
        self._unifier = unifier
        self._level = level
        self._use = use
        self.types: dict[int, Term] = {}
        self.effects: dict[int, EffVar] = {}

    def open(self, scheme: Scheme, fresh: Callable[[TVar], TVar]) -> Term:
        """An instance of the scheme's type; `fresh` makes a variable for a quantified one."""
        if scheme.is_mono:
            return scheme.type
        for v in scheme.vars:
            self.types[v.id] = fresh(v)
        for e in scheme.effs:
            self.effects[e.id] = EffVar(self._level)
        result = self.term(scheme.type)
        for v in scheme.vars:
            if v.needs:
                new = self.types[v.id]
                for need in v.needs.values():
                    self._unifier.require(new, self._need(need))
        flows = self._unifier.flows
        for e in scheme.effs:
            new_eff = self.effects[e.id]
            for effect, args in e.insts.items():
                new_eff.insts[effect] = self.args(args)
            for label, reason in e.labels.items():
                flows.perform(new_eff, label, reason, new_eff.insts.get(label.effect, ()))
        for f in scheme.flows:
            flows.flow(self._end(f.source), self._end(f.target), f.minus)
        for d in scheme.demands:
            handled = EffVar(self._level)
            handled.insts[d.effect] = self.args(d.args)
            flows.flow(self.effect(d.source), handled, d.minus)
        return result

    def _end(self, e: EffVar) -> EffVar:
        e = find(e)
        if e.sink is not None:
            return EffVar(self._level, derived(e.sink, self._use))
        return self.effects.get(e.id, e)

    def _need(self, need: Need) -> Need:
        types = tuple(map(self.term, need.types))
        if self._use is None:
            return replace(need, types=types)
        if need.span is NO_SPAN:
            return replace(need, types=types, span=self._use.span)
        return replace(need, types=types, use=self._use.span)

    def args(self, args: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(
            self.term(a) if isinstance(a, Term) else self.effect(a) for a in args if isinstance(a, (Term, EffVar))
        )

    def effect(self, e: EffVar) -> EffVar:
        e = find(e)
        return self.effects.get(e.id, e)

    def term(self, t: Term) -> Term:
        t = prune(t)
        if isinstance(t, TVar):
            return self.types.get(t.id, t)
        if isinstance(t, TCon):
            if not t.args and not t.effs:
                return t
            return TCon(t.name, tuple(map(self.term, t.args)), tuple(map(self.effect, t.effs)))
        if isinstance(t, TFun):
            return TFun(tuple(map(self.term, t.params)), self.term(t.result), self.effect(t.eff))
        if isinstance(t, TTuple):
            return TTuple(tuple(map(self.term, t.items)))
        assert isinstance(t, TRecord)
        return TRecord((n, self.term(f)) for n, f in t.fields)


def derived(sink: Sink, use: Step | None) -> Sink:
    """The bound that a use of a function inherits from inside it."""
    return Sink(sink.allowed, sink.io, sink.cells, sink.on_label, sink.span, sink.what, sink, use)
