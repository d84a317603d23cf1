"""Typing of calls: functions, constructors, pipes, methods, named arguments.

Comes in: call expressions. Goes out: their types; the inclusion of what the callee may perform in what the caller may
(L5.2); for sugar, the plain call that it stands for, kept in the side tables. Spec: types-and-effects L6.6, L6.11.
"""

from __future__ import annotations

from osprey_py.check.context import ConstructorDef, Context, Env, Global, Local, Target
from osprey_py.check.effects import Step
from osprey_py.check.infer_names import field_type, open_type, success_or_error
from osprey_py.check.mismatch import expect
from osprey_py.check.names import known_elsewhere, quiet_look
from osprey_py.check.terms import Term, TFun, TVar, is_con, prune
from osprey_py.source.span import NO_SPAN, Span
from osprey_py.source.suggest import did_you_mean
from osprey_py.syntax import ast

_UNNAMED = "the function"


def call(cx: Context, expr: ast.Call, env: Env, expected: Term | None) -> Term:
    callee = expr.callee
    if isinstance(callee, ast.Reference):
        name = callee.path[-1].text
        if len(callee.path) == 1 and name in ("Success", "Error") and env.find(name) is None:
            return _result_call(cx, expr, name, env)
        if (len(callee.path) == 1 and env.find(name) is None) or len(callee.path) > 1:
            symbol = quiet_look(env.space, callee.path, "value")
            if symbol is not None and symbol.what == "variant":
                return _variant_call(cx, expr, cx.symbols.get(symbol), env)
    cx.call_arguments[callee.span] = tuple(a.value.span for a in expr.args)
    t = prune(cx.infer(callee, env))
    target = cx.side.targets.get(callee)
    shown = callee_text(callee)
    args = _ordered(cx, expr, target, t, shown)
    if args is None:
        for a in expr.args:
            cx.infer(a.value, env)
        return _result_of(cx, t)
    step = Step(expr.span, shown)
    if isinstance(t, TFun):
        _known(cx, expr, args, t, target, shown, env)
        cx.flows.flow(t.eff, env.ambient, step=step)
        return t.result
    types = tuple(cx.infer(a, env) for a in args)
    if isinstance(t, TVar):
        result, eff = cx.fresh(), cx.fresh_effect()
        expect(cx, t, TFun(types, result, eff), callee.span, f"`{shown}`")
        cx.flows.flow(eff, env.ambient, step=step)
        return result
    cx.tell(
        "E0202",
        "this is not a function" if shown == _UNNAMED else f"`{shown}` is not a function",
        callee.span,
        f"this is `{cx.shower().show(t)}`",
        help="" if not is_con(t, "Result") else "take the function out of the Result first, with `?:` or `match`",
    )
    return cx.fresh()


def callee_text(callee: ast.Expr) -> str:
    """How a callee is called in messages."""
    if isinstance(callee, ast.Reference):
        return "::".join(n.text for n in callee.path)
    if isinstance(callee, ast.FieldAccess):
        return callee.name.text
    return _UNNAMED


def _result_of(cx: Context, t: Term) -> Term:
    return t.result if isinstance(t, TFun) else cx.fresh()


def parameter_names(target: Target | None) -> tuple[str | None, ...] | None:
    return target.params if isinstance(target, (Local, Global)) else None


