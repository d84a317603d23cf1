"""The small model's own making: merges learned, a model trained, a checkpoint exported; and what of it is shipped."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from bench.make_gpt2_weights import shapes
from osprey_py import CONTRACT_VERSION
from osprey_py.backends.host import HostBackend
from osprey_py.cli.main import main as osprey
from osprey_py.eval.values import Record, field
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import INT
from osprey_py.training.checkpoint import Checkpoint
from osprey_py.training.program import TrainingProgram, load_training_program
from reference import Tokenizer, byte_chars, split_words
from tests.gpt2.support import PROGRAM, ROOT, SHAKESPEARE, SMALL, captured, digest, run_program

FOLDER = PROGRAM.parent
TINY = "--batch 2 --context 8 --merges 20 --width 8 --heads 2 --layers 2 --warmup 1 --written 5".split()


def merge(word: tuple[int, ...], left: int, right: int, made: int) -> tuple[int, ...]:
    out: list[int] = []
    at = 0
    while at < len(word):
        hit = word[at : at + 2] == (left, right)
        out.append(made if hit else word[at])
        at += 2 if hit else 1
    return tuple(out)


def learned(text: str, count: int) -> list[str]:
    """Byte-pair encoding word by word: again and again the most frequent pair, of equals the lowest ids."""
    chars = byte_chars()
    tokens = sorted(chars, key=lambda c: (ord(c) >= 0x100, c))
    ids = {token: i for i, token in enumerate(tokens)}
    words = Counter(tuple(ids[chars[b]] for b in word.encode("utf-8")) for word in split_words(text))
    merges: list[str] = []
    for _ in range(count):
        pairs: Counter[tuple[int, int]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        if not pairs:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(f"{tokens[left]} {tokens[right]}")
        joined: Counter[tuple[int, ...]] = Counter()
        for word, times in words.items():
            joined[merge(word, left, right, len(tokens))] += times
        words = joined
        tokens.append(tokens[left] + tokens[right])
    return merges


@pytest.fixture(scope="module")
def program() -> TrainingProgram:
    loaded, signature, told = load_training_program(FOLDER / "small.osp")
    assert not told
    return TrainingProgram(loaded, signature, Runtime(HostBackend(threads=1)), FOLDER)


def options(program: TrainingProgram, **changed: object) -> Record:
    made = program.options()
    return type(made)(*(changed.get(name, field(made, name)) for name in made.fields))


def corpus() -> str:
    return (ROOT / "bench" / "small_corpus.txt").read_text("utf-8")[:20000]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (corpus(), 120),
        ("aaaa aaaaa aaa a aaaaaaa", 6),  # overlapping pairs are joined from the left
        ("abba abab baba", 4),  # equal counts
        ("né né ∑∑ 🙂🙂", 12),  # tokens that are no characters
        ("ab", 9),  # nothing is left to merge
        ("", 3),
    ],
)
def test_merges_are_those_of_counting_word_by_word(program: TrainingProgram, text: str, count: int) -> None:
    found = program.learn(options(program, merges=count), text)
    assert list(field(found, "merges")) == learned(text, count)
    assert program.vocabulary_size(found) == 257 + len(learned(text, count))


def trained(folder: Path, *more: str) -> Path:
    """A minute model, trained and exported as `make gpt2-small` does it."""
    text = folder / "text.txt"
    text.write_text(corpus(), "utf-8")
    run = folder / "run"
    words = ["train", str(FOLDER / "small.osp"), "--data", str(text), *TINY, "--steps", "6", "--checkpoint", str(run)]
    found = captured(osprey, [*words, *more])
    assert found.code == 0, found.error
    out = folder / "out"
    out.mkdir()
    export = run_program("--checkpoint", str(run), "--to", str(out), program=FOLDER / "export.osp")
    assert (export.code, export.error) == (0, "")
    return out


def test_what_is_exported_is_the_same_bytes_again_and_generates(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    first, again = trained(tmp_path / "a"), trained(tmp_path / "b", "--threads", "2")
    for name in ("model.safetensors", "merges.txt", "config.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name
    assert {name: t.shape for name, t in load_file(first / "model.safetensors").items()} == shapes(2, 8, 277, 8)
    run = run_program("--weights", str(first), "--prompt", "the", "--tokens", "3")
    assert (run.code, run.error) == (0, "")
    assert "20 merges, 277 vocabulary rows, 2 layers" in run.out


def test_the_loss_in_training_is_that_of_the_model_that_generates(tmp_path: Path, program: TrainingProgram) -> None:
    """By bytes: the pass over windows is model.osp's pass over a prompt, and what is exported is what was trained."""
    folder = trained(tmp_path)
    prompt = "the thou"
    words = ("--weights", str(folder), "--prompt", prompt, "--steps", "0")
    shown = run_program(*words, program=FOLDER / "descend.osp")
    ids = Tokenizer(folder / "merges.txt").encode(prompt)
    assert 2 < len(ids) <= 8
    kept = Checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    state = kept.state(program.signature, program.runtime)
    inputs, targets = (program.runtime.from_list(part, INT) for part in (ids[:-1], ids[1:]))
    loss = program.evaluate(options(program, batch=1, heads=2), state, inputs, targets)
    assert shown.out == f"loss 0 {loss}\n"


