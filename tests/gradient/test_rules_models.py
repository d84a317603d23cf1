"""G1-G7, G9, G11, G13: layers and a whole GPT as people write them. By the book, on the oracle and the host, by bytes;
beside the step written by hand, which adds in another order, within 1e-10 of each tensor's greatest element."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.gpt2.support import TINY as TINY_SIZES
from tests.gpt2.support import make_weights
from tests.gradient.literal_compare import HOST, judged, program, real
from tests.gradient.literal_models import BY_HAND, EXAMPLE, SMALL, TINY
from tests.gradient.literal_precise import flat, slopes

LAYERS = """
let table = toGpu([0.3, -0.2, 0.9, 1.1, -0.7, 0.4])
let ids = toGpu([1, 0, 1, 2, 1])
fn softmax(x: GpuBuffer<float>, rows: int, n: int) -> GpuBuffer<float> = {
    let highest = gpuIota(rows) |> gpuMap(fn(r) => gpuFold(gpuIota(n), -inf, fn(h, c) => max(h, at(x, r * n + c))))
    let exps = gpuIota(rows * n) |> gpuMap(fn(i) => exp(at(x, i) - at(highest, intDiv(i, n))))
    let sums = gpuIota(rows) |> gpuMap(fn(r) => gpuFold(gpuIota(n), 0.0, fn(s, c) => s + at(exps, r * n + c)))
    gpuIota(rows * n) |> gpuMap(fn(i) => at(exps, i) / at(sums, intDiv(i, n)))
}
fn norm(x: GpuBuffer<float>, rows: int, n: int) -> GpuBuffer<float> = gpuIota(rows * n) |> gpuMap(fn(i) => {
    let r = intDiv(i, n) * n
    let mean = gpuFold(gpuIota(n), 0.0, fn(s, c) => s + at(x, r + c)) / toFloat(n)
    let variance = gpuFold(gpuIota(n), 0.0, fn(s, c) => {
        let off = at(x, r + c) - mean
        s + off * off
    }) / toFloat(n)
    (at(x, i) - mean) / sqrt(variance + 1e-5)
})
fn causal(q: GpuBuffer<float>, k: GpuBuffer<float>, rows: int, n: int) -> GpuBuffer<float> = {
    let scores = gpuIota(rows * rows) |> gpuMap(fn(i) => {
        let r = intDiv(i, rows)
        gpuFold(gpuIota(n), 0.0, fn(s, c) => s + at(q, r * n + c) * at(k, i % rows * n + c))
    })
    let exps = gpuIota(rows * rows) |> gpuMap(fn(i) => i % rows <= intDiv(i, rows) ? exp(at(scores, i)) : 0.0)
    let sums = gpuIota(rows) |> gpuMap(fn(r) => gpuFold(gpuIota(r + 1), 0.0, fn(s, c) => s + at(exps, r * rows + c)))
    gpuIota(rows * n) |> gpuMap(fn(i) => {
        let r = intDiv(i, n)
        gpuFold(gpuIota(r + 1), 0.0, fn(s, j) => s + at(exps, r * rows + j) / at(sums, r) * at(k, j * n + i % n))
    })
}
fn gelu(x: float) -> float = 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
fn weighted(x: GpuBuffer<float>) -> float = gpuFold(gpuIota(gpuLength(x)), 0.0, fn(s, i) => s + at(x, i) * at(table, i % 6))
"""
SIX = "toGpu([0.1, 0.7, -0.3, 1.3, -1.1, 0.9])"
BODIES = {
    "softmax": "weighted(softmax(p, 2, 3))",
    "softmax of equals": "weighted(softmax(gpuConcat(p, p), 4, 3))",
    "softmax without its maximum": "weighted(softmax(gpuMap(p, fn(x) => x - stopGradient(gpuFold(p, -inf, max))), 2, 3))",
    "layer norm": "weighted(norm(p, 2, 3))",
    "layer norm in rows of one": "weighted(norm(p, 6, 1))",
    "gelu": "weighted(gpuMap(p, gelu))",
    "attention": "weighted(causal(p, gpuMap(p, fn(x) => x * 0.7), 3, 2))",
    "attention to itself": "weighted(causal(p, p, 2, 3))",
    "embedding": "weighted(gpuIota(10) |> gpuMap(fn(i) => at(p, (gpuGet(ids, intDiv(i, 2)) ?: 0) * 2 + i % 2)))",
    "tied embedding": """{
        let x = gpuIota(10) |> gpuMap(fn(i) => at(p, (gpuGet(ids, intDiv(i, 2)) ?: 0) * 2 + i % 2))
        let scores = gpuIota(15) |> gpuMap(fn(i) =>
            gpuFold(gpuIota(2), 0.0, fn(s, c) => s + at(x, intDiv(i, 3) * 2 + c) * at(p, i % 3 * 2 + c)))
        weighted(softmax(scores, 5, 3))
    }""",
    "cross-entropy": """{
        let losses = gpuIota(2) |> gpuMap(fn(r) => {
            let most = gpuFold(gpuIota(3), -inf, fn(h, c) => max(h, at(p, r * 3 + c)))
            let sum = gpuFold(gpuIota(3), 0.0, fn(s, c) => s + exp(at(p, r * 3 + c) - most))
            ln(sum) - (at(p, r * 3 + (gpuGet(ids, r) ?: 0)) - most)
        })
        total(losses) / 2.0
    }""",
    "convolution": """weighted(gpuIota(4) |> gpuMap(fn(i) =>
        gpuFold(gpuIota(3), 0.0, fn(s, k) => s + at(p, i + k) * at(table, k))))""",
    "transposed": "weighted(gpuIota(6) |> gpuMap(fn(i) => at(p, i % 2 * 3 + intDiv(i, 2))))",
    "strided": "weighted(gpuIota(3) |> gpuMap(fn(i) => at(p, 5 - 2 * i) * at(p, i)))",
    "prefix products": "weighted(gpuScan(p, 1.0, fn(a, x) => a * x + x))",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_layer(name: str) -> None:
    """G1-G7: by bytes, and the slopes that it should have."""
    text = program("GpuBuffer<float>", SIX, BODIES[name], LAYERS)
    _, found = judged(text)
    assert any(found) or "one" in name  # a row of one number is 0.0, whatever the number
    if name != "softmax without its maximum":  # what is stopped has a slope and no gradient
        for g, slope in zip(found, slopes(text, "loss", "point"), strict=True):
            assert abs(g - float(slope)) <= 1e-12 * max(map(abs, found))


def close(got: Any, want: Any) -> None:
    """Tensor by tensor, within 1e-10 of its greatest element."""
    if isinstance(got, float):
        got, want = [got], [want]
    if isinstance(got, list) and got and isinstance(got[0], float):
        assert len(got) == len(want)
        assert max(abs(a - b) for a, b in zip(got, want, strict=True)) <= 1e-10 * max(map(abs, want))
        return
    pairs = [(got[n], want[n]) for n in got] if isinstance(got, dict) else zip(got, want, strict=True)
    for a, b in pairs:
        close(a, b)


def test_a_tiny_gpt_is_the_book_s_to_the_byte() -> None:
    """G1-G13"""
    value, found = judged(TINY, EXAMPLE)
    by_hand = real(TINY, HOST, ask=BY_HAND.replace("HERE", "whole(point, 2)"), folder=EXAMPLE)
    assert value == by_hand[0]
    close(found, by_hand[1])


GOLDEN = "28364bcc043540c7c2266ba7b4fc0f5b568ecaad6dcf7973a8d1c7c277368f8c"
"""SHA-256 of the little-endian binary64 of the loss and of all its derivatives, in the order of the record's fields."""


def test_a_seeded_model_s_gradient(tmp_path: Path) -> None:
    """Beside the step by hand; its own bytes are golden."""
    text = SMALL.replace("FOLDER", str(make_weights(tmp_path, TINY_SIZES, "--config")))
    value, found = real(text, HOST, folder=EXAMPLE)
    by_hand = real(text, HOST, ask=BY_HAND.replace("HERE", "model"), folder=EXAMPLE)
    assert value == by_hand[0]
    close(found, by_hand[1])
    data = b"".join(struct.pack("<d", x) for x in [value, *flat(found)])
    assert hashlib.sha256(data).hexdigest() == GOLDEN
