"""The backward pass of a contraction is contractions, and one of an embedding is scattered (G7)."""

from __future__ import annotations

import pytest

from osprey_py.kernel.contraction import Contraction, candidates, match
from osprey_py.kernel.derive.derive import recipe
from osprey_py.kernel.derive.recipe import Dense, Given, Input, Made, Recipe, Ref, Scattered
from osprey_py.kernel.extract import matmul_kernel
from osprey_py.kernel.ir import FLOAT, INT, Kernel, index, inrange, load, select
from osprey_py.kernel.ir import const as constant
from osprey_py.kernel.passes import prepared
from tests.kernel.products import add, attention_scores, div, f, get, kernel, mix, mod, mul, total, u


def found(r: Recipe, lengths: tuple[int, ...], uniforms: tuple[float, ...], n: int) -> list[Contraction | None]:
    """The contraction that each launch of a recipe is."""

    def length(ref: Ref) -> int:
        match ref:
            case Input(k):
                return lengths[k]
            case Made(j):
                return r.makes[j].length
        return n

    out: list[Contraction | None] = []
    for m in r.makes:
        given = [uniforms[x.k] if isinstance(x, Given) else x for x in m.uniforms]
        matches = [match(c, list(map(length, m.inputs)), given, m.length) for c in candidates(prepared(m.kernel))]
        out.append(next((c for c in matches if c is not None), None))
    return out


def head() -> Kernel:
    """Scores [rows, vocabulary] of y [rows, width] by the embedding [vocabulary, width]; uniforms (width, vocabulary)."""
    i = index()
    row, token = mul(div(i, u(1)), u(0)), mul(mod(i, u(1)), u(0))
    return kernel(
        total(u(0), lambda acc, c: f("fadd", acc, f("fmul", get(0, add(row, c)), get(1, add(token, c))))), 2, 2
    )


CASES = {
    # b̄ [k,n] over m, then ā [m,k] over n
    "matmul": (matmul_kernel(), (35, 77), (5, 7, 11), 55, [(7, 11, 5), (5, 7, 11)]),
    "scores": (attention_scores(), (60, 60), (5, 5, 4, 12, 2.0), 75, [None, (5, 4, 5), (5, 4, 5)]),
    "mix": (mix(False), (75, 60), (5, 5, 4, 12), 60, [(5, 4, 5), (5, 5, 4)]),
    # Values: of each row only the later queries; weights: all products, then which of them are there.
    "causal mix": (mix(True), (75, 60), (5, 5, 4, 12), 60, [(5, 4, 5), (5, 5, 4)]),
    "tied head": (head(), (40, 240), (8, 30), 150, [(30, 8, 5), (5, 8, 30)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_product_s_gradients_are_products(name: str) -> None:
    """G7, G3: rows, columns and terms of the two sums; the scores' division by a root is a launch before them."""
    k, lengths, uniforms, n, want = CASES[name]
    r = recipe("map", k, (0, 1), lengths, uniforms, n)
    assert [c and (c.m, c.n, c.terms) for c in found(r, lengths, uniforms, n)] == want
    assert [slot for slot, _ in r.subtotals] == [1, 0]
    assert all(isinstance(s, Dense) and s.exact for _, s in r.subtotals)


def test_the_gradient_by_the_values_of_a_causal_mix_begins_later_from_row_to_row() -> None:
    """G7, C7: two queries before the last of four keys: key c was seen by the queries from c - 2 on."""
    lengths, uniforms, n = (3 * 2 * 4, 4 * 12), (2, 4, 4, 12), 2 * 12
    values, weights = found(recipe("map", mix(True), (0, 1), lengths, uniforms, n), lengths, uniforms, n)
    assert values is not None and weights is not None
    assert (values.m, values.n, values.terms, values.row_terms) == (4, 4, 2, 0)
    assert (values.first, values.row_first, [b.extent for b in values.batch]) == (-2, 1, [3])
    assert not weights.cut_short and weights.epilogue


def test_an_embedding_is_scattered() -> None:
    """A row that the data chooses: contributions with the element that each belongs to."""
    i = index()
    width = u(0)
    at = div(i, width)
    token = select(inrange(1, at), load(1, INT, at), constant(0))
    k = Kernel((FLOAT, INT), (INT,), get(0, add(mul(token, width), mod(i, width))))
    r = recipe("map", k, (0,), (80, 5), (8,), 40)
    ((slot, scattered),) = r.subtotals
    assert slot == 0 and isinstance(scattered, Scattered)
    assert len(r.makes) == 2 - (not isinstance(scattered.values, Made))


def test_one_kernel_for_all_lengths() -> None:
    """Plans are kept by their kernels: other lengths of one structure share them, and differ in numbers."""
    first = recipe("map", matmul_kernel(), (0, 1), (35, 77), (5, 7, 11), 55)
    again = recipe("map", matmul_kernel(), (0, 1), (35, 77), (5, 7, 11), 55)
    other = recipe("map", matmul_kernel(), (0, 1), (12, 20), (3, 4, 5), 15)
    assert first is again
    assert [m.kernel for m in first.makes] == [m.kernel for m in other.makes]
    assert [m.uniforms for m in first.makes] != [m.uniforms for m in other.makes]


def test_what_is_read_in_place_needs_no_launch() -> None:
    """x + y: the adjoint itself is both subtotals."""
    k = Kernel((FLOAT, FLOAT), (), f("fadd", load(0, FLOAT, index()), load(1, FLOAT, index())))
    r = recipe("map", k, (0, 1), (6, 6), (), 6)
    assert not r.makes and len(r.subtotals) == 2
    # A longer slot has elements that nothing read.
    assert len(recipe("map", k, (0, 1), (6, 7), (), 6).makes) == 1


def test_a_slot_that_is_only_measured_is_not_kept() -> None:
    """exp(x) needs the result, not x."""
    k = Kernel((FLOAT,), (), f("exp", get(0, index())))
    (make,) = recipe("map", k, (0,), (6,), (), 6).makes
    assert Input(0) not in make.inputs
