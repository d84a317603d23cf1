"""Typing of literals and operators.

Comes in: literals, `! - +`, arithmetic, comparisons, `&& ||`, `?:`, interpolation. Goes out: their types.
Spec: types-and-effects L6.2 (sets), L4.3 (`?:`), L6.10 (int `/` gets a hint).
"""

from __future__ import annotations

from osprey_py.check.context import Context, Env
from osprey_py.check.mismatch import expect, hint, origins, restrict, result_help
from osprey_py.check.showing import Shower, an
from osprey_py.check.terms import (
    ADDABLE,
    BOOL,
    FLOAT,
    INT,
    NUMBER,
    ORDERED,
    STRING,
    UNIT,
    Kind,
    Need,
    Term,
    TVar,
    head,
    is_con,
    prune,
)
from osprey_py.check.unify import Mismatch
from osprey_py.source.span import Span
from osprey_py.syntax import ast

_SETS: dict[str, tuple[Kind, str]] = {
    "+": (ADDABLE, "`+` adds"),
    "-": (NUMBER, "`-` subtracts"),
    "*": (NUMBER, "`*` multiplies"),
    "%": (NUMBER, "`%` divides"),
    "<": (ORDERED, "`<` compares"),
    "<=": (ORDERED, "`<=` compares"),
    ">": (ORDERED, "`>` compares"),
    ">=": (ORDERED, "`>=` compares"),
}


def int_literal(cx: Context, expr: ast.IntLiteral, env: Env, expected: Term | None) -> Term:
    return INT


def float_literal(cx: Context, expr: ast.FloatLiteral, env: Env, expected: Term | None) -> Term:
    return FLOAT


def bool_literal(cx: Context, expr: ast.BoolLiteral, env: Env, expected: Term | None) -> Term:
    return BOOL


def unit_literal(cx: Context, expr: ast.UnitLiteral, env: Env, expected: Term | None) -> Term:
    return UNIT


def string_literal(cx: Context, expr: ast.StringLiteral, env: Env, expected: Term | None) -> Term:
    for part in expr.parts:
        if not isinstance(part, str):
            cx.infer(part, env)
    return STRING


def unary(cx: Context, expr: ast.Unary, env: Env, expected: Term | None) -> Term:
    t = cx.infer(expr.operand, env)
    if expr.op == "!":
        expect(cx, t, BOOL, expr.operand.span, "the operand of `!`")
        return BOOL
    restrict(cx, t, NUMBER, expr.operand.span, f"`{expr.op}` takes")
    return t


def binary(cx: Context, expr: ast.Binary, env: Env, expected: Term | None) -> Term:
    """A chain `a + b + …` leans left and may be long: its spine is walked without recursion."""
    spine = [expr]
    while isinstance(spine[-1].left, ast.Binary) and spine[-1].left not in cx.side.types:
        spine.append(spine[-1].left)
    left = cx.infer(spine[-1].left, env)
    for node in reversed(spine):
        right = cx.infer(node.right, env)
        left = _apply(cx, node, left, right)
        cx.side.types[node] = left
    return left


def _apply(cx: Context, expr: ast.Binary, left: Term, right: Term) -> Term:
    op = expr.op
    if op in ("&&", "||"):
        expect(cx, left, BOOL, expr.left.span, f"the left operand of `{op}`")
        expect(cx, right, BOOL, expr.right.span, f"the right operand of `{op}`")
        return BOOL
    if op == "/":
        return _divide(cx, expr, left, right)
    if not _same(cx, expr, left, right):
        return BOOL if op in ("==", "!=", "<", "<=", ">", ">=") else cx.fresh()
    if op in ("==", "!="):
        cx.unifier.require(left, Need("equal", "", (), expr.span))
        return BOOL
    kind, does = _SETS[op]
    ok = restrict(cx, left, kind, expr.left.span, does)
    if op in ("<", "<=", ">", ">="):
        return BOOL
    return left if ok else cx.fresh()


