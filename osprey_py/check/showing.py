"""Types in diagnostics, the way people write them.

Comes in: terms, solved or not. Goes out: text. One `Shower` a message, so that a variable has one name in it.
"""

from __future__ import annotations

from osprey_py.check.effects import EffVar, find
from osprey_py.check.terms import Kind, TCon, Term, TFun, TRecord, TTuple, TVar, prune

_SCALARS = frozenset({"int", "float", "bool", "string"})
_ORDER = ("int", "float", "bool", "string", "List", "Map", "Iterator")


_LETTERS = "abcdfghijklmnopqrstuvwxyz"


def letters(n: int) -> str:
    """a, b, c, d, f, …, z, a1, b1, …: all but e, which names effects."""
    return _LETTERS[n % 25] + (str(n // 25) if n >= 25 else "")


def show_kind(kind: Kind) -> str:
    """`int or float`."""
    names = [n for n in _ORDER if n in kind]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def an(shown: str) -> str:
    """`an `int``, `a `float``."""
    return f"an `{shown}`" if shown[:1] in "aeiouI" else f"a `{shown}`"


def show_effect(e: EffVar) -> str:
    """` !Log` where the effect is known to have labels, else nothing."""
    labels = sorted({label.text for label in find(e).labels})
    return "" if not labels else f" !{labels[0]}" if len(labels) == 1 else f" ![{', '.join(labels)}]"


class Shower:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def show(self, t: Term) -> str:
        t = prune(t)
        if isinstance(t, TVar) and not t.name and t.kind is not None:
            return show_kind(t.kind)
        return self._inner(t)

    def _inner(self, t: Term) -> str:
        t = prune(t)
        match t:
            case TVar():
                return self._variable(t)
            case TCon(name="Result", args=(value, error)):
                e = prune(error)
                shown = "Error" if isinstance(e, TCon) and e.name == "string" else self._inner(e)
                return f"Result<{self._inner(value)}, {shown}>"
            case TCon(name=name, args=args):
                short = name.rsplit("::", 1)[-1]
                return f"{short}<{', '.join(map(self._inner, args))}>" if args else short
            case TFun(params=params, result=result, eff=eff):
                return f"({', '.join(map(self._inner, params))}) -> {self._inner(result)}{show_effect(eff)}"
            case TTuple(items=items):
                return f"({', '.join(map(self._inner, items))})"
            case TRecord(fields=fields):
                return "{ " + ", ".join(f"{n}: {self._inner(f)}" for n, f in fields) + " }"
        raise TypeError(t)

    def _variable(self, v: TVar) -> str:
        if v.name:
            return v.name
        if v.kind is not None and v.kind <= _SCALARS:
            return "|".join(n for n in _ORDER if n in v.kind)
        if v.id not in self._names:
            self._names[v.id] = letters(len(self._names))
        return self._names[v.id]
