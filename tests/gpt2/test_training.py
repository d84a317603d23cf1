"""examples/gpt2/train.osp against reference.py train, byte for byte; gradients against finite differences of the loss."""

from __future__ import annotations

import json
import math
import random
from array import array
from pathlib import Path

import pytest
from safetensors.numpy import load_file

import reference
from bench.make_gpt2_weights import shapes
from osprey_py import CONTRACT_VERSION
from osprey_py.numerics import exact
from tests.gpt2.support import (
    PROGRAM,
    SMALL,
    digest,
    make_weights,
    run_program,
    run_reference,
)

PROMPT = "The capital of France is"
TRAIN = PROGRAM.parent / "train.osp"
DESCEND = PROGRAM.parent / "descend.osp"
MINUTE = "--layers 2 --width 8 --heads 2 --vocab 270 --context 8 --deviation 0.3 --dtype F64"
WORDS = "abcab"
"""A token that stands twice, so that its row of the embedding gets two contributions."""

GOLDEN = "9dd397ca97e0a51789dde4ffe88115c08f76902c76010d64ddecf0d29d190720"
"""SHA-256 of the small model's trace under version 1 of the contract."""


@pytest.fixture(scope="module")
def minute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("minute"), MINUTE, "--config")


def trace(path: Path, folder: Path, prompt: str, *more: str, options: tuple[str, ...] = ()) -> bytes:
    path.unlink(missing_ok=True)
    words = ["--weights", str(folder), "--prompt", prompt, "--trace", str(path), *more]
    run = run_program(*words, options=options, program=TRAIN)
    assert (run.code, run.error) == (0, "")
    return path.read_bytes()


def test_the_small_model_s_step_is_reference_py_s(tmp_path: Path) -> None:
    """Losses and the sum of every gradient, as bytes, and what is printed."""
    assert CONTRACT_VERSION == "1"
    words = ["--weights", str(SMALL), "--prompt", PROMPT, "--trace"]
    mine = run_program(*words, str(tmp_path / "a"), program=TRAIN)
    other = run_reference(*words, str(tmp_path / "b"), command="train")
    assert (mine.code, mine.error, other.code) == (0, "", 0)
    assert mine.out.replace(" on host — ", " on reference.py — ") == other.out
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert digest(tmp_path / "a") == GOLDEN
    lines = mine.out.split("\n")
    assert lines[0] == "gpt2 (245K) on host — one training step over 13 tokens, learning rate 0.0001"
    assert [line.split()[0] for line in lines[3:-1]] == ["loss", "grad", "h.0", "h.1", "loss"]
    records = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    names = [name for record in records for name in record.get("gradient", ())]
    assert sorted(names) == sorted(shapes(2, 88, 512, 128))


def test_neither_threads_nor_fusion_nor_the_device_changes_a_byte(minute: Path, tmp_path: Path) -> None:
    first = trace(tmp_path / "a", minute, WORDS)
    run_reference("--weights", str(minute), "--prompt", WORDS, "--trace", str(tmp_path / "b"), command="train")
    assert first == (tmp_path / "b").read_bytes()
    for options in (("--threads", "1"), ("--threads", "3"), ("--no-fusion",), ("--device", "oracle")):
        assert first == trace(tmp_path / "c", minute, WORDS, options=options), options


def test_the_loss_falls_with_a_step_down_and_rises_with_a_step_up(minute: Path, tmp_path: Path) -> None:
    before, down, up = (
        float.fromhex(json.loads(trace(tmp_path / "a", minute, WORDS, "--rate", rate).splitlines()[-1])["after"])
        for rate in ("0", "0.001", "-0.001")
    )
    assert down < before < up


def test_every_element_of_every_gradient_is_reference_py_s_and_the_slope_of_the_loss(
    minute: Path, tmp_path: Path
) -> None:
    """Osprey's elements are reference.py's by bytes. A few of each tensor are compared with central differences of
    reference.py's loss; these are exact to about the square of the step, so here, and only here, is a tolerance."""
    model = reference.Model(minute)
    ids = reference.Tokenizer(minute / "merges.txt").encode(WORDS)
    step = reference.Step(model, ids, 0.0, keep=True)
    step.backward()
    assert step.gradients is not None
    for name, gradient in step.gradients.items():
        rows = [array("d", model.w.row(name, r)) for r in range(len(gradient))]
        model.w.changed[name] = rows
        for r, c in places(name, gradient, ids):
            old, losses = rows[r][c], []
            for move in (2.0**-13, -(2.0**-13)):
                rows[r][c] = old + move
                losses.append(reference.Step(model, ids, 0.0).loss)
            rows[r][c] = old
            slope = (losses[0] - losses[1]) / 2.0**-12
            assert math.isclose(gradient[r][c], slope, rel_tol=1e-5, abs_tol=1e-7), (name, r, c, gradient[r][c], slope)
        del model.w.changed[name]

    file = tmp_path / "gradients.safetensors"
    run = run_program("--weights", str(minute), "--prompt", WORDS, "--gradients", str(file), program=TRAIN)
    assert (run.code, run.error) == (0, "")
    mine = load_file(file)
    assert {name: values.shape for name, values in mine.items()} == shapes(2, 8, 270, 8)
    for name, rows in step.gradients.items():
        assert mine[name].dtype.name == "float64"
        assert mine[name].tobytes() == b"".join(array("d", row).tobytes() for row in rows), name


