"""A run from end to end: the same bytes however it is run, and what stands in log and checkpoint (TR7-TR13, TR15-TR17)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from osprey_py.training.batches import batch, even_places, random_places
from osprey_py.training.checkpoint import NAME
from tests.training.support import BIGRAM, Said, Train, text

STEPS = 23
COMMON = ("--steps", STEPS, "--every", 5, "--seed", 7)


def files(folder: Path) -> tuple[bytes, bytes]:
    """(log, checkpoint)"""
    return (folder / "log").read_bytes(), (folder / "kept" / NAME).read_bytes()


def run(train: Train, folder: Path, *words: Any) -> Said:
    folder.mkdir(exist_ok=True)
    return train(*COMMON, "--checkpoint", folder / "kept", "--log", folder / "log", *words)


def sample(said: Said) -> str:
    return said.out.partition("\n\n")[2]


@pytest.fixture
def whole(train: Train, tmp_path: Path) -> tuple[tuple[bytes, bytes], str]:
    """Log and checkpoint of an uninterrupted run on two threads, and its sample."""
    said = run(train, tmp_path / "whole", "--threads", 2)
    assert said.code == 0, said.err
    return files(tmp_path / "whole"), sample(said)


def test_one_thread_another_run_and_the_oracle_give_the_same_bytes(
    train: Train, tmp_path: Path, whole: tuple[tuple[bytes, bytes], str]
) -> None:
    """TR13"""
    for name, words in [("again", ["--threads", 2]), ("one", ["--threads", 1]), ("oracle", ["--device", "oracle"])]:
        said = run(train, tmp_path / name, *words)
        assert (files(tmp_path / name), sample(said)) == whole, name


def test_cut_in_three_it_ends_at_the_same_bytes(
    train: Train, tmp_path: Path, whole: tuple[tuple[bytes, bytes], str]
) -> None:
    """TR13, TR14, TR17: cut where nothing is validated, and where something is."""
    folder = tmp_path / "cut"
    first = run(train, folder, "--until", 8, "--resume")
    assert first.code == 0 and first.out.endswith("stopped after 8 of 23 steps; --resume goes on\n")
    assert files(folder)[0] == b"".join(whole[0][0].splitlines(keepends=True)[:9])
    second = run(train, folder, "--until", 16, "--resume")
    assert "8 of 23 steps are taken" in second.out and second.code == 0
    third = run(train, folder, "--resume")
    assert (files(folder), sample(third)) == whole
    again = run(train, folder, "--resume")  # nothing is left to do but to say it again
    assert (files(folder), sample(again)) == whole and "step" in again.out and "train" not in again.out


def test_another_seed_and_another_text_give_others(
    train: Train, tmp_path: Path, whole: tuple[tuple[bytes, bytes], str]
) -> None:
    said = run(train, tmp_path / "other", "--seed", 8)
    assert said.code == 0 and files(tmp_path / "other")[0] != whole[0][0]


def test_the_log(train: Train, tmp_path: Path, whole: tuple[tuple[bytes, bytes], str]) -> None:
    """TR8, TR12"""
    lines = [json.loads(line) for line in whole[0][0].decode().splitlines()]
    size = len(set(text()))
    assert lines[0] == {
        "parameters": size * size,
        "vocabulary": size,
        "seed": 7,
        "options": {
            "rowCount": 4,
            "rowTokens": 8,
            "rate": 4.0,
            "momentum": 0.5,
            "warm": True,
            "letters": 40,
            "opening": "t",
        },
    }
    steps = lines[1:-1]
    assert [line["step"] for line in steps] == list(range(STEPS))
    assert [line["step"] for line in steps if "validation" in line] == [0, 5, 10, 15, 20, 22]
    for line in steps:
        assert all(float.fromhex(line[f"{k}Hex"]) == line[k] for k in ("train", "validation") if k in line)
    assert lines[-1] == {"sample": whole[1].removesuffix("\n")} and len(whole[1]) == 41
    assert abs(steps[0]["train"] - math.log(size)) < 0.12 * math.log(size)
    assert steps[-1]["train"] < steps[0]["train"]


def test_the_losses_are_those_of_the_batches(train: Train, tmp_path: Path) -> None:
    """TR6-TR9: in plain Python. With a rate of 0 the scores stay those of `init`, which are written down here again."""
    said = train(*COMMON, "--rate", "0", "--log", tmp_path / "log", "--windows", 10)
    assert said.code == 0, said.err
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    whole = text()
    cut = 9 * len(whole) // 10
    letters = list(dict.fromkeys(whole[:cut]))
    n = len(letters)

    def wrapped(x: int) -> int:
        return (x + 2**63) % 2**64 - 2**63

    seeded = wrapped(wrapped(7 * 6364136223846793005) + 1442695040888963407)
    scores = [float(wrapped(wrapped(i + seeded) * 2654435761) & 1023) / 102400.0 for i in range(n * n)]

    def loss(part: str, places: list[int]) -> float:
        ids = np.array([letters.index(c) for c in part])
        total = 0.0
        inputs, targets = batch(ids, places, 8)
        for x, y in zip(inputs.tolist(), targets.tolist(), strict=True):
            row = scores[x * n : x * n + n]
            total += math.log(math.fsum(map(math.exp, row))) - row[y]
        return total / len(inputs)

    training, validation = whole[:cut], whole[cut:]
    for number in (0, 5, 22):
        line = lines[1 + number]
        expected = loss(training, random_places(7, 0, number, 4, len(training) - 8))
        assert line["train"] == pytest.approx(expected, abs=1e-12)
        expected = loss(validation, random_places(7, 1, number, 4, len(validation) - 8))
        assert line["validation"] == pytest.approx(expected, abs=1e-12)
    places = even_places(12, len(validation) - 8)  # ten, in whole batches
    batches = [loss(validation, places[k : k + 4]) for k in (0, 4, 8)]
    assert lines[-2]["windows"] == 12
    assert lines[-2]["validation"] == pytest.approx(sum(batches) / 3, abs=1e-12)
    assert re.search(r"^validation over 12 windows: \d\.\d{4}$", said.out, re.MULTILINE)


def test_the_safetensors_package_reads_a_checkpoint(tmp_path: Path, whole: tuple[tuple[bytes, bytes], str]) -> None:
    """TR16"""
    lines = [json.loads(line) for line in whole[0][0].decode().splitlines()]
    with safe_open(tmp_path / "whole" / "kept" / NAME, "np") as file:
        size = lines[0]["vocabulary"]
        shapes = {name: tuple(file.get_tensor(name).shape) for name in file.keys()}  # noqa: SIM118
        assert shapes == {
            "size": (), "table": (size * size,), "speed.0": (size * size,), "best.0": (), "best.1": (),
            "train/losses": (STEPS,), "validation/steps": (6,), "validation/losses": (6,),
        }  # fmt: skip
        assert file.get_tensor("size").dtype == np.int64 and int(file.get_tensor("size")) == size
        assert file.get_tensor("best.1").dtype == np.bool_
        losses = [line["train"] for line in lines[1:-1]]
        assert file.get_tensor("train/losses").tolist() == losses
        assert float(file.get_tensor("best.0")) == min(losses)
        assert file.get_tensor("validation/steps").tolist() == [0, 5, 10, 15, 20, 22]
        metadata = file.metadata()
    assert json.loads(metadata["options"]) == lines[0]["options"]
    known = json.loads(metadata["vocabulary"])
    letters = list(dict.fromkeys(text()[: 9 * len(text()) // 10]))
    assert known == {"characters": [ord(c) for c in letters], "ids": [[ord(c), i] for i, c in enumerate(letters)]}
    state = json.loads(metadata["training"])
    assert (state["steps"], state["seed"], state["texts"], state["lengths"]) == (
        STEPS, 7, {"note": "begun with 7"}, {"speed": 1}
    )  # fmt: skip


def test_what_is_said(train: Train, tmp_path: Path) -> None:
    """TR8, TR11: the lines of a run that is not on a terminal."""
    said = train("--steps", 7, "--every", 3)
    lines = said.out.splitlines()
    size = len(set(text()))
    assert lines[0] == f"{size * size} parameters, vocabulary {size}"
    pattern = re.compile(r"step (.{5})  train \d\.\d{3}  val \d\.\d{3}  .{6} ms/step")
    matched = [pattern.fullmatch(line) for line in lines[1:4]]
    assert [int(m[1]) for m in matched if m is not None] == [0, 3, 6]
    assert lines[4] == "" and len("\n".join(lines[5:])) == 40 and said.err == ""


def test_a_loss_that_is_no_number_ends_the_run(train: Train, tmp_path: Path) -> None:
    """TR10"""
    folder = tmp_path / "far"
    said = run(train, folder, "--rate", "2500", "--no-warm", "--every", 1)
    assert said.code == 1 and "a smaller rate, or clipping, may help; the checkpoint of step 3 stands" in said.err, (
        said.err
    )
    assert re.match(r"osprey train: the (validation )?loss (of|after) step \d+ is (nan|inf)", said.err), said.err
    with safe_open(folder / "kept" / NAME, "np") as file:
        assert file.get_tensor("train/losses").shape == (3,)


def test_a_fault_of_the_program_is_told_where_it_is(train: Train, tmp_path: Path) -> None:
    """TR1: after steps that went well, which stay."""
    program = tmp_path / "faulty.osp"
    head = "let now = pass(s, inputs, targets)\n    let places"
    source = BIGRAM.read_text(encoding="utf-8")
    assert head in source
    broken = source.replace(
        head, head.replace("    let places", "    let none = intDiv(1, 7 - number)\n    let places")
    )
    program.write_text(broken, encoding="utf-8")
    said = train(*COMMON, "--log", tmp_path / "log", program=program)
    assert said.code == 1 and "error[E0502]: division by zero" in said.err and f"{program}:" in said.err
    assert len((tmp_path / "log").read_text().splitlines()) == 1 + 7
