"""The gradients of GPT-2's training step against PyTorch's in binary64, all of them.

    python bench/train_peers.py DIR --torch PYTHON [--prompt TEXT] [--by hand|language]

DIR holds model.safetensors and merges.txt; PYTHON is one that has torch, numpy and safetensors. Prints the worst of the
ratios and fails when one passes the bound: for each tensor max|difference| to max|gradient|, for each sum |difference| to
the sum of |gradient|. A bound relative to the element would say nothing: some gradients are truly zero, and what is left
of them is rounding.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from measure import OSPREY, PEERS, PROMPT, run

BOUND = 1e-10


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--torch", required=True, help="a Python that has torch")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--by", choices=("hand", "language"), default="hand", help="the way to our gradient")
    o = parser.parse_args()
    weights = str(o.weights.resolve())
    with tempfile.TemporaryDirectory() as folder:
        ours = f"{folder}/gradients.safetensors"
        words = ["--weights", weights, "--prompt", o.prompt, "--by", o.by]
        trace = f"{folder}/trace"
        run([*OSPREY, "run", "examples/gpt2/train.osp", *words, "--gradients", ours, "--trace", trace], 2)
        loss = float.fromhex(json.loads(Path(trace).read_text("utf-8").split("\n")[1])["loss"])
        peer = [o.torch, str(PEERS / "gpt2_torch.py"), "gradients", weights, "--prompt", o.prompt, "--theirs", ours]
        found = json.loads(run(peer, 2).last)
    worst = [max((pair[k], name) for name, pair in found["tensors"].items()) for k in (0, 1)]
    theirs = float.fromhex(found["loss"])
    print(f"{len(found['tensors'])} tensors; loss {loss!r}, PyTorch's {theirs!r}, apart by {abs(loss - theirs):.1e}")
    for what, (ratio, name) in zip(("element", "sum"), worst, strict=True):
        print(f"worst {what}: {ratio:.1e} ({name}); {BOUND:.0e} at most")
    if not all(ratio <= BOUND for pair in found["tensors"].values() for ratio in pair):
        raise SystemExit("a gradient is farther from PyTorch's than the bound")


if __name__ == "__main__":
    main()
