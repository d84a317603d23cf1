"""Types as written, turned into terms.

Comes in: a type expression, the space it stands in, and the type parameters in scope. Goes out: a term; complaints about
names that are no types and wrong numbers of arguments. A written arrow without a row may have any effect, which is
inferred; with a row it is bounded by it. Spec: types-and-effects L5.5, L6.7, L6.8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from osprey_py.check.context import Context, EffectDef, Row, TypeDef
from osprey_py.check.effects import EffVar, find
from osprey_py.check.names import resolve
from osprey_py.check.showing import show_kind
from osprey_py.check.signatures import TYPE_ARITY
from osprey_py.check.terms import ELEMENT, Kind, TCon, Term, TFun, TRecord, TTuple, TVar
from osprey_py.check.unify import Mismatch
from osprey_py.modules.spaces import Space, Symbol
from osprey_py.source import diagnostic
from osprey_py.source.span import NO_SPAN, Span
from osprey_py.syntax import ast


@dataclass(eq=False, slots=True)
class Reading:
    """Where a type is read. arrow: makes the effect variable of a written arrow; hidden: the hidden arguments of a declared
    type; expanding: aliases being expanded, outermost first."""

    cx: Context
    space: Space
    params: dict[str, TVar]
    arrow: Callable[[Row | None], EffVar]
    hidden: Callable[[TCon, TypeDef], None]
    expanding: tuple[Symbol, ...] = ()


def reading(cx: Context, space: Space, params: dict[str, TVar]) -> Reading:
    """Reading of annotations in code: arrows and hidden arguments are fresh."""

    def arrow(row: Row | None) -> EffVar:
        e = cx.fresh_effect()
        if row is not None:
            bound_by_row(cx, e, row)
        return e

    def hidden(con: TCon, typedef: TypeDef) -> None:
        con.effs = fresh_hidden(cx, typedef)

    return Reading(cx, space, params, arrow, hidden)


def fresh_hidden(cx: Context, typedef: TypeDef | EffectDef) -> tuple[EffVar, ...]:
    """Fresh hidden arguments of a declared type or effect, with the bounds its written rows set."""
    effs = tuple(cx.fresh_effect() for _ in typedef.hidden)
    for e, row in typedef.bounds:
        for own, fresh in zip(typedef.hidden, effs, strict=True):
            if find(own) is find(e):
                bound_by_row(cx, fresh, row)
    return effs


def bound_by_row(cx: Context, e: EffVar, row: Row) -> None:
    """What reaches `e` must be in the row; IO is not written in rows and always may."""
    sink = cx.bound(frozenset(name for name, _ in row.effects), True, True, row.span, row.what)
    for name, args in row.effects:
        if args:
            sink.insts[name] = args
            e.insts.setdefault(name, args)
    cx.flows.flow(e, sink)


def read_row(r: Reading, effects: tuple[ast.EffectRef, ...] | None, span: Span, what: str) -> Row | None:
    """A written row; None where none is written."""
    if effects is None:
        return None
    entries = []
    for ref in effects:
        found = read_effect(r, ref)
        if found is not None:
            entries.append((found[0].name, found[1]))
    return Row(tuple(entries), effects[0].span.to(effects[-1].span) if effects else span, what)


def read_effect(r: Reading, ref: ast.EffectRef) -> tuple[EffectDef, tuple[object, ...]] | None:
    """The effect a reference names and its arguments, hidden ones included (() for an effect without)."""
    symbol = resolve(r.cx, r.space, ref.path, "effect")
    if symbol is None:
        return None
    if symbol.what == "built-in":
        r.cx.tell(
            "E0307",
            "IO is inferred and not written in a row",
            ref.span,
            "leave it out",
            help="what prints or reads files has the effect IO by itself; `main` and the top level may perform it",
        )
        return None
    effect = r.cx.symbols[symbol]
    assert isinstance(effect, EffectDef)
    if ref.args and len(ref.args) != len(effect.params):
        _wrong_count(r.cx, effect.name, len(effect.params), len(ref.args), ref.span, effect.span)
    given = tuple(read_type(r, t) for t in ref.args[: len(effect.params)])
    rest = tuple(r.cx.fresh() for _ in range(len(effect.params) - len(given)))
    return effect, (*given, *rest, *fresh_hidden(r.cx, effect))


def read_type(r: Reading, t: ast.TypeExpr) -> Term:
    match t:
        case ast.TypeName():
            return _named(r, t)
        case ast.TypeTuple(items=()):
            return TCon("Unit")
        case ast.TypeTuple(items=items):
            return TTuple(tuple(read_type(r, i) for i in items))
        case ast.TypeFunction(params=params, result=result, effects=effects):
            ps = tuple(read_type(r, p) for p in params)
            res = read_type(r, result)
            return TFun(ps, res, r.arrow(read_row(r, effects, t.span, "what is given here")))
        case ast.TypeRecord(fields=fields):
            return TRecord((n.text, read_type(r, f)) for n, f in fields)
    raise TypeError(t)


def _named(r: Reading, t: ast.TypeName) -> Term:
    first = t.path[0].text
    if len(t.path) == 1 and first in r.params:
        if t.args:
            _wrong_count(r.cx, first, 0, len(t.args), t.span, None)
        return r.params[first]
    symbol = resolve(r.cx, r.space, t.path, "type", r.params)
    args = tuple(read_type(r, a) for a in t.args)
    if symbol is None:
        return r.cx.fresh()
    if symbol.what == "built-in":
        return _builtin(r, t, symbol.name, args)
    if symbol.what == "alias":
        return _alias(r, t, symbol, args)
    typedef = r.cx.symbols[symbol]
    assert isinstance(typedef, TypeDef)
    args = _fit(r, symbol.name, len(typedef.params), args, t.span, symbol.span)
    for arg, param, node in zip(args, typedef.params, (*t.args, *([t] * len(args))), strict=False):
        if param.kind is not None:
            _restrict(r.cx, arg, param.kind, node.span, symbol.name)
    con = TCon(typedef.name, args)
    r.hidden(con, typedef)
    return con


def _builtin(r: Reading, t: ast.TypeName, name: str, args: tuple[Term, ...]) -> Term:
    args = _fit(r, name, TYPE_ARITY[name], args, t.span, None)
    if name == "Error":
        return TCon("string")
    if name == "GpuBuffer":
        _restrict(r.cx, args[0], ELEMENT, (t.args[0] if t.args else t).span, name)
    return TCon(name, args)


def _alias(r: Reading, t: ast.TypeName, symbol: Symbol, args: tuple[Term, ...]) -> Term:
    decl = symbol.decl
    assert isinstance(decl, ast.AliasDecl) and symbol.space is not None
    if symbol in r.expanding:
        r.cx.tell(
            "E0212",
            f"type `{symbol.name}` is an alias of itself",
            decl.name.span,
            "this alias never ends",
            help="a type that contains itself is a record or a union",
        )
        return r.cx.fresh()
    args = _fit(r, symbol.name, len(decl.type_params), args, t.span, symbol.span)
    params = {p.name.text: r.cx.fresh() for p in decl.type_params}
    for v, arg in zip(params.values(), args, strict=True):
        v.ref = arg
    inner = Reading(r.cx, symbol.space, params, r.arrow, r.hidden, (*r.expanding, symbol))
    before = len(r.cx.told)
    result = read_type(inner, decl.target)
    _retell(r.cx, before, symbol, t.span)
    return result


def _retell(cx: Context, before: int, alias: Symbol, use: Span) -> None:
    """What is wrong in an alias by itself is told at its declaration; what a use makes wrong, at the use."""
    new = cx.told[before:]
    del cx.told[before:]
    if alias not in cx.broken_aliases:
        for d in new:
            cx.told.append(
                replace(d, span=use, text=d.text, labels=(diagnostic.Label(d.span, "in this alias"), *d.labels))
            )


def _fit(
    r: Reading, name: str, count: int, args: tuple[Term, ...], span: Span, declared: Span | None
) -> tuple[Term, ...]:
    if len(args) == count:
        return args
    _wrong_count(r.cx, name, count, len(args), span, declared)
    return (*args[:count], *(r.cx.fresh() for _ in range(count - len(args))))


def _wrong_count(cx: Context, name: str, count: int, given: int, span: Span, declared: Span | None) -> None:
    short = name.rsplit("::", 1)[-1]
    takes = "takes no type arguments" if count == 0 else f"takes {count} type argument{'s' if count > 1 else ''}"
    labels = () if declared is None or declared is NO_SPAN else ((declared, "declared here"),)
    are = "is given" if given == 1 else "are given"
    cx.tell("E0211", f"`{short}` {takes}, and {given or 'none'} {are}", span, "wrong number of arguments", labels)


def _restrict(cx: Context, t: Term, kind: Kind, span: Span, where: str) -> None:
    try:
        cx.unifier.restrict(t, kind)
    except Mismatch:
        tell_element(cx, t, span, where)


def tell_element(cx: Context, t: Term, span: Span, where: str) -> None:
    """The element restriction of buffers (L6.14). where: the type that holds the buffer."""
    cx.tell(
        "E0209",
        f"a GPU buffer cannot hold `{cx.shower().show(t)}`",
        span,
        f"an element is {show_kind(ELEMENT)}",
        notes=() if where == "GpuBuffer" else (f"`{where}` puts it into a GpuBuffer",),
    )