def test_what_is_no_checkpoint_is_said(tmp_path: Path) -> None:
    run = run_program("--checkpoint", str(tmp_path), "--to", str(tmp_path), program=FOLDER / "export.osp")
    assert run.code == 1 and "checkpoint.safetensors" in run.error and run.error.count("\n") == 1
    run = run_program("--checkpoint", str(tmp_path), program=FOLDER / "export.osp")
    assert (run.code, run.error) == (2, "export: There are --checkpoint DIR and --to FOLDER.\n")


SHIPPED = {
    "config.json": "117aa3ac9ff21c3c7f7e3c753bc5f40bd12b12f32f831be1784b8cdf45b7d0ee",
    "merges.txt": "81853cb350cc7ba7240f0ac3988612e4aa4c707e44fa5c0dc50966b4adb9e2d0",
    "model.safetensors": "2845687c93b1c4eb464066e1aef7bea64d4690027aeadae741849937f03232ab",
}
"""SHA-256 of what `make gpt2-small` makes in ten minutes, under version 1 of the contract."""


def test_the_small_model_is_shipped_as_it_was_trained() -> None:
    assert CONTRACT_VERSION == "1"
    assert {path.name: digest(path) for path in SMALL.iterdir()} == SHIPPED
    assert sum(path.stat().st_size for path in SMALL.iterdir()) < 2_000_000
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert SHIPPED["model.safetensors"] in readme and SHIPPED["merges.txt"] in readme


def test_the_merges_that_are_shipped_are_those_of_the_training_part(program: TrainingProgram) -> None:
    """Where Tiny Shakespeare has been fetched; the first ones are near to those of its beginning anyway."""
    shipped = (SMALL / "merges.txt").read_text("utf-8").splitlines()[1:]
    assert len(shipped) == 255
    if SHAKESPEARE.exists():
        text = SHAKESPEARE.read_text("utf-8")
        assert list(field(program.learn(program.options(), text[: len(text) * 9 // 10]), "merges")) == shipped
    else:
        assert len({*shipped[:100]} & {*learned(corpus(), 100)}) > 60


def test_the_small_model_has_learned(program: TrainingProgram) -> None:
    """Its loss on verse is half of what it would be without a guess, ln 512 = 6.24, and it goes on like a play."""
    verse = "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak."
    run = run_program("--weights", str(SMALL), "--prompt", verse, "--steps", "0", program=FOLDER / "descend.osp")
    assert (run.code, run.error) == (0, "")
    assert float(run.out.split()[2]) < 3.4
    run = run_program("--weights", str(SMALL), "--prompt", "KING RICHARD III:\n", "--tokens", "60")
    speakers = [line for line in run.out.split("\n")[5:] if line.endswith(":")]
    assert len(speakers) >= 1 and all(line == line.upper() or line.istitle() for line in speakers)
