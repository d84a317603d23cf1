#!/usr/bin/env python3
"""Time GPT-2's greedy generation in whole processes: osprey with and without its cache, numpy, and reference.py.

    make_gpt2_weights.py /some/folder && cp merges.txt /some/folder
    generate.py /some/folder [--tokens 20] [--repeats 3] [--threads 2] [--reference]

One JSON line a program: `load_s` is the median of runs that stop after the prompt's ids, `total_s` that of whole runs,
`generate_s` their difference, `cpu_s` the processor time of a whole run, `peak_mb` the largest resident size of a run.
The programs take turns, so that a machine that slows down slows all of them down. `text` tells whether they say the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMPT = "The capital of France is"
OSPREY = "import sys; from osprey_py.cli.main import main; sys.exit(main(sys.argv[1:]))"


def commands(o: argparse.Namespace) -> dict[str, list[str]]:
    """What to run for each program; `--tokens N` is added to it."""
    common = ["--weights", str(o.weights), "--prompt", PROMPT]
    osprey = [sys.executable, "-c", OSPREY, "run", "--threads", str(o.threads), "examples/gpt2/gpt2.osp", *common]
    found = {
        "osprey": osprey,
        "osprey, no cache": [*osprey, "--no-kv-cache"],
        "numpy f64, no cache": [sys.executable, __file__, "--peer", *common[:2]],
    }
    if o.reference:
        found["reference.py"] = [sys.executable, "reference.py", "generate", *common]
    return found


def timed(command: list[str], threads: int) -> tuple[float, float, int, str]:
    """(seconds, seconds of processor time, peak MB, last line of output) of one process."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, cwd=ROOT, env=os.environ | dict.fromkeys(names, str(threads)))
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
        out.seek(0)
        lines = out.read().split("\n")
    scale = 1 << 20 if platform.system() == "Darwin" else 1 << 10
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // scale, lines[-2] if len(lines) > 1 else ""


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
    print(tokenizer.decode(ids))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--reference", action="store_true", help="time reference.py too, once: minutes a token for 124M"
    )
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--weights", dest="folder", type=Path, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.peer:
        peer(o.folder, o.tokens)
        return
    if o.weights is None:
        parser.error("which folder has the weights?")
    o.weights = o.weights.resolve()
    runs: dict[str, list[tuple[float, float, float, int, str]]] = {name: [] for name in commands(o)}
    for repeat in range(o.repeats):
        for name, command in commands(o).items():
            if name == "reference.py" and repeat:
                continue
            load, *_ = timed([*command, "--tokens", "0"], o.threads)
            total, cpu, peak, text = timed([*command, "--tokens", str(o.tokens)], o.threads)
            runs[name].append((load, total, cpu, peak, text))
    text = runs["osprey"][0][4]
    for name, rows in runs.items():
        load, total, cpu = (statistics.median(r[k] for r in rows) for k in (0, 1, 2))
        record = {"program": name, "tokens": o.tokens, "threads": o.threads, "load_s": round(load, 2)}
        record |= {"generate_s": round(total - load, 2), "total_s": round(total, 2), "cpu_s": round(cpu, 2)}
        record |= {"peak_mb": max(r[3] for r in rows), "text": "same" if all(r[4] == text for r in rows) else "differs"}
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
