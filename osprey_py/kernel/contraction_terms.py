"""Which terms of a fold's sum are added, where a condition decides it.

Comes in: a step of a fold, the facts of a launch. Goes out: what the step adds, with the conditions under which it does;
and of conditions on the fold's index, a `Range`: the first term of each sum and the one behind its last, as sums of digits
of the launch index (spec/contractions, C7).

A term that is not added is not a zero that is added: `acc` and `acc + 0.0` differ where acc is -0.0. A sum that began
with anything else never is (two numbers give -0.0 only when both are), so there adding 0.0 changes nothing; adding -0.0
never does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import copysign

from osprey_py.kernel.contraction_affine import Affine, Digit, Facts
from osprey_py.kernel.ir import Bound, Node

FAR = 2**62
"""A backend counts from a bound to another one in 64 bits."""

Condition = tuple[Node, bool]
"""A boolean, and what it has to be."""


@dataclass(frozen=True, slots=True)
class Range:
    """A sum has the terms first … end-1 of 0 … most-1; most None: end is never greater than there are terms."""

    first: Affine
    end: Affine
    most: int | None


def chosen(node: Node, facts: Facts) -> Node:
    """The node that a select is, where its condition is known."""
    while node.op in ("select", "rare"):
        known = facts.values[node.args[0]]
        if not isinstance(known, bool):
            break
        node = node.args[1 if known else 2]
    return node


def is_minus_zero(x: float) -> bool:
    return x == 0.0 and copysign(1.0, x) < 0.0


def added(step: Node, acc: Bound, keeps: bool, facts: Facts) -> tuple[Node, tuple[Condition, ...]] | None:
    """x and the conditions under which it is added, where a step makes `acc + x` or leaves acc as it is.
    keeps: whether acc + 0.0 is acc."""

    def is_acc(node: Node) -> bool:
        return node.op == "var" and node.attr is acc

    def is_nothing(node: Node) -> bool:
        x = node.attr
        return node.op == "const" and isinstance(x, float) and x == 0.0 and (keeps or is_minus_zero(x))

    step, outside = _inner(step, is_acc, facts)
    if step.op != "fadd":
        return None
    a, b = (chosen(x, facts) for x in step.args)
    if is_acc(a) == is_acc(b):
        return None
    term, inside = _inner(b if is_acc(a) else a, is_nothing, facts)
    return term, (*outside, *inside)


def _inner(node: Node, is_nothing: Callable[[Node], bool], facts: Facts) -> tuple[Node, tuple[Condition, ...]]:
    """What a node is where it is not nothing, and when that is."""
    conditions: list[Condition] = []
    node = chosen(node, facts)
    while node.op in ("select", "rare"):
        condition, a, b = node.args
        if is_nothing(chosen(b, facts)):
            conditions.append((condition, True))
            node = chosen(a, facts)
        elif is_nothing(chosen(a, facts)):
            conditions.append((condition, False))
            node = chosen(b, facts)
        else:
            break
    return node, tuple(conditions)


def narrowed(conditions: tuple[Condition, ...], terms: Affine, depth: tuple[Digit, ...], facts: Facts) -> Range | None:
    """The terms for which all conditions hold, of a sum of so many; None where they are no range that moves in equal
    steps. depth: the digits of the fold's index."""
    comparisons: list[Affine] = []
    for condition in conditions:
        found = _comparisons(*condition, facts)
        if found is None:
            return None
        comparisons += found
    firsts, ends = [], []
    for below in comparisons:
        if len(depth) != 1:
            return None
        moved = dict(below.terms)
        step = moved.pop(depth[0], 0)
        by = -step if step < 0 else step
        if not by or any(d.source is not None or c % by for d, c in moved.items()):
            return None
        # rest + step * k <= 0
        if step < 0:
            firsts.append(Affine(-(-below.constant // by), tuple((d, c // by) for d, c in moved.items())))
        else:
            ends.append(Affine(-below.constant // by + 1, tuple((d, -c // by) for d, c in moved.items())))
    # Those that never decide anything are left out.
    first = _extreme(Affine(0), [x for x in firsts if x.high > 0], 1)
    if first is None or any(x.low < -FAR or x.high > FAR for x in (*firsts, *ends)):
        return None
    ends = [x for x in ends if x.plus(terms, -1).low < 0]
    if not ends:
        return Range(first, terms, None)
    end = _extreme(None, ends, -1)
    if end is None:
        return None
    if end.plus(terms, -1).high <= 0:
        return Range(first, end, None)
    return None if terms.terms else Range(first, end, terms.constant)


def _extreme(none: Affine | None, found: list[Affine], sign: int) -> Affine | None:
    """The one that is nowhere less (sign 1) or nowhere greater (sign -1) than the others; None where there is no such."""
    if not found:
        return none
    for x in found:
        if all(x.plus(y, -1).times(sign).low >= 0 for y in found):
            return x
    return None


def _comparisons(condition: Node, holds: bool, facts: Facts) -> list[Affine] | None:
    """Sums of digits of which all are at most 0 exactly where a condition is what it has to be."""
    if facts.values[condition] is holds:
        return []
    args = condition.args
    match condition.op:
        case "bnot":
            return _comparisons(args[0], not holds, facts)
        case "band" if holds:
            return _all((args[0], True), (args[1], True), facts)
        case "bor" if not holds:
            return _all((args[0], False), (args[1], False), facts)
        case "select" | "rare" if facts.values[args[2]] is (not holds):
            return _all((args[0], True), (args[1], holds), facts)
        case "select" | "rare" if facts.values[args[1]] is (not holds):
            return _all((args[0], False), (args[2], holds), facts)
        case "lt" | "le":
            a, b = (facts.values[x] for x in args)
            if not isinstance(a, Affine) or not isinstance(b, Affine):
                return None
            # a < b is a - b + 1 <= 0, and its contrary b - a <= 0; of whole numbers.
            strict = condition.op == "lt"
            below = a.plus(b, -1) if holds else b.plus(a, -1)
            return [below.plus(Affine(int(strict == holds)))]
    return None


def _all(a: Condition, b: Condition, facts: Facts) -> list[Affine] | None:
    first, second = _comparisons(*a, facts), _comparisons(*b, facts)
    return None if first is None or second is None else first + second
