"""Unification: making two types equal, with sets of allowed heads and waiting requirements.

Comes in: two terms. Goes out: bindings in their variables, or `Mismatch` with the innermost pair that differs.
Spec: types-and-effects L6.2 (sets intersect, an empty one is the error), L6.5 (fields), L6.6 (`?:` and indexing of a type
that is known later).
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.check.effects import EffVar, Flows, find
from osprey_py.check.terms import (
    INT,
    STRING,
    Kind,
    Need,
    TCon,
    Term,
    TFun,
    TRecord,
    TTuple,
    TVar,
    children,
    head,
    prune,
    result_of,
    walk,
)
from osprey_py.source.span import Span


class Mismatch(Exception):
    """left and right: the innermost terms that cannot be equal. why: `types`, `kind` (right is None: the set that left is
    not in), `occurs`, `rigid`, `count` (of parameters or items)."""

    def __init__(self, why: str, left: Term, right: Term | None, kind: Kind | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.left = left
        self.right = right
        self.kind = kind


class Unifier:
    """incomparable: the named types that hold functions or buffers. read_field: the type of a field of a known type, None
    (after telling) where it has none. tell_need: reports a requirement that a known
    type does not meet. differentiable: hands the need of that name on to a type's parts."""

    def __init__(
        self,
        read_field: Callable[[Term, Need], Term | None],
        tell_need: Callable[[Term, Need, Mismatch | None], None],
        differentiable: Callable[[Term, Need], None],
    ) -> None:
        self._read_field = read_field
        self._differentiable = differentiable
        self._tell_need = tell_need
        self.incomparable = {"GpuBuffer"}
        self.flows = Flows(self._same_args, lower_args)
        self.where: Span | None = None

    def unify(self, a: Term, b: Term) -> None:
        a, b = prune(a), prune(b)
        if a is b:
            return
        if isinstance(a, TVar):
            self._bind(a, b)
        elif isinstance(b, TVar):
            self._bind(b, a)
        elif isinstance(a, TCon) and isinstance(b, TCon):
            if a.name != b.name or len(a.args) != len(b.args):
                raise Mismatch("types", a, b)
            for x, y in zip(a.args, b.args, strict=True):
                self.unify(x, y)
            for e, f in zip(a.effs, b.effs, strict=True):
                self.flows.join(e, f)
        elif isinstance(a, TFun) and isinstance(b, TFun):
            if len(a.params) != len(b.params):
                raise Mismatch("count", a, b)
            for x, y in zip(a.params, b.params, strict=True):
                self.unify(x, y)
            self.unify(a.result, b.result)
            self.flows.join(a.eff, b.eff)
        elif isinstance(a, TTuple) and isinstance(b, TTuple):
            if len(a.items) != len(b.items):
                raise Mismatch("count", a, b)
            for x, y in zip(a.items, b.items, strict=True):
                self.unify(x, y)
        elif isinstance(a, TRecord) and isinstance(b, TRecord):
            if [n for n, _ in a.fields] != [n for n, _ in b.fields]:
                raise Mismatch("types", a, b)
            for (_, x), (_, y) in zip(a.fields, b.fields, strict=True):
                self.unify(x, y)
        else:
            raise Mismatch("types", a, b)

    def restrict(self, t: Term, kind: Kind) -> None:
        """The type's head must be in `kind`."""
        t = prune(t)
        if not isinstance(t, TVar):
            if head(t) not in kind:
                raise Mismatch("kind", t, None, kind)
            return
        both = kind if t.kind is None else t.kind & kind
        if not both:
            raise Mismatch("kind", t, None, kind)
        t.kind = both
        self._settle(t)

    def require(self, t: Term, need: Need) -> None:
        """The type must meet `need`: at once where it is known, else when it becomes known."""
        t = prune(t)
        if not isinstance(t, TVar):
            self.meet(t, need)
            return
        if t.needs is None:
            t.needs = {}
        known = t.needs.get(need.key)
        if known is None:
            t.needs[need.key] = need
            for inner in need.types:
                lower(inner, t.level)
        else:
            for x, y in zip(known.types, need.types, strict=True):
                self.unify(x, y)

    def meet(self, t: Term, need: Need) -> None:
        """`need` of a type whose head is known."""
        try:
            self._meet(t, need)
        except Mismatch as m:
            self._tell_need(t, need, m)

    def _meet(self, t: Term, need: Need) -> None:
        if need.kind in ("field", "put"):
            found = self._read_field(t, need)
            if found is not None:
                self.unify(found, need.types[0])
        elif need.kind == "element":
            if isinstance(t, TCon) and t.name in ("List", "Iterator"):
                self.unify(t.args[0], need.types[0])
            else:
                self._tell_need(t, need, None)
        elif need.kind == "recover":
            self.unify(t.args[0] if isinstance(t, TCon) and t.name == "Result" else t, need.types[0])
        elif need.kind == "index":
            key, value = need.types
            if isinstance(t, TCon) and t.name == "List":
                self.unify(key, INT)
                self.unify(result_of(t.args[0]), value)
            elif isinstance(t, TCon) and t.name == "Map":
                self.unify(key, t.args[0])
                self.unify(result_of(t.args[1]), value)
            elif isinstance(t, TCon) and t.name == "string":
                self.unify(key, INT)
                self.unify(result_of(STRING), value)
            else:
                self._tell_need(t, need, None)
        elif need.kind == "differentiable":
            self._differentiable(t, need)
        elif need.kind == "equal":
            if isinstance(t, TFun) or (isinstance(t, TCon) and t.name in self.incomparable):
                self._tell_need(t, need, None)
            else:
                for child in children(t):
                    self.require(child, need)

    def _bind(self, v: TVar, t: Term) -> None:
        if isinstance(t, TVar):
            if v.name and t.name:
                raise Mismatch("rigid", v, t)
            if v.name:
                v, t = t, v
            both = t.kind if v.kind is None else v.kind if t.kind is None else v.kind & t.kind
            if both is not None and not both:
                raise Mismatch("kind", v, t, t.kind)
            t.kind = both
            lower(t, v.level)
            needs, v.needs = v.needs, None
            v.ref = t
            if t.where is None:
                t.where = v.where
            for need in needs.values() if needs else ():
                self.require(t, need)
            self._settle(t)
            return
        if v.name:
            raise Mismatch("rigid", v, t)
        if v.kind is not None and head(t) not in v.kind:
            raise Mismatch("kind", v, t, v.kind)
        self._own(t, v, v.level)
        needs, v.needs = v.needs, None
        v.ref = t
        v.where = self.where
        for need in needs.values() if needs else ():
            self.meet(t, need)

    def _settle(self, t: TVar) -> None:
        """A variable whose set has one member without arguments is that type."""
        if t.kind is not None and len(t.kind) == 1 and not t.name:
            (only,) = t.kind
            if only in ("int", "float", "bool", "string"):
                self._bind(t, TCon(only))
            elif only in ("List", "Iterator") and t.needs and ("element", "") in t.needs:
                self._bind(t, TCon(only, (t.needs["element", ""].types[0],)))

    def _own(self, t: Term, v: TVar, level: int) -> None:
        """`v` becomes `t`: v inside t would be an infinite type; everything in t now belongs to the binding at `level`."""
        stack = [t]
        while stack:
            u = prune(stack.pop())
            if u is v:
                raise Mismatch("occurs", v, t)
            if not isinstance(u, TVar):
                stack.extend(children(u))
        lower(t, level)

    def _same_args(self, a: tuple[object, ...], b: tuple[object, ...], span: Span) -> None:
        for x, y in zip(a, b, strict=True):
            if isinstance(x, Term) and isinstance(y, Term):
                try:
                    self.unify(x, y)
                except Mismatch as m:
                    self._tell_need(x, Need("instance", "", (y,), span), m)
            elif isinstance(x, EffVar) and isinstance(y, EffVar):
                self.flows.join(x, y)


def lower(t: Term, level: int) -> None:
    """Everything in `t`, requirements included, belongs to the binding at `level` or further out."""
    for u in walk(t):
        if isinstance(u, TVar):
            u.level = min(u.level, level)
        elif isinstance(u, TFun):
            lower_effect(u.eff, level)
        elif isinstance(u, TCon):
            for e in u.effs:
                lower_effect(e, level)


def lower_effect(e: EffVar, level: int) -> None:
    """An effect variable of an outer binding is not generalised by an inner one."""
    e = find(e)
    if e.level > level:
        e.level = level
        for args in e.insts.values():
            lower_args(args, level)


def lower_args(args: tuple[object, ...], level: int) -> None:
    """The arguments of a generic effect belong to the binding at `level` or further out."""
    for arg in args:
        if isinstance(arg, Term):
            lower(arg, level)
        elif isinstance(arg, EffVar):
            lower_effect(arg, level)