def _ordered(cx: Context, expr: ast.Call, target: Target | None, t: Term, shown: str) -> tuple[ast.Expr, ...] | None:
    """The arguments by position; None (told) where they do not fit in number or name."""
    if not any(a.name is not None for a in expr.args):
        if isinstance(t, TFun) and len(t.params) != len(expr.args):
            _wrong_count(cx, expr, target, len(t.params), shown)
            return None
        return tuple(a.value for a in expr.args)
    names = parameter_names(target)
    if names is None:
        first = next(a for a in expr.args if a.name is not None)
        why = "a built-in" if isinstance(target, str) else "a function value"
        cx.tell(
            "E0215",
            f"`{shown}` takes its arguments by position",
            first.span,
            f"this names a parameter, and {why} has no names for them",
        )
        return None
    given: dict[str, ast.Argument] = {}
    ok = True
    for a in expr.args:
        assert a.name is not None
        if a.name.text not in names:
            known = [n for n in names if n]
            cx.tell(
                "E0215",
                f"`{shown}` has no parameter `{a.name.text}`",
                a.name.span,
                "no such parameter",
                _declared(target),
                help=did_you_mean(a.name.text, known) or "its parameters are " + ", ".join(f"`{n}`" for n in known),
            )
            ok = False
        given[a.name.text] = a
    missing = [n for n in names if n is None or n not in given]
    if ok and missing:
        listed = ", ".join(f"`{n or '_'}`" for n in missing)
        cx.tell("E0205", f"`{shown}` is missing {listed}", expr.span, "named arguments: all or none", _declared(target))
        ok = False
    if not ok:
        return None
    cx.side.orders[expr] = tuple(names.index(a.name.text) for a in expr.args if a.name is not None)
    return tuple(given[n].value for n in names if n is not None)


def _declared(target: Target | None) -> list[tuple[Span, str]]:
    if isinstance(target, Global) and target.symbol.span is not NO_SPAN:
        return [(target.symbol.span, "declared here")]
    return [(target.span, "declared here")] if isinstance(target, (Local, ConstructorDef)) else []


def _wrong_count(cx: Context, expr: ast.Call, target: Target | None, count: int, shown: str) -> None:
    given = len(expr.args)
    takes = f"{count} argument{'' if count == 1 else 's'}"
    are = "is given" if given == 1 else "are given"
    notes = []
    if isinstance(target, str):
        notes.append(f"`{target}` is {cx.shower().show(cx.type_of(expr.callee))}")
    title = f"`{shown}` takes {takes}, and {given} {are}"
    cx.tell("E0205", title, expr.span, "wrong number of arguments", _declared(target), notes)


def _known(
    cx: Context, expr: ast.Call, args: tuple[ast.Expr, ...], t: TFun, target: Target | None, shown: str, env: Env
) -> None:
    """Arguments of a callee whose type is known. They are typed in the order of the parameters, so that a lambda knows what
    it is given."""
    params: tuple[ast.Parameter, ...] = ()
    if isinstance(target, Global) and isinstance(target.symbol.decl, ast.FunctionDecl):
        params = target.symbol.decl.params
    for k, (a, wanted) in enumerate(zip(args, t.params, strict=True)):
        actual = cx.infer(a, env, wanted)
        because: list[tuple[Span, str]] = []
        if k < len(params):
            because.append((params[k].span, f"`{shown}` takes it here"))
        what = f"argument {k + 1} of `{shown}`" if isinstance(target, str) else ""
        expect(cx, actual, wanted, a.span, what, because)


def _variant_call(cx: Context, expr: ast.Call, found: object, env: Env) -> Term:
    if not isinstance(found, ConstructorDef):
        for a in expr.args:
            cx.infer(a.value, env)
        return cx.fresh()
    cx.side.constructors[expr] = found
    con, instance = open_type(cx, found.type)
    name = found.core.name
    types = tuple(cx.infer(a.value, env, None) for a in expr.args)
    if not found.core.positional or len(types) != len(found.fields) or any(a.name for a in expr.args):
        if found.fields and not found.core.positional:
            form = f"{name} {{ " + ", ".join(f"{n}: …" for n, _ in found.fields) + " }"
        else:
            form = f"{name}({', '.join('…' for _ in found.fields)})" if found.fields else name
        cx.tell(
            "E0213",
            f"`{name}` is not made like this",
            expr.span,
            "wrong payload",
            ((found.span, "declared here"),),
            help=f"write `{form}`",
        )
        return con
    for a, actual, (_, wanted) in zip(expr.args, types, found.fields, strict=True):
        expect(cx, actual, instance.term(wanted), a.value.span, f"`{name}`", ((found.span, "declared here"),))
    return con


