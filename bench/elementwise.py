"""LayerNorm, softmax and GELU with flat index arithmetic, beside numpy's array expressions in the same process.

    python bench/elementwise.py [--threads 1] [--json FILE]

`elementwise.osp` computes them on 256 rows of 768; what is timed are its native runs, without planning. numpy computes the
same expressions, a whole array at a time, on one thread, as it always does for these; the C library is told to keep the
memory of its temporary arrays, which makes it five times as fast as it is out of the box. Medians and best of 30, in
nanoseconds an element; numpy's exp and tanh are not correctly rounded.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Report, Step
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime

ROWS, WIDTH = 256, 768


class Watched(HostBackend):
    """The host, adding up the seconds of its native runs."""

    begin = None  # type: ignore[assignment]  # steps come to `run`, all together
    seconds = 0.0

    def run(self, steps: Sequence[Step]) -> Report:
        begin = time.perf_counter()
        report = super().run(steps)
        self.seconds += time.perf_counter() - begin
        return report


class Lines(io.StringIO):
    """Standard output that notes what was spent when a line comes: its first word names the work."""

    def __init__(self, host: Watched) -> None:
        super().__init__()
        self.host = host
        self.spent: dict[str, list[float]] = {}

    def write(self, text: str) -> int:
        name = text.split(" ", 1)[0]
        if name in PEERS:
            self.spent.setdefault(name, []).append(self.host.seconds)
        self.host.seconds = 0.0
        return super().write(text)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    off = x - x.mean(-1, keepdims=True)
    return off / np.sqrt((off * off).mean(-1, keepdims=True) + 1e-5) * gain + bias


def softmax(x: Any, _gain: Any, _bias: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x: Any, _gain: Any, _bias: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


PEERS: dict[str, Callable[[Any, Any, Any], Any]] = {"layerNorm": layer_norm, "softmax": softmax, "gelu": gelu}


def theirs(peer: Callable[[Any, Any, Any], Any]) -> list[float]:
    rng = np.random.default_rng(0)
    x, gain, bias = rng.uniform(-1, 1, (ROWS, WIDTH)), rng.uniform(-1, 1, WIDTH), rng.uniform(-1, 1, WIDTH)
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        peer(x, gain, bias)
        times.append(time.perf_counter() - begin)
    return times


KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 26)}
"""What tells glibc to keep memory; it reads this when a process starts."""


def main() -> None:
    if any(os.environ.get(name) != value for name, value in KEEP.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | KEEP)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    o = parser.parse_args()
    program, diagnostics = load_program(Path(__file__).with_suffix(".osp"))
    assert program is not None, diagnostics
    host = Watched(threads=o.threads)
    out = Lines(host)
    # A run that repeats an earlier one goes past `Watched`.
    if run_program(program, runtime=Runtime(host, repeats=False), stdout=out, stderr=sys.stderr):
        raise SystemExit("elementwise.osp failed")
    report = {}
    for name, peer in PEERS.items():
        ours, other = out.spent[name][3:], theirs(peer)[3:]
        assert min(ours) > 0, "no native run was seen"
        n = ROWS * WIDTH * 1e-9
        report[name] = {"osprey_ns": statistics.median(ours) / n, "numpy_ns": statistics.median(other) / n}
        best = f"best {min(ours) / n:.2f}, numpy {min(other) / n:.2f}"
        print(f"{name:10} {report[name]['osprey_ns']:.2f} ns an element, numpy {report[name]['numpy_ns']:.2f} ({best})")
    print(json.dumps(report))
    if o.json:
        o.json.write_text(json.dumps(report) + "\n", "utf-8")


if __name__ == "__main__":
    main()
