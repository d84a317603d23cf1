"""Typing of names, literals' containers and everything that makes data.

Comes in: references, tuples, lists, maps, records. Goes out: their types, and what each name means in the side tables.
Spec: types-and-effects L6.4 to L6.8.
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.check.builtins import SIGNATURES
from osprey_py.check.context import ConstructorDef, Context, Env, Global, Local, Target, TypeDef
from osprey_py.check.effects import Step
from osprey_py.check.mismatch import expect, restrict
from osprey_py.check.names import quiet_look, resolve
from osprey_py.check.schemes import Instance
from osprey_py.check.signatures import builtin_scheme
from osprey_py.check.terms import INDEXED, Need, TCon, Term, TFun, TRecord, TTuple, TVar, list_of, prune, walk
from osprey_py.check.written_types import fresh_hidden
from osprey_py.modules.spaces import Symbol
from osprey_py.source.span import NO_SPAN, Span
from osprey_py.source.suggest import did_you_mean
from osprey_py.syntax import ast


def loosen(cx: Context, t: Term) -> Term:
    """The type with arrows in value position replaced by ones that may do more: a use of a function may be treated as if
    it performed more than it does, so that what else flows to the same place does not taint it (L5.3)."""
    given, t = t, prune(t)
    if isinstance(t, TFun):
        e = cx.fresh_effect()
        cx.flows.flow(t.eff, e)
        return TFun(t.params, loosen(cx, t.result), e)
    if isinstance(t, (TTuple, TRecord)) or (isinstance(t, TCon) and t.name in ("List", "Result", "Iterator")):
        if not any(isinstance(u, TFun) for u in walk(t)):
            return given
        if isinstance(t, TTuple):
            return TTuple(tuple(loosen(cx, i) for i in t.items))
        if isinstance(t, TRecord):
            return TRecord((n, loosen(cx, f)) for n, f in t.fields)
        return TCon(t.name, tuple(loosen(cx, a) for a in t.args))
    return given


def lookup(cx: Context, path: tuple[ast.Name, ...], env: Env) -> Target | None:
    """What a path in an expression means; None after telling."""
    if len(path) == 1:
        local = env.find(path[0].text)
        if local is not None:
            return local
    symbol = resolve(cx, env.space, path, "value", env.local_names())
    if symbol is None:
        return None
    if symbol.what == "built-in":
        return symbol.name
    if symbol.what == "variant":
        found = cx.symbols.get(symbol)
        return found if isinstance(found, ConstructorDef) else None
    return cx.globals.get(symbol)


def reference(cx: Context, expr: ast.Reference, env: Env, expected: Term | None) -> Term:
    builtin = expr.path[0].text if len(expr.path) == 1 else ""
    if builtin in ("Success", "Error") and env.find(builtin) is None:
        _tell_bare(cx, builtin, ("value",) if builtin == "Success" else ("message",), expr.span)
        return cx.fresh()
    target = lookup(cx, expr.path, env)
    if target is None:
        return cx.fresh()
    cx.side.targets[expr] = target
    return target_type(cx, target, expr)


def target_type(cx: Context, target: Target, expr: ast.Reference) -> Term:
    """The type of one use of what a name means."""
    name = expr.path[-1].text
    if isinstance(target, str):
        return cx.instance(builtin_scheme(cx, target), Step(expr.span, target))
    if isinstance(target, ConstructorDef):
        con, instance = open_type(cx, target.type)
        if not target.fields:
            return con
        if not target.core.positional:
            _tell_bare(cx, target.core.name, tuple(n for n, _ in target.fields), expr.span)
            return con
        return TFun(tuple(instance.term(t) for _, t in target.fields), con, cx.fresh_effect())
    if target.scheme is None:
        return cx.fresh()
    t = cx.instance(target.scheme, Step(expr.span, name))
    return loosen(cx, t) if target.scheme.is_mono else t


def _tell_bare(cx: Context, name: str, fields: Sequence[str], span: Span) -> None:
    shown = ", ".join(f"{f}: …" for f in fields)
    cx.tell(
        "E0213",
        f"`{name}` needs its fields",
        span,
        "no fields are given",
        help=f"write `{name} {{ {shown} }}`",
    )


def open_type(cx: Context, typedef: TypeDef) -> tuple[TCon, Instance]:
    """A fresh use of a declared type; the instance maps its parameters."""
    instance = Instance(cx.unifier, cx.level, None)
    for v in typedef.params:
        instance.types[v.id] = cx.fresh(v.kind)
    effs = fresh_hidden(cx, typedef)
    for own, e in zip(typedef.hidden, effs, strict=True):
        instance.effects[own.id] = e
    return TCon(typedef.name, tuple(instance.types[v.id] for v in typedef.params), effs), instance


# --- data ---------------------------------------------------------------------------------------------------------


def tuple_(cx: Context, expr: ast.Tuple, env: Env, expected: Term | None) -> Term:
    return TTuple(tuple(cx.infer(i, env) for i in expr.items))


def list_(cx: Context, expr: ast.ListLiteral, env: Env, expected: Term | None) -> Term:
    item = cx.fresh()
    first: ast.Expr | None = None
    for i in expr.items:
        t = cx.infer(i, env, item)
        because = [(first.span, f"the first item is `{cx.shower().show(item)}`")] if first is not None else []
        expect(cx, t, item, i.span, "this item", because)
        first = first or i
    return list_of(item)


def map_(cx: Context, expr: ast.MapLiteral, env: Env, expected: Term | None) -> Term:
    key, value = cx.fresh(), cx.fresh()
    cx.unifier.require(key, Need("equal", "", (), expr.span))
    first = expr.entries[0] if expr.entries else None
    for k, v in expr.entries:
        is_first = first is not None and first[0] is k
        key_why = [] if is_first or first is None else [(first[0].span, "the first key")]
        value_why = [] if is_first or first is None else [(first[1].span, "the first value")]
        expect(cx, cx.infer(k, env), key, k.span, "this key", key_why)
        expect(cx, cx.infer(v, env, value), value, v.span, "this value", value_why)
    return TCon("Map", (key, value))


def success_or_error(cx: Context, name: str) -> tuple[Term, tuple[tuple[str, Term], ...]]:
    """A fresh Result and the one field of its `Success` or `Error`."""
    value, error = cx.fresh(), cx.fresh()
    cx.unifier.require(error, Need("error", "", (), NO_SPAN))
    field = ("value", value) if name == "Success" else ("message", error)
    return TCon("Result", (value, error)), (field,)


def find_constructor(cx: Context, path: tuple[ast.Name, ...], env: Env) -> ConstructorDef | None:
    """A record or variant by the name that a literal or pattern gives; None after telling."""
    symbol = quiet_look(env.space, path, "value")
    if symbol is not None and symbol.what == "variant":
        found = cx.symbols.get(symbol)
        return found if isinstance(found, ConstructorDef) else None
    symbol = quiet_look(env.space, path, "type")
    if symbol is not None:
        typedef = cx.symbols.get(aliased(symbol))
        if isinstance(typedef, TypeDef):
            if typedef.is_record:
                return next(iter(typedef.constructors.values()), None)
            cx.tell(
                "E0214",
                f"`{path[-1].text}` is a union, not one of its variants",
                path[-1].span,
                "name a variant here",
                help="its variants are " + ", ".join(f"`{n}`" for n in typedef.constructors),
            )
            return None
    names = [n for t in cx.types.values() for n in t.constructors]
    resolved = resolve(cx, env.space, path, "value", [*names, "Success", "Error"])
    if resolved is not None:
        cx.tell("E0214", f"`{path[-1].text}` is no record or variant", path[-1].span, f"this is a {resolved.what}")
    return None


def aliased(symbol: Symbol) -> Symbol:
    """The symbol that an alias of a declared type stands for, seen through chains of aliases."""
    for _ in range(100):
        if not (symbol.what == "alias" and isinstance(symbol.decl, ast.AliasDecl)):
            break
        target = symbol.decl.target
        if not isinstance(target, ast.TypeName) or symbol.space is None:
            break
        following = quiet_look(symbol.space, target.path, "type")
        if following is None:
            break
        symbol = following
    return symbol


def record(cx: Context, expr: ast.RecordLiteral, env: Env, expected: Term | None) -> Term:
    if expr.path is None:
        return TRecord((n.text, cx.infer(e, env)) for n, e in expr.fields)
    name = expr.path[-1].text
    instance: Instance | None = None
    con: Term
    if len(expr.path) == 1 and name in ("Success", "Error"):
        con, fields = success_or_error(cx, name)
        shown, span = name, None
    else:
        found = find_constructor(cx, expr.path, env)
        if found is None:
            for _, e in expr.fields:
                cx.infer(e, env)
            return cx.fresh()
        cx.side.constructors[expr] = found
        con, instance = open_type(cx, found.type)
        fields = tuple((n, instance.term(t)) for n, t in found.fields)
        shown, span = found.core.name, found.span
        if found.core.positional:
            cx.tell(
                "E0213",
                f"`{shown}` takes its payload in parentheses",
                expr.span,
                "written with fields",
                ((found.span, "declared here"),),
                help=f"write `{shown}({', '.join('…' for _ in fields)})`",
            )
            return con
    check_fields(cx, expr.span, shown, span, expr.fields, dict(fields), env, complete=True)
    return con


def check_fields(
    cx: Context,
    span: Span,
    name: str,
    declared: Span | None,
    given: tuple[tuple[ast.Name, ast.Expr], ...],
    fields: dict[str, Term],
    env: Env,
    complete: bool,
) -> None:
    """Types of written fields against the declared ones."""
    because = [(declared, f"`{name}` is declared here")] if declared is not None else []
    for n, e in given:
        wanted = fields.get(n.text)
        t = cx.infer(e, env, wanted)
        if wanted is None:
            cx.tell(
                "E0210",
                f"`{name}` has no field `{n.text}`",
                n.span,
                "no such field",
                because,
                help=did_you_mean(n.text, fields) or ("its fields are " + ", ".join(f"`{f}`" for f in fields)),
            )
        else:
            expect(cx, t, wanted, e.span, f"`{n.text}`", because)
    missing = [f for f in fields if f not in {n.text for n, _ in given}]
    if complete and missing:
        sh = cx.shower()
        cx.tell(
            "E0213",
            f"`{name}` is missing " + ", ".join(f"`{f}`" for f in missing),
            span,
            "every field is needed",
            because,
            help="add " + ", ".join(f"`{f}: …` of type `{sh.show(fields[f])}`" for f in missing),
        )


def update(cx: Context, expr: ast.RecordUpdate, env: Env, expected: Term | None) -> Term:
    """A new record: what is not written is read from the old one, so a function put in does not taint the old."""
    t = cx.infer(expr.record, env)
    new = _like(cx, t, {n.text for n, _ in expr.fields})
    for n, e in expr.fields:
        wanted = cx.fresh()
        cx.unifier.where = n.span
        cx.unifier.require(new, Need("put", n.text, (wanted,), n.span))
        expect(cx, cx.infer(e, env, wanted), wanted, e.span, f"`{n.text}`")
    return new


def _like(cx: Context, t: Term, changed: set[str]) -> Term:
    """A record type like `t` whose fields other than `changed` hold what t's hold. A type not known yet stays itself."""
    t = prune(t)
    if isinstance(t, TRecord):
        return TRecord((n, cx.fresh() if n in changed else loosen(cx, f)) for n, f in t.fields)
    typedef = cx.types.get(t.name) if isinstance(t, TCon) else None
    if typedef is None or len(typedef.constructors) != 1:
        return t
    con, _ = open_type(cx, typedef)
    for name in field_names(cx, t):
        old, new = field_type(cx, t, name), field_type(cx, con, name)
        if name not in changed and old is not None and new is not None:
            cx.unifier.unify(new, loosen(cx, old))
    return con


