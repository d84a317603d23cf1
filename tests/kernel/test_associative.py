"""Which folds and scans may take their terms in any order (N15), and that others are left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from osprey_py.conformance.by_hand import at, op, running, total
from osprey_py.kernel.associative import IDENTITY, count, reduction
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    Bound,
    Kernel,
    Node,
    Site,
    Ty,
    const,
    fold,
    index,
    length,
    load,
    select,
    uniform,
    var,
)
from osprey_py.kernel.scalars import SCALARS
from osprey_py.kernel.show import show_node
from osprey_py.source.span import NO_SPAN

Step = Callable[[Node, Node], Node]
"""The next value from what there is and the term's place."""


def folded(step: Step, ty: Ty = INT, init: Node | None = None, terms: Node | None = None) -> Kernel:
    k, acc = Bound(INT, "k"), Bound(ty, "acc")
    start = uniform(0, ty) if init is None else init
    nodes = fold(length(0) if terms is None else terms, k, (acc,), (start,), (step(var(acc), var(k)),))
    return Kernel((ty,), (ty,), nodes[0], name="folded")


def _ordered(first: bool, a: Node, b: Node) -> tuple[Node, Node]:
    return (a, b) if first else (b, a)


@pytest.mark.parametrize(
    ("name", "ty"),
    [("add", INT), ("imin", INT), ("imax", INT), ("fmin", FLOAT), ("fmax", FLOAT), ("and", INT), ("or", INT)],
)
def test_what_is_exact_is_seen_on_either_side(name: str, ty: Ty) -> None:
    """N15."""
    for first in (True, False):

        def step(a: Node, k: Node, first: bool = first) -> Node:
            return op(name, *_ordered(first, a, load(0, ty, k)))

        found = reduction(folded(step, ty))
        assert found is not None and found.operation == name
        assert show_node(found.term.result) == show_node(load(0, ty, index()))
        assert found.term.acc is None and found.terms is not None and found.terms.op == "length"


def test_and_and_or_as_programs_write_them() -> None:
    """acc && x is a choice."""
    both = reduction(folded(lambda a, k: select(a, load(0, BOOL, k), const(False)), BOOL))
    either = reduction(folded(lambda a, k: select(a, const(True), load(0, BOOL, k)), BOOL))
    assert (both and both.operation, either and either.operation) == ("band", "bor")


def test_what_is_left_out_changes_nothing() -> None:
    """p(x) ? n + 1 : n"""
    for first in (True, False):

        def step(a: Node, k: Node, first: bool = first) -> Node:
            return select(op("lt", const(0), load(0, INT, k)), *_ordered(first, op("add", a, const(1)), a))

        found = reduction(folded(step))
        assert found is not None and found.operation == "add" and found.term.result.op == "select"
        assert {n.attr for n in found.term.result.args if n.op == "const"} == {0, 1}


@pytest.mark.parametrize(
    "kernel",
    [
        total(FLOAT),
        running(FLOAT),
        folded(lambda a, k: op("fmul", a, load(0, FLOAT, k)), FLOAT),
        folded(lambda a, k: op("sub", a, load(0, INT, k))),
        folded(lambda a, k: op("mul", a, load(0, INT, k))),
        folded(lambda a, k: op("imax", a, op("add", a, load(0, INT, k)))),
        folded(lambda a, k: op("imax", a, a)),
        folded(lambda a, k: select(op("lt", load(0, INT, a), load(0, INT, k)), k, a)),
        folded(lambda a, k: select(op("lt", a, const(5)), op("add", a, const(1)), a)),
        folded(lambda a, k: op("add", a, load(0, INT, op("add", k, index())))),
        folded(lambda a, k: op("add", a, const(1)), init=op("add", uniform(0, INT), const(1))),
        folded(lambda a, k: op("add", a, const(1)), terms=op("add", length(0), const(1))),
        Kernel((INT,), (), at(0, INT)),
        Kernel((INT,), (), op("add", total(INT).result, const(1))),
    ],
    ids=lambda k: show_node(k.result)[:40] if isinstance(k, Kernel) else None,
)
def test_what_counts_in_its_order_is_left_alone(kernel: Kernel) -> None:
    """N14: floats added, differences, terms that read what there is, what stands in more than a fold."""
    assert reduction(kernel) is None


def test_two_that_read_each_other_are_left_alone() -> None:
    k, a, b = Bound(INT, "k"), Bound(INT, "a"), Bound(INT, "b")
    pair = fold(length(0), k, (a, b), (const(0), const(1)), (op("add", var(a), const(1)), op("add", var(b), var(a))))
    assert reduction(Kernel((INT,), (), pair[0])) is None


def test_a_scan_has_one_term_an_element() -> None:
    found = reduction(running(INT))
    assert found is not None and found.terms is None
    assert (found.term.acc, found.term.init, found.term.result.op) == (None, None, "load")


def test_how_many_terms() -> None:
    assert count(const(7), [], ()) == 7
    assert count(length(1), [3, 4], ()) == 4
    assert count(uniform(1, INT), [], (2.5, 9)) == 9


@pytest.mark.parametrize("name", IDENTITY)
def test_the_identity_changes_nothing(name: str) -> None:
    values: dict[Ty, tuple[int | float | bool, ...]] = {
        INT: (0, 1, -1, (1 << 63) - 1, -(1 << 63)),
        FLOAT: (0.0, -0.0, 1.5, float("inf"), -float("inf")),
        BOOL: (False, True),
    }
    ty = INT if name in ("add", "imin", "imax", "and", "or") else FLOAT if name.startswith("f") else BOOL
    site = (Site(NO_SPAN),) if OPS[name].checked else ()
    for value in values[ty]:
        for pair in ((value, IDENTITY[name]), (IDENTITY[name], value)):
            assert repr(SCALARS[name](*pair, *site)) == repr(value)
