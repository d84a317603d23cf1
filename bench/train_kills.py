#!/usr/bin/env python3
"""Kill a training run at random moments, and fill its disk: it always ends at the bytes of a run that nothing disturbs.

    train_kills.py [PROGRAM] [--data FILE] [--steps 20000] [--every 20] [--kills 50] [--seed 0] [--threads 2]
                   [--disk FOLDER] [-- OPTIONS OF THE PROGRAM]

Compared are the log, the checkpoint and the sample. A kill is SIGKILL, a random time after the start of a process that is
then resumed; times are such that the run is about to end when the last kill comes. --disk: an empty folder on a small file
system of its own, `mount -t tmpfs -o size=1m tmpfs FOLDER`; a file is made to fill it after the first steps, the run fails,
the file goes, the run is resumed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "checkpoint.safetensors"


class Runs:
    """The command, with the options that all runs share."""

    def __init__(self, o: argparse.Namespace, options: list[str]) -> None:
        self.words = [sys.executable, "-m", "osprey_py.cli.main", "train", str(o.program), *options, "--resume"]
        self.words += ["--steps", str(o.steps), "--every", str(o.every), "--threads", str(o.threads)]
        self.words += ["--data", str(o.data)] if o.data else []

    def begin(self, log: Path, kept: Path, *words: str) -> subprocess.Popen[str]:
        command = [*self.words, "--log", str(log), "--checkpoint", str(kept), *words]
        piped = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, stdout=piped, stderr=piped, text=True, encoding="utf-8")

    def end(self, log: Path, kept: Path) -> tuple[bytes, bytes, str]:
        """(log, checkpoint, sample)"""
        out, err = (run := self.begin(log, kept)).communicate()
        if run.returncode:
            sys.exit(f"the run failed: {err}")
        return log.read_bytes(), (kept / NAME).read_bytes(), out.partition("\n\n")[2]


def killed(
    runs: Runs, folder: Path, kills: int, chance: random.Random, start: float, steps: float
) -> tuple[bytes, bytes, str]:
    """The end of a run that is killed so often. start, steps: seconds that a run takes to begin, and for its steps."""
    log, kept = folder / "log", folder / "kept"
    sizes = []
    for _ in range(kills):
        run = runs.begin(log, kept)
        time.sleep(chance.uniform(0.5, 1.0) * start + chance.uniform(0.0, 2.0) * steps / kills)
        run.kill()
        run.communicate()
        sizes.append(log.read_bytes().count(b"\n") if log.exists() else 0)
    print(f"killed {kills} times, when the log had these numbers of lines: {' '.join(map(str, sizes))}")
    return runs.end(log, kept)


def filled(runs: Runs, folder: Path, disk: Path, every: int) -> tuple[bytes, bytes, str]:
    """The end of a run whose disk is full for a while."""
    log, kept = folder / "log", disk / "kept"
    runs.begin(log, kept, "--until", str(2 * every)).communicate()
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(1024))
        except OSError:
            pass
    _, err = (run := runs.begin(log, kept)).communicate()
    print(f"disk full: exit code {run.returncode}, {err.strip()}")
    assert run.returncode == 1 and sorted(p.name for p in kept.iterdir()) == [NAME]
    filler.unlink()
    return runs.end(log, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=Path, default=ROOT / "tests" / "training" / "bigram.osp")
    parser.add_argument("--data", type=Path, help="default: the program's own, or Tiny Shakespeare")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--disk", type=Path)
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    o = parser.parse_args(words[:at])
    if o.data is None and o.program.name == "bigram.osp":
        o.data = ROOT / "examples" / "shakespeare" / "data" / "tinyshakespeare.txt"
    runs = Runs(o, words[at + 1 :])
    os.environ["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        runs.begin(folder / "start", folder / "start kept", "--until", "1").communicate()
        start = time.monotonic() - began
        whole = runs.end(folder / "whole", folder / "whole kept")
        steps = time.monotonic() - began - 2 * start
        (folder / "killed").mkdir()
        same = killed(runs, folder / "killed", o.kills, random.Random(o.seed), start, steps) == whole
        print(f"after them, log, checkpoint and sample are {'the same bytes' if same else 'OTHER BYTES'}")
        if o.disk is not None:
            (folder / "full").mkdir()
            after = filled(runs, folder / "full", o.disk, o.every) == whole
            print(f"after a full disk, log, checkpoint and sample are {'the same bytes' if after else 'OTHER BYTES'}")
            same = same and after
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
