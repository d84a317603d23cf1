"""Runs of `osprey train` on a bigram model (bigram.osp) and a text that is made here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from osprey_py.cli.main import main

FOLDER = Path(__file__).parent
BIGRAM = FOLDER / "bigram.osp"
ROOT = FOLDER.parent.parent

WORDS = "the cat and a dog that sat on mat with hat ran to red barn then told tall tale".split()


def text(length: int = 4000) -> str:
    """Words in an order that does not repeat soon; every character occurs in every tenth of it."""
    made, k = "", 1
    while len(made) < length:
        k = k * 48271 % 2147483647
        made += WORDS[k % len(WORDS)] + (".\n" if k % 7 == 0 else " ")
    return made[:length]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Train = Callable[..., Said]


@pytest.fixture
def train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Train:
    """train("--steps", 5, …): `osprey train bigram.osp --data TEXT …` in this process; data: another text."""
    (tmp_path / "text.txt").write_text(text(), encoding="utf-8")

    def run(*words: Any, program: Path = BIGRAM, data: Path | None = tmp_path / "text.txt") -> Said:
        capsys.readouterr()
        given = ["--data", data] if data is not None else []
        try:
            code = main(["train", *map(str, [program, *given, *words])])
        except SystemExit as left:
            code = int(left.code or 0)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


def command(*words: Any) -> list[str]:
    return [sys.executable, "-m", "osprey_py.cli.main", "train", *map(str, words)]


def process(*words: Any, **how: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    piped = subprocess.PIPE
    return subprocess.Popen(command(*words), stdout=piped, stderr=piped, text=True, encoding="utf-8", cwd=ROOT, **how)
