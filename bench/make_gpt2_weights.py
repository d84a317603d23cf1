#!/usr/bin/env python3
"""Write seeded weights of any GPT-2 size, with Hugging Face's names, shapes and types.

    make_gpt2_weights.py DIR                                   # the 124M model, F32
    make_gpt2_weights.py DIR --layers 2 --width 128 --heads 2 --vocab 1024 --context 128 --dtype F16

The values are those of a counter-based integer generator, scaled by one rounded multiplication: the same bytes on every
machine. Layer norms' gains lie around 1. It writes DIR/model.safetensors, and DIR/config.json with --config.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ITEM = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
CHUNK = 1 << 22


def mix(counter: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's output function: 64 well mixed bits for each counter."""
    z = counter * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def noise(stream: int, count: int, deviation: float) -> Iterator[npt.NDArray[np.float64]]:
    """Nearly normal values, mean 0: the sum of four 16-bit pieces of each draw, centred and scaled."""
    scale = deviation / 37837.0  # the sum's standard deviation: sqrt(4 * (2^32 - 1) / 12) = 37837.2
    for begin in range(0, count, CHUNK):
        n = min(CHUNK, count - begin)
        draw = mix(np.arange(n, dtype=np.uint64) + np.uint64((stream << 40) + begin + 1))
        pieces = np.full(n, -131070, np.int64)
        for shift in (0, 16, 32, 48):
            pieces += ((draw >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64)
        yield pieces.astype(np.float64) * scale


def encode(values: npt.NDArray[np.float64], dtype: str) -> bytes:
    """Rounded to nearest even in the storage type; BF16 by way of F32."""
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        if dtype == "BF16":
            bits = values.astype("<f4").view("<u4").astype(np.uint64)
            return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
        return values.astype({"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


def shapes(layers: int, width: int, vocab: int, context: int) -> dict[str, tuple[int, ...]]:
    c = width
    out: dict[str, tuple[int, ...]] = {"wte.weight": (vocab, c), "wpe.weight": (context, c)}
    for layer in range(layers):
        for name, shape in (
            ("ln_1", (c,)),
            ("attn.c_attn", (c, 3 * c)),
            ("attn.c_proj", (c, c)),
            ("ln_2", (c,)),
            ("mlp.c_fc", (c, 4 * c)),
            ("mlp.c_proj", (4 * c, c)),
        ):
            out[f"h.{layer}.{name}.weight"] = shape
            out[f"h.{layer}.{name}.bias"] = shape[-1:]
    return out | {"ln_f.weight": (c,), "ln_f.bias": (c,)}


def write(path: Path, o: argparse.Namespace) -> int:
    """The file, tensor after tensor; returns how many numbers are parameters."""
    tensors = {o.prefix + name: shape for name, shape in shapes(o.layers, o.width, o.vocab, o.context).items()}
    parameters = sum(map(prod, tensors.values()))
    if o.with_masks:
        for layer in range(o.layers):
            tensors[f"{o.prefix}h.{layer}.attn.bias"] = (1, 1, o.context, o.context)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in tensors.items():
        end = at + prod(shape) * ITEM[o.dtype]
        header[name] = {"dtype": o.dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for stream, (name, shape) in enumerate(tensors.items()):
            if name.endswith(".attn.bias"):
                f.write(encode(np.tri(o.context), o.dtype))
                continue
            centre = 1.0 if ".ln_" in f".{name}" and name.endswith(".weight") else 0.0
            for values in noise(o.seed * 4096 + stream, prod(shape), o.deviation):
                f.write(encode(values + centre, o.dtype))
    return parameters


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, help="written to config.json; width / 64 when not given")
    parser.add_argument("--vocab", type=int, default=50257)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0, choices=range(1024), metavar="0-1023")
    parser.add_argument("--dtype", choices=tuple(ITEM), default="F32")
    parser.add_argument("--deviation", type=float, default=0.02, help="standard deviation of the weights")
    parser.add_argument("--prefix", default="", help="before every name: transformer.")
    parser.add_argument("--with-masks", action="store_true", help="the attn.bias masks that the published file carries")
    parser.add_argument("--config", action="store_true", help="write config.json too")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    o = options(arguments)
    o.folder.mkdir(parents=True, exist_ok=True)
    parameters = write(o.folder / "model.safetensors", o)
    if o.config or o.heads is not None:
        config = {
            "model_type": "gpt2",
            "n_layer": o.layers,
            "n_embd": o.width,
            "n_head": o.heads if o.heads is not None else o.width // 64,
            "n_positions": o.context,
            "vocab_size": o.vocab,
        }
        (o.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    print(f"{o.folder / 'model.safetensors'}: {parameters:,} parameters")


if __name__ == "__main__":
    main()
