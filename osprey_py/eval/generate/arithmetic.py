"""Operators: int checked inline, float as IEEE has it, and a look at the values where the type is a variable
(spec/evaluation V3)."""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.check.types import BOOL, FLOAT, INT, STRING, Type
from osprey_py.eval.arithmetic import MAX, MIN
from osprey_py.eval.body import Body
from osprey_py.eval.emit import P
from osprey_py.eval.generate.base import VALUE, nest, operands, value
from osprey_py.eval.generate.expressions import constant
from osprey_py.source.span import Span

SCALARS: tuple[Type, ...] = (INT, FLOAT, STRING, BOOL)
_DYNAMIC = {"+": "_add", "-": "_subtract", "*": "_multiply", "/": "_divide", "%": "_modulo"}


def _binary(b: Body, e: c.Binary) -> P:
    ps = operands(b, (e.left, e.right))
    left, right = ps
    t, op, depth = b.type_of(e.left), e.op, nest(ps)
    if op in ("==", "!="):
        if t in SCALARS:
            return P(f"({left.text} {op} {right.text})", left.stable and right.stable, depth)
        test = f"_equal({left.text}, {right.text})"
        return P(test if op == "==" else f"(not {test})", nest=depth + 1)
    if op in ("<", "<=", ">", ">="):
        return P(f"({left.text} {op} {right.text})", left.stable and right.stable, depth)
    if t == STRING or (t == FLOAT and op in ("+", "-", "*")):
        return P(f"({left.text} {op} {right.text})", nest=depth)
    if t == FLOAT and op == "/":
        return _float_divide(b, left, right, e, depth)
    if t == INT:
        return _int(b, op, left, right, e, depth)
    name = "_float_remainder" if t == FLOAT else _DYNAMIC[op]
    return P(f"{name}({left.text}, {right.text}, {b.unit.span(e.span)})", nest=depth)


def _float_divide(b: Body, left: P, right: P, e: c.Binary, depth: int) -> P:
    if isinstance(e.right, c.Literal) and e.right.value != 0.0:
        return P(f"({left.text} / {right.text})", nest=depth)
    fail = f"_by_zero({b.unit.span(e.span)})"
    a, d, tests = left.text, right.text, []
    if not left.stable:
        a = b.lines.temp()
        tests.append(f"({a} := {left.text}) is not None")
    if right.stable:
        tests.append(f"{d} != 0.0")
    else:
        d = b.lines.temp()
        tests.append(f"({d} := {right.text}) != 0.0")
    return P(f"({a} / {d} if {' and '.join(tests)} else {fail})", nest=depth + 1)


def _int(b: Body, op: str, left: P, right: P, e: c.Binary, depth: int) -> P:
    if op == "%":
        return truncating(b, "%", left, right, e.right, e.span, depth)
    known = e.right.value if isinstance(e.right, c.Literal) and type(e.right.value) is int else None
    if known is None and op == "+" and isinstance(e.left, c.Literal) and type(e.left.value) is int:
        known = e.left.value
    return range_checked(b, f"{left.text} {op} {right.text}", op, known, e.span, depth)


def range_checked(b: Body, text: str, op: str, known: int | None, span: Span, depth: int) -> P:
    """`text` when it is an int64. known: an operand's value, which may leave one bound to test."""
    t = b.lines.temp()
    grows = known is not None and ((op == "+" and known >= 0) or (op == "-" and known < 0))
    shrinks = known is not None and ((op == "-" and known >= 0) or (op == "+" and known < 0))
    if grows:
        test = f"({t} := {text}) <= {MAX}"
    elif shrinks:
        test = f"({t} := {text}) >= {MIN}"
    else:
        test = f"{MIN} <= ({t} := {text}) <= {MAX}"
    return P(f"({t} if {test} else _overflow({b.unit.span(span)}))", nest=depth + 1)


def truncating(b: Body, op: str, left: P, right: P, divisor: c.Expr, span: Span, depth: int) -> P:
    """`%` and intDiv (op `//`) on ints: Python's own where both are positive."""
    slow = "_remainder" if op == "%" else "_int_div"
    t = b.lines.temp()
    if isinstance(divisor, c.Literal) and isinstance(divisor.value, int) and divisor.value > 0:
        k = divisor.value
        return P(f"({t} {op} {k} if ({t} := {left.text}) >= 0 else -(-{t} {op} {k}))", nest=depth + 1)
    u = b.lines.temp()
    tests = f"(({t} := {left.text}) >= 0) & (({u} := {right.text}) > 0)"
    return P(f"({t} {op} {u} if {tests} else {slow}({t}, {u}, {b.unit.span(span)}))", nest=depth + 2)


def _unary(b: Body, e: c.Unary) -> P:
    if e.op == "-" and isinstance(e.operand, c.Literal) and e.operand.value != -(2**63):
        literal = e.operand.value
        assert isinstance(literal, int | float)
        return constant(-literal)
    p = value(b, e.operand)
    if e.op == "!":
        return P(f"(not {p.text})", p.stable, p.nest + 1)
    t = b.type_of(e)
    if t == FLOAT:
        return P(f"(-{p.text})", nest=p.nest + 1)
    if t == INT:
        u = b.lines.temp()
        return P(f"(-{u} if ({u} := {p.text}) != {MIN} else _overflow({b.unit.span(e.span)}))", nest=p.nest + 2)
    return P(f"_negate({p.text}, {b.unit.span(e.span)})", nest=p.nest + 1)


VALUE.update({c.Binary: _binary, c.Unary: _unary})
