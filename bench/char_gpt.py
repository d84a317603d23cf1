"""Time the training steps of a character GPT: `osprey train examples/shakespeare/gpt.osp` beside PyTorch and JAX.

    python bench/char_gpt.py [--torch PYTHON] [--jax PYTHON] [--size small|large] [--repeats 3] [--threads 2] [--json FILE]

PYTHON is one that has torch, or jax; their batches are random tokens, of the same shapes. Osprey's steps are told by the
lines of its log, as they are written. The programs take turns; `step` is the median over all chunks of all repeats, after
ten steps; `first` is the first step, in which code is made. Sizes: small has 112,577 parameters (16 x 64 tokens, width 64,
4 heads, 2 layers), large 3,226,689 (16 x 128, 256, 8, 4).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from measure import OSPREY, PEERS, ROOT, machine, median, record, run, seconds, table

SIZES = {
    "small": {"batch": 16, "context": 64, "width": 64, "heads": 4, "layers": 2},
    "large": {"batch": 16, "context": 128, "width": 256, "heads": 8, "layers": 4},
}
TEXT = "examples/shakespeare/data/tinyshakespeare.txt"
WARM = 10
"""Steps that are not counted, the first among them."""


def ours(o: argparse.Namespace) -> dict[str, Any]:
    """What a peer says of itself, of `osprey train`: a thread notes when each line of the log comes through a pipe."""
    times: list[float] = []
    losses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        pipe = f"{folder}/log"
        os.mkfifo(pipe)

        def listen() -> None:
            with open(pipe, encoding="utf-8") as lines:
                for line in lines:
                    times.append(time.perf_counter())
                    losses.extend(v for v in (json.loads(line).get("train"),) if v is not None)

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        words = [w for k, v in SIZES[o.size].items() for w in (f"--{k}", str(v))]
        words += ["--steps", str(o.steps), "--characters", "0", "--every", "1000000", "--windows", "1", "--log", pipe]
        program = "examples/shakespeare/gpt.osp"
        ran = run([*OSPREY, "train", program, "--threads", str(o.threads), *words], o.threads)
        listener.join()
    # The first line is no step, and the last step comes with a validation.
    gaps = [b - a for a, b in itertools.pairwise(times)][: o.steps - 1]
    return {
        "first_s": gaps[0],
        "ms": [1e3 * g for g in gaps[WARM:]],
        "losses": [losses[0], losses[-1]],
        "peak_mb": ran.peak_mb,
    }


def commands(o: argparse.Namespace) -> dict[str, list[str]]:
    """What to run for each program."""
    words = ["--size", o.size, "--threads", str(o.threads), "--seconds", str(o.seconds)]
    found = {}
    for name, library, python in (("PyTorch", "torch", o.torch), ("JAX", "jax", o.jax)):
        for dtype in ("float64", "float32") if python else ():
            found[f"{name} {dtype}"] = [python, str(PEERS / "char_gpt.py"), library, "--dtype", dtype, *words]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--jax", help="a Python that has jax")
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="of osprey's runs")
    parser.add_argument("--seconds", type=float, default=5.0, help="about how long a peer's run is timed")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    o = parser.parse_args()
    if o.steps < WARM + 3:
        parser.error(f"the first {WARM} steps are not counted: --steps {WARM + 3} at least")
    if not (ROOT / TEXT).exists():
        parser.error(f"{TEXT} is not there: `osprey train examples/shakespeare/gpt.osp` fetches it")
    programs = commands(o)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ("osprey", *programs)}
    for _ in range(o.repeats):
        runs["osprey"].append(ours(o))
        for name, command in programs.items():
            runs[name].append(record(command, o.threads))
    figures = {
        name: {
            "step_ms": median([ms for r in rows for ms in r["ms"]]),
            "best_ms": min(ms for r in rows for ms in r["ms"]),
            "first_s": median([r["first_s"] for r in rows]),
            "peak_mb": max(r["peak_mb"] for r in rows),
            "loss": rows[0]["losses"][0],
        }
        for name, rows in runs.items()
    }
    print(machine(o.torch or o.jax))
    print(f"{o.size}, {o.threads} threads, {o.repeats} runs\n")
    head = ("", "step, ms", "best, ms", "first step, s", "peak, MB", "first loss")
    rows = [
        (name, *map(seconds, list(f.values())[:3]), f"{f['peak_mb']:,}", f"{f['loss']:.4f}")
        for name, f in figures.items()
    ]
    print(table(head, rows))
    if o.json:
        o.json.write_text(json.dumps({"size": o.size, "threads": o.threads, "figures": figures}) + "\n", "utf-8")


if __name__ == "__main__":
    main()
