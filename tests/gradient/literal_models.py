"""GPT-2 as examples/gpt2/model.osp writes it, as a function of its parameters alone, and small layers beside it."""

from __future__ import annotations

from pathlib import Path

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "gpt2"

GPT = """
import gpt2::{Model, Block, loss as crossEntropy, lossAndGradient, load}
import nn::{Norm, Linear}

type Parameters = { wte: GpuBuffer<float>, wpe: GpuBuffer<float>, blocks: List<Block>, finalNorm: Norm }

fn parameters(m: Model) -> Parameters =
    Parameters { wte: m.wte, wpe: m.wpe, blocks: m.blocks, finalNorm: m.finalNorm }

fn whole(p: Parameters, heads: int) -> Model = {
    let width = gpuLength(p.finalNorm.bias)
    Model {
        wte: p.wte, wpe: p.wpe, blocks: p.blocks, finalNorm: p.finalNorm, width: width, heads: heads, parameters: 0,
        vocabulary: intDiv(gpuLength(p.wte), width), context: intDiv(gpuLength(p.wpe), width),
    }
}
"""

TINY = f"""{GPT}
fn some(n: int, seed: int) -> GpuBuffer<float> =
    gpuIota(n) |> gpuMap(fn(i) => toFloat((i * 7919 + seed * 104729 + 13) % 1999) / 1666.0 - 0.6)

fn layer(seed: int) -> Block = Block {{
    norm1: Norm {{ gain: some(4, seed), bias: some(4, seed + 1) }},
    attention: Linear {{ weight: some(48, seed + 2), bias: some(12, seed + 3) }},
    projection: Linear {{ weight: some(16, seed + 4), bias: some(4, seed + 5) }},
    norm2: Norm {{ gain: some(4, seed + 6), bias: some(4, seed + 7) }},
    expand: Linear {{ weight: some(64, seed + 8), bias: some(16, seed + 9) }},
    contract: Linear {{ weight: some(64, seed + 10), bias: some(4, seed + 11) }},
}}

let point = Parameters {{
    wte: some(44, 1), wpe: some(24, 2), blocks: [layer(10), layer(30)],
    finalNorm: Norm {{ gain: some(4, 3), bias: some(4, 4) }},
}}
let prompt = [3, 1, 4, 1, 5]
fn loss(p: Parameters) -> float = crossEntropy(whole(p, 2), prompt)
"""
"""Two layers of width 4, two heads, eleven tokens; one of them stands twice in the prompt."""

SMALL = f"""{GPT}
let prompt = [84, 104, 101, 257, 44, 101, 257, 299, 84, 7]
fn loaded() -> Model = match load("FOLDER") {{
    Success {{ value: m }} => m
    Error {{ message: _ }} => exit(1)
}}
let model = loaded()
let heads = model.heads
let point = parameters(model)
fn loss(p: Parameters) -> float = crossEntropy(whole(p, heads), prompt)
"""
"""The model of FOLDER, which is to be replaced."""

BY_HAND = """({
    let (value, g) = lossAndGradient(HERE, prompt)
    (value, parameters(g))
})"""
