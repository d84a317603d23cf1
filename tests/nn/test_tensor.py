"""stdlib/tensor: what its functions mean, and that they cost nothing: the host makes the same of a kernel written with
them as of one written by hand."""

from __future__ import annotations

import pytest

from tests.nn.support import launched, output, outputs

DATA = """
import tensor::{at, at2, at3, at4, intAt, vector, matrix, tensor3, tensor4, sumOver, maxOver, rowSums, columnSums}
import tensor::{rowMaxima, transpose, columns, timesTransposed, total, add}
fn get(b: GpuBuffer<float>, i: int) -> float = gpuGet(b, i) ?: 0.0
let rows = 6
let inner = 8
let cols = 5
let a = toGpu(range(0, 240) |> map(fn(i) => toFloat(i * 7 % 11) * 0.3))
let b = toGpu(range(0, 240) |> map(fn(i) => toFloat(i * 5 % 13) - 0.7))
let ids = toGpu([3, 1, 4, 1, 5, 2])
"""

PAIRS = {
    "a matrix": (
        "matrix(rows, cols, fn(r, c) => at2(a, cols, r, c) + at(b, c))",
        """gpuIota(rows * cols) |> gpuMap(fn(i) => {
            let r = intDiv(i, cols)
            let c = i % cols
            get(a, r * cols + c) + get(b, c)
        })""",
    ),
    "a product": (
        "matrix(rows, cols, fn(r, c) => sumOver(inner, fn(k) => at2(a, inner, r, k) * at2(b, cols, k, c)))",
        """gpuIota(rows * cols) |> gpuMap(fn(i) => {
            let r = intDiv(i, cols)
            let c = i % cols
            gpuFold(gpuIota(inner), 0.0, fn(sum, k) => sum + get(a, r * inner + k) * get(b, k * cols + c))
        })""",
    ),
    "a product with the transposed": (
        "timesTransposed(a, b, rows, inner, cols)",
        """gpuIota(rows * cols) |> gpuMap(fn(i) => {
            let r = intDiv(i, cols)
            let c = i % cols
            gpuFold(gpuIota(inner), 0.0, fn(sum, k) => sum + get(a, r * inner + k) * get(b, c * inner + k))
        })""",
    ),
    "products in batches": (
        """tensor3(2, rows, cols, fn(n, r, c) =>
            sumOver(inner, fn(k) => at3(a, rows, inner, n, r, k) * at3(b, inner, cols, n, k, c)) / 3.0)""",
        """gpuIota(2 * rows * cols) |> gpuMap(fn(i) => {
            let n = intDiv(i, rows * cols)
            let r = intDiv(i, cols) % rows
            let c = i % cols
            gpuFold(gpuIota(inner), 0.0, fn(sum, k) =>
                sum + get(a, (n * rows + r) * inner + k) * get(b, (n * inner + k) * cols + c)) / 3.0
        })""",
    ),
    "products of four dimensions": (
        """tensor4(2, 2, rows, cols, fn(n, h, r, c) =>
            sumOver(4, fn(k) => at3(a, rows, 8, n, r, h * 4 + k) * at3(b, cols, 8, n, c, h * 4 + k)))""",
        """gpuIota(2 * 2 * rows * cols) |> gpuMap(fn(i) => {
            let n = intDiv(i, 2 * rows * cols)
            let h = intDiv(i, rows * cols) % 2
            let r = intDiv(i, cols) % rows
            let c = i % cols
            gpuFold(gpuIota(4), 0.0, fn(sum, k) =>
                sum + get(a, (n * rows + r) * 8 + h * 4 + k) * get(b, (n * cols + c) * 8 + h * 4 + k))
        })""",
    ),
    "sums of rows": (
        "rowSums(a, rows, cols)",
        """gpuIota(rows) |> gpuMap(fn(r) =>
            gpuFold(gpuIota(cols), 0.0, fn(sum, c) => sum + get(a, r * cols + c)))""",
    ),
    "sums of columns": (
        "columnSums(a, rows, cols)",
        """gpuIota(cols) |> gpuMap(fn(c) =>
            gpuFold(gpuIota(rows), 0.0, fn(sum, r) => sum + get(a, r * cols + c)))""",
    ),
    "maxima of rows": (
        "rowMaxima(a, rows, cols)",
        """gpuIota(rows) |> gpuMap(fn(r) =>
            gpuFold(gpuIota(cols), -inf, fn(high, c) => max(high, get(a, r * cols + c))))""",
    ),
    "the transposed": (
        "transpose(a, rows, cols)",
        "gpuIota(cols * rows) |> gpuMap(fn(i) => get(a, i % rows * cols + intDiv(i, rows)))",
    ),
    "some columns": (
        "columns(a, rows, 3 * cols, cols, cols)",
        "gpuIota(rows * cols) |> gpuMap(fn(i) => get(a, intDiv(i, cols) * 3 * cols + cols + i % cols))",
    ),
    "a lookup": (
        "matrix(6, cols, fn(r, c) => at2(a, cols, intAt(ids, r), c))",
        "gpuIota(6 * cols) |> gpuMap(fn(i) => get(a, (gpuGet(ids, intDiv(i, cols)) ?: 0) * cols + i % cols))",
    ),
    "a sum of two": ("add(a, b)", "gpuZipWith(a, b, fn(u, v) => u + v)"),
    "a chain": (
        "add(matrix(rows, cols, fn(r, c) => at2(a, cols, r, c) * 2.0), vector(30, fn(i) => at(b, i)))",
        """gpuZipWith(
            gpuIota(rows * cols) |> gpuMap(fn(i) => get(a, intDiv(i, cols) * cols + i % cols) * 2.0),
            gpuIota(30) |> gpuMap(fn(i) => get(b, i)), fn(u, v) => u + v)""",
    ),
}

