"""The gradients of the layers of stdlib/nn: those of the book (tests/gradient/literal.py), to the last bit, everywhere;
and what they have to be: causal, 0.0 at relu's corner, nothing through a softmax's maximum."""

from __future__ import annotations

import pytest

from reference import exp
from tests.gradient.literal_compare import judged, program
from tests.nn.plain import ordered_sum

HELPERS = """
import nn::{Linear, Norm, linear, tied, embedding, layerNorm, gelu, relu, dropout, softmax, crossEntropy, attention}
import tensor::{columns, transpose}
type Weights = { x: GpuBuffer<float>, l: Linear, n: Norm, table: GpuBuffer<float> }
let ids = toGpu([2, 0, 2, 1])
let held = toGpu([true, false, true, true, true, false, true, true])
fn some(n: int, seed: int) -> GpuBuffer<float> =
    gpuIota(n) |> gpuMap(fn(i) => toFloat((i * 7919 + seed * 104729 + 13) % 1999) / 1666.0 - 0.6)
let by = some(64, 9)
fn weighed(x: GpuBuffer<float>) -> float = total(gpuZipWith(x, by, fn(u, v) => u * v))
"""
POINT = """Weights {
    x: some(8, 1), l: Linear { weight: some(12, 2), bias: some(6, 3) },
    n: Norm { gain: some(2, 4), bias: some(2, 5) }, table: some(6, 6),
}"""
LAYERS = {
    "linear": "weighed(linear(p.x, p.l))",
    "tied": "weighed(tied(p.x, p.table, 2))",
    "embedding": "weighed(embedding(p.table, 2, ids))",
    "tied embedding": "crossEntropy(tied(embedding(p.table, 2, ids), p.table, 2), 3, ids)",
    "layer norm": "weighed(layerNorm(p.x, p.n))",
    "gelu and relu": "weighed(gpuMap(p.x, gelu)) + weighed(gpuMap(p.x, relu))",
    "dropout": "weighed(dropout(p.x, held, 0.3))",
    "softmax": "weighed(softmax(p.x, 4))",
    "cross-entropy": "crossEntropy(p.x, 2, toGpu([1, 0, 0, 1]))",
    "attention": """{
        let qkv = linear(p.x, p.l)
        weighed(attention(columns(qkv, 4, 6, 0, 2), columns(qkv, 4, 6, 2, 2), columns(qkv, 4, 6, 4, 2), 2, 2, 2))
    }""",
    "the last rows": "weighed(attention(p.table, p.x, transpose(p.x, 4, 2), 1, 2, 1))",
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_the_gradient_of_the_book(name: str) -> None:
    _, found = judged(program("Weights", POINT, LAYERS[name], HELPERS))
    assert any(x != 0.0 for x in [*found["x"], *found["table"]])


def slopes(point: str, body: str) -> list[float]:
    _, found = judged(program("GpuBuffer<float>", point, body, HELPERS))
    assert isinstance(found, list)
    return found


def test_relu_has_no_slope_at_its_corner() -> None:
    """B8.8."""
    assert slopes("toGpu([0.0, -0.0, 2.0, -2.0])", "total(gpuMap(p, relu))") == [0.0, 0.0, 1.0, 0.0]


def test_nothing_goes_through_the_maximum_of_a_softmax() -> None:
    """B8.9, B8.10: the slope of each element is its share, by one division and one product, less one at the target."""
    x = [0.4, 0.7, -0.3]
    exps = [exp(v - 0.7) for v in x]
    shares = [1.0 / ordered_sum(exps) * e for e in exps]
    assert slopes(f"toGpu({x})", "crossEntropy(p, 3, toGpu([0]))") == [-1.0 + shares[0], *shares[1:]]


def test_the_gradient_of_early_rows_does_not_see_the_future() -> None:
    """B8.12: of a loss of the first two rows of three; what the third is changes no bit of it, and its part is 0.0."""
    body = """{
        let y = attention(p, p, p, 1, 2, 1)
        gpuFold(gpuIota(4), 0.0, fn(s, i) => s + at(y, i) * toFloat(i + 1))
    }"""
    first, other = (slopes(f"toGpu([0.3, -0.2, 0.9, 1.1, {last}])", body) for last in ("0.5, 0.6", "-7.0, 1e9"))
    assert first == other and first[4:] == [0.0, 0.0] and all(first[:4])
