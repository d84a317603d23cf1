"""Everything, against the peers, in one go: a table in which each row names its limit and what was asked for.

    python bench/all.py DIR --torch PYTHON [--jax PYTHON] [--repeats 3] [--threads 2] [--only NAME …] [--ablations]
                        [--out FILE.md]

DIR holds GPT-2 124M's model.safetensors (bench/make_gpt2_weights.py DIR) and merges.txt; PYTHON is one that has torch and
safetensors, or jax. The scripts of this folder run one after the other, each with its programs in turns; their own tables
go to standard error as they come, the table of all to standard output and to FILE. A limit is the time that the work takes
at the rates that this machine was measured to reach (osprey_py/backends/host/limits.py): arithmetic, where products are
rounded before they are added, or memory. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import ROOT, machine, run, seconds, table

sys.path.insert(0, str(ROOT))
from osprey_py.backends.host.limits import measured
from osprey_py.backends.limits import Limits

Figures = dict[str, Any]

PARAMETERS = 124_439_808
MULTIPLIED = 12 * 12 * 768 * 768 + 50257 * 768
"""Weights that a token of the 124M model is multiplied with, the tied head's among them."""


@dataclass(frozen=True)
class Row:
    """ours and theirs: seconds, or a rate where more is better. asked: what ours may be of theirs at most, or for a rate at
    least. limit: in words, with its seconds (or rate) where it can be computed."""

    name: str
    ours: float | None
    peer: str
    theirs: float | None
    asked: float | None
    limit: str
    unit: str = "s"
    more_is_better: bool = False

    def cells(self) -> tuple[str, ...]:
        ratio = self.ours / self.theirs if self.ours is not None and self.theirs else None
        met = ""
        if ratio is not None and self.asked is not None:
            met = "yes" if (ratio >= self.asked if self.more_is_better else ratio <= self.asked) else "no"
        at = "at least" if self.more_is_better else "at most"
        return (
            self.name,
            "" if self.ours is None else f"{seconds(self.ours)} {self.unit}",
            self.peer if self.theirs is None else f"{self.peer}: {seconds(self.theirs)} {self.unit}",
            "" if ratio is None else f"{ratio:.2f}",
            "" if self.asked is None else f"{at} {self.asked}",
            met,
            self.limit,
        )


def of(figures: Figures, program: str, key: str) -> float | None:
    """A figure, where that program ran."""
    found: float | None = figures.get(program, {}).get(key)
    return found


def bound(limits: Limits, operations: float, moved: float) -> str:
    """The least time for so much work, and what sets it."""
    arithmetic, traffic = limits.arithmetic(round(operations)), moved / limits.rates[-1][1]
    if arithmetic >= traffic:
        return f"arithmetic: {operations / 1e9:.2f} GFLOP, {seconds(arithmetic)} s"
    return f"memory: {moved / 1e9:.2f} GB, {seconds(traffic)} s"


def generation(o: argparse.Namespace, limits: Limits) -> list[Row]:
    words = ["--tokens", "20", *_torch(o)]
    f = _figures(o, "generate.py", str(o.weights), *words)["figures"]
    positions = sum(range(5, 25))
    anew = bound(limits, 2 * (positions * (MULTIPLIED - 50257 * 768) + 20 * 50257 * 768), 20 * 4 * PARAMETERS)
    kept = bound(limits, 2 * 24 * MULTIPLIED, 20 * 4 * MULTIPLIED)
    start = "start-up, reading the weights once, then as above"
    made = "generate_s"
    return [
        Row("20 tokens after 5, no cache", of(f, "osprey", made), "numpy f64", of(f, "numpy float64", made), 0.7, anew),
        Row(
            "with a cache", of(f, "osprey, cache", made), "torch f64", of(f, "PyTorch float64, cache", made), 0.6, kept
        ),
        Row("", of(f, "osprey, cache", made), "torch f32", of(f, "PyTorch float32, cache", made), 1.0, kept),
        *(
            Row(
                f"whole process, {way}",
                of(f, f"osprey{suffix}", "total_s"),
                "torch f64",
                of(f, f"PyTorch float64{suffix}", "total_s"),
                0.6,
                start,
            )
            for way, suffix in (("no cache", ""), ("with a cache", ", cache"))
        ),
        Row(
            "peak of that, against 1,000 MB",
            of(f, "osprey", "peak_mb"),
            "",
            1000.0,
            1.0,
            "the mapped weights: 498 MB",
            "MB",
        ),
    ]


