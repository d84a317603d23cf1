"""Time steps of gradient descent on GPT-2: osprey beside PyTorch, each step after the first in the same process.

    python bench/train_step.py DIR [--torch PYTHON] [--steps 6] [--tokens 5] [--repeats 3] [--threads 2] [--json FILE]

DIR holds model.safetensors and merges.txt; PYTHON is one that has torch and safetensors. A step is the time from one loss
to the next: backward, update, forward. `first`: the first, in which code is made or loaded; `second`; `steady`: the median
of those after it, but for the last: a gradient by hand is there before the loss beside it is printed, so that behind the
last loss but one there is no backward pass. The peak is that of the whole process. The programs take turns, each time
another one first: memory that a process has just given back is cheap to the next one, and where the host of a virtual
machine has taken it away, a gigabyte costs a second. Medians over the repeats. The losses of the float64 programs are
compared to eight digits, those of float32 to three.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from measure import OSPREY, PEERS, PROMPT, ROOT, Run, machine, median, run, seconds, table

LONGER = " and this is a longer prompt, of words that say little: the city on the river, the river in the city,"
"""Put behind the prompt as often as it takes."""


@dataclass(frozen=True)
class Program:
    """digits: of a loss that must be those of the first program."""

    name: str
    command: list[str]
    digits: int


def programs(o: argparse.Namespace) -> list[Program]:
    words = ["--prompt", o.prompt, "--steps", str(o.steps), "--rate", "0.0001"]
    run = [*OSPREY, "run", "--threads", str(o.threads)]
    found = [
        Program(f"osprey, {by}", [*run, "examples/gpt2/descend.osp", "--weights", o.weights, *words, *more], 8)
        for by, more in BY.items()
    ]
    if o.torch:
        peer = [o.torch, str(PEERS / "gpt2_torch.py"), "steps", o.weights, *words, "--threads", str(o.threads)]
        for dtype, digits in (("float64", 8), ("float32", 3)):
            found.append(Program(f"PyTorch {dtype}", [*peer, "--dtype", dtype], digits))
    return found


BY = {"by hand": ["--by", "hand"], "by language": ["--by", "language"]}
"""Ways to a gradient, and the options that choose them."""


def prompt(tokens: int, weights: Path) -> str:
    """The usual prompt, made longer to about so many tokens where it has fewer."""
    sys.path.insert(0, str(ROOT))
    from reference import Tokenizer

    tokenizer, text = Tokenizer(weights / "merges.txt"), PROMPT
    while len(tokenizer.encode(text)) < tokens:
        text += LONGER
    while text != PROMPT and len(tokenizer.encode(text)) > tokens:
        text = text.rsplit(" ", 1)[0]
    return text


def losses(ran: Run) -> list[float]:
    return [float(line.split()[2]) for line in ran.lines if line.startswith("loss ")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=5, help="of the prompt, about")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    o = parser.parse_args()
    if o.steps < 4:
        parser.error("a steady step comes after the second and before the last: --steps 4 at least")
    o.prompt, o.weights = prompt(o.tokens, o.weights), str(o.weights.resolve())
    runs: dict[str, list[Run]] = {p.name: [] for p in programs(o)}
    turn = programs(o)
    for _ in range(o.repeats):
        for p in turn:
            runs[p.name].append(run(p.command, o.threads))
        turn = [*turn[1:], turn[0]]
    first = losses(next(iter(runs.values()))[0])
    figures = {}
    for p in programs(o):
        steps = [[b - a for a, b in itertools.pairwise(r.times)] for r in runs[p.name]]
        figures[p.name] = {
            "first_s": median([s[0] for s in steps]),
            "second_s": median([s[1] for s in steps]),
            "steady_s": median([t for s in steps for t in s[2:-1]]),
            "best_s": min(t for s in steps for t in s[1:-1]),
            "total_s": median([r.seconds for r in runs[p.name]]),
            "peak_mb": max(r.peak_mb for r in runs[p.name]),
            "same": all(
                abs(a - b) <= 10.0**-p.digits * abs(b)
                for r in runs[p.name]
                for a, b in zip(losses(r), first, strict=True)
            ),
        }
    print(machine(o.torch))
    print(f"{o.weights}, a prompt of about {o.tokens} tokens, {o.threads} threads, {o.repeats} runs\n")
    head = ("", "first step, s", "second, s", "steady, s", "best, s", "process, s", "peak, MB", "losses")
    rows = [
        (name, *map(seconds, list(f.values())[:5]), f"{f['peak_mb']:,}", "same" if f["same"] else "differ")
        for name, f in figures.items()
    ]
    print(table(head, rows))
    if o.json:
        o.json.write_text(json.dumps({"steps": o.steps, "tokens": o.tokens, "figures": figures}) + "\n", "utf-8")


if __name__ == "__main__":
    main()
