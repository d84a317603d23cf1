"""Patterns of the typed program.

Comes in: AST patterns with what inference found. Goes out: core patterns; a name is a binder or a constructor by then.
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.check import core
from osprey_py.check.context import Context, Global, Local
from osprey_py.syntax import ast


class Patterns:
    def __init__(self, cx: Context, var: Callable[[Local | Global], core.Var]) -> None:
        self._side = cx.side
        self._var = var

    def pattern(self, p: ast.Pattern) -> core.Pattern:
        match p:
            case ast.WildPattern():
                return core.PWild()
            case ast.NamePattern():
                found = self._side.constructors.get(p)
                if found is not None:
                    return core.PConstructor(found.core, ())
                return core.PVar(self._var(self._side.binders[p]))
            case ast.LiteralPattern(value=value):
                return core.PLiteral(() if value is None else value)
            case ast.TuplePattern(items=items):
                return core.PTuple(tuple(map(self.pattern, items)))
            case ast.ListPattern(items=items, rest=rest):
                return core.PList(tuple(map(self.pattern, items)), None if rest is None else self.pattern(rest))
            case ast.RecordPattern(fields=fields):
                return core.PRecord(tuple((n.text, self.pattern(q)) for n, q in fields))
            case ast.ConstructorPattern():
                return self._constructor(p)
        raise TypeError(p)

    def _constructor(self, p: ast.ConstructorPattern) -> core.Pattern:
        found = self._side.constructors.get(p)
        constructor = found.core if found is not None else core.SUCCESS if p.path[-1].text == "Success" else core.ERROR
        if p.positional is not None:
            fields = zip(constructor.fields, p.positional, strict=True)
            return core.PConstructor(constructor, tuple((n, self.pattern(q)) for n, q in fields))
        return core.PConstructor(constructor, tuple((n.text, self.pattern(q)) for n, q in p.named or ()))