def training(o: argparse.Namespace, limits: Limits) -> list[Row]:
    rows = []
    for tokens in (5, 64, 256):
        f = _figures(o, "train_step.py", str(o.weights), "--tokens", str(tokens), *_torch(o))["figures"]
        # Forward, backward by input and by weight. Weights are read for two of these and to be updated, and written.
        limit = bound(limits, 6 * (tokens - 1) * MULTIPLIED, 8 * (3 * MULTIPLIED + 2 * PARAMETERS))
        for way in ("by language", "by hand"):
            ours, torch = f"osprey, {way}", "PyTorch float64"
            for key, name in (("second_s", "the second"), ("steady_s", "later ones")):
                work = f"SGD step, {tokens} tokens, {way}, {name}"
                rows.append(Row(work, of(f, ours, key), "torch f64", of(f, torch, key), 1.0, limit))
            if tokens == 5:
                held = "the weights in binary64: 1 GB; the largest gradient: 0.3"
                rows.append(Row("peak of that, against 2,000 MB", of(f, ours, "peak_mb"), "", 2000.0, 1.0, held, "MB"))
        steady = [of(f, f"osprey, {way}", "steady_s") for way in ("by language", "by hand")]
        rows.append(Row("by language, beside by hand", steady[0], "by hand", steady[1], 1.3, limit))
    return rows


def character(o: argparse.Namespace, limits: Limits) -> list[Row]:
    rows = []
    for size, asked, parameters, tokens in (("small", 0.7, 112_577, 1024), ("large", 0.85, 3_226_689, 2048)):
        f = _figures(o, "char_gpt.py", "--size", size, *_torch(o), *(["--jax", o.jax] if o.jax else []))["figures"]
        limit = bound(limits, 6 * tokens * parameters, 8 * 16 * parameters)
        ours = of(f, "osprey", "step_ms")
        for peer, name, wanted in (("PyTorch float64", "torch f64", asked), ("JAX float64", "JAX f64", None)):
            theirs = of(f, peer, "step_ms")
            if theirs is not None or peer.startswith("PyTorch"):
                rows.append(
                    Row(f"char-GPT {size}, a step", ours, name, theirs, wanted, f"linear layers, {limit}", "ms")
                )
        rows.append(
            Row(f"char-GPT {size}, the first", of(f, "osprey", "first_s"), "", None, None, "code generation, planning")
        )
    return rows


def products(o: argparse.Namespace, limits: Limits) -> list[Row]:
    words = ["--threads", str(o.threads), *(["--torch", o.torch] if o.torch else [])]
    cases = json.loads(run([sys.executable, "bench/gemm.py", *words], o.threads).last)["cases"]
    rows = []
    for case, kind, asked in (
        ("1024x1024x1024", "f64", 0.95),
        ("24x768x3072", "f32", 1.3),
        ("5x768x3072", "f32", None),
    ):
        found = {name: r["median"] for name, r in cases[case].items()}
        limit = f"arithmetic: {limits.operations / 1e9:.0f} GFLOP/s"
        ours, theirs = found[f"osprey {kind}"], found["numpy float64"]
        rows.append(Row(f"{case}, {kind} weights", ours, "numpy f64", theirs, asked, limit, "GFLOP/s", True))
    return rows


def scaling(o: argparse.Namespace, limits: Limits) -> list[Row]:
    """What lasts longer than 50 ms, on one thread and on all."""
    rates = [measured(n) for n in (1, o.threads)]
    arithmetic, memory = (rates[1].operations / rates[0].operations, rates[1].rates[-1][1] / rates[0].rates[-1][1])
    limit = f"this machine's arithmetic: {arithmetic:.2f}, its memory: {memory:.2f}"
    alone, together = (
        argparse.Namespace(**{**vars(o), "threads": n, "torch": None, "jax": None}) for n in (1, o.threads)
    )
    weights = str(o.weights)
    work = (
        ("20 tokens after 5, no cache", "generate.py", (weights, "--tokens", "20"), "osprey", "generate_s"),
        ("with a cache", "generate.py", (weights, "--tokens", "20"), "osprey, cache", "generate_s"),
        ("SGD step, 5 tokens", "train_step.py", (weights, "--tokens", "5"), "osprey, by language", "steady_s"),
        ("SGD step, 64 tokens", "train_step.py", (weights, "--tokens", "64"), "osprey, by language", "steady_s"),
        ("SGD step, 256 tokens", "train_step.py", (weights, "--tokens", "256"), "osprey, by language", "steady_s"),
        ("char-GPT large, a step", "char_gpt.py", ("--size", "large"), "osprey", "step_ms"),
    )
    rows, found = [], {}
    for name, script, words, program, key in work:
        seconds = []
        for how in (alone, together):
            run = (script, words, how.threads)
            found[run] = found.get(run) or _figures(how, script, *words)["figures"]
            seconds.append(of(found[run], program, key))
        unit = key.split("_")[1]
        rows.append(Row(f"{name}, 1 thread", seconds[0], f"{o.threads} threads", seconds[1], 1.7, limit, unit, True))
    return rows


