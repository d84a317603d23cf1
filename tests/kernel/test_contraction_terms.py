"""Sums of which a condition adds only some terms: which of them are contractions, and of which terms (spec/contractions,
C3, C7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from osprey_py.kernel.contraction import Contraction
from osprey_py.kernel.ir import BOOL, FLOAT, Kernel, Node, const, index, load, select, uniform
from tests.kernel.products import add, div, f, get, kernel, mod, mul, total, u
from tests.kernel.recognised import recognise, sums
from tests.kernel.some_terms import (
    COLUMN,
    COLUMNS,
    DEPTH,
    RANGES,
    ROW,
    ROWS,
    WAYS,
    at_most,
    both,
    either,
    guarded,
    left,
    less,
    negation,
    right,
    times,
)


def launched(k: Kernel) -> Contraction | None:
    return recognise(k, (ROWS * DEPTH, DEPTH * COLUMNS), (ROWS, DEPTH, COLUMNS), ROWS * COLUMNS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RANGES)
def test_terms_from_one_to_another(name: str, way: str) -> None:
    """C3, C7: where sums begin and end, and that these are the terms that the condition lets in."""
    condition, lets_in, wanted = RANGES[name]
    found = launched(kernel(total(u(1), lambda acc, k: WAYS[way](condition(k), acc, times(k)))))
    assert found is not None
    assert (found.first, found.row_first, found.terms, found.row_terms, found.most) == wanted
    assert (found.m, found.n, found.cut_short) == (ROWS, COLUMNS, name != "to before the row")
    rng = np.random.default_rng(1)
    a, b = rng.integers(1, 9, ROWS * DEPTH) * 1.0, rng.integers(1, 9, DEPTH * COLUMNS) * 1.0
    mask = np.array([[lets_in(r, k) for k in range(DEPTH)] for r in range(ROWS)])
    product = (a.reshape(ROWS, DEPTH) * mask) @ b.reshape(DEPTH, COLUMNS)
    assert (sums(found, [a, b], ROWS * COLUMNS) == product.reshape(-1)).all()


def test_by_batches_and_as_columns() -> None:
    """C3, C7: the condition may look at a batch; and at the output's fastest digit, which is then no column."""
    i = index()
    h, r, c = div(i, mul(u(0), u(2))), mod(div(i, u(2)), u(0)), mod(i, u(2))

    def step(acc: Node, k: Node) -> Node:
        x = f("fmul", get(0, add(mul(r, u(1)), k)), get(1, add(mul(k, u(2)), c)))
        return select(at_most(add(mul(h, const(2)), r), k), f("fadd", acc, x), acc)

    lengths, uniforms = (ROWS * DEPTH, DEPTH * COLUMNS), (ROWS, DEPTH, COLUMNS)
    found = recognise(kernel(total(u(1), step)), lengths, uniforms, 3 * ROWS * COLUMNS)
    assert found is not None
    assert (found.first, found.row_first, [(b.extent, b.first, b.terms) for b in found.batch]) == (0, 1, [(3, 2, 0)])
    # Rows that are one matrix to the operands are not one to where their sums begin.
    blocks = launched(kernel(total(u(1), guarded(lambda k: at_most(mod(ROW, const(3)), k)))))
    assert blocks is not None
    assert (blocks.m, blocks.row_first, [(b.extent, b.first) for b in blocks.batch]) == (3, 1, [(3, 0)])
    turned = launched(kernel(total(u(1), lambda acc, k: select(less(k, COLUMN), f("fadd", acc, times(k)), acc))))
    assert turned is not None
    assert (turned.m, turned.n, turned.output_row, turned.output_column) == (COLUMNS, ROWS, 1, COLUMNS)
    assert (turned.terms, turned.row_terms, turned.most) == (0, 1, DEPTH)


def test_the_derived_gradient_of_a_causal_mix() -> None:
    """C7: attention's values: row c of the gradient begins with the first query that sees it."""
    i = index()
    rows, size = u(0), u(1)
    c, d = div(i, size), mod(i, size)

    def step(acc: Node, r: Node) -> Node:
        seen = less(c, add(r, const(1)))
        x = f("fmul", get(0, add(mul(r, size), d)), get(1, add(mul(r, rows), c)))
        return f("fadd", acc, select(seen, x, const(0.0)))

    found = recognise(kernel(total(rows, step)), (8 * 5, 8 * 8), (8, 5, 0), 8 * 5)
    assert found is not None
    assert (found.m, found.n, found.terms, found.first, found.row_first) == (8, 5, 8, 0, 1)
    assert (found.left.slot, found.left.row, found.left.depth) == (1, 1, 8)


