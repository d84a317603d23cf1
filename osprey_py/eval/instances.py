"""Instances of generic functions: at scalar types they are generated apart, so that arithmetic is written in place.

Comes in: the type of a function and the type of a use. Goes out: `Substitution`, type variables to scalar types; what
is not a scalar stays a variable, and code looks at its values (spec/evaluation V1.2).
"""

from __future__ import annotations

from osprey_py.check.types import BOOL, FLOAT, INT, STRING, FunctionType, Named, RecordType, TupleType, Type, TypeVar

SCALARS = (INT, FLOAT, BOOL, STRING)


class Substitution:
    """key: the variables and their types, in a fixed order; equal substitutions have equal keys."""

    __slots__ = ("_memo", "_types", "key")

    def __init__(self, types: dict[TypeVar, Type]) -> None:
        self._types = types
        self._memo: dict[Type, Type] = {}
        self.key = tuple(sorted((v.uid, str(t)) for v, t in types.items()))

    def __call__(self, t: Type) -> Type:
        if not self._types:
            return t
        found = self._memo.get(t)
        if found is None:
            found = self._memo[t] = self._apply(t)
        return found

    def _apply(self, t: Type) -> Type:
        match t:
            case TypeVar():
                return self._types.get(t, t)
            case Named(name=name, args=args) if args:
                return Named(name, tuple(map(self, args)))
            case TupleType(items=items):
                return TupleType(tuple(map(self, items)))
            case RecordType(fields=fields):
                return RecordType(tuple((n, self(x)) for n, x in fields))
            case FunctionType(params=params, result=result, effects=effects):
                return FunctionType(tuple(map(self, params)), self(result), effects)
        return t


NOTHING = Substitution({})


def scalars_of(declared: Type, used: Type) -> dict[TypeVar, Type]:
    """The variables of a declared type that are scalars where it is used."""
    found: dict[TypeVar, Type] = {}
    todo = [(declared, used)]
    while todo:
        a, b = todo.pop()
        match a, b:
            case TypeVar(), _:
                if b in SCALARS:
                    found[a] = b
            case Named(args=xs), Named(args=ys):
                todo.extend(zip(xs, ys, strict=False))
            case TupleType(items=xs), TupleType(items=ys):
                todo.extend(zip(xs, ys, strict=False))
            case RecordType(fields=fs), RecordType(fields=gs):
                todo.extend((x, y) for (_, x), (_, y) in zip(fs, gs, strict=False))
            case FunctionType(params=xs, result=x), FunctionType(params=ys, result=y):
                todo.extend([*zip(xs, ys, strict=False), (x, y)])
    return found
