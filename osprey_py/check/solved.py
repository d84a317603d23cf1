"""Terms to types: what inference found, for the typed program.

Comes in: solved terms. Goes out: `Type`s. A quantified variable becomes a `TypeVar`; an arrow shows the labels it holds,
and, where it passes on what an argument performs, the name of that effect variable.
"""

from __future__ import annotations

from osprey_py.check.effects import EffVar, find
from osprey_py.check.showing import letters
from osprey_py.check.terms import TCon, Term, TFun, TRecord, TTuple, TVar, prune
from osprey_py.check.types import FunctionType, Named, RecordType, TupleType, Type, TypeVar


class Solved:
    """Conversion with one memory, so that a variable is the same TypeVar everywhere, and a term is converted once."""

    def __init__(self) -> None:
        self._vars: dict[int, TypeVar] = {}
        self._plain: dict[str, Named] = {}
        self._known: dict[int, tuple[Term, Type]] = {}
        self._named = 0

    def begin(self) -> None:
        """A new declaration: its variables are called a, b, … again."""
        self._named = 0

    def type(self, t: Term) -> Type:
        t = prune(t)
        known = self._known.get(id(t))
        if known is None:
            known = self._known[id(t)] = (t, self._convert(t))
        return known[1]

    def _convert(self, t: Term) -> Type:
        if isinstance(t, TCon):
            if not t.args:
                known = self._plain.get(t.name)
                if known is None:
                    known = self._plain[t.name] = Named(t.name)
                return known
            return Named(t.name, tuple(map(self.type, t.args)))
        if isinstance(t, TFun):
            return FunctionType(tuple(map(self.type, t.params)), self.type(t.result), effect_names(t.eff))
        if isinstance(t, TTuple):
            return TupleType(tuple(map(self.type, t.items)))
        if isinstance(t, TRecord):
            return RecordType(tuple((n, self.type(f)) for n, f in t.fields))
        assert isinstance(t, TVar)
        known_var = self._vars.get(t.id)
        if known_var is None:
            known_var = self._vars[t.id] = TypeVar(t.name or letters(self._named), t.id)
            self._named += not t.name
        return known_var


def effect_names(e: EffVar) -> frozenset[str]:
    e = find(e)
    names = [label.text for label in e.labels]
    return frozenset(names + list(e.passes)) if names or e.passes else _NONE


_NONE: frozenset[str] = frozenset()
