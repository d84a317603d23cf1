"""Attention does not see the future, by bytes: what stands later in a prompt, NaN included, changes nothing before it,
and a loss of the first positions has no gradient in what only later positions read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from osprey_py.cli.main import main as osprey
from tests.gpt2.support import PROGRAM, captured, inside, make_weights

SIZES = "--layers 2 --width 8 --heads 2 --vocab 270 --context 8 --deviation 0.3 --dtype F64"
WIDTH, ROWS, KEPT = 8, 8, 4
"""Of ROWS positions, the first KEPT are looked at: half, so that a mean over ROWS is half of one over KEPT, exactly."""

DRIVER = """
namespace gpt2;

import tensor::{at}

fn show(name: string, values: GpuBuffer<float>) -> Unit = {
    let numbers = fromGpu(values) |> map(fn(v) => floatHex(v)) |> join(" ")
    print("${name} ${numbers}")
}

fn part(values: GpuBuffer<float>, n: int) -> GpuBuffer<float> = gpuSlice(values, 0, n) ?: none

/// All that the blocks compute of the first rows, and the rows themselves.
fn showRows(name: string, model: Model, ids: List<int>, kept: int) -> Unit = {
    let width = model.width
    let (last, done) = forward(model, noPast(), ids)
    range(0, listLength(done)) |> forEach(fn(n) => match listGet(done, n) {
        Error { message: _ } => ()
        Success { value: a } => {
            [("normed1", a.normed1.values), ("queries", a.queries), ("keys", a.memory.keys),
             ("values", a.memory.values), ("mixed", a.mixed.values), ("attended", a.attended),
             ("normed2", a.normed2.values), ("output", a.output)]
                |> forEach(fn(field) => {
                    let (what, x) = field
                    show("${name}.${n}.${what}", part(x, kept * width))
                })
            show("${name}.${n}.inner", part(a.inner, kept * 4 * width))
        }
    })
    let rows = listLength(ids)
    let logits = scores(model, layerNorm(last, model.finalNorm).values)
    show("${name}.logits", part(logits, kept * model.vocabulary))
    show("${name}.whole", last)
}

fn nanFrom(values: GpuBuffer<float>, first: int) -> GpuBuffer<float> =
    gpuIota(gpuLength(values)) |> gpuMap(fn(i) => i < first ? at(values, i) : nan)

fn showGradient(name: string, g: Model) -> Unit = {
    outerTensors(g) |> forEach(fn(t) => show("${name}.${t.name}", t.values))
    range(0, listLength(g.blocks)) |> forEach(fn(n) => match listGet(g.blocks, n) {
        Error { message: _ } => ()
        Success { value: b } => blockTensors(b, n) |> forEach(fn(t) => show("${name}.${t.name}", t.values))
    })
}

/// The gradient of the first rows' losses alone, divided by the count of all.
fn firstLosses(model: Model, prompt: List<int>, kept: int) -> Model = {
    let p = pass(model, prompt)
    let n = model.vocabulary
    let targets = p.targets
    let exps = p.exps
    derivatives(model, p {
        targets: gpuIota(p.rows) |> gpuMap(fn(r) => r < kept ? gpuGet(targets, r) ?: 0 : -1),
        exps: gpuIota(p.rows * n) |> gpuMap(fn(i) => intDiv(i, n) < kept ? at(exps, i) : 0.0),
    })
}

fn main() -> Unit = match load(FOLDER) {
    Error { message } => printError(message)
    Success { value: model } => {
        let short = listSlice(LONG, 0, KEPT)
        showRows("long", model, LONG, KEPT)
        showRows("other", model, OTHER, KEPT)
        showRows("nan", model { wpe: nanFrom(model.wpe, KEPT * model.width) }, LONG, KEPT)
        showRows("short", model, short, KEPT)
        showGradient("d-long", firstLosses(model, listAppend(LONG, 7), KEPT))
        showGradient("d-other", firstLosses(model, listAppend(OTHER, 8), KEPT))
        showGradient("d-short", derivatives(model, pass(model, listSlice(LONG, 0, KEPT + 1))))
    }
}
"""


def elements(tmp_path: Path, options: tuple[str, ...]) -> dict[str, list[str]]:
    """What the driver shows, by name."""
    folder = make_weights(tmp_path / "weights", SIZES, "--config")
    r = random.Random(5)
    long = [r.randrange(270) for _ in range(ROWS)]
    other = [*long[: KEPT + 1], *(r.randrange(270) for _ in range(ROWS - KEPT - 1))]
    for source in ("model", "backward", "weights"):
        (tmp_path / f"{source}.osp").write_bytes((PROGRAM.parent / f"{source}.osp").read_bytes())
    driver = DRIVER.replace("FOLDER", json.dumps(str(folder))).replace("KEPT", str(KEPT))
    (tmp_path / "driver.osp").write_text(driver.replace("LONG", str(long)).replace("OTHER", str(other)), "utf-8")
    with inside(tmp_path):
        run = captured(osprey, ["run", *options, "driver.osp"])
    assert (run.code, run.error) == (0, "")
    return {line.split(" ", 1)[0]: line.split(" ")[1:] for line in run.out.splitlines()}


@pytest.mark.parametrize("options", [(), ("--threads", "1", "--no-fusion")])
def test_a_row_s_numbers_and_a_loss_s_gradient_do_not_know_what_comes_later(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    shown = elements(tmp_path, options)
    names = [name.removeprefix("long.") for name in shown if name.startswith("long.") and name != "long.whole"]
    assert len(names) == 2 * 9 + 1
    for variant in ("other", "nan", "short"):
        for name in names:
            assert shown[f"{variant}.{name}"] == shown[f"long.{name}"], (variant, name)
    kept = KEPT * WIDTH
    late = [shown[f"{variant}.whole"][kept + WIDTH :] for variant in ("long", "other", "nan")]
    assert late[0] != late[1], "later rows do depend on later tokens"
    assert set(late[2]) == {"nan"}, "and on later positions"

    gradients = [name.removeprefix("d-short.") for name in shown if name.startswith("d-short.")]
    assert len(gradients) == 2 * 12 + 4
    for name in gradients:
        short = shown[f"d-short.{name}"]
        for variant in ("d-long", "d-other"):
            long = shown[f"{variant}.{name}"]
            assert [(2.0 * float.fromhex(v)).hex() for v in long] == [float.fromhex(v).hex() for v in short], (
                variant,
                name,
            )
    positions = shown["d-long.wpe.weight"]
    assert set(positions[kept:]) == {"0x0.0p+0"}, "no later position has a part, and none is -0.0"
    assert "0x0.0p+0" not in positions[:kept]
