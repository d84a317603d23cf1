"""The training step whose gradient the language derives: beside the one by hand, by bytes, and blind to the future."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from bench.make_gpt2_weights import shapes
from osprey_py import CONTRACT_VERSION
from osprey_py.cli.main import main as osprey
from tests.gpt2.support import PROGRAM, SMALL, captured, digest, inside, make_weights, run_program

PROMPT = "The capital of France is"
TRAIN, DESCEND = PROGRAM.parent / "train.osp", PROGRAM.parent / "descend.osp"
MINUTE = "--layers 2 --width 8 --heads 2 --vocab 270 --context 8 --deviation 0.3 --dtype F64"
WORDS = "abcab"
BOUND = 1e-10

GOLDEN = "cc33042d639f8770f2d99d456b8fcb4a6ca2fd381dc539cb97a576434156d331"
"""SHA-256 of the small model's trace under version 1 of the contract. tests/gradient holds a GPT to the rules."""


@pytest.fixture(scope="module")
def minute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("minute"), MINUTE, "--config")


def step(folder: Path, weights: Path, prompt: str, way: str, *options: str) -> tuple[bytes, dict[str, Any]]:
    """(the trace, all gradients) of one step."""
    trace, gradients = folder / f"{way}.trace", folder / f"{way}.safetensors"
    words = ["--weights", str(weights), "--prompt", prompt, "--by", way]
    words += ["--trace", str(trace), "--gradients", str(gradients)]
    run = run_program(*words, options=options, program=TRAIN)
    assert (run.code, run.error) == (0, "")
    return trace.read_bytes(), load_file(gradients)


def test_every_gradient_is_that_by_hand_but_for_the_order_of_sums(tmp_path: Path) -> None:
    assert CONTRACT_VERSION == "1"
    trace, derived = step(tmp_path, SMALL, PROMPT, "language")
    assert digest(tmp_path / "language.trace") == GOLDEN
    other, by_hand = step(tmp_path, SMALL, PROMPT, "hand")
    assert {name: g.shape for name, g in derived.items()} == shapes(2, 88, 512, 128)
    assert trace.splitlines()[:2] == other.splitlines()[:2], "the loss is the same function, so it has the same bytes"
    for name, hand in by_hand.items():
        found = derived[name]
        assert float(np.abs(found - hand).max()) <= BOUND * float(np.abs(hand).max()), name
        assert abs(float(found.sum()) - float(hand.sum())) <= BOUND * float(np.abs(hand).sum()), name


def test_no_derivative_is_minus_zero_and_what_nothing_reads_has_none(minute: Path, tmp_path: Path) -> None:
    """G12. Of the positions, the prompt's four inputs are read."""
    _, derived = step(tmp_path, minute, WORDS, "language")
    for name, found in derived.items():
        assert not np.signbit(found[found == 0.0]).any(), name
    assert derived["wpe.weight"][4:].tobytes() == bytes(8 * 8 * 4)
    assert (derived["wpe.weight"][:4] != 0.0).all()


def test_neither_threads_nor_fusion_nor_the_device_changes_a_byte(minute: Path, tmp_path: Path) -> None:
    first, derived = step(tmp_path, minute, WORDS, "language")
    for options in (("--threads", "1"), ("--threads", "3"), ("--no-fusion",), ("--device", "oracle")):
        again, others = step(tmp_path, minute, WORDS, "language", *options)
        assert again == first, options
        assert {n: g.tobytes() for n, g in others.items()} == {n: g.tobytes() for n, g in derived.items()}, options


def test_steps_one_after_the_other_are_single_steps(minute: Path, tmp_path: Path) -> None:
    """The first step is computed plainly, the second recorded, the others replayed: the losses fall all the same, and
    those of the first step are train.osp's."""
    words = ("--weights", str(minute), "--prompt", WORDS, "--rate", "0.01", "--by", "language")
    trace = tmp_path / "trace"
    assert run_program(*words, "--trace", str(trace), program=TRAIN).code == 0
    records = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    run = run_program(*words, "--steps", "5", program=DESCEND)
    assert (run.code, run.error) == (0, "")
    losses = [float(line.split()[2]) for line in run.out.splitlines()]
    assert [v.hex() for v in losses[:2]] == [records[1]["loss"], records[-1]["after"]]
    assert losses == sorted(losses, reverse=True)
    unfused = run_program(*words, "--steps", "5", options=("--no-fusion",), program=DESCEND)
    assert unfused.out == run.out


