"""What each optimisation is worth: the same programs with one switched off, in turns, and the same bytes from all.

    python bench/ablations.py DIR [--tokens 20] [--steps 4] [--repeats 3] [--threads 2] [--only NAME …] [--json FILE]

DIR holds model.safetensors and merges.txt. For each variant a process generates text and another takes steps of gradient
descent (examples/gpt2), after one round that is not counted and makes their code. A step: the median of the times between
losses, after the first two; the rest are whole processes. `bytes`: whether every score, loss and sum of a gradient has the
bytes that it has with everything on.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import ROOT, Run, machine, median, run, seconds, table
from variants import VARIANTS, Variant


def child(name: str, threads: int, program: str, words: list[str]) -> int:
    """Run a program of examples/gpt2 under a variant, as `osprey run` does."""
    from osprey_py.check import load_program
    from osprey_py.eval.run import run_program

    loaded, diagnostics = load_program(ROOT / "examples/gpt2" / program)
    assert loaded is not None, diagnostics
    variant = next(v for v in VARIANTS if v.name == name)
    return run_program(loaded, args=words, runtime=variant.make(threads), folder="examples/gpt2")


def command(v: Variant, o: argparse.Namespace, program: str, *words: str) -> list[str]:
    own = ["--child", v.name, "--threads", str(o.threads)]
    return [sys.executable, __file__, *own, program, "--weights", str(o.weights), *words]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def gaps(ran: Run, start: str) -> list[float]:
    """Seconds between the lines that begin so, without the first two."""
    at = [t for t, line in zip(ran.times, ran.lines, strict=True) if line.startswith(start)]
    return [b - a for a, b in itertools.pairwise(at)][2:]


def once(v: Variant, o: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All runs of one variant, one after the other."""
    caches = ({"XDG_CACHE_HOME": str(folder / f"cache{k}")} if v.cold else {} for k in range(3))
    trace, step = folder / "trace", folder / "step"
    for old in (trace, step):
        old.unlink(missing_ok=True)
    text = run(command(v, o, "gpt2.osp", "--tokens", str(o.tokens), "--trace", str(trace)), o.threads, next(caches))
    steps = run(command(v, o, "descend.osp", "--steps", str(o.steps)), o.threads, next(caches))
    run(command(v, o, "train.osp", "--trace", str(step)), o.threads, next(caches))
    return {
        "generate_s": text.seconds,
        "step_s": gaps(steps, "loss "),
        "steps_s": steps.seconds,
        "peak_mb": (text.peak_mb, steps.peak_mb),
        "bytes": (digest(trace), digest(step), [line for line in steps.lines if line.startswith("loss ")]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these variants, and everything on")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    o = parser.parse_args()
    if o.steps < 3:
        parser.error("a steady step comes after the second: --steps 3 at least")
    o.weights = o.weights.resolve()
    chosen = [v for v in VARIANTS if not o.only or v is VARIANTS[0] or v.name in o.only]
    runs: dict[str, list[dict[str, Any]]] = {v.name: [] for v in chosen}
    for repeat in range(o.repeats + 1):
        for v in chosen:
            with tempfile.TemporaryDirectory() as folder:
                found = once(v, o, Path(folder))
            if repeat:
                runs[v.name].append(found)
            print(f"{repeat} of {o.repeats}: {v.name}", file=sys.stderr, flush=True)
    expected = runs[VARIANTS[0].name][0]["bytes"]
    figures = {
        name: {
            "generate_s": median([r["generate_s"] for r in rows]),
            "steps_s": median([r["steps_s"] for r in rows]),
            "step_s": median([t for r in rows for t in r["step_s"]]),
            "peak_mb": [max(r["peak_mb"][k] for r in rows) for k in (0, 1)],
            "same": all(r["bytes"] == expected for r in rows),
        }
        for name, rows in runs.items()
    }
    base = figures[VARIANTS[0].name]
    print(machine())
    print(f"{o.weights}, {o.tokens} tokens, {o.steps} steps, {o.threads} threads, {o.repeats} runs\n")
    head = ("off", f"{o.tokens} tokens, s", "ratio", "a step, s", "ratio", "its process, s", "peaks, MB", "bytes")
    rows = [
        (
            name,
            seconds(f["generate_s"]),
            f"{f['generate_s'] / base['generate_s']:.2f}",
            seconds(f["step_s"]),
            f"{f['step_s'] / base['step_s']:.2f}",
            seconds(f["steps_s"]),
            " and ".join(f"{mb:,}" for mb in f["peak_mb"]),
            "equal" if f["same"] else "DIFFERENT",
        )
        for name, f in figures.items()
    ]
    print(table(head, rows))
    if o.json:
        o.json.write_text(json.dumps({"tokens": o.tokens, "steps": o.steps, "figures": figures}) + "\n", "utf-8")
    if not all(f["same"] for f in figures.values()):
        raise SystemExit("a switch changed a byte")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(sys.argv[2], int(sys.argv[4]), sys.argv[5], sys.argv[6:]))
    main()
