"""Time one token more of GPT-2 with its cache of keys and values, at early and late positions.

    python bench/positions.py DIR [--threads 2] [--width 40]

DIR holds model.safetensors and merges.txt. One run of 1,000 tokens after a prompt of five; a token is the time between two
launches that had to run; medians over WIDTH positions around each. `attention` is what reading the keys and values of all
earlier positions takes at the memory bandwidth that `osprey run --profile` measures, beyond that at the first row.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import time
from pathlib import Path

from measure import PROMPT, ROOT, machine, median, table

from osprey_py.backends.host import HostBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.buffer import Node
from osprey_py.graph.runtime import Runtime

POSITIONS = (50, 100, 200, 400, 600, 800, 900, 980)
KEPT = 12 * 2 * 768 * 8
"""Bytes of keys and values a position, in binary64."""


class Timed(Runtime):
    """times: when a launch had run that somebody waited for."""

    def __init__(self, host: HostBackend) -> None:
        super().__init__(host)
        self.times: list[float] = []

    def force(self, targets: list[Node]) -> None:
        super().force(targets)
        self.times.append(time.perf_counter())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--width", type=int, default=40)
    o = parser.parse_args()
    loaded, diagnostics = load_program(ROOT / "examples" / "gpt2" / "gpt2.osp")
    assert loaded is not None, diagnostics
    host = HostBackend(threads=o.threads)
    runtime = Timed(host)
    words = ["--weights", str(o.weights.resolve()), "--prompt", PROMPT, "--tokens", "1000"]
    if run_program(loaded, args=words, runtime=runtime, stdout=io.StringIO()):
        raise SystemExit("the run failed")
    gaps = [1e3 * (b - a) for a, b in itertools.pairwise(runtime.times)]
    assert 990 <= len(gaps) <= 1010, f"{len(gaps)} waits are not one a token"
    bandwidth = host.limits().rates[-1][1]
    rows = []
    first = 0.0
    for k, position in enumerate(POSITIONS):
        took = median(gaps[position - 5 - o.width // 2 : position - 5 + o.width // 2])
        first = first or took
        read = 1e3 * KEPT * (position - POSITIONS[0]) / bandwidth
        rows.append((position, f"{took:.1f}", f"{took - first:.1f}" if k else "", f"{read:.1f}" if k else ""))
    print(machine())
    print(f"{o.weights}, {o.threads} threads\n")
    print(table(("position", "a token, ms", "more than the first, ms", "attention, ms"), rows))


if __name__ == "__main__":
    main()