def test_a_way_that_does_not_exist_is_named(minute: Path) -> None:
    for program in (TRAIN, DESCEND):
        run = run_program("--weights", str(minute), "--by", "guess", program=program)
        assert (run.code, run.error) == (2, "gpt2: --by wants hand or language, not guess\n")


DRIVER = """
namespace gpt2;

import tensor::{at, at2, intAt, vector, matrix, rowMaxima, rowSums, total}

fn show(name: string, values: GpuBuffer<float>) -> Unit = {
    let numbers = fromGpu(values) |> map(fn(v) => floatHex(v)) |> join(" ")
    print("${name} ${numbers}")
}

/// The mean loss of the first KEPT positions of a prompt that goes on.
fn firstLoss(model: Model, prompt: List<int>) -> float = {
    let rows = listLength(prompt) - 1
    let n = model.vocabulary
    let targets = toGpu(listSlice(prompt, 1, rows + 1))
    let (last, _) = forward(model, noPast(), listSlice(prompt, 0, rows))
    let logits = scores(model, layerNorm(last, model.finalNorm).values)
    let highest = rowMaxima(logits, rows, n)
    let exps = matrix(rows, n, fn(r, t) => exp(at2(logits, n, r, t) - at(highest, r)))
    let sums = rowSums(exps, rows, n)
    let losses = vector(rows, fn(r) => ln(at(sums, r)) - (at2(logits, n, r, intAt(targets, r)) - at(highest, r)))
    total(gpuSlice(losses, 0, KEPT) ?: losses) / toFloat(KEPT)
}

fn showAll(name: string, model: Model, prompt: List<int>) -> Unit = {
    let at = Parameters { wte: model.wte, wpe: model.wpe, blocks: model.blocks, finalNorm: model.finalNorm }
    let (value, g) = valueAndGradient(fn(p) => firstLoss(with(model, p), prompt), at)
    print("${name}.loss ${floatHex(value)}")
    outerTensors(with(model, g)) |> forEach(fn(t) => show("${name}.${t.name}", t.values))
    range(0, listLength(g.blocks)) |> forEach(fn(n) => match listGet(g.blocks, n) {
        Error { message: _ } => ()
        Success { value: b } => blockTensors(b, n) |> forEach(fn(t) => show("${name}.${t.name}", t.values))
    })
}

fn main() -> Unit = match load(FOLDER) {
    Error { message } => printError(message)
    Success { value: model } => {
        showAll("short", model, [5, 17, 5, 99])
        showAll("long", model, [5, 17, 5, 99, 200, 17, 3, 3])
        showAll("other", model, [5, 17, 5, 99, 7, 8, 250, 11])
    }
}
"""


def test_the_first_losses_have_no_gradient_in_what_comes_later(minute: Path, tmp_path: Path) -> None:
    """All derivatives of the first three losses are those of the prompt that ends there, by bytes; of later positions
    they are +0.0."""
    for source in PROGRAM.parent.glob("*.osp"):
        if "namespace gpt2;" in source.read_text("utf-8"):
            (tmp_path / source.name).write_bytes(source.read_bytes())
    driver = DRIVER.replace("FOLDER", json.dumps(str(minute))).replace("KEPT", "3")
    (tmp_path / "driver.osp").write_text(driver, "utf-8")
    with inside(tmp_path):
        run = captured(osprey, ["run", "driver.osp"])
    assert (run.code, run.error) == (0, "")
    shown = {line.split(" ", 1)[0]: line.split(" ")[1:] for line in run.out.splitlines()}
    names = [name.removeprefix("short.") for name in shown if name.startswith("short.")]
    assert len(names) == 1 + 4 + 2 * 12
    for name in names:
        assert shown[f"long.{name}"] == shown[f"short.{name}"], name
        assert shown[f"other.{name}"] == shown[f"short.{name}"], name
    assert set(shown["long.wpe.weight"][3 * 8 :]) == {"0x0.0p+0"}
    assert "0x0.0p+0" not in shown["long.wpe.weight"][: 3 * 8]