def _same(cx: Context, expr: ast.Binary, left: Term, right: Term) -> bool:
    """Both operands have one type; told with both labelled."""
    cx.unifier.where = expr.span
    try:
        cx.unifier.unify(left, right)
    except Mismatch:
        sh = Shower()
        shown_left, shown_right = sh.show(left), sh.show(right)
        for operand, t in ((expr.left, left), (expr.right, right)):
            if is_con(t, "Result") and not (is_con(left, "Result") and is_con(right, "Result")):
                cx.tell(
                    "E0203",
                    f"`{expr.op}` needs values, and this is a Result",
                    operand.span,
                    f"this is `{sh.show(t)}`",
                    help=result_help(t, sh),
                )
                return False
        cx.tell(
            "E0201",
            f"`{expr.op}` needs two operands of one type, not `{shown_left}` and `{shown_right}`",
            expr.op_span,
            "the operands differ",
            (
                (expr.left.span, f"this is `{shown_left}`"),
                (expr.right.span, f"this is `{shown_right}`"),
                *origins(left, expr.left.span, sh),
                *origins(right, expr.right.span, sh),
            ),
            help=_number_hint(expr.op, left, right, sh),
        )
        return False
    return True


def _number_hint(op: str, left: Term, right: Term, sh: Shower) -> str:
    if {head(left), head(right)} == {"int", "float"}:
        return "numbers are not converted silently: use `toFloat(…)`, or write a float literal such as `1.0`"
    if op == "*" and (head(left), head(right)) == ("string", "int"):
        return "repeat a text with `repeat(text, n)`"
    if "string" in (head(left), head(right)):
        return 'put values into text with `"${…}"` or `toString(…)`'
    return hint(right, left, sh)


def _divide(cx: Context, expr: ast.Binary, left: Term, right: Term) -> Term:
    """`/` is for floats."""
    for operand, t in ((expr.left, left), (expr.right, right)):
        if is_con(t, "int") or (isinstance(v := prune(t), TVar) and v.kind is not None and "float" not in v.kind):
            both = head(left) == head(right) == "int"
            cx.tell(
                "E0216",
                "`/` divides floats",
                operand.span,
                "this is an `int`",
                ((expr.op_span, "the division"),),
                help="use `intDiv(a, b)` for a whole quotient, or `toFloat(…)` on both sides"
                if both
                else "convert it with `toFloat(…)`, or write a float literal",
            )
            return FLOAT
        expect(cx, t, FLOAT, operand.span, "an operand of `/`")
    return FLOAT


def recover(cx: Context, expr: ast.Recover, env: Env, expected: Term | None) -> Term:
    t = cx.infer(expr.value, env)
    result = cx.fresh()
    cx.unifier.where = expr.value.span
    cx.unifier.require(t, Need("recover", "", (result,), expr.value.span))
    d = cx.infer(expr.default, env, result)
    shown = cx.shower().show(result)
    expect(cx, d, result, expr.default.span, "the default", ((expr.value.span, f"it stands for {an(shown)}"),))
    return result


def cannot_fail(e: ast.Expr) -> bool:
    """Literals, names and lambdas: evaluating them calls nothing."""
    return isinstance(
        e, (ast.IntLiteral, ast.FloatLiteral, ast.BoolLiteral, ast.UnitLiteral, ast.Reference, ast.Lambda)
    ) or (isinstance(e, ast.StringLiteral) and all(isinstance(p, str) for p in e.parts))


def if_(cx: Context, expr: ast.If, env: Env, expected: Term | None) -> Term:
    condition(cx, expr.condition, env)
    t = cx.infer(expr.then, env.inner(), expected)
    e = cx.infer(expr.otherwise, env.inner(), expected)
    shown = cx.shower().show(t)
    same = expect(
        cx, e, t, tail_span(expr.otherwise), "this branch", ((tail_span(expr.then), f"the other is `{shown}`"),)
    )
    return t if same else cx.fresh()


def condition(cx: Context, expr: ast.Expr, env: Env) -> None:
    expect(cx, cx.infer(expr, env), BOOL, expr.span, "the condition")


def tail_span(e: ast.Expr) -> Span:
    """Where the value of an expression is written."""
    while isinstance(e, ast.Block):
        e = e.result
    return e.span