NEAR: dict[str, Callable[[Node, Node], Node]] = {
    "a zero that is multiplied": lambda acc, k: f(
        "fadd", acc, f("fmul", select(at_most(ROW, k), left(k), const(0.0)), right(k))
    ),
    "a one that is added": lambda acc, k: f("fadd", acc, select(at_most(ROW, k), times(k), const(1.0))),
    "begun again": lambda acc, k: select(at_most(ROW, k), f("fadd", acc, times(k)), const(0.0)),
    "another sum": lambda acc, k: select(
        at_most(ROW, k), f("fadd", acc, times(k)), f("fadd", acc, f("fmul", times(k), times(k)))
    ),
    "decided by data": guarded(lambda k: less(left(k), const(0.0))),
    "decided by the sum": lambda acc, k: select(less(acc, const(9.0)), f("fadd", acc, times(k)), acc),
    "all terms but one": guarded(lambda k: negation(Node("eq", BOOL, (k, ROW)))),
    "outside of a band": guarded(lambda k: either(less(k, ROW), less(add(ROW, const(2)), k))),
    "not in a band": guarded(lambda k: negation(both(at_most(ROW, k), less(k, const(4))))),
    "half as steep": guarded(lambda k: at_most(ROW, mul(k, const(2)))),
    "bent": guarded(lambda k: at_most(mul(ROW, ROW), k)),
    "every other term": guarded(lambda k: Node("eq", BOOL, (mod(k, const(2)), const(0)))),
    "by rows alone": guarded(lambda k: less(ROW, const(3))),
    "by rows and columns": guarded(lambda k: less(k, add(ROW, COLUMN))),
    "two beginnings that cross": guarded(lambda k: both(at_most(ROW, k), at_most(const(2), k))),
    "two ends that cross": guarded(lambda k: both(less(k, ROW), less(k, const(3)))),
    "never": guarded(lambda k: less(k, const(0))),
    "far away": guarded(lambda k: at_most(mul(ROW, const(3 * 2**58)), k)),
}


@pytest.mark.parametrize("name", NEAR)
def test_near_misses(name: str) -> None:
    """C4, C7: no other condition, and nothing but a term left out."""
    assert launched(kernel(total(u(1), lambda acc, k: guarded(lambda k: at_most(ROW, k))(acc, k)))) is not None
    assert launched(kernel(total(u(1), NEAR[name]))) is None


def test_a_growing_fold_may_not_be_cut_twice() -> None:
    """C7: of a fold that ends at the row, a condition may give the beginning, or an end that is always before."""
    lengths, n = (DEPTH * DEPTH, DEPTH * COLUMNS), DEPTH * COLUMNS
    for condition, wanted in {
        "from one on": (lambda k: at_most(const(1), k), (1, 0, 1, 1, None)),
        "two before the row": (lambda k: less(add(k, const(2)), ROW), (0, 0, -2, 1, None)),
        "to three": (lambda k: less(k, const(3)), None),
    }.values():
        c = recognise(kernel(total(add(ROW, const(1)), guarded(condition))), lengths, (DEPTH, DEPTH, COLUMNS), n)
        assert (None if c is None else (c.first, c.row_first, c.terms, c.row_terms, c.most)) == wanted


@pytest.mark.parametrize(
    ("seed", "zero", "caught"),
    [
        (const(0.0), 0.0, True),
        (const(float("nan")), 0.0, True),
        (const(-0.0), 0.0, False),
        (const(-0.0), -0.0, True),
        (uniform(3, FLOAT), 0.0, False),
        (uniform(3, FLOAT), -0.0, True),
        (f("fneg", load(0, FLOAT, const(0))), 0.0, False),
        (f("fneg", load(0, FLOAT, const(0))), -0.0, True),
    ],
)
def test_a_zero_that_is_added_to_minus_zero_counts(seed: Node, zero: float, caught: bool) -> None:
    """C7: -0.0 + 0.0 is 0.0; and what a sum begins with may be that, where it is captured or computed."""
    body = total(u(1), lambda acc, k: f("fadd", acc, select(at_most(ROW, k), times(k), const(zero))), seed)
    k = Kernel((FLOAT, FLOAT), (*kernel(body).uniforms, FLOAT), body)
    for captured in (0.0, -0.0):
        found = recognise(k, (ROWS * DEPTH, DEPTH * COLUMNS), (ROWS, DEPTH, COLUMNS, captured), ROWS * COLUMNS)
        assert (found is not None) == caught
