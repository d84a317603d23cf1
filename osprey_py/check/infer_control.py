"""Typing of blocks, `let`, lambdas, functions and `match`.

Comes in: the expressions that bind names. Goes out: their types, generalised where the language says so.
Spec: types-and-effects L6.3 (what is generalised), L4.4 and L4.5 (where a fault becomes a Result), L5.2.
"""

from __future__ import annotations

from osprey_py.check.context import Context, Env, FunctionScope, Global, Local, new_cell
from osprey_py.check.effects import EffVar, Reason
from osprey_py.check.infer_names import is_function_name
from osprey_py.check.infer_operators import condition, tail_span
from osprey_py.check.infer_patterns import bind_locals, pattern
from osprey_py.check.mismatch import expect
from osprey_py.check.names import quiet_look
from osprey_py.check.schemes import Scheme, generalise
from osprey_py.check.terms import BOOL, MATH_ERROR, TCon, Term, TFun, TTuple, TVar, head, is_con, prune, result_of
from osprey_py.check.unify import lower
from osprey_py.check.written_types import bound_by_row, read_row, read_type, reading
from osprey_py.syntax import ast


def block(cx: Context, expr: ast.Block, env: Env, expected: Term | None) -> Term:
    inner = env.inner()
    statements(cx, expr.statements, inner)
    return cx.infer(expr.result, inner, expected)


def statements(cx: Context, written: tuple[ast.Statement, ...], env: Env) -> None:
    """The statements of a block; adjacent functions are typed together."""
    at = 0
    while at < len(written):
        s = written[at]
        end = at
        while end < len(written) and isinstance(written[end], ast.FunctionDecl):
            end += 1
        if end > at:
            cx.local_functions(cx, [f for f in written[at:end] if isinstance(f, ast.FunctionDecl)], env)
            at = end
        else:
            statement(cx, s, env)
            at += 1


def statement(cx: Context, s: ast.Statement, env: Env) -> None:
    match s:
        case ast.Let():
            let(cx, s, env)
        case ast.Mut(name=name, type=annotation, value=value):
            t = cx.infer(value, env)
            if annotation is not None:
                wanted = read_type(reading(cx, env.space, type_params(env)), annotation)
                expect(cx, t, wanted, value.span, "", ((annotation.span, "declared with this type"),))
                t = wanted
            cell = new_cell(name.text)
            env.function.cells.add(cell)
            local = Local(name.text, name.span, Scheme(t), env.function, cell=cell)
            env.names[name.text] = local
            cx.side.binders[s] = local
        case ast.Assign():
            assign(cx, s, env)
        case ast.ExprStatement(value=value):
            cx.infer(value, env)
        case _:
            raise TypeError(s)
    run_retries(cx, 0, False)


def type_params(env: Env) -> dict[str, TVar]:
    """The type parameters of the function around."""
    return env.function.type_params


def assign(cx: Context, s: ast.Assign, env: Env) -> None:
    target: Local | Global | None = env.find(s.name.text)
    if target is None:
        symbol = quiet_look(env.space, (s.name,), "value")
        target = cx.globals.get(symbol) if symbol is not None else None
    t = cx.infer(s.value, env)
    if target is None:
        cx.tell("E0101", f"unknown name `{s.name.text}`", s.name.span, "not found in this scope")
        return
    if target.cell is None:
        span = target.span if isinstance(target, Local) else target.symbol.span
        cx.tell(
            "E0308",
            f"`{s.name.text}` cannot be assigned",
            s.name.span,
            "it is no cell",
            ((span, "declared here"),),
            help=f"declare it with `mut {s.name.text} = …`; cells are assigned in handler arms",
        )
        return
    if not env.assigns:
        cx.tell(
            "E0308",
            f"`{s.name.text}` is assigned outside a handler arm",
            s.span,
            "only the arms of a handler may assign",
            help="give the new value a name with `let`, or let a handler keep the state",
        )
        return
    cx.side.targets[s] = target
    if target.scheme is not None:
        expect(cx, t, target.scheme.type, s.value.span, f"`{s.name.text}`")
    cx.flows.perform(env.ambient, target.cell, Reason(s.span, ""))


