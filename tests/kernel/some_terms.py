"""Sums [ROWS, COLUMNS] over DEPTH products of which a condition adds only some, and of which terms they are then."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.kernel.ir import BOOL, Node, const, index, select
from tests.kernel.products import add, checked, div, f, get, mod, mul, u

ROWS, DEPTH, COLUMNS = 9, 6, 11
ROW, COLUMN = div(index(), u(2)), mod(index(), u(2))


def left(k: Node) -> Node:
    return get(0, add(mul(ROW, u(1)), k))


def right(k: Node) -> Node:
    return get(1, add(mul(k, u(2)), COLUMN))


def times(k: Node) -> Node:
    return f("fmul", left(k), right(k))


def sub(a: Node, b: Node) -> Node:
    return checked("sub", a, b)


def less(a: Node, b: Node) -> Node:
    return Node("lt", BOOL, (a, b))


def at_most(a: Node, b: Node) -> Node:
    return Node("le", BOOL, (a, b))


def negation(a: Node) -> Node:
    return Node("bnot", BOOL, (a,))


def both(a: Node, b: Node) -> Node:
    return Node("band", BOOL, (a, b))


def either(a: Node, b: Node) -> Node:
    return Node("bor", BOOL, (a, b))


Ranged = tuple[Callable[[Node], Node], Callable[[int, int], bool], tuple[int, int, int, int, int | None]]

RANGES: dict[str, Ranged] = {
    # the condition, what it says of (row, k), and: first, row_first, terms, row_terms, most
    "from the row on": (lambda k: at_most(ROW, k), lambda r, k: r <= k, (0, 1, 6, 0, None)),
    "behind the row": (lambda k: less(ROW, k), lambda r, k: r < k, (1, 1, 6, 0, None)),
    "from before the row": (lambda k: at_most(sub(ROW, const(2)), k), lambda r, k: r - 2 <= k, (-2, 1, 6, 0, None)),
    "to the row": (lambda k: at_most(k, ROW), lambda r, k: k <= r, (0, 0, 1, 1, 6)),
    "to before the row": (lambda k: less(add(k, const(3)), ROW), lambda r, k: k + 3 < r, (0, 0, -3, 1, None)),
    "backwards": (lambda k: less(add(k, ROW), const(7)), lambda r, k: k + r < 7, (0, 0, 7, -1, 6)),
    "from later to earlier": (lambda k: at_most(const(4), add(k, ROW)), lambda r, k: k + r >= 4, (4, -1, 6, 0, None)),
    "by a constant": (lambda k: less(const(1), k), lambda r, k: k > 1, (2, 0, 6, 0, None)),
    "twice, to the even": (
        lambda k: at_most(mul(k, const(2)), add(mul(ROW, const(2)), const(1))),
        lambda r, k: 2 * k <= 2 * r + 1,
        (0, 0, 1, 1, 6),
    ),
    "twice, from the odd": (
        lambda k: less(mul(ROW, const(2)), add(mul(k, const(2)), const(-2))),
        lambda r, k: 2 * r < 2 * k - 2,
        (2, 1, 6, 0, None),
    ),
    "three times as steep": (lambda k: at_most(mul(ROW, const(3)), k), lambda r, k: 3 * r <= k, (0, 3, 6, 0, None)),
    "a band": (
        lambda k: both(at_most(ROW, add(k, const(1))), less(k, add(ROW, const(2)))),
        lambda r, k: r - 1 <= k < r + 2,
        (-1, 1, 2, 1, 6),
    ),
    "a band, one comparison after the other": (
        lambda k: select(at_most(ROW, k), less(k, const(5)), const(False)),
        lambda r, k: r <= k < 5,
        (0, 1, 5, 0, None),
    ),
    "not outside of a band": (
        lambda k: negation(either(less(k, ROW), negation(less(k, const(5))))),
        lambda r, k: r <= k < 5,
        (0, 1, 5, 0, None),
    ),
    "what is always so": (
        lambda k: both(at_most(ROW, k), less(k, const(6))),
        lambda r, k: r <= k,
        (0, 1, 6, 0, None),
    ),
    "the narrower of two": (
        lambda k: both(at_most(ROW, k), less(ROW, k)),
        lambda r, k: r < k,
        (1, 1, 6, 0, None),
    ),
}

WAYS: dict[str, Callable[[Node, Node, Node], Node]] = {
    "kept or added": lambda c, acc, x: select(c, f("fadd", acc, x), acc),
    "added or kept": lambda c, acc, x: select(negation(c), acc, f("fadd", x, acc)),
    "a zero": lambda c, acc, x: f("fadd", acc, select(c, x, const(0.0))),
    "a zero first": lambda c, acc, x: f("fadd", select(negation(c), const(0.0), x), acc),
    "a minus zero": lambda c, acc, x: f("fadd", acc, select(c, x, const(-0.0))),
}


def guarded(condition: Callable[[Node], Node]) -> Callable[[Node, Node], Node]:
    return lambda acc, k: select(condition(k), f("fadd", acc, times(k)), acc)
