"""Programs of the tests and examples, changed a little: what a person's slips make of them.

Comes in: a random generator. Goes out: texts that are nearly programs. By hand, for a time:

    python -m tests.fuzz.programs SECONDS [SEED]

checks them one after another, prints what ends in an exception or takes longer than two seconds, and keeps its text.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from osprey_py.check import check_source
from osprey_py.source.codes import CODES
from osprey_py.source.render import render

TESTS = Path(__file__).parent.parent
_TOKEN = re.compile(r'\s+|\w+|"[^"\n]*"|=>|->|\|>|\?:|::|.', re.DOTALL)
_LONGEST = 6000
SLOW = 2.0


@cache
def corpus() -> list[list[str]]:
    """Every short program of the tests and the examples, in tokens."""
    files = [
        *sorted(TESTS.glob("check/**/*.osp")),
        *sorted(TESTS.glob("errors/**/*.osp")),
        *sorted(TESTS.glob("programs/*.osp")),
        *sorted((TESTS.parent / "examples").glob("**/*.osp")),
        *sorted((TESTS.parent / "stdlib").glob("*.osp")),
    ]
    texts = (f.read_text(encoding="utf-8") for f in files)
    return [_TOKEN.findall(t) for t in texts if len(t) < _LONGEST]


@cache
def _pool() -> list[str]:
    return [token for program in corpus() for token in program]


def slipped(rng: random.Random) -> str:
    """One program with one to six slips in it."""
    tokens = list(rng.choice(corpus()))
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        if tokens:
            _slip(tokens, rng)
    return "".join(tokens)


def _slip(tokens: list[str], rng: random.Random) -> None:
    """Delete, replace, insert or swap tokens, take one name for another, or paste a piece of another program."""
    k, kind = rng.randrange(len(tokens)), rng.random()
    if kind < 0.25:
        del tokens[k]
    elif kind < 0.5:
        tokens[k] = rng.choice(_pool())
    elif kind < 0.6:
        tokens.insert(k, rng.choice(_pool()))
    elif kind < 0.75:
        other = rng.randrange(len(tokens))
        tokens[k], tokens[other] = tokens[other], tokens[k]
    elif kind < 0.9:
        names = [t for t in tokens if t[0].isalpha()]
        if names and tokens[k][0].isalpha():
            tokens[k] = rng.choice(names)
    else:
        program = rng.choice(corpus())
        start = rng.randrange(len(program))
        tokens[k:k] = program[start : start + rng.randrange(20)]


def check(text: str) -> bool:
    """Whether the program is accepted. Raises AssertionError for what no text may cause."""
    program, told = check_source(text)
    assert (program is None) == any(d.is_error for d in told)
    for d in told:
        assert d.code in CODES, d.code
        assert render(d)
    return program is not None


def finds(seconds: float, seed: int) -> Iterator[tuple[str, str]]:
    """(what happened, text) for each text that must not do what it does; the last one sums up."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    count = accepted = 0
    while time.monotonic() < end:
        text = slipped(rng)
        count += 1
        start = time.monotonic()
        try:
            accepted += check(text)
        except Exception as error:
            yield f"{type(error).__name__}: {error}", text
        if time.monotonic() - start > SLOW:
            yield "slow", text
    yield f"{count} programs, {accepted} accepted", ""


def main(arguments: list[str]) -> None:
    seconds = float(arguments[0]) if arguments else 60.0
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(1 << 30)
    print(f"seed {seed}")
    for k, (what, text) in enumerate(finds(seconds, seed)):
        if text:
            Path(f"fuzz-{seed}-{k}.osp").write_text(text, encoding="utf-8")
        print(what)


if __name__ == "__main__":
    main(sys.argv[1:])
