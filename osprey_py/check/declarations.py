"""Declared types and effects.

Comes in: the symbols of a project. Goes out: a `TypeDef` for each record and union, an `EffectDef` for each effect, in
the context. A type that holds functions gets hidden effect parameters, one for each arrow in it; types that refer to each
other share them, so that a knot of records of functions is tracked like any other value.
Spec: types-and-effects L5.7, L6.8.
"""

from __future__ import annotations

from collections.abc import Iterator

from osprey_py.check import core
from osprey_py.check.context import ConstructorDef, Context, EffectDef, OperationDef, Row, TypeDef
from osprey_py.check.effects import EffVar
from osprey_py.check.names import quiet_look
from osprey_py.check.scc import components
from osprey_py.check.terms import TCon, Term, TFun, TVar, head, prune, walk
from osprey_py.check.unify import Mismatch
from osprey_py.check.written_types import Reading, read_type, tell_element
from osprey_py.modules.declare import lone_variant
from osprey_py.modules.spaces import Space, Symbol
from osprey_py.source.span import Span
from osprey_py.syntax import ast

_GENERIC = 1_000_000
"""The level of type parameters: inside every binding."""

TypeDecl = ast.RecordDecl | ast.UnionDecl | ast.AliasDecl


def declare_types(
    cx: Context, symbols: list[Symbol], variants: dict[Symbol, list[Symbol]], type_names: set[str]
) -> None:
    """symbols: every type and effect symbol of the project; variants: the variant symbols of each union."""
    types = [s for s in symbols if s.what in ("record", "union")]
    aliases = [s for s in symbols if s.what == "alias"]
    for s in types:
        decl = s.decl
        assert isinstance(decl, (ast.RecordDecl, ast.UnionDecl, ast.AliasDecl))
        typedef = TypeDef(s.key, s.span, s.what == "record", _params(decl.type_params))
        cx.types[s.key] = typedef
        cx.symbols[s] = typedef
    effects = [s for s in symbols if s.sort == "effect"]
    for s in effects:
        assert isinstance(s.decl, ast.EffectDecl)
        cx.symbols[s] = cx.effects[s.key] = EffectDef(s.key, s.span, _params(s.decl.type_params))
    for s in aliases:
        _check_alias(cx, s)
    for group in components(types, lambda s: _mentioned(s)):
        _Group(cx, group, variants, type_names).declare()
    for s in effects:
        _operations(cx, s)


def _params(params: tuple[ast.TypeParameter, ...]) -> tuple[TVar, ...]:
    return tuple(TVar(_GENERIC, None, p.name.text) for p in params)


def field_exprs(decl: TypeDecl) -> Iterator[ast.TypeExpr]:
    match decl:
        case ast.RecordDecl(fields=fields):
            yield from (t for _, t in fields)
        case ast.UnionDecl(variants=variants):
            for v in variants:
                yield from (t for _, t in v.fields)


def _mentioned(s: Symbol) -> Iterator[Symbol]:
    """The types that a type's fields mention, through aliases."""
    assert s.space is not None and isinstance(s.decl, (ast.RecordDecl, ast.UnionDecl, ast.AliasDecl))
    work: list[tuple[ast.TypeExpr, Space]] = [(t, s.space) for t in field_exprs(s.decl)]
    seen: set[Symbol] = set()
    while work:
        t, space = work.pop()
        match t:
            case ast.TypeName(path=path, args=args):
                work.extend((a, space) for a in args)
                found = quiet_look(space, path, "type")
                if found is None or found in seen:
                    continue
                seen.add(found)
                if found.what == "alias" and isinstance(found.decl, ast.AliasDecl) and found.space is not None:
                    work.append((found.decl.target, found.space))
                else:
                    yield found
            case ast.TypeTuple(items=items):
                work.extend((i, space) for i in items)
            case ast.TypeFunction(params=params, result=result):
                work.extend((p, space) for p in (*params, result))
            case ast.TypeRecord(fields=fields):
                work.extend((f, space) for _, f in fields)


def _check_alias(cx: Context, s: Symbol) -> None:
    """What is wrong with an alias by itself."""
    decl = s.decl
    assert isinstance(decl, ast.AliasDecl) and s.space is not None
    params = {v.name: v for v in _params(decl.type_params)}
    r = Reading(cx, s.space, params, lambda row: EffVar(_GENERIC), lambda con, typedef: None, (s,))
    before = len(cx.told)
    read_type(r, decl.target)
    if len(cx.told) > before:
        cx.broken_aliases.add(s)