def _result_call(cx: Context, expr: ast.Call, name: str, env: Env) -> Term:
    """`Success(42)`, as Results are printed."""
    t, ((_, wanted),) = success_or_error(cx, name)
    types = [cx.infer(a.value, env) for a in expr.args]
    if len(types) != 1:
        cx.tell(
            "E0205", f"`{name}` holds one value, and {len(types)} are given", expr.span, "wrong number of arguments"
        )
        return t
    expect(cx, types[0], wanted, expr.args[0].value.span)
    return t


# --- sugar --------------------------------------------------------------------------------------------------------


def pipe(cx: Context, expr: ast.Pipe, env: Env, expected: Term | None) -> Term:
    """`x |> f(a)` is `f(x, a)`; `x |> f` is `f(x)`."""
    first = ast.Argument(expr.left.span, None, expr.left)
    right = expr.right
    cx.infer(expr.left, env)
    if isinstance(right, ast.Call):
        plain = ast.Call(expr.span, right.callee, (first, *right.args))
    elif isinstance(right, ast.MethodCall):
        callee = ast.FieldAccess(right.receiver.span.to(right.name.span), right.receiver, right.name)
        plain = ast.Call(expr.span, callee, (first, *right.args))
    else:
        plain = ast.Call(expr.span, right, (first,))
    cx.side.sugar[expr] = plain
    return cx.infer(plain, env, expected)


def method(cx: Context, expr: ast.MethodCall, env: Env, expected: Term | None) -> Term:
    """`x.f(a)` reads a field f where the type has one, else it is `f(x, a)`. A receiver whose type is not known yet is
    decided when it is, or when the binding around it is generalised."""
    receiver = cx.infer(expr.receiver, env)
    if not isinstance(prune(receiver), TVar):
        return _method(cx, expr, receiver, env)
    for a in expr.args:
        cx.infer(a.value, env)
    result = cx.fresh()

    def retry(force: bool) -> bool:
        if isinstance(prune(receiver), TVar) and not force:
            return False
        expect(cx, _method(cx, expr, receiver, env), result, expr.span)
        return True

    cx.retries.append(retry)
    return result


def _method(cx: Context, expr: ast.MethodCall, receiver: Term, env: Env) -> Term:
    name = expr.name
    t = prune(receiver)
    has_field = field_type(cx, t, name.text) is not None
    visible = env.find(name.text) is not None or quiet_look(env.space, (name,), "value") is not None
    if has_field or not visible:
        if not has_field and not isinstance(t, TVar):
            _tell_no_method(cx, expr, t, env)
            for a in expr.args:
                cx.infer(a.value, env)
            return cx.fresh()
        callee: ast.Expr = ast.FieldAccess(expr.receiver.span.to(name.span), expr.receiver, name)
        plain = ast.Call(expr.span, callee, expr.args)
    else:
        first = ast.Argument(expr.receiver.span, None, expr.receiver)
        plain = ast.Call(expr.span, ast.Reference(name.span, (name,)), (first, *expr.args))
        if any(a.name is not None for a in expr.args):
            plain = _named_receiver(cx, expr, plain, env)
    cx.side.sugar[expr] = plain
    return cx.infer(plain, env)


def _named_receiver(cx: Context, expr: ast.MethodCall, plain: ast.Call, env: Env) -> ast.Call:
    """With named arguments, the receiver takes the first parameter's name."""
    cx.infer(plain.callee, env)
    names = parameter_names(cx.side.targets.get(plain.callee))
    if not names or names[0] is None:
        return plain
    first = ast.Argument(expr.receiver.span, ast.Name(expr.receiver.span, names[0]), expr.receiver)
    return ast.Call(plain.span, plain.callee, (first, *expr.args))


def _tell_no_method(cx: Context, expr: ast.MethodCall, t: Term, env: Env) -> None:
    from osprey_py.check.infer_names import field_names
    from osprey_py.modules.spaces import visible_names

    known = [*field_names(cx, t), *env.local_names(), *visible_names(env.space, "value")]
    name = expr.name.text
    cx.tell(
        "E0210",
        f"`{cx.shower().show(t)}` has no field `{name}`, and there is no function of that name",
        expr.name.span,
        "neither a field nor a function",
        help=known_elsewhere(name) or did_you_mean(name, known),
    )
