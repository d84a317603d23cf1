#!/usr/bin/env python3
"""Time GPT-2's greedy generation in whole processes: osprey with and without its cache, beside its peers.

    make_gpt2_weights.py /some/folder && cp merges.txt /some/folder
    generate.py /some/folder [--torch PYTHON] [--tokens 20] [--repeats 3] [--threads 2] [--reference] [--json FILE]

The peers are numpy in float64; PyTorch in float64 and float32, with and without a cache, when PYTHON has torch and
safetensors; and reference.py when asked for. `load` is the median of runs that stop after the prompt's ids, `process` that
of whole runs, `generating` what numpy and PyTorch say of themselves, for osprey the time between two of its lines,
`processor` the processor time of a whole run, `peak` the largest resident size of a run. Each program runs once before
that, so that its files are in memory and osprey's code is in its cache; then they take turns, so that a machine that slows
down slows all of them down. `text` tells whether they say the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from measure import OSPREY, PEERS, PROMPT, ROOT, Run, machine, median, run, seconds, table


def commands(o: argparse.Namespace) -> dict[str, list[str]]:
    """What to run for each program; `--tokens N` is added to it."""
    common = ["--weights", str(o.weights), "--prompt", PROMPT]
    osprey = [*OSPREY, "run", "--threads", str(o.threads), "examples/gpt2/gpt2.osp", *common]
    found = {
        "osprey, cache": osprey,
        "osprey": [*osprey, "--no-kv-cache"],
        "numpy float64": [sys.executable, __file__, "--peer", *common[:2]],
    }
    if o.torch:
        torch = [o.torch, str(PEERS / "gpt2_torch.py"), "generate", *common[1:], "--threads", str(o.threads)]
        for dtype in ("float64", "float32"):
            found[f"PyTorch {dtype}, cache"] = [*torch, "--dtype", dtype, "--cache"]
            found[f"PyTorch {dtype}"] = [*torch, "--dtype", dtype]
    if o.reference:
        found["reference.py"] = [sys.executable, "reference.py", "generate", *common]
    return found


def peer(folder: Path, tokens: int) -> None:
    """The same generation the way numpy people write it, in binary64."""
    import numpy as np

    sys.path.insert(0, str(ROOT))
    from osprey_py.tensors.safetensors import open_tensors
    from reference import Tokenizer

    file = open_tensors(str(folder / "model.safetensors"))
    w = {n: file.read(n).data.astype("f8").reshape(file.shape(n)) for n in file.names if not n.endswith(".attn.bias")}
    heads = w["wte.weight"].shape[1] // 64
    tokenizer = Tokenizer(folder / "merges.txt")
    ids = tokenizer.encode(PROMPT)

    def norm(x, name):  # type: ignore[no-untyped-def]
        off = x - x.mean(-1, keepdims=True)
        return off / np.sqrt((off * off).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):  # type: ignore[no-untyped-def]
        return x @ w[name + ".weight"] + w[name + ".bias"]

    begin = time.perf_counter()
    for _ in range(tokens):
        t = len(ids)
        x = w["wte.weight"][ids] + w["wpe.weight"][:t]
        mask = np.where(np.tri(t) == 0, -np.inf, 0.0)
        for h in range(sum(n.endswith("ln_1.bias") for n in w)):
            name = f"h.{h}."
            parts = np.split(linear(norm(x, name + "ln_1"), name + "attn.c_attn"), 3, -1)
            q, k, v = (p.reshape(t, heads, 64).transpose(1, 0, 2) for p in parts)
            s = q @ k.transpose(0, 2, 1) / 8.0 + mask
            e = np.exp(s - s.max(-1, keepdims=True))
            mixed = (e / e.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(t, -1)
            x = x + linear(mixed, name + "attn.c_proj")
            y = linear(norm(x, name + "ln_2"), name + "mlp.c_fc")
            y = 0.5 * y * (1 + np.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)))
            x = x + linear(y, name + "mlp.c_proj")
        ids.append(int((norm(x[-1], "ln_f") @ w["wte.weight"].T).argmax()))
    print(f"generating {time.perf_counter() - begin}")
    print(tokenizer.decode(ids))


def generating(runs: list[Run]) -> float | None:
    """Seconds, the median: what the program says, or from the line with the prompt's ids to the one that says how many
    were generated; None for a program that prints neither."""
    found = [float(line.split()[1]) for r in runs for line in r.lines if line.startswith("generating ")]
    for r in runs:
        at = {line.split()[0]: t for line, t in zip(r.lines, r.times, strict=True) if line}
        if "generated" in at and "tokens:" in at:
            found.append(at["generated"] - at["tokens:"])
    return median(found) if found else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--reference", action="store_true", help="time reference.py too, once: minutes a token for 124M"
    )
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--weights", dest="folder", type=Path, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.peer:
        peer(o.folder, o.tokens)
        return
    if o.weights is None:
        parser.error("which folder has the weights?")
    o.weights = o.weights.resolve()
    runs: dict[str, list[tuple[Run, Run]]] = {name: [] for name in commands(o)}
    for name, command in commands(o).items():
        if name != "reference.py":
            run([*command, "--tokens", "3"], o.threads)
    for repeat in range(o.repeats):
        for name, command in commands(o).items():
            if name == "reference.py" and repeat:
                continue
            load = run([*command, "--tokens", "0"], o.threads)
            runs[name].append((load, run([*command, "--tokens", str(o.tokens)], o.threads)))
    text = runs["osprey"][0][1].last
    figures = {
        name: {
            "generate_s": generating([whole for _, whole in rows]),
            "load_s": median([load.seconds for load, _ in rows]),
            "total_s": median([whole.seconds for _, whole in rows]),
            "cpu_s": median([whole.cpu for _, whole in rows]),
            "peak_mb": max(whole.peak_mb for _, whole in rows),
            "same": all(whole.last == text for _, whole in rows),
        }
        for name, rows in runs.items()
    }
    print(machine(o.torch))
    print(f"{o.weights}, {o.tokens} tokens after a prompt, {o.threads} threads, {o.repeats} runs\n")
    head = ("", "generating, s", "load, s", "process, s", "processor, s", "peak, MB", "text")
    rows = [
        (
            name,
            *("" if x is None else seconds(x) for x in list(f.values())[:4]),
            f"{f['peak_mb']:,}",
            "same" if f["same"] else "differs",
        )
        for name, f in figures.items()
    ]
    print(table(head, rows))
    if o.json:
        o.json.write_text(json.dumps({"tokens": o.tokens, "threads": o.threads, "figures": figures}) + "\n", "utf-8")


if __name__ == "__main__":
    main()
