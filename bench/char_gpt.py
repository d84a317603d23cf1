"""Time the training steps of a character GPT: AdamW, batches of 16 rows, random tokens.

    python bench/char_gpt.py --torch PYTHON [--jax PYTHON] [--size small|large] [--repeats 3] [--threads 2] [--json FILE]

PYTHON is one that has torch, or jax. The programs take turns; `step` is the median over all chunks of all repeats, after
ten steps; `first` is the first step, in which code is made. Sizes: small has 112,577 parameters (16 x 64 tokens, width 64,
4 heads, 2 layers), large 3,226,689 (16 x 128, 256, 8, 4).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from measure import PEERS, machine, median, record, seconds, table


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
    parser.add_argument("--seconds", type=float, default=5.0, help="about how long each run is timed")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    o = parser.parse_args()
    programs = commands(o)
    if not programs:
        parser.error("there is nothing to run: name a Python with --torch or --jax")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    for _ in range(o.repeats):
        for name, command in programs.items():
            runs[name].append(record(command, o.threads))
    first = next(iter(runs.values()))[0]["losses"][0]
    figures = {
        name: {
            "step_ms": median([ms for r in rows for ms in r["ms"]]),
            "best_ms": min(ms for r in rows for ms in r["ms"]),
            "first_s": median([r["first_s"] for r in rows]),
            "peak_mb": max(r["peak_mb"] for r in rows),
            "same": all(abs(r["losses"][0] - first) <= 1e-5 * first for r in rows),
        }
        for name, rows in runs.items()
    }
    print(machine(o.torch or o.jax))
    print(f"{o.size}, {o.threads} threads, {o.repeats} runs\n")
    head = ("", "step, ms", "best, ms", "first step, s", "peak, MB", "first loss")
    rows = [
        (name, *map(seconds, list(f.values())[:3]), f"{f['peak_mb']:,}", "same" if f["same"] else "differs")
        for name, f in figures.items()
    ]
    print(table(head, rows))
    if o.json:
        o.json.write_text(json.dumps({"size": o.size, "threads": o.threads, "figures": figures}) + "\n", "utf-8")


if __name__ == "__main__":
    main()