SUMS = {"a product", "a product with the transposed", "products in batches", "products of four dimensions"}


def steps(expression: str) -> list[str]:
    return launched(
        f'{DATA}let result = {expression}\nprint(join(fromGpu(result) |> map(fn(x) => floatHex(x)), " "))\n'
    )


@pytest.mark.parametrize("name", PAIRS)
def test_the_host_makes_the_same_of_it_as_of_index_arithmetic_by_hand(name: str) -> None:
    """B8.4: the same steps, the same sums of products, the same loops around the same loads."""
    short, long = PAIRS[name]
    found = steps(short)
    assert found == steps(long)
    assert len(found) == 1
    assert found[0].startswith("Contraction(") == (name in SUMS)
    for op in ("quot", "rem", "inrange", "select", "fault"):
        assert name == "a lookup" or f" {op} " not in found[0], "no index is decoded and nothing is checked in the loop"


@pytest.mark.parametrize("name", PAIRS)
def test_it_has_the_same_elements_everywhere(name: str) -> None:
    """B8.1, B8.2, B8.3."""
    results = [outputs(f'{DATA}print(join(fromGpu({e}) |> map(fn(x) => floatHex(x)), " "))\n') for e in PAIRS[name]]
    assert len({text for texts in results for text in texts}) == 1


def test_readers_give_zeros_outside_the_buffer() -> None:
    """B8.1: and no index is held against its dimension."""
    program = """
        import tensor::{at, at2, at3, at4, intAt}
        let b = toGpu([1.0, 2.0, 3.0, 4.0])
        print([at(b, 0 - 1), at(b, 4), at2(b, 2, 2, 0), at2(b, 2, 0, 3)])
        print([at3(b, 2, 2, 0, 1, 1), at4(b, 1, 2, 2, 1, 0, 0, 0)])
        print([intAt(toGpu([5]), 0), intAt(toGpu([5]), 1)])
    """
    assert output(program) == "[0.0, 0.0, 0.0, 4.0]\n[4.0, 0.0]\n[5, 0]\n"


def test_sums_begin_with_zero_and_add_from_left_to_right() -> None:
    """B8.3: with terms whose sum depends on it."""
    program = """
        import tensor::{sumOver, maxOver, total, rowSums, columnSums}
        let b = toGpu([1e16, 1.0, 1.0, -1e16, -0.0, -0.0])
        print([total(b), sumOver(2, fn(k) => gpuGet(b, 4 + k) ?: 1.0), sumOver(0, fn(k) => 1.0), maxOver(0, fn(k) => 1.0)])
        print([fromGpu(rowSums(b, 2, 3)), fromGpu(columnSums(b, 3, 2))])
    """
    assert output(program) == "[0.0, 0.0, 0.0, -inf]\n[[1e+16, -1e+16], [1e+16, -1e+16]]\n"
