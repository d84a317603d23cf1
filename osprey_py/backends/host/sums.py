"""Sums of digits into code: what of an address changes in which loop.

Comes in: `affine` leaves (kernel/nest.py). Goes out: their values, built term by term, each term in the scope that
binds its digit, so that an address costs an addition in the inner loop and a load over neighbouring lanes is one
vector load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from osprey_py.backends.host.text import Scope, Value, lanes, literal
from osprey_py.kernel.ir import INT, Bound, Node
from osprey_py.kernel.nest import Sum, Term

if TYPE_CHECKING:
    from osprey_py.backends.host.expression import Expressions


def emit(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """The value of an `affine` leaf."""
    total = node.attr
    assert isinstance(total, Sum)
    base = first_lane(e, total, s)
    if width == 1:
        return base
    step = next(t for t in total.terms if e.lane_bits & e.placement.bit(t.digit))
    offsets = lanes(range(width))
    if step.multiple is not None:
        entry = e.arguments.entry
        multiple = entry.widen(e.arguments.number(step.multiple), width)
        offsets = remembered(
            entry, (step, width), lambda: entry.define(INT, width, f"mul {multiple.llvm} {multiple}, {offsets}")
        )
    wide = s.widen(base, width)
    return s.define(INT, width, f"add {wide.llvm} {wide}, {offsets}")


def first_lane(e: Expressions, total: Sum, s: Scope) -> Value:
    """The sum at the first lane, a scalar, built from the outermost digit inwards."""
    value = None if total.constant is None else e.arguments.number(total.constant)
    scope = e.arguments.entry
    done: tuple[Term, ...] = ()
    depth = {t: _binder(e, t.digit, s) for t in total.terms}
    for t in sorted(total.terms, key=lambda t: depth[t][0]):
        _, scope, digit = depth[t]
        done = (*done, t)
        value = _with(e, scope, total, done, value, digit)
    return literal(0) if value is None else value


def _with(e: Expressions, s: Scope, total: Sum, done: tuple[Term, ...], before: Value | None, digit: Value) -> Value:
    term = done[-1]

    def make() -> Value:
        product = digit
        if term.multiple is not None:
            product = s.define(INT, 1, f"mul i64 {e.arguments.number(term.multiple)}, {digit}")
        return product if before is None else s.define(INT, 1, f"add i64 {before}, {product}")

    return remembered(s, (total.constant, done), make)


def remembered(s: Scope, key: object, make: Callable[[], Value]) -> Value:
    """What `make` writes into the scope, once for each key."""
    known = s.sums.get(key)
    if known is None:
        known = s.sums[key] = make()
    return known


def _binder(e: Expressions, digit: Bound, s: Scope) -> tuple[int, Scope, Value]:
    """(depth, scope, value at the first lane) of the scope that binds a digit."""
    chain = []
    here: Scope | None = s
    while here is not None:
        chain.append(here)
        here = here.parent
    for k, scope in enumerate(chain):
        if digit in scope.variables:
            first = scope.first if e.lane_bits & e.placement.bit(digit) else None
            return len(chain) - k, scope, first or scope.variables[digit]
    raise KeyError(digit)


def neighbours(e: Expressions, at: Node) -> Sum | None:
    """The sum, if lanes that lie side by side read elements that lie side by side."""
    if at.op == "var" and isinstance(at.attr, Bound):
        total = Sum(None, (Term(at.attr, None),))
    elif isinstance(at.attr, Sum):
        total = at.attr
    else:
        return None
    steps = [t for t in total.terms if e.lane_bits & e.placement.bit(t.digit)]
    return total if len(steps) == 1 and steps[0].multiple is None and steps[0].digit is e.lane_digit else None
