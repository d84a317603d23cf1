"""stdlib/nn against the same arithmetic in plain Python (tests/nn/plain.py), to the last bit, on every backend."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

import pytest

from osprey_py.modules.paths import stdlib_path
from tests.nn import plain
from tests.nn.plain import Matrix
from tests.nn.support import failure, outputs

IMPORTS = """
import nn::{Linear, Norm, linear, tied, embedding, layerNorm, gelu, relu, dropout, softmax, crossEntropy}
import nn::{attention, attentionWeights, mixed}
fn show(b: GpuBuffer<float>) -> Unit = print(join(fromGpu(b) |> map(fn(x) => floatHex(x)), " "))
"""


def buffer(xs: Iterable[float] | Iterable[int]) -> str:
    """A buffer of these floats or ints, as source text; -inf, inf and nan are written as the language does."""
    return f"toGpu([{', '.join(map(repr, xs))}])"


def flat(rows: Iterable[Iterable[float]]) -> list[float]:
    return [x for row in rows for x in row]


def numbers(seed: int, rows: int, cols: int, spread: float = 1.0) -> Matrix:
    """Doubles with full mantissas, around 0."""
    r = random.Random(seed)
    return [[r.gauss(0.0, spread) for _ in range(cols)] for _ in range(rows)]


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


def check(expression: str, expected: Iterable[float]) -> None:
    """Every backend prints exactly these."""
    wanted = list(map(bits, expected))
    for text in outputs(f"{IMPORTS}\nshow({expression})"):
        assert [bits(float.fromhex(word)) for word in text.split()] == wanted


def one(expression: str, expected: float) -> None:
    for text in outputs(f"{IMPORTS}\nprint(floatHex({expression}))"):
        assert bits(float.fromhex(text)) == bits(expected)


SIZES = [(1, 1, 1), (3, 2, 5), (9, 17, 8), (16, 8, 24)]


@pytest.mark.parametrize(("rows", "inner", "cols"), SIZES)
def test_linear_adds_products_over_inner_and_then_the_bias(rows: int, inner: int, cols: int) -> None:
    """B8.5."""
    x, weight, (bias,) = numbers(1, rows, inner), numbers(2, inner, cols), numbers(3, 1, cols)
    layer = f"Linear {{ weight: {buffer(flat(weight))}, bias: {buffer(bias)} }}"
    check(f"linear({buffer(flat(x))}, {layer})", flat(plain.linear(x, weight, bias)))


@pytest.mark.parametrize(("rows", "inner", "cols"), SIZES)
def test_tied_scores_are_products_with_the_rows_of_the_table(rows: int, inner: int, cols: int) -> None:
    """B8.5."""
    x, table = numbers(4, rows, inner), numbers(5, cols, inner)
    check(f"tied({buffer(flat(x))}, {buffer(flat(table))}, {inner})", flat(plain.tied(x, table)))


def test_an_embedding_is_a_lookup() -> None:
    """B8.6: every bit of the rows, -0.0 and subnormals too, in the order of the ids; zeros where an id names no row."""
    table = [[0.1, -0.0, 5e-324], [1.5, 2.5, -3.5], [7.0, 8.0, 9.0]]
    ids = [2, 0, 0, 1, 3, -1]
    rows = [table[i] if 0 <= i < 3 else [0.0] * 3 for i in ids]
    check(f"embedding({buffer(flat(table))}, 3, {buffer(ids)})", flat(rows))


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (4, 3), (7, 16), (3, 33)])
def test_layer_norm(rows: int, width: int) -> None:
    """B8.7."""
    x, (gain, bias) = numbers(6, rows, width, 3.0), numbers(7, 2, width)
    norm = f"Norm {{ gain: {buffer(gain)}, bias: {buffer(bias)} }}"
    check(f"layerNorm({buffer(flat(x))}, {norm})", flat(plain.layer_norm(x, gain, bias)))


def test_gelu_and_relu() -> None:
    """B8.8."""
    xs = [0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 40.0, -40.0, 1e200, *numbers(8, 1, 40, 2.0)[0]]
    check(f"gpuMap({buffer(xs)}, gelu)", map(plain.gelu, xs))
    check(f"gpuMap({buffer(xs)}, relu)", (x if x > 0.0 else 0.0 for x in xs))


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (5, 4), (9, 33)])
def test_softmax_of_rows(rows: int, cols: int) -> None:
    """B8.9: also with elements whose exp would overflow, and with -inf, whose share is 0.0."""
    x = numbers(9, rows, cols, 2.0)
    x[0][0] = 1000.0
    x[-1][-1] = float("-inf") if cols > 1 else -1000.0
    check(f"softmax({buffer(flat(x))}, {cols})", flat(map(plain.softmax, x)))


@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (1, 2), (6, 5), (17, 65)])
def test_cross_entropy(rows: int, classes: int) -> None:
    """B8.10."""
    x = numbers(10, rows, classes, 4.0)
    x[0][-1] = 900.0
    targets = [r * 7 % classes for r in range(rows)]
    one(f"crossEntropy({buffer(flat(x))}, {classes}, {buffer(targets)})", plain.cross_entropy(x, targets))


ATTENTION = [(1, 1, 1, 1, 1), (1, 3, 3, 4, 2), (2, 5, 5, 8, 4), (3, 1, 6, 4, 2), (2, 3, 7, 6, 3)]


@pytest.mark.parametrize(("batches", "rows", "total", "width", "heads"), ATTENTION)
def test_attention(batches: int, rows: int, total: int, width: int, heads: int) -> None:
    """B8.11: batches, heads, and rows that are the last of more."""
    q = [numbers(11 + b, rows, width) for b in range(batches)]
    k = [numbers(21 + b, total, width) for b in range(batches)]
    v = [numbers(31 + b, total, width) for b in range(batches)]
    words = ", ".join(buffer(flat(flat(rows) for rows in x)) for x in (q, k, v))
    check(f"attention({words}, {batches}, {width}, {heads})", flat(flat(m) for m in plain.attention(q, k, v, heads)))


def layers(x: list[Matrix], width: int) -> str:
    """A program that shows attention over its queries, keys and values at once, with two heads."""
    words = ", ".join(buffer(flat(flat(rows) for rows in part)) for part in (x, x, x))
    return f"{IMPORTS}\nshow(attention({words}, {len(x)}, {width}, 2))"


def test_weights_of_later_rows_are_zeros() -> None:
    """B8.12: also where the scores are NaN."""
    x = [*numbers(13, 2, 2), [float("nan")] * 2]
    for text in outputs(f"{IMPORTS}\nshow(attentionWeights({buffer(flat(x))}, {buffer(flat(x))}, 1, 2, 1))"):
        weights = [float.fromhex(word) for word in text.split()]
        assert weights[:3] == [1.0, 0.0, 0.0] and weights[5] == 0.0
        assert 0.0 < weights[3] < 1.0 and 0.0 < weights[4] < 1.0


@pytest.mark.parametrize("future", [10.0, -1e300, float("inf"), float("nan")])
def test_attention_does_not_see_the_future(future: float) -> None:
    """B8.12: what stands in later rows, NaN included, changes no bit of earlier ones; of others it does."""
    width, rows, changed = 4, 6, 4
    x = [numbers(41 + b, rows, width) for b in range(2)]
    other = [[row if r < changed else [v + future for v in row] for r, row in enumerate(m)] for m in x]
    for before, after in zip(outputs(layers(x, width)), outputs(layers(other, width)), strict=True):
        a, b = before.split(), after.split()
        for batch in range(2):
            start = batch * rows * width
            assert a[start : start + changed * width] == b[start : start + changed * width]
            assert (
                a[start + changed * width : start + rows * width] != b[start + changed * width : start + rows * width]
            )


def test_a_row_has_the_same_bits_however_many_are_computed_with_it() -> None:
    """B8.12."""
    rows, width = 7, 4
    q, k, v = (numbers(51 + n, rows, width) for n in range(3))

    def attend(first: int, last: int) -> str:
        words = ", ".join(buffer(flat(part)) for part in (q[first:last], k[:last], v[:last]))
        return f"{IMPORTS}\nshow(attention({words}, 1, {width}, 2))"

    whole = outputs(attend(0, rows))
    for first, last in ((0, 3), (2, 5), (6, 7)):
        for text, part in zip(whole, outputs(attend(first, last)), strict=True):
            assert text.split()[first * width : last * width] == part.split()


def test_dropout() -> None:
    """B8.13: what is kept is divided by 1 - rate; the rest is 0.0, NaN and -0.0 included."""
    xs = [float("nan"), -0.0, -0.0, *numbers(61, 1, 40)[0]]
    kept = [False, False, True, *(i % 3 > 0 for i in range(40))]
    words = ", ".join("true" if k else "false" for k in kept)
    wanted = (x / (1.0 - 0.1) if k else 0.0 for x, k in zip(xs, kept, strict=True))
    check(f"dropout({buffer(xs)}, toGpu([{words}]), 0.1)", wanted)


def test_wrong_lengths_end_as_a_division_by_zero() -> None:
    """B8.14: a layer on what is no whole number of rows gives nothing; the loss of nothing is a fault."""
    layer = "Linear { weight: toGpu([1.0, 2.0, 3.0, 4.0]), bias: toGpu([0.0, 0.0]) }"
    check(f"linear(toGpu([1.0, 2.0, 3.0]), {layer})", [])
    loss = f"crossEntropy(linear(toGpu([1.0, 2.0, 3.0]), {layer}), 2, toGpu([0]))"
    assert "division by zero" in failure(f"{IMPORTS}\nprint({loss})")


def test_parameters_are_buffers_and_nothing_else() -> None:
    """B8.14: the records of nn have no field that could not have a gradient."""
    text = (stdlib_path() / "nn.osp").read_text("utf-8")
    records = [line for line in text.splitlines() if line.startswith("export type ")]
    assert len(records) == 3
    for line in records:
        fields = line.split("{")[1].split("}")[0].split(",")
        assert all(field.split(":")[1].strip() == "GpuBuffer<float>" for field in fields)