def let(cx: Context, s: ast.Let, env: Env) -> None:
    t, general = let_value(cx, s, env)
    if general and isinstance(s.pattern, ast.NamePattern):
        scheme = generalise(t, cx.level)
        names = (
            tuple(p.name.text if p.name else None for p in s.value.params) if isinstance(s.value, ast.Lambda) else None
        )
        local = Local(s.pattern.name.text, s.pattern.name.span, scheme, env.function, names)
        env.names[local.name] = local
        cx.side.binders[s.pattern] = local
        cx.side.types[s.pattern] = t
        return
    pattern(cx, s.pattern, t, env, bind_locals(cx, env), ((s.value.span, f"this is `{cx.shower().show(t)}`"),))


def let_value(cx: Context, s: ast.Let, env: Env) -> tuple[Term, bool]:
    """The type of a `let`, and whether it is generalised: a lambda or a function's name bound to one name is."""
    simple = isinstance(s.pattern, ast.NamePattern)
    mark = len(cx.retries)
    cx.level += 1
    wanted: Term | None = None
    if s.type is not None:
        wanted = read_type(reading(cx, env.space, type_params(env)), s.type)
    if wanted is not None and is_math_result(wanted):
        t = attempt(cx, s.value, wanted, env)
        cx.side.attempts.add(s)
    else:
        t = cx.infer(s.value, env, wanted)
        if wanted is not None and s.type is not None:
            expect(cx, t, wanted, s.value.span, "", ((s.type.span, "declared with this type"),))
            t = wanted
    general = simple and (isinstance(s.value, ast.Lambda) or is_function_name(cx, s.value, env))
    if general:
        run_retries(cx, mark, True)
    cx.level -= 1
    if not general:
        lower(t, cx.level)
    return t, general


def run_retries(cx: Context, mark: int, force: bool) -> None:
    """Tries waiting method calls again; with force, all since `mark` are decided."""
    while len(cx.retries) > mark:
        waiting = cx.retries[mark:]
        del cx.retries[mark:]
        left = [retry for retry in waiting if not retry(force)]
        new = cx.retries[mark:]
        cx.retries[mark:] = [*left, *new]
        if len(left) == len(waiting) and not new:
            return


def is_math_result(t: Term) -> bool:
    t = prune(t)
    return isinstance(t, TCon) and t.name == "Result" and is_con(t.args[1], "MathError")


# --- functions ----------------------------------------------------------------------------------------------------


def lambda_(cx: Context, expr: ast.Lambda, env: Env, expected: Term | None) -> Term:
    known = prune(expected) if expected is not None else None
    params = tuple(parameter_type(cx, p, env) for p in expr.params)
    if isinstance(known, TFun) and len(known.params) == len(params):
        for p, t, w in zip(expr.params, params, known.params, strict=True):
            if p.type is None and isinstance(prune(t), TVar):
                cx.unifier.where = None
                cx.unifier.unify(t, w)
    e = cx.fresh_effect()
    result = cx.fresh()
    function_body(cx, expr, params, result, e, env, "<lambda>", env.function.type_params)
    return TFun(params, result, e)


def parameter_type(cx: Context, p: ast.Parameter, env: Env) -> Term:
    return cx.fresh() if p.type is None else read_type(reading(cx, env.space, env.function.type_params), p.type)


def function_body(
    cx: Context,
    f: ast.Lambda | ast.FunctionDecl,
    params: tuple[Term, ...],
    result: Term,
    e: EffVar,
    env: Env,
    name: str,
    tparams: dict[str, TVar],
) -> FunctionScope:
    """Types the body of a function or lambda; `e` comes to hold what a call may perform."""
    ambient = cx.fresh_effect()
    scope = FunctionScope(ambient, name, tparams, params=params, parent=env.function)
    inner = Env(env.space, scope, ambient, env, env.resume, env.assigns)
    for p, t in zip(f.params, params, strict=True):
        if p.name is not None:
            local = Local(p.name.text, p.name.span, Scheme(t), scope)
            inner.names[p.name.text] = local
            cx.side.binders[p] = local
            cx.side.types[p] = t
        else:
            cx.side.types[p] = t
    r = reading(cx, env.space, tparams)
    wanted: Term | None = None
    if f.result is not None:
        wanted = read_type(r, f.result)
        expect(cx, wanted, result, f.result.span)
    place = f.name.span if isinstance(f, ast.FunctionDecl) else f.span
    row = read_row(r, f.effects, place, f"`{name}`" if name != "<lambda>" else "this lambda")
    if row is not None:
        bound_by_row(cx, ambient, row)
    if wanted is not None and is_math_result(wanted):
        attempt(cx, f.body, wanted, inner)
        cx.side.attempts.add(f)
    else:
        t = cx.infer(f.body, inner, wanted)
        because = [(f.result.span, "declared with this result")] if f.result is not None else []
        expect(cx, t, result, tail_span(f.body), "the result", because)
    cx.flows.flow(ambient, e, frozenset(scope.cells) if given_no_code(scope) else frozenset())
    return scope