class _Group:
    """Types that refer to each other."""

    def __init__(
        self, cx: Context, symbols: list[Symbol], variants: dict[Symbol, list[Symbol]], type_names: set[str]
    ) -> None:
        self.cx = cx
        self.symbols = symbols
        self.variants = variants
        self.type_names = type_names
        self.hidden: list[EffVar] = []
        self.bounds: list[tuple[EffVar, Row]] = []
        self.inside: list[tuple[TCon, TypeDef, Span]] = []
        self.defs = [d for s in symbols if isinstance(d := cx.symbols[s], TypeDef)]

    def declare(self) -> None:
        for s, typedef in zip(self.symbols, self.defs, strict=True):
            self._constructors(s, typedef)
        for con, _, _ in self.inside:
            con.effs = tuple(self.hidden)
        for typedef in self.defs:
            typedef.hidden = tuple(self.hidden)
            typedef.bounds = list(self.bounds)
        self._settle_kinds()
        if any(
            _holds_incomparable(self.cx, f) for d in self.defs for c in d.constructors.values() for _, f in c.fields
        ):
            self.cx.unifier.incomparable.update(d.name for d in self.defs)

    def _arrow(self, row: Row | None) -> EffVar:
        e = EffVar(_GENERIC)
        self.hidden.append(e)
        if row is not None:
            self.bounds.append((e, row))
        return e

    def _inner(self, con: TCon, typedef: TypeDef) -> None:
        if typedef in self.defs:
            self.inside.append((con, typedef, typedef.span))
            return
        con.effs = tuple(self._arrow(None) for _ in typedef.hidden)
        for e, row in typedef.bounds:
            self.bounds.append((con.effs[typedef.hidden.index(e)], row))

    def _constructors(self, s: Symbol, typedef: TypeDef) -> None:
        assert s.space is not None
        params = {v.name: v for v in typedef.params}
        r = Reading(self.cx, s.space, params, self._arrow, self._inner)
        decl = s.decl
        match decl:
            case ast.RecordDecl(name=name, fields=fields):
                self._add(typedef, name, fields, False, r, s)
            case ast.UnionDecl(variants=variants):
                symbols = {v.name: v for v in self.variants.get(s, ())}
                for v in variants:
                    self._add(typedef, v.name, v.fields, v.positional, r, symbols.get(v.name.text))
            case ast.AliasDecl():
                lone = lone_variant(decl, self.type_names)
                assert lone is not None
                symbols = {v.name: v for v in self.variants.get(s, ())}
                self._add(typedef, lone, (), False, r, symbols.get(lone.text))

    def _add(
        self,
        typedef: TypeDef,
        name: ast.Name,
        fields: tuple[tuple[ast.Name, ast.TypeExpr], ...],
        positional: bool,
        r: Reading,
        symbol: Symbol | None,
    ) -> None:
        typed = tuple((n.text, read_type(r, t)) for n, t in fields)
        constructor = core.BUILT_IN.get((typedef.name, name.text)) or core.Constructor(
            typedef.name, name.text, tuple(n for n, _ in typed), positional
        )
        definition = ConstructorDef(constructor, typedef, typed, name.span)
        typedef.constructors[name.text] = definition
        if symbol is not None and symbol.what == "variant":
            self.cx.symbols[symbol] = definition

    def _settle_kinds(self) -> None:
        """What a type's parameter may be follows from its fields; types that refer to each other need rounds."""
        changed = True
        while changed:
            changed = False
            for con, typedef, span in self.inside:
                for arg, param in zip(con.args, typedef.params, strict=True):
                    a = prune(arg)
                    if param.kind is None or (isinstance(a, TVar) and a.kind is not None and a.kind <= param.kind):
                        continue
                    try:
                        self.cx.unifier.restrict(a, param.kind)
                    except Mismatch:
                        tell_element(self.cx, a, span, typedef.name)
                        return
                    changed = changed or isinstance(a, TVar)


def _holds_incomparable(cx: Context, field: Term) -> bool:
    """A function or a buffer anywhere in a field (L6.15)."""
    return any(isinstance(t, TFun) or head(t) in cx.unifier.incomparable for t in walk(field))


def _operations(cx: Context, s: Symbol) -> None:
    effect = cx.symbols[s]
    assert isinstance(effect, EffectDef) and isinstance(s.decl, ast.EffectDecl) and s.space is not None
    hidden: list[EffVar] = []
    bounds: list[tuple[EffVar, Row]] = []

    def arrow(row: Row | None) -> EffVar:
        e = EffVar(_GENERIC)
        hidden.append(e)
        if row is not None:
            bounds.append((e, row))
        return e

    def inner(con: TCon, typedef: TypeDef) -> None:
        con.effs = tuple(arrow(None) for _ in typedef.hidden)
        bounds.extend((con.effs[typedef.hidden.index(e)], row) for e, row in typedef.bounds)

    r = Reading(cx, s.space, {v.name: v for v in effect.params}, arrow, inner)
    for op in s.decl.operations:
        params: tuple[Term, ...] = tuple(read_type(r, p) for p in op.params)
        effect.operations[op.name.text] = OperationDef(params, read_type(r, op.result), op.name.span)
    effect.hidden = tuple(hidden)
    effect.bounds = bounds
