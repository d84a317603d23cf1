"""Typing of `perform`, `handle` and `resume`.

Comes in: those expressions. Goes out: their types; a label for each perform; for a handler, an inclusion without the
operations it handles. Spec: types-and-effects L5.1, L5.3, L5.9, L5.10.
"""

from __future__ import annotations

from osprey_py.check.context import Context, EffectDef, Env, Local, OperationDef, ResumeScope
from osprey_py.check.effects import EffVar, Label, Reason
from osprey_py.check.mismatch import expect
from osprey_py.check.names import resolve
from osprey_py.check.schemes import Instance, Scheme
from osprey_py.check.terms import UNIT, Term
from osprey_py.check.written_types import fresh_hidden, read_effect, reading
from osprey_py.source.suggest import did_you_mean
from osprey_py.syntax import ast


def perform(cx: Context, expr: ast.Perform, env: Env, expected: Term | None) -> Term:
    symbol = resolve(cx, env.space, expr.effect, "effect")
    found = cx.symbols.get(symbol) if symbol is not None else None
    types = [cx.infer(a.value, env) for a in expr.args]
    if not isinstance(found, EffectDef):
        return cx.fresh()
    operation = _operation(cx, found, expr.operation)
    if operation is None:
        return cx.fresh()
    cx.side.effects[expr] = found.name
    args: tuple[object, ...] = (*(cx.fresh() for _ in found.params), *fresh_hidden(cx, found))
    instance = effect_instance(cx, found, args)
    if len(types) != len(operation.params):
        _wrong_count(cx, expr, found, operation, len(types))
    for a, t, wanted in zip(expr.args, types, operation.params, strict=False):
        expect(cx, t, instance.term(wanted), a.value.span, "", ((operation.span, "declared here"),))
    cx.flows.perform(env.ambient, Label(found.name, expr.operation.text), Reason(expr.span, ""), args)
    return instance.term(operation.result)


def _operation(cx: Context, effect: EffectDef, name: ast.Name) -> OperationDef | None:
    operation = effect.operations.get(name.text)
    if operation is None:
        short = effect.name.rsplit("::", 1)[-1]
        cx.tell(
            "E0306",
            f"effect `{short}` has no operation `{name.text}`",
            name.span,
            "no such operation",
            ((effect.span, "declared here"),),
            help=did_you_mean(name.text, effect.operations)
            or "its operations are " + ", ".join(f"`{n}`" for n in effect.operations),
        )
    return operation


def _wrong_count(cx: Context, expr: ast.Perform, effect: EffectDef, operation: OperationDef, given: int) -> None:
    shown = f"{effect.name.rsplit('::', 1)[-1]}.{expr.operation.text}"
    takes = f"{len(operation.params)} argument{'' if len(operation.params) == 1 else 's'}"
    cx.tell(
        "E0205",
        f"`{shown}` takes {takes}, and {given} {'is' if given == 1 else 'are'} given",
        expr.span,
        "wrong number of arguments",
        ((operation.span, "declared here"),),
    )


def effect_instance(cx: Context, effect: EffectDef, args: tuple[object, ...]) -> Instance:
    """The mapping of an effect's parameters and hidden parameters to `args`."""
    instance = Instance(cx.unifier, cx.level, None)
    own = [*(v.id for v in effect.params), *(e.id for e in effect.hidden)]
    for identity, arg in zip(own, args, strict=True):
        if isinstance(arg, Term):
            instance.types[identity] = arg
        elif isinstance(arg, EffVar):
            instance.effects[identity] = arg
    return instance


def handle(cx: Context, expr: ast.Handle, env: Env, expected: Term | None) -> Term:
    found = read_effect(reading(cx, env.space, env.function.type_params), expr.effect)
    if found is None:
        return cx.infer(expr.body, env.inner(), expected)
    effect, args = found
    cx.side.effects[expr] = effect.name
    handled = frozenset(Label(effect.name, a.operation.text) for a in expr.arms)
    ambient = cx.fresh_effect()
    if args:
        ambient.insts[effect.name] = args
    body_env = Env(env.space, env.function, ambient, env, env.resume, env.assigns)
    answer = cx.infer(expr.body, body_env, expected)
    # The rest of the computation, which `resume` runs, may perform what the body does beyond the handled operations, and
    # what the arms do.
    rest = cx.fresh_effect()
    cx.flows.flow(ambient, rest, handled)
    cx.flows.flow(rest, env.ambient)
    instance = effect_instance(cx, effect, args)
    seen: dict[str, ast.HandlerArm] = {}
    for arm in expr.arms:
        name = arm.operation.text
        if name in seen:
            cx.tell(
                "E0014",
                f"operation `{name}` is handled twice",
                arm.operation.span,
                "handled again here",
                ((seen[name].operation.span, "first handled here"),),
            )
        seen.setdefault(name, arm)
        operation = _operation(cx, effect, arm.operation)
        if operation is not None:
            _arm(cx, arm, operation, instance, ResumeScope(instance.term(operation.result), answer, rest), env)
    return answer


def _arm(
    cx: Context, arm: ast.HandlerArm, operation: OperationDef, instance: Instance, scope: ResumeScope, env: Env
) -> None:
    inner = Env(env.space, env.function, scope.rest, env, scope, True)
    if len(arm.params) != len(operation.params):
        cx.tell(
            "E0205",
            f"`{arm.operation.text}` takes {len(operation.params)}, and this arm names {len(arm.params)}",
            arm.operation.span,
            "wrong number of names",
            ((operation.span, "declared here"),),
            help="name every argument, `_` for one that is not used",
        )
    for p, t in zip(arm.params, operation.params, strict=False):
        typed = instance.term(t)
        cx.side.types[p] = typed
        if p.name is not None:
            local = Local(p.name.text, p.name.span, Scheme(typed), env.function)
            inner.names[p.name.text] = local
            cx.side.binders[p] = local
    t = cx.infer(arm.body, inner)
    if scope.used:
        cx.side.resuming.add(arm)
        expect(cx, t, scope.answer, arm.body.span, "the answer of an arm that resumes")
    else:
        expect(cx, t, scope.value, arm.body.span, "this arm", ((operation.span, "the operation's result"),))


def resume(cx: Context, expr: ast.Resume, env: Env, expected: Term | None) -> Term:
    t: Term = UNIT if expr.value is None else cx.infer(expr.value, env)
    scope = env.resume
    if scope is None:
        cx.tell(
            "E0309",
            "`resume` stands outside a handler arm",
            expr.span,
            "there is nothing to resume here",
            help="`resume(v)` belongs in an arm of `handle`",
        )
        return cx.fresh()
    scope.used = True
    span = expr.span if expr.value is None else expr.value.span
    expect(cx, t, scope.value, span, "what `resume` gives")
    cx.flows.flow(scope.rest, env.ambient)
    return scope.answer
