"""Which folds are recognised as matrix products, and which must not be (spec/contractions)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from osprey_py.kernel.contraction import Contraction, Side, candidates, match
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    Kernel,
    Node,
    const,
    index,
    length,
    load,
    select,
    uniform,
    walk,
)
from tests.kernel.products import (
    SITE,
    add,
    attention_scores,
    checked,
    div,
    f,
    get,
    kernel,
    matmul,
    mix,
    mod,
    mul,
    total,
    u,
)
from tests.kernel.recognised import recognise, sums


def test_matmul() -> None:
    """C1: strides, extents and seed of gpuMatMul; nothing is left for an epilogue."""
    found = recognise(matmul(), (35, 77), (5, 7, 11), 55)
    assert found == Contraction(5, 11, 7, Side(0, 0, 7, 1), Side(1, 0, 1, 11), 11, 1, 0.0, (), 0, False, False)


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 4, 11])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_matmul_computes_the_product(m: int, k: int, n: int) -> None:
    """C1: at every extent, 1 included; a single output has no columns and is left to others."""
    found = recognise(matmul(), (m * k, k * n), (m, k, n), m * n)
    a, b = np.arange(1.0, m * k + 1), np.arange(2.0, k * n + 2)
    if m == n == 1:
        assert found is None
        return
    assert found is not None
    assert (sums(found, [a, b], m * n).reshape(m, n) == a.reshape(m, k) @ b.reshape(k, n)).all()


def test_operands_in_any_order() -> None:
    """C1: load * load + acc, and acc + load * load with the operands exchanged."""
    base = recognise(matmul(), (35, 77), (5, 7, 11), 55)
    i = index()
    r, c = div(i, u(2)), mod(i, u(2))

    def left(k: Node) -> Node:
        return get(0, add(mul(r, u(1)), k))

    def right(k: Node) -> Node:
        return get(1, add(mul(k, u(2)), c))

    for body in (
        lambda acc, k: f("fadd", f("fmul", left(k), right(k)), acc),
        lambda acc, k: f("fadd", acc, f("fmul", right(k), left(k))),
    ):
        assert recognise(kernel(total(u(1), body)), (35, 77), (5, 7, 11), 55) == base


def test_attention_scores() -> None:
    """C1: heads are a batch, rows and columns are found, the quotient is the epilogue."""
    rows, cols, heads, size = 5, 9, 3, 4
    width = heads * size
    k = attention_scores()
    found = recognise(k, (rows * width, cols * width), (rows, cols, size, width, 2.0), heads * rows * cols)
    assert found is not None and found.epilogue
    assert (found.m, found.n, found.terms, [b.extent for b in found.batch]) == (rows, cols, size, [heads])
    rng = np.random.default_rng(0)
    q, ks = rng.integers(0, 9, rows * width) * 1.0, rng.integers(0, 9, cols * width) * 1.0
    heads_q = q.reshape(rows, heads, size).transpose(1, 0, 2)
    heads_k = ks.reshape(cols, heads, size).transpose(1, 2, 0)
    assert (sums(found, [q, ks], heads * rows * cols).reshape(heads, rows, cols) == heads_q @ heads_k).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 4])
def test_attention_mix(causal: bool, rows: int) -> None:
    """C1, C3: the mix of values, over all rows or over those so far: then each row has its own number of terms."""
    cols, heads, size = 6, 2, 5
    width = heads * size
    found = recognise(mix(causal), (heads * rows * cols, cols * width), (rows, cols, size, width), rows * width)
    assert found is not None and found.n == size and not found.epilogue
    assert found.output_column == 1
    rng = np.random.default_rng(1)
    p, v = rng.integers(1, 9, heads * rows * cols) * 1.0, rng.integers(1, 9, cols * width) * 1.0
    w = p.reshape(heads, rows, cols)
    if causal:
        w = np.tril(w, cols - rows)
        assert (found.m, found.row_terms) == (rows, int(rows > 1))
    wanted = (w @ v.reshape(cols, heads, size).transpose(1, 0, 2)).transpose(1, 0, 2).reshape(-1)
    assert (sums(found, [p, v], rows * width) == wanted).all()


def test_a_row_against_a_transposed_matrix() -> None:
    """C1: the tied head, one row: columns only."""
    t = index()
    k = kernel(total(u(0), lambda acc, c: f("fadd", acc, f("fmul", get(0, c), get(1, add(mul(t, u(0)), c))))), 2, 1)
    found = recognise(k, (7, 7 * 30), (7,), 30)
    assert found == Contraction(1, 30, 7, Side(0, 0, 0, 1), Side(1, 0, 7, 1), 0, 1, 0.0, (), 0, False, False)


def test_gradient_of_weights_and_transposed_output() -> None:
    """C1: x^T dy, and an output written column by column: the operands change sides so that columns are contiguous."""
    i = index()
    r, c = div(i, u(2)), mod(i, u(2))
    k = kernel(
        total(
            u(0), lambda acc, b: f("fadd", acc, f("fmul", get(0, add(mul(b, u(1)), r)), get(1, add(mul(b, u(2)), c))))
        )
    )
    found = recognise(k, (3 * 8, 3 * 9), (3, 8, 9), 72)
    assert found == Contraction(8, 9, 3, Side(0, 0, 1, 8), Side(1, 0, 1, 9), 9, 1, 0.0, (), 0, False, False)
    turned = kernel(
        total(
            u(0), lambda acc, b: f("fadd", acc, f("fmul", get(0, add(mul(b, u(1)), c)), get(1, add(mul(b, u(2)), r))))
        )
    )
    found = recognise(turned, (3 * 9, 3 * 8), (3, 9, 8), 72)
    assert found is None or found.right.slot == 0


def test_digits_that_move_as_one_are_one() -> None:
    """C1: batch and position of a [batch, time, width] activation are the rows of one matrix."""
    i = index()
    b, t, c = div(i, mul(u(0), u(2))), mod(div(i, u(2)), u(0)), mod(i, u(2))
    row = mul(add(mul(b, u(0)), t), u(1))
    k = kernel(total(u(1), lambda acc, d: f("fadd", acc, f("fmul", get(0, add(row, d)), get(1, add(mul(d, u(2)), c))))))
    found = recognise(k, (4 * 6 * 5, 5 * 8), (6, 5, 8), 4 * 6 * 8)
    assert found is not None
    assert (found.m, found.n, found.batch) == (24, 8, ())


def test_the_seed_and_constant_offsets_are_kept() -> None:
    """C1: a fold may begin anywhere, and operands may be parts of buffers."""
    k = kernel(
        total(
            const(5),
            lambda acc, d: f("fadd", acc, f("fmul", get(0, add(d, const(10))), get(1, add(mul(index(), const(5)), d)))),
            uniform(0, FLOAT),
        ),
        2,
        1,
    )
    found = recognise(Kernel(k.slots, (FLOAT,), k.result), (15, 100), (2.5,), 20)
    assert found is not None
    assert (found.seed, found.left.offset, found.terms) == (2.5, 10, 5)


ROW = div(index(), u(2))
COLUMN = mod(index(), u(2))
A = Callable[[Node], Node]


def left(k: Node) -> Node:
    return get(0, add(mul(ROW, u(1)), k))


def right(k: Node) -> Node:
    return get(1, add(mul(k, u(2)), COLUMN))


REFUSED: dict[str, Callable[[Node, Node], Node]] = {
    "a difference": lambda acc, k: f("fsub", acc, f("fmul", left(k), right(k))),
    "a quotient": lambda acc, k: f("fadd", acc, f("fdivi", left(k), right(k))),
    "a product that reads the sum": lambda acc, k: f("fadd", acc, f("fmul", f("fadd", left(k), acc), right(k))),
    "a sum that is scaled": lambda acc, k: f("fadd", f("fmul", acc, left(k)), f("fmul", left(k), right(k))),
    "a squared index": lambda acc, k: f("fadd", acc, f("fmul", get(0, mul(k, k)), right(k))),
    "an indirect index": lambda acc, k: f(
        "fadd", acc, f("fmul", get(0, Node("toint", INT, (right(k),), None, SITE)), right(k))
    ),
    "out of range": lambda acc, k: f("fadd", acc, f("fmul", get(0, add(mul(ROW, u(1)), add(k, const(1)))), right(k))),
    "negative": lambda acc, k: f("fadd", acc, f("fmul", get(0, checked("sub", k, const(1))), right(k))),
    "a guard on data": lambda acc, k: select(
        Node("lt", BOOL, (left(k), const(0.0))), acc, f("fadd", acc, f("fmul", left(k), right(k)))
    ),
    "an unknown remainder": lambda acc, k: f("fadd", acc, f("fmul", get(0, mod(mul(k, k), const(5))), right(k))),
    "a ragged cut": lambda acc, k: f("fadd", acc, f("fmul", get(0, div(index(), const(4))), right(k))),
    "a cut of the fold's index": lambda acc, k: f(
        "fadd", acc, f("fmul", get(0, add(mul(div(k, const(2)), const(3)), mod(k, const(2)))), right(k))
    ),
    "an overflow": lambda acc, k: f("fadd", acc, f("fmul", get(0, div(mul(k, const(2**62)), const(2**62))), right(k))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """C4: what is no sum of products of affine, sound reads runs as it is written."""
    k = kernel(total(u(1), REFUSED[name]))
    assert (
        recognise(k, (35 if name == "out of range" else 36, 6 * 11), (5, 6, 11), 55) is None or name == "out of range"
    )


def test_refused_out_of_range_at_the_last_element_only() -> None:
    """C4: one element too few is enough."""
    assert recognise(matmul(), (35, 77), (5, 7, 11), 55) is not None
    assert recognise(matmul(), (34, 77), (5, 7, 11), 55) is None
    assert recognise(matmul(), (35, 76), (5, 7, 11), 55) is None


def test_no_terms_and_unknown_lengths() -> None:
    """C4: an empty or negative fold, and one whose length is read from memory, are left alone."""
    assert recognise(matmul(), (0, 0), (5, 0, 11), 55) is None
    assert recognise(matmul(), (0, 0), (5, -3, 11), 55) is None
    counted = kernel(
        total(
            Node("toint", INT, (load(0, FLOAT, const(0)),), None, SITE),
            lambda acc, k: f("fadd", acc, f("fmul", get(0, k), get(1, add(mul(index(), const(3)), k)))),
        ),
        2,
        0,
    )
    assert recognise(counted, (10, 90), (), 30) is None


def test_lengths_are_read_from_slots() -> None:
    """C1: gpuLength of a buffer is as good as a captured number."""
    k = kernel(
        total(length(0), lambda acc, k: f("fadd", acc, f("fmul", get(0, k), get(1, add(mul(index(), length(0)), k))))),
        2,
        0,
    )
    found = recognise(k, (8, 80), (), 10)
    assert found is not None
    assert (found.m, found.n, found.terms, found.right.row) == (1, 10, 8, 8)


def test_the_epilogue_reads_the_sum_from_one_more_slot() -> None:
    """C5: bias and activation stay in the kernel; its fold is gone."""
    i = index()
    dot = matmul().result
    k = kernel(f("tanh", f("fadd", dot, get(2, mod(i, u(2))))), 3)
    (c,) = candidates(lower(k))
    assert len(c.epilogue.slots) == 4
    ops = [n.op for n in walk(c.epilogue.roots)]
    assert "fold" not in ops and "tanh" in ops
    assert [n.args[0].op for n in walk(c.epilogue.roots) if n.op == "load" and n.attr == 3] == ["index"]
    found = match(c, (35, 77, 11), (5, 7, 11), 55)
    assert found is not None and found.epilogue