def places(name: str, gradient: reference.Matrix, ids: list[int]) -> list[tuple[int, int]]:
    """Of the embeddings: rows that the prompt looks up and one that it does not. Of the others: both ends and between."""
    last = len(gradient[0]) - 1
    if name == "wte.weight":
        return [(ids[0], 0), (ids[1], last), (ids[-1], 3), (200, 5)]
    if name == "wpe.weight":
        return [(0, 0), (len(ids) - 2, last), (len(ids) - 1, 1), (len(gradient) - 1, 2)]
    middle = len(gradient) // 2
    return [(0, 0), (middle, last // 3), (middle, 2 * last // 3), (len(gradient) - 1, last)]


def test_steps_one_after_the_other_are_reference_py_s(minute: Path) -> None:
    """Four, so that a step is computed plainly, recorded, and replayed twice."""
    words = ("--weights", str(minute), "--prompt", WORDS, "--rate", "0.01")
    run = run_program(*words, "--steps", "4", program=DESCEND)
    assert (run.code, run.error) == (0, "")
    model = reference.Model(minute)
    ids = reference.Tokenizer(minute / "merges.txt").encode(WORDS)
    expected = []
    for n in range(4):
        step = reference.Step(model, ids, 0.01)
        expected.append(f"loss {n} {step.loss}")
        step.backward()
        step.finish()
    expected.append(f"loss 4 {reference.Step(model, ids, 0.01).loss}")
    assert run.out.splitlines() == expected
    assert run_program(*words, "--steps", "0", program=DESCEND).out == f"{expected[0]}\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--steps", "few"), 2, "gpt2: --steps wants a whole number, not few"),
        (("--rate", "fast"), 2, "gpt2: --rate wants a number, not fast"),
        (("--tokens", "3"), 2, "gpt2: what is --tokens? There are --prompt TEXT, --steps N"),
        (("--prompt", "a"), 1, "gpt2: the prompt has one token, and a loss wants two at least"),
        (("--prompt", ""), 1, "gpt2: the prompt is empty"),
    ],
)
def test_wrong_words_to_steps_are_named(minute: Path, words: tuple[str, ...], code: int, message: str) -> None:
    run = run_program("--weights", str(minute), *words, program=DESCEND)
    assert run.code == code
    assert message in run.error
    assert run.error.count("\n") == 1


def test_ln_is_correctly_rounded() -> None:
    """reference.py's own, against the language's, whose tests have the hardest arguments."""
    arguments = [2.0**-1074, 2.0**-1022, 0.1, 0.5, 1 - 2.0**-53, 1 + 2.0**-52, 1.5, 2.0, 3.0, 50257.0, 1e300, math.inf]
    arguments += [1.0, 0.0, -0.0, math.nan, 1.0000003, 0.7071067811865476, 1.7976931348623157e308]
    r = random.Random(3)
    arguments += [2.0 ** r.uniform(-1074, 1023) for _ in range(300)] + [r.uniform(0.9, 1.1) for _ in range(300)]
    arguments += [1.0 + r.choice((-1, 1)) * 2.0 ** r.uniform(-52, -1) for _ in range(300)]
    for x in arguments:
        assert reference.ln(x).hex() == exact.ln(x).hex(), x


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--prompt", "a"), 1, "gpt2: the prompt has one token, and a loss wants two at least"),
        (("--prompt", ""), 1, "gpt2: the prompt is empty"),
        (("--prompt", "abcdefghi"), 1, "the prompt has 9 tokens, and the context holds 8"),
        (("--rate", "fast"), 2, "--rate wants a number, not fast"),
        (("--rate", "inf"), 2, "--rate wants a number, not inf"),
        (("--tokens", "3"), 2, "what is --tokens? There are --prompt TEXT, --rate R"),
        (("--prompt", "ab", "--trace", "/no/such/folder/trace"), 1, "/no/such/folder/trace"),
        (("--prompt", "ab", "--gradients", "/no/such/folder/g"), 1, "/no/such/folder/g"),
    ],
)
def test_wrong_words_and_prompts_are_named(minute: Path, words: tuple[str, ...], code: int, message: str) -> None:
    run = run_program("--weights", str(minute), *words, program=TRAIN)
    assert run.code == code
    assert message in run.error
    assert run.error.count("\n") == 1


def test_reference_py_refuses_one_token(minute: Path) -> None:
    run = run_reference("--weights", str(minute), "--prompt", "a", command="train")
    assert (run.code, run.error) == (1, "reference.py: the prompt has one token, and a loss wants two at least\n")