_DATA = frozenset("int float bool string Unit GpuBuffer MathError".split())


def given_no_code(scope: FunctionScope) -> bool:
    """Whether nothing that the function and those around it are given can hold a function. Only then does nobody outside
    see assignments to its own cells: a function that is handed in may assign the cell of *another* activation, which has
    the same label and outlives this one."""
    at: FunctionScope | None = scope
    while at is not None:
        if not all(map(_is_data, at.params)):
            return False
        at = at.parent
    return True


def _is_data(t: Term) -> bool:
    t = prune(t)
    if isinstance(t, TVar):
        return t.kind is not None and set(t.kind) <= _DATA
    if isinstance(t, TTuple):
        return all(map(_is_data, t.items))
    return isinstance(t, TCon) and (
        t.name in _DATA or (t.name in ("List", "Map", "Result") and all(map(_is_data, t.args)))
    )


def attempt(cx: Context, expr: ast.Expr, wanted: Term, env: Env) -> Term:
    """An expression in a place where a math fault becomes an Error: each of its ends is a T or a Result<T, MathError>."""
    w = prune(wanted)
    assert isinstance(w, TCon)
    plain = w.args[0]
    if isinstance(expr, ast.Block):
        inner = env.inner()
        statements(cx, expr.statements, inner)
        attempt(cx, expr.result, wanted, inner)
    elif isinstance(expr, ast.If):
        condition(cx, expr.condition, env)
        attempt(cx, expr.then, wanted, env.inner())
        attempt(cx, expr.otherwise, wanted, env.inner())
    elif isinstance(expr, ast.Match):
        arms = match_arms(cx, expr, env)
        for arm, inner in arms:
            attempt(cx, arm.body, wanted, inner)
    else:
        t = cx.infer(expr, env, plain)
        if is_con(t, "Result") and not is_con(plain, "Result"):
            expect(cx, t, wanted, expr.span, "the result")
        else:
            cx.side.plain_leaves.add(expr)
            expect(cx, t, plain, expr.span, "the result")
        return wanted
    cx.side.types[expr] = wanted
    return wanted


# --- match --------------------------------------------------------------------------------------------------------


def match_(cx: Context, expr: ast.Match, env: Env, expected: Term | None) -> Term:
    result = cx.fresh()
    first: ast.Expr | None = None
    for arm, inner in match_arms(cx, expr, env):
        t = cx.infer(arm.body, inner, expected)
        because = [(tail_span(first), f"another arm is `{cx.shower().show(result)}`")] if first is not None else []
        expect(cx, t, result, tail_span(arm.body), "this arm", because)
        first = first or arm.body
    return result


def match_arms(cx: Context, expr: ast.Match, env: Env) -> list[tuple[ast.Arm, Env]]:
    """Types the scrutinee, the patterns and the guards; the arms' bodies are left, each with its scope."""
    t = cx.infer(expr.scrutinee, env)
    on_results = [a for a in expr.arms if is_result_pattern(a.pattern)]
    if on_results and is_plain(t):
        cx.side.attempts.add(expr)
        t = result_of(t, MATH_ERROR)
    arms = []
    because = ((expr.scrutinee.span, f"this is `{cx.shower().show(t)}`"),)
    for arm in expr.arms:
        inner = env.inner()
        pattern(cx, arm.pattern, t, inner, bind_locals(cx, inner), because)
        if arm.guard is not None:
            expect(cx, cx.infer(arm.guard, inner), BOOL, arm.guard.span, "the guard")
        arms.append((arm, inner))
    return arms


def is_result_pattern(p: ast.Pattern) -> bool:
    return isinstance(p, ast.ConstructorPattern) and len(p.path) == 1 and p.path[0].text in ("Success", "Error")


def is_plain(t: Term) -> bool:
    """A scalar or text, so that Success/Error arms are about the faults of computing it."""
    t = prune(t)
    if isinstance(t, TVar):
        return t.kind is not None
    return head(t) in ("int", "float", "bool", "string", "Unit", "GpuBuffer")
