#!/usr/bin/env python3
"""GPT-2 as people write it in PyTorch (eager), for comparison: generation, steps of gradient descent, gradients.

    gpt2_torch.py generate DIR --prompt TEXT --tokens 20 [--dtype float64] [--threads 2] [--cache]
    gpt2_torch.py steps DIR --prompt TEXT --steps 4 [--rate 0.0001] [--dtype float64] [--threads 2]
    gpt2_torch.py gradients DIR --prompt TEXT --theirs FILE.safetensors

Needs torch, numpy and safetensors, and nothing of osprey_py; run it with a Python that has them. `generate` prints the
seconds that it generated for, and the text; `steps` a line for the loss before each step and after the last, when it is
known; `gradients` one line of JSON: how far each tensor of a file is from PyTorch's in binary64.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from reference import Tokenizer

Tensor = torch.Tensor
Past = list[tuple[Tensor, Tensor] | None]


class Model:
    """The weights of a folder in one type. learn: whether their gradients are wanted."""

    def __init__(self, folder: Path, dtype: torch.dtype, learn: bool = False) -> None:
        found = load_file(folder / "model.safetensors", device=str(torch.get_default_device()))
        kept = {n.removeprefix("transformer."): t for n, t in found.items() if not n.endswith(".attn.bias")}
        self.w = {n: t.to(dtype, copy=True).requires_grad_(learn) for n, t in kept.items()}
        self.width = self.w["wte.weight"].shape[1]
        self.layers = sum(n.endswith(".ln_1.bias") for n in self.w)
        config = folder / "config.json"
        said = json.loads(config.read_text("utf-8")) if config.exists() else {}
        self.heads = said.get("n_head", self.width // 64)

    def norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (self.width,), self.w[name + ".weight"], self.w[name + ".bias"], 1e-5)

    def linear(self, x: Tensor, name: str) -> Tensor:
        return torch.addmm(self.w[name + ".bias"], x, self.w[name + ".weight"])

    def rows(self, ids: Tensor, past: Past | None = None) -> Tensor:
        """The last block's rows for ids, which follow the positions in past (None: there are none, and none are kept)."""
        t, width = len(ids), self.width
        before = past[0][0].shape[1] if past and past[0] is not None else 0
        x = self.w["wte.weight"][ids] + self.w["wpe.weight"][before : before + t]
        for layer in range(self.layers):
            name = f"h.{layer}."
            qkv = self.linear(self.norm(x, name + "ln_1"), name + "attn.c_attn")
            q, k, v = (u.view(t, self.heads, -1).transpose(0, 1) for u in qkv.split(width, 1))
            if past is not None:
                known = past[layer]
                if known is not None:
                    k, v = torch.cat((known[0], k), 1), torch.cat((known[1], v), 1)
                past[layer] = (k, v)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
            x = x + self.linear(mixed.transpose(0, 1).reshape(t, width), name + "attn.c_proj")
            inner = F.gelu(self.linear(self.norm(x, name + "ln_2"), name + "mlp.c_fc"), approximate="tanh")
            x = x + self.linear(inner, name + "mlp.c_proj")
        return x

    def loss(self, ids: Tensor) -> Tensor:
        """The mean cross-entropy of each token but the first, given those before it."""
        logits = self.norm(self.rows(ids[:-1]), "ln_f") @ self.w["wte.weight"].T
        return F.cross_entropy(logits, ids[1:])


def generate(o: argparse.Namespace, ids: list[int], tokenizer: Tokenizer) -> None:
    model = Model(o.folder, o.dtype)
    begin = time.perf_counter()
    with torch.inference_mode():
        past: Past | None = [None] * model.layers if o.cache else None
        feed = ids
        for _ in range(o.tokens):
            x = model.norm(model.rows(torch.tensor(feed), past)[-1:], "ln_f")
            ids = [*ids, int((x @ model.w["wte.weight"].T).argmax())]
            feed = ids[-1:] if o.cache else ids
    print(f"generating {time.perf_counter() - begin}")
    print(tokenizer.decode(ids))


def steps(o: argparse.Namespace, ids: list[int], _: Tokenizer) -> None:
    model = Model(o.folder, o.dtype, learn=True)
    prompt = torch.tensor(ids)
    for n in range(o.steps):
        for t in model.w.values():
            t.grad = None
        loss = model.loss(prompt)
        print(f"loss {n} {loss.item()}", flush=True)
        loss.backward()
        with torch.no_grad():
            for t in model.w.values():
                assert t.grad is not None
                t.add_(t.grad, alpha=-o.rate)
    print(f"loss {o.steps} {model.loss(prompt).item()}", flush=True)


def gradients(o: argparse.Namespace, ids: list[int], _: Tokenizer) -> None:
    """For each tensor: max|theirs - ours| / max|ours|, and |difference of the sums| / sum|ours|."""
    model = Model(o.folder, torch.float64, learn=True)
    loss = model.loss(torch.tensor(ids))
    loss.backward()
    theirs = load_file(o.theirs)
    compared: dict[str, Any] = {}
    for name, weight in model.w.items():
        ours, found = weight.grad, theirs[name]
        assert ours is not None and ours.shape == found.shape and found.dtype == torch.float64, name
        off = float((found - ours).abs().max()) / float(ours.abs().max())
        compared[name] = (off, abs(float(found.sum()) - float(ours.sum())) / float(ours.abs().sum()))
    assert compared.keys() == theirs.keys(), sorted(compared.keys() ^ theirs.keys())
    print(json.dumps({"loss": loss.item().hex(), "tensors": compared}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("generate", "steps", "gradients"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prompt", default="The capital of France is")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", action="store_true", help="keep keys and values")
    parser.add_argument("--theirs", type=Path)
    o = parser.parse_args()
    o.dtype = getattr(torch, o.dtype)
    torch.set_num_threads(o.threads)
    tokenizer = Tokenizer(o.folder / "merges.txt")
    {"generate": generate, "steps": steps, "gradients": gradients}[o.what](o, tokenizer.encode(o.prompt), tokenizer)


if __name__ == "__main__":
    main()