def functions(o: argparse.Namespace, limits: Limits) -> list[Row]:
    from osprey_py.graph.work import operations_of

    rows = []
    for threads in sorted({o.threads, 1}, reverse=True):
        words = ["--points", "200000", "--threads", str(threads)]
        found = json.loads(run([sys.executable, "bench/numerics.py", *words], threads).last)
        rate = measured(threads).operations
        for name, f in found.items():
            limit = f"arithmetic: {operations_of(name)} operations, {operations_of(name) / rate * 1e9:.2f} ns"
            work = f"{name}, an element, {threads} thread{'s' if threads > 1 else ''}"
            asked = 1.0 if threads == o.threads else None
            rows.append(Row(work, f["osprey_ns"], "numpy f64", f["numpy_ns"], asked, limit, "ns"))
    return rows


def elementwise(o: argparse.Namespace, limits: Limits) -> list[Row]:
    found = json.loads(run([sys.executable, "bench/elementwise.py", "--threads", "1"], 1).last)
    return [
        Row(
            f"{name}, an element, 1 thread",
            f["osprey_ns"],
            "numpy f64",
            f["numpy_ns"],
            1.0,
            "its functions, memory",
            "ns",
        )
        for name, f in found.items()
    ]


def waiting(o: argparse.Namespace, limits: Limits) -> list[Row]:
    found = json.loads(run([sys.executable, "bench/startup.py"], o.threads).last)
    return [
        Row(name, f["median_s"], "", None, None, "the interpreter's start")
        for name, f in found.items()
        if isinstance(f, dict)
    ]


PARTS: dict[str, Callable[[argparse.Namespace, Limits], list[Row]]] = {
    "generation": generation,
    "training": training,
    "character": character,
    "products": products,
    "functions": functions,
    "elementwise": elementwise,
    "scaling": scaling,
    "waiting": waiting,
}


def _torch(o: argparse.Namespace) -> list[str]:
    return ["--torch", o.torch] if o.torch else []


def _figures(o: argparse.Namespace, script: str, *words: str) -> Figures:
    """What a script of this folder finds; its own table goes to standard error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures"
        common = ["--repeats", str(o.repeats), "--threads", str(o.threads), "--json", str(path)]
        ran = run([sys.executable, f"bench/{script}", *words, *common], o.threads)
        print("\n".join((script, *ran.lines, "")), file=sys.stderr, flush=True)
        found: Figures = json.loads(path.read_text("utf-8"))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--jax", help="a Python that has jax")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--ablations", action="store_true", help="and the table of ablations, which takes long")
    parser.add_argument("--out", type=Path, help="write the tables there too")
    o = parser.parse_args()
    o.weights = o.weights.resolve()
    limits = measured(o.threads)
    rows = [row for part in o.only for row in PARTS[part](o, limits)]
    head = ("work", "osprey", "peer", "ratio", "asked", "met", "limit")
    rates = f"{limits.operations / 1e9:.0f} GFLOP/s, {limits.rates[-1][1] / 1e9:.1f} GB/s on {o.threads} threads"
    lines = [machine(o.torch), f"limits: {rates}", "", table(head, [row.cells() for row in rows])]
    if o.ablations:
        own = ["--repeats", str(o.repeats), "--threads", str(o.threads)]
        lines += ["", *run([sys.executable, "bench/ablations.py", str(o.weights), *own], o.threads).lines[2:]]
    print("\n".join(lines))
    if o.out:
        o.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
