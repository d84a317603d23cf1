#!/usr/bin/env python3
"""Training steps of a small character GPT in PyTorch (eager) or JAX, for comparison.

    char_gpt.py torch [--size small] [--dtype float64] [--threads 2] [--seconds 5]
    char_gpt.py jax …

Blocks with the norm first, one linear layer for queries, keys and values, GELU by tanh, a head of its own with bias, AdamW
(3e-3, 0.9, 0.999, 1e-8, decay 0.01 of every tensor). Weights and batches come from a seeded generator and are the same in
both. Prints one line of JSON: the first step's seconds, and milliseconds a step in chunks of about 0.1 s after ten steps.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RATE, BETA1, BETA2, EPSILON, DECAY = 3e-3, 0.9, 0.999, 1e-8, 0.01


@dataclass(frozen=True)
class Size:
    """batch rows of context tokens; width, heads, layers, vocabulary."""

    batch: int
    context: int
    width: int
    heads: int
    layers: int
    vocabulary: int = 65


SIZES = {"small": Size(16, 64, 64, 4, 2), "large": Size(16, 128, 256, 8, 4)}
WARM = 10


def initial(s: Size, dtype: str) -> dict[str, Any]:
    """Parameters by name; a linear layer's weight is [in, out]."""
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {}

    def matrix(name: str, *shape: int) -> None:
        made[name] = (rng.standard_normal(shape) * 0.02).astype(dtype)

    def linear(name: str, inner: int, cols: int) -> None:
        matrix(f"{name}.weight", inner, cols)
        made[f"{name}.bias"] = np.zeros(cols, dtype)

    def norm(name: str) -> None:
        made[f"{name}.weight"], made[f"{name}.bias"] = np.ones(s.width, dtype), np.zeros(s.width, dtype)

    matrix("tokens", s.vocabulary, s.width)
    matrix("positions", s.context, s.width)
    for n in range(s.layers):
        norm(f"{n}.norm1")
        linear(f"{n}.attention", s.width, 3 * s.width)
        linear(f"{n}.projection", s.width, s.width)
        norm(f"{n}.norm2")
        linear(f"{n}.expand", s.width, 4 * s.width)
        linear(f"{n}.contract", 4 * s.width, s.width)
    norm("norm")
    linear("head", s.width, s.vocabulary)
    return made


def batches(s: Size, count: int = 32) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, s.vocabulary, (count, s.batch, s.context + 1))
    return [(r[:, :-1].copy(), r[:, 1:].copy()) for r in rows]


def torch_step(o: argparse.Namespace, s: Size) -> tuple[Callable[[Any, Any], Any], list[tuple[Any, Any]], str]:
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(o.threads)
    # Linear layers lie as torch.nn.Linear's do: [out, in].
    p = {
        n: torch.nn.Parameter(torch.from_numpy(w.T.copy() if w.ndim == 2 and n[-7:] == ".weight" else w))
        for n, w in initial(s, o.dtype).items()
    }

    def linear(x: Any, name: str) -> Any:
        return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, (s.width,), p[f"{name}.weight"], p[f"{name}.bias"])

    def loss_of(ids: Any, targets: Any) -> Any:
        x = F.embedding(ids, p["tokens"]) + p["positions"]
        for n in range(s.layers):
            parts = linear(norm(x, f"{n}.norm1"), f"{n}.attention").split(s.width, 2)
            q, k, v = (u.view(s.batch, s.context, s.heads, -1).transpose(1, 2) for u in parts)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
            x = x + linear(mixed.reshape(s.batch, s.context, s.width), f"{n}.projection")
            x = x + linear(F.gelu(linear(norm(x, f"{n}.norm2"), f"{n}.expand"), approximate="tanh"), f"{n}.contract")
        return F.cross_entropy(linear(norm(x, "norm"), "head").flatten(0, 1), targets.flatten())

    optimiser = torch.optim.AdamW(p.values(), lr=RATE, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY)

    def step(ids: Any, targets: Any) -> Any:
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(ids, targets)
        loss.backward()
        optimiser.step()
        return loss.detach()

    data = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in batches(s)]
    return step, data, f"torch {torch.__version__}"


