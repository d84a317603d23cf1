"""examples/shakespeare/sample.osp writes what the trained model would, and says what is wrong with a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from osprey_py.cli.main import main as osprey
from osprey_py.training.checkpoint import History, Keeper, Origin
from tests.shakespeare.support import FOLDER, LETTERS, SMALL, gpt, options


def kept(folder: Path, **changed: Any) -> Any:
    """A checkpoint of a model that has learnt nothing; how it writes."""
    program = gpt()
    o = options(program, **{**SMALL, **changed})
    v = program.learn(o, LETTERS)
    state = program.init(o, v, 3)
    folder.mkdir()
    Keeper(folder, program.signature, program.runtime, Origin(o, v, 3, "")).save(state, History())

    def text(seed: int, **changed: Any) -> str:
        return program.sample(options(program, **{**SMALL, **changed}), v, state, seed)

    return text


def sample(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    try:
        code = osprey(["run", os.path.relpath(FOLDER / "sample.osp"), *map(str, words)])
    except SystemExit as left:
        code = int(left.code or 0)
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.mark.parametrize("changed", [{}, {"tied": True}, {"layers": 3}])
def test_a_checkpoint_writes_what_its_model_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any]
) -> None:
    text = kept(tmp_path / "run", **changed)
    code, out, error = sample(capsys, "--checkpoint", tmp_path / "run", "--characters", 30, "--seed", 4)
    assert (code, out, error) == (0, text(4, characters=30, **changed) + "\n", "")
    code, out, _ = sample(capsys, "--checkpoint", tmp_path / "run", "--characters", 9, "--temperature", 0)
    assert (code, out) == (0, text(0, characters=9, temperature=0.0, **changed) + "\n")
    code, out, _ = sample(capsys, "--checkpoint", tmp_path / "run", "--characters", 5, "--prompt", "To be", "--top", 2)
    assert (code, out[:5], len(out)) == (0, "To be", 11)


def test_what_cannot_be_sampled_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path / "run")
    run = "--checkpoint", tmp_path / "run"
    usage = "There are --checkpoint DIR, --prompt TEXT, --characters N, --temperature T, --top K and --seed S."
    for words, code, said in [
        ((), 2, f"sample: --checkpoint DIR is missing. {usage}"),
        (("--chekpoint", "x"), 2, f"sample: what is --chekpoint? {usage}"),
        ((*run, "--top"), 2, f"sample: what is --top? {usage}"),
        ((*run, "--top", "many"), 2, "sample: --top wants a whole number, not many"),
        ((*run, "--temperature", "hot"), 2, "sample: --temperature wants a number, not hot"),
        ((*run, "--prompt", "naïve"), 1, "sample: character 3, ï, was never seen"),
        (("--checkpoint", tmp_path), 1, "no such file"),
    ]:
        found, out, error = sample(capsys, *words)
        assert (found, out) == (code, "") and said in error and error.count("\n") == 1, words


def test_another_file_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = FOLDER.parent / "gpt2" / "small" / "model.safetensors"
    (tmp_path / "checkpoint.safetensors").write_bytes(small.read_bytes())
    code, _, error = sample(capsys, "--checkpoint", tmp_path)
    assert code == 1 and "has no options: it is no checkpoint" in error
