"""Types while they are being inferred.

Comes in: nothing. Goes out: the mutable terms that unification works on. `TVar.ref` and effect variables are what changes;
everything else is immutable. A type variable carries the set of type heads it may become (`kind`, None for any) and
requirements (`needs`) that wait until it is known (spec: types-and-effects, L6.2, L6.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from osprey_py.check.effects import EffVar
from osprey_py.source.span import Span

_ids = count(1)

Kind = frozenset[str]

NUMBER: Kind = frozenset({"int", "float"})
ADDABLE: Kind = frozenset({"int", "float", "string"})
ORDERED: Kind = frozenset({"int", "float", "string"})
ELEMENT: Kind = frozenset({"int", "float", "bool"})
SIZED: Kind = frozenset({"string", "List", "Map", "Iterator"})
SEQUENCE: Kind = frozenset({"List", "Iterator"})
INDEXED: Kind = frozenset({"List", "Map", "string"})


class Term:
    """A type term. Compare with `prune` and unification, never with ==."""

    __slots__ = ()


class TVar(Term):
    """A type variable. ref: what it was unified with; level: the nesting of the binding that owns it;
    name: as written for a type parameter (rigid: it stands for any type), else empty;
    where: the place that decided what it is, for diagnostics; generic: some scheme quantifies it."""

    __slots__ = ("generic", "id", "kind", "level", "name", "needs", "ref", "where")

    def __init__(self, level: int, kind: Kind | None = None, name: str = "") -> None:
        self.id = next(_ids)
        self.ref: Term | None = None
        self.level = level
        self.kind = kind
        self.name = name
        self.needs: dict[tuple[str, str], Need] | None = None
        self.where: Span | None = None
        self.generic = False


class TCon(Term):
    """A named type applied. effs: the hidden effect arguments of a declared type that holds functions."""

    __slots__ = ("args", "effs", "name")

    def __init__(self, name: str, args: tuple[Term, ...] = (), effs: tuple[EffVar, ...] = ()) -> None:
        self.name = name
        self.args = args
        self.effs = effs


class TFun(Term):
    __slots__ = ("eff", "params", "result")

    def __init__(self, params: tuple[Term, ...], result: Term, eff: EffVar) -> None:
        self.params = params
        self.result = result
        self.eff = eff


class TTuple(Term):
    __slots__ = ("items",)

    def __init__(self, items: tuple[Term, ...]) -> None:
        self.items = items


class TRecord(Term):
    """An anonymous record; fields sorted by name."""

    __slots__ = ("fields",)

    def __init__(self, fields: Iterable[tuple[str, Term]]) -> None:
        self.fields = tuple(sorted(fields, key=lambda f: f[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """What a type must offer once it is known. kind: `field` (to read; name; types: the field's type),
    `put` (a field to put something into), `element` (of a List or
    Iterator), `recover` (what `?:` gives), `index` (types: key, value), `equal` (it can be compared),
    `differentiable` (it has a gradient; name: the path to it), `error` (nothing, but left open it is Error).
    span: where it is asked for; use: the use of a generic function that asks.
    Two needs of one kind and name on one variable have equal types."""

    kind: str
    name: str
    types: tuple[Term, ...]
    span: Span
    use: Span | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.kind, self.name)


INT = TCon("int")
FLOAT = TCon("float")
BOOL = TCon("bool")
STRING = TCon("string")
UNIT = TCon("Unit")
MATH_ERROR = TCon("MathError")


def prune(t: Term) -> Term:
    """What the term stands for now: a variable that is still open, or a type whose head is known."""
    while isinstance(t, TVar) and t.ref is not None:
        ref = t.ref
        if isinstance(ref, TVar) and ref.ref is not None:
            t.ref = ref.ref
        t = ref
    return t


def head(t: Term) -> str:
    """The name that kinds speak of: the constructor's name, or `function`, `tuple`, `record`; a variable has none."""
    t = prune(t)
    if isinstance(t, TCon):
        return t.name
    if isinstance(t, TFun):
        return "function"
    if isinstance(t, TTuple):
        return "tuple"
    if isinstance(t, TRecord):
        return "record"
    return ""


def children(t: Term) -> tuple[Term, ...]:
    """The terms directly inside a pruned term, requirements of a variable included."""
    if isinstance(t, TCon):
        return t.args
    if isinstance(t, TFun):
        return (*t.params, t.result)
    if isinstance(t, TTuple):
        return t.items
    if isinstance(t, TRecord):
        return tuple(f for _, f in t.fields)
    if isinstance(t, TVar) and t.needs:
        return tuple(x for n in t.needs.values() for x in n.types)
    return ()


def walk(t: Term) -> Iterator[Term]:
    """Every pruned term inside `t`, `t` included, outside in; each variable once."""
    seen: set[int] = set()
    stack = [t]
    while stack:
        u = prune(stack.pop())
        if isinstance(u, TVar):
            if u.id in seen:
                continue
            seen.add(u.id)
        yield u
        stack.extend(reversed(children(u)))


def list_of(t: Term) -> TCon:
    return TCon("List", (t,))


def result_of(t: Term, error: Term = STRING) -> TCon:
    return TCon("Result", (t, error))


def is_con(t: Term, name: str) -> bool:
    t = prune(t)
    return isinstance(t, TCon) and t.name == name
