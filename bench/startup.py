"""Time what a person waits for before anything is computed: start-up, checking, merges, tokenising.

    python bench/startup.py [--repeats 5]

Whole processes with a warm code cache; one JSON line, medians and best in seconds. The merge list is the published one
where `make gpt2-weights` put it, and the text Tiny Shakespeare; the small model's merges and text of its own otherwise.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OSPREY = [str(Path(sys.executable).parent / "osprey")]
SHAKESPEARE = ROOT / "examples/shakespeare/data/tinyshakespeare.txt"


def timed(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        text = SHAKESPEARE
        if not text.exists():
            text = Path(folder) / "text"
            text.write_text("The words of a text that nobody wrote, again and again.\n" * 18_000)
        tokenize = [*OSPREY, "run", "examples/gpt2/tokenize.osp"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "osprey --version": [*OSPREY, "--version"],
            "osprey check examples/gpt2/gpt2.osp": [*OSPREY, "check", "examples/gpt2/gpt2.osp"],
            "load the merges": tokenize,
            f"load the merges, tokenise {text.stat().st_size / 1e6:.1f} MB": [*tokenize, str(text)],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():
            timed(command)
        for _ in range(repeats):
            for name, command in commands.items():
                times[name].append(timed(command))
    figures = {
        name: {"median_s": round(statistics.median(t), 3), "best_s": round(min(t), 3)} for name, t in times.items()
    }
    print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), **figures}))


if __name__ == "__main__":
    main()
