"""What can be wrong with weights, prompts and words: named, one line, exit code 1 (2 for the words)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from osprey_py.tensors.safetensors import open_tensors, save_tensors
from tests.gpt2.support import make_weights, run_program


def rewrite(folder: Path, change: Callable[[str], tuple[str, str] | None]) -> None:
    """Write the weights again; change(name) gives the name and what to do: keep, short (one row less); None drops it."""
    path = str(folder / "model.safetensors")
    file = open_tensors(path)
    out = []
    for name in file.names:
        found = change(name)
        if found is None:
            continue
        shape, storage = file.shape(name), file.read(name)
        if found[1] == "short":
            row = storage.length // shape[0]
            shape = (shape[0] - 1, *shape[1:])
            storage = type(storage)(storage.kind, storage.data[: storage.length - row])
        out.append((found[0], shape, storage))
    save_tensors(path, out)


def drop(name: str) -> Callable[[Path], object]:
    return lambda folder: rewrite(folder, lambda n: None if n == name else (n, "keep"))


def shorten(name: str) -> Callable[[Path], object]:
    return lambda folder: rewrite(folder, lambda n: (n, "short" if n == name else "keep"))


def cut(count: int) -> Callable[[Path], object]:
    def do(folder: Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-count])

    return do


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: no such file or directory"),
        (lambda f: (f / "merges.txt").unlink(), "merges.txt"),
        (cut(10), 'tensor "ln_f.bias": file cut short or offsets out of range'),
        (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 8), "header length 18446744073709551615"),
        (drop("wte.weight"), 'tensor "wte.weight": not in '),
        (drop("h.0.mlp.c_fc.bias"), 'tensor "h.0.mlp.c_fc.bias": not in '),
        (drop("h.1.ln_2.weight"), 'tensor "h.1.ln_2.weight": not in '),
        (drop("ln_f.weight"), 'tensor "ln_f.weight": not in '),
        (shorten("h.1.attn.c_attn.weight"), 'tensor "h.1.attn.c_attn.weight": shape [31, 96] instead of [32, 96]'),
        (shorten("h.0.ln_1.bias"), 'tensor "h.0.ln_1.bias": shape [31] instead of [32]'),
        (lambda f: (f / "config.json").write_text('{"n_head": 5}'), "5 heads do not divide a width of 32"),
        (lambda f: (f / "config.json").write_text('{"n_head": 2.5}'), "config.json: n_head is 2.5"),
        (lambda f: (f / "config.json").write_text('{"n_head": "4"}'), "config.json: n_head is no number"),
        (lambda f: (f / "config.json").write_text("[4]"), "config.json: not an object"),
        (lambda f: (f / "config.json").write_text("{"), "config.json: parseJson: "),
        (lambda f: (f / "merges.txt").write_bytes(b"\xff"), "merges.txt: not UTF-8 at byte 0"),
        (
            lambda f: (f / "merges.txt").write_text("#version: 0.2\nq zz\n"),
            "line 2: not a merge of two known tokens: q zz",
        ),
    ],
)
def test_wrong_weights_are_named(tmp_path: Path, break_it: Callable[[Path], object], message: str) -> None:
    folder = make_weights(tmp_path)
    break_it(folder)
    run = run_program("--weights", str(folder), "--prompt", "a", "--tokens", "1")
    assert run.code == 1
    assert run.error.startswith("gpt2: ")
    assert message in run.error
    assert run.error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--prompt", ""), 1, "the prompt is empty"),
        (("--prompt", "abcdefghijklmnopq"), 1, "the prompt has 17 tokens, and the context holds 16"),
        (("--tokens", "-1"), 2, "--tokens wants a whole number, not -1"),
        (("--tokens", "many"), 2, "--tokens wants a whole number, not many"),
        (("--frobnicate",), 2, "what is --frobnicate? There are --prompt TEXT"),
        (("--prompt",), 2, "what is --prompt?"),
        (("--prompt", "a", "--trace", "/no/such/folder/trace"), 1, "/no/such/folder/trace"),
    ],
)
def test_wrong_words_and_prompts_are_named(tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    folder = make_weights(tmp_path)
    run = run_program("--weights", str(folder), *words)
    assert run.code == code
    assert message in run.error
    assert run.error.count("\n") == 1


def test_a_vocabulary_smaller_than_the_merges_is_named(tmp_path: Path) -> None:
    """A token of the prompt that the embedding has no row for."""
    folder = make_weights(tmp_path)
    make_weights(tmp_path / "more", "--layers 1 --width 64 --vocab 400 --context 8")
    (folder / "merges.txt").write_bytes((tmp_path / "more" / "merges.txt").read_bytes())
    word = (folder / "merges.txt").read_text("utf-8").split("\n")[140].replace(" ", "").replace("Ġ", " ")
    run = run_program("--weights", str(folder), "--prompt", word, "--tokens", "1")
    assert run.code == 1
    assert "of the prompt is outside the vocabulary of 300 rows" in run.error