def jax_step(o: argparse.Namespace, s: Size) -> tuple[Callable[[Any, Any], Any], list[tuple[Any, Any]], str]:
    # JAX sizes its pool by the processors that it may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: o.threads])
    import jax

    jax.config.update("jax_enable_x64", o.dtype == "float64")
    import jax.numpy as jnp

    mask = jnp.tril(jnp.ones((s.context, s.context), bool))

    def linear(p: Any, x: Any, name: str) -> Any:
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    def norm(p: Any, x: Any, name: str) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def loss_of(p: Any, ids: Any, targets: Any) -> Any:
        x = p["tokens"][ids] + p["positions"]
        for n in range(s.layers):
            parts = jnp.split(linear(p, norm(p, x, f"{n}.norm1"), f"{n}.attention"), 3, -1)
            q, k, v = (u.reshape(s.batch, s.context, s.heads, -1).transpose(0, 2, 1, 3) for u in parts)
            scores = jnp.where(mask, q @ k.swapaxes(-1, -2) / (s.width // s.heads) ** 0.5, -jnp.inf)
            mixed = (jax.nn.softmax(scores, -1) @ v).transpose(0, 2, 1, 3)
            x = x + linear(p, mixed.reshape(s.batch, s.context, s.width), f"{n}.projection")
            inner = jax.nn.gelu(linear(p, norm(p, x, f"{n}.norm2"), f"{n}.expand"), approximate=True)
            x = x + linear(p, inner, f"{n}.contract")
        shares = jax.nn.log_softmax(linear(p, norm(p, x, "norm"), "head"), -1)
        return -jnp.take_along_axis(shares, targets[..., None], -1).mean()

    def advance(state: Any, ids: Any, targets: Any) -> Any:
        p, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(p, ids, targets)
        t = t + 1
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, g)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, g)
        one, two = 1 - BETA1**t, 1 - BETA2**t
        p = jax.tree.map(
            lambda p, m, v: p * (1 - RATE * DECAY) - RATE * (m / one) / (jnp.sqrt(v / two) + EPSILON), p, m, v
        )
        return (p, m, v, t), loss

    advance = jax.jit(advance, donate_argnums=0)
    p = {n: jnp.asarray(w) for n, w in initial(s, o.dtype).items()}
    state = [(p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.zeros((), o.dtype))]

    def step(ids: Any, targets: Any) -> Any:
        state[0], loss = advance(state[0], ids, targets)
        return loss

    return step, [(jnp.asarray(x), jnp.asarray(y)) for x, y in batches(s)], f"jax {jax.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", choices=("torch", "jax"))
    parser.add_argument("--size", choices=tuple(SIZES), default="small")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="about how long to time the steps after the first ten")
    o = parser.parse_args()
    step, data, version = {"torch": torch_step, "jax": jax_step}[o.library](o, SIZES[o.size])
    begin = time.perf_counter()
    losses = [float(step(*data[0]))]
    first = time.perf_counter() - begin
    took = first
    for n in range(1, WARM):
        begin = time.perf_counter()
        losses.append(float(step(*data[n % len(data)])))
        took = time.perf_counter() - begin
    many = max(1, min(20, round(0.1 / took)))
    done, chunks, end = WARM, [], time.perf_counter() + o.seconds
    while len(chunks) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(many):
            loss = step(*data[done % len(data)])
            done += 1
        float(loss)
        chunks.append((time.perf_counter() - begin) / many * 1e3)
    print(json.dumps({"version": version, "first_s": first, "ms": chunks, "losses": [losses[0], losses[-1]]}))


if __name__ == "__main__":
    main()
