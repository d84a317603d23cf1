"""Typing of patterns.

Comes in: a pattern and the type of what it meets. Goes out: the names it binds; which names are constructors.
Spec: language (patterns), types-and-effects L6.12.
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.check.context import ConstructorDef, Context, Env, Global, Local
from osprey_py.check.infer_names import field_names, find_constructor, open_type, success_or_error
from osprey_py.check.mismatch import Because, expect
from osprey_py.check.names import quiet_look
from osprey_py.check.schemes import Scheme
from osprey_py.check.terms import BOOL, FLOAT, INT, STRING, UNIT, Need, Term, TTuple, TVar, list_of, prune
from osprey_py.source.span import Span
from osprey_py.source.suggest import did_you_mean
from osprey_py.syntax import ast

Bind = Callable[[ast.Name, Term], Local | Global]

_LITERALS = {"int": INT, "float": FLOAT, "bool": BOOL, "string": STRING, "unit": UNIT}


def bind_locals(cx: Context, env: Env) -> Bind:
    """Bindings of one pattern as new local names of `env`."""
    bound: dict[str, ast.Name] = {}

    def bind(name: ast.Name, t: Term) -> Local:
        first = bound.setdefault(name.text, name)
        if first is not name:
            cx.tell(
                "E0104",
                f"`{name.text}` is bound twice in one pattern",
                name.span,
                "bound again here",
                ((first.span, "first bound here"),),
                help="give one of them another name, and compare them in a guard",
            )
        local = Local(name.text, name.span, Scheme(t), env.function)
        env.names[name.text] = local
        return local

    return bind


def bare_constructor(cx: Context, name: ast.Name, env: Env) -> ConstructorDef | None:
    """A name pattern that is a payload-less variant in scope."""
    symbol = quiet_look(env.space, (name,), "value")
    if symbol is None or symbol.what != "variant":
        return None
    found = cx.symbols.get(symbol)
    return found if isinstance(found, ConstructorDef) else None


def pattern(cx: Context, p: ast.Pattern, t: Term, env: Env, bind: Bind, because: Because) -> None:
    """because: what the pattern meets, for mismatches."""
    cx.side.types[p] = t
    match p:
        case ast.WildPattern():
            pass
        case ast.NamePattern(name=name):
            found = bare_constructor(cx, name, env)
            if found is None:
                cx.side.binders[p] = bind(name, t)
            else:
                _constructor(cx, p, name.span, found, (), t, env, bind, because)
        case ast.LiteralPattern(kind=kind):
            expect(cx, _LITERALS[kind], t, p.span, "this pattern", because)
        case ast.TuplePattern(items=items):
            fresh = tuple(cx.fresh() for _ in items)
            expect(cx, TTuple(fresh), t, p.span, "this pattern", because)
            for q, u in zip(items, fresh, strict=True):
                pattern(cx, q, u, env, bind, because)
        case ast.ListPattern(items=items, rest=rest):
            item = cx.fresh()
            expect(cx, list_of(item), t, p.span, "this pattern", because)
            for q in items:
                pattern(cx, q, item, env, bind, because)
            if rest is not None:
                pattern(cx, rest, list_of(item), env, bind, because)
        case ast.RecordPattern(fields=fields, open=is_open):
            _record(cx, p, fields, is_open, t, env, bind, because)
        case ast.ConstructorPattern():
            _named(cx, p, t, env, bind, because)


def _named(cx: Context, p: ast.ConstructorPattern, t: Term, env: Env, bind: Bind, because: Because) -> None:
    name = p.path[-1].text
    if len(p.path) == 1 and name in ("Success", "Error"):
        result, fields = success_or_error(cx, name)
        expect(cx, result, t, p.span, "this pattern", because)
        _payload(cx, p, name, None, fields, p.positional is not None, env, bind, because)
        return
    found = find_constructor(cx, p.path, env)
    if found is None:
        for q in (*(p.positional or ()), *(q for _, q in p.named or ())):
            pattern(cx, q, cx.fresh(), env, bind, because)
        return
    cx.side.constructors[p] = found
    con, instance = open_type(cx, found.type)
    expect(cx, con, t, p.span, "this pattern", because)
    fields = tuple((n, instance.term(f)) for n, f in found.fields)
    _payload(cx, p, found.core.name, found.span, fields, found.core.positional, env, bind, because)


def _constructor(
    cx: Context,
    p: ast.NamePattern,
    span: Span,
    found: ConstructorDef,
    fields: tuple[tuple[str, Term], ...],
    t: Term,
    env: Env,
    bind: Bind,
    because: Because,
) -> None:
    cx.side.constructors[p] = found
    con, _ = open_type(cx, found.type)
    expect(cx, con, t, span, "this pattern", because)
    if found.fields:
        _tell_payload(cx, span, found.core.name, found.span, [n for n, _ in found.fields], found.core.positional)


def _tell_payload(
    cx: Context, span: Span, name: str, declared: Span | None, fields: list[str], positional: bool
) -> None:
    if positional:
        form = f"{name}({', '.join('_' for _ in fields)})"
    else:
        form = f"{name} {{ {', '.join(fields)} }}" if fields else name
    labels = () if declared is None else ((declared, "declared here"),)
    cx.tell("E0217", f"this is not the shape of `{name}`", span, "wrong payload", labels, help=f"write `{form}`")


def _payload(
    cx: Context,
    p: ast.ConstructorPattern,
    name: str,
    declared: Span | None,
    fields: tuple[tuple[str, Term], ...],
    positional: bool,
    env: Env,
    bind: Bind,
    because: Because,
) -> None:
    if p.positional is not None:
        fits = positional and len(p.positional) == len(fields)
        if not fits:
            _tell_payload(cx, p.span, name, declared, [n for n, _ in fields], positional)
        for k, q in enumerate(p.positional):
            pattern(cx, q, fields[k][1] if fits else cx.fresh(), env, bind, because)
        return
    named = p.named or ()
    if positional and not (p.open and not named):
        _tell_payload(cx, p.span, name, declared, [n for n, _ in fields], positional)
    known = dict(fields)
    for n, q in named:
        if n.text not in known and not positional:
            _tell_field(cx, n, name, list(known))
        pattern(cx, q, known.get(n.text) or cx.fresh(), env, bind, because)
    missing = [n for n in known if n not in {m.text for m, _ in named}]
    if missing and not p.open and not positional:
        _tell_closed(cx, p.span, name, missing)


def _tell_field(cx: Context, n: ast.Name, name: str, known: list[str]) -> None:
    cx.tell(
        "E0210",
        f"`{name}` has no field `{n.text}`",
        n.span,
        "no such field",
        help=did_you_mean(n.text, known) or "its fields are " + ", ".join(f"`{f}`" for f in known),
    )


def _tell_closed(cx: Context, span: Span, name: str, missing: list[str]) -> None:
    cx.tell(
        "E0217",
        f"this pattern leaves out {', '.join(f'`{m}`' for m in missing)} of `{name}`",
        span,
        "every field, or `..`",
        help="name the fields, or end the pattern with `..` to pass over the rest",
    )


def _record(
    cx: Context,
    p: ast.RecordPattern,
    fields: tuple[tuple[ast.Name, ast.Pattern], ...],
    is_open: bool,
    t: Term,
    env: Env,
    bind: Bind,
    because: Because,
) -> None:
    for n, q in fields:
        ft = cx.fresh()
        cx.unifier.where = n.span
        cx.unifier.require(t, Need("field", n.text, (ft,), n.span))
        pattern(cx, q, ft, env, bind, because)
    known = field_names(cx, t)
    missing = [n for n in known if n not in {m.text for m, _ in fields}]
    if missing and not is_open and not isinstance(prune(t), TVar):
        _tell_closed(cx, p.span, cx.shower().show(t), missing)