def field_access(cx: Context, expr: ast.FieldAccess, env: Env, expected: Term | None) -> Term:
    t = cx.infer(expr.record, env)
    result = cx.fresh()
    cx.unifier.where = expr.span
    cx.unifier.require(t, Need("field", expr.name.text, (result,), expr.name.span))
    return loosen(cx, result)


def index(cx: Context, expr: ast.IndexAccess, env: Env, expected: Term | None) -> Term:
    t = cx.infer(expr.container, env)
    key, value = cx.infer(expr.index, env), cx.fresh()
    need = Need("index", "", (key, value), expr.index.span)
    cx.unifier.where = expr.span
    if isinstance(prune(t), TVar):
        restrict(cx, t, INDEXED, expr.container.span, "an index reads")
    cx.unifier.require(t, need)
    return loosen(cx, value)


def field_type(cx: Context, t: Term, name: str) -> Term | None:
    """The type of a field of a known type; None where it has none."""
    t = prune(t)
    if isinstance(t, TRecord):
        return dict(t.fields).get(name)
    if isinstance(t, TCon):
        typedef = cx.types.get(t.name)
        if typedef is None or len(typedef.constructors) != 1:
            return None
        (constructor,) = typedef.constructors.values()
        found = dict(constructor.fields).get(name)
        if found is None:
            return None
        instance = Instance(cx.unifier, cx.level, None)
        instance.types.update((v.id, a) for v, a in zip(typedef.params, t.args, strict=True))
        instance.effects.update((own.id, e) for own, e in zip(typedef.hidden, t.effs, strict=True))
        return instance.term(found)
    return None


def field_names(cx: Context, t: Term) -> list[str]:
    t = prune(t)
    if isinstance(t, TRecord):
        return [n for n, _ in t.fields]
    if isinstance(t, TCon) and t.name in cx.types and len(cx.types[t.name].constructors) == 1:
        return [n for c in cx.types[t.name].constructors.values() for n, _ in c.fields]
    return []


def is_function_name(cx: Context, expr: ast.Expr, env: Env) -> bool:
    """A name of a function, which a `let` of it generalises."""
    if not isinstance(expr, ast.Reference):
        return False
    target = cx.side.targets.get(expr)
    if isinstance(target, (Local, Global)):
        return target.cell is None
    return isinstance(target, ConstructorDef) or (isinstance(target, str) and SIGNATURES[target].find("(") >= 0)
