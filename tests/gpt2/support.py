"""What the tests of examples/gpt2 share: folders of weights, runs of both programs, the tokenizers package's BPE."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import reference
from bench import make_gpt2_weights
from osprey_py.cli.main import main as osprey

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "examples" / "gpt2" / "gpt2.osp"
SMALL = ROOT / "examples" / "gpt2" / "small"
PUBLISHED_MERGES = ROOT / "examples" / "gpt2" / "weights" / "merges.txt"
SHAKESPEARE = ROOT / "examples" / "shakespeare" / "data" / "tinyshakespeare.txt"

TINY = "--layers 2 --width 32 --heads 4 --vocab 300 --context 16 --deviation 0.3"
"""A model whose context is short, so that every length can be tried."""


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    error: str


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """With `folder` as the current one."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def captured(call: object, *arguments: object) -> Run:
    out, error = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = call(*arguments)  # type: ignore[operator]
        except SystemExit as e:
            code = e.code
    return Run(int(str(code or 0)), out.getvalue(), error.getvalue())


def run_program(*arguments: str, options: tuple[str, ...] = (), program: Path = PROGRAM) -> Run:
    """`osprey run OPTIONS examples/gpt2/gpt2.osp ARGUMENTS`, in this process, from the root of the repository."""
    with inside(ROOT):
        return captured(osprey, ["run", *options, str(program.relative_to(ROOT)), *arguments])


def run_reference(*arguments: str, command: str = "generate") -> Run:
    """`python reference.py COMMAND ARGUMENTS`, in this process."""
    before = sys.argv
    sys.argv = ["reference.py", command, *arguments]
    try:
        return captured(reference.main)
    finally:
        sys.argv = before


def make_weights(folder: Path, sizes: str = TINY, *more: str) -> Path:
    """A folder with seeded weights and the first merges of the small model."""
    options = [*sizes.split(), *more]
    captured(make_gpt2_weights.main, [str(folder), *options])
    vocabulary = int(options[len(options) - 1 - options[::-1].index("--vocab") + 1])
    lines = (SMALL / "merges.txt").read_text("utf-8").split("\n")
    (folder / "merges.txt").write_text("\n".join(lines[: 1 + vocabulary - 257]) + "\n", "utf-8")
    return folder


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def merge_list() -> Path:
    """The published merges where they have been fetched, else the small model's."""
    return PUBLISHED_MERGES if PUBLISHED_MERGES.exists() else SMALL / "merges.txt"


def package_tokenizer(merges: Path) -> Tokenizer:
    """The tokenizers package's byte-level BPE over the same merge list."""
    pairs = [tuple(line.split(" ")) for line in merges.read_text("utf-8").split("\n")[1:] if line]
    base = sorted(pre_tokenizers.ByteLevel.alphabet(), key=lambda c: (ord(c) >= 0x100, c))
    vocabulary = {token: i for i, token in enumerate([*base, *("".join(pair) for pair in pairs)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def corpus() -> str:
    """Tiny Shakespeare where it has been fetched, else the beginning of it that is in the repository."""
    return (SHAKESPEARE if SHAKESPEARE.exists() else ROOT / "bench" / "small_corpus.txt").read_text("utf-8")
