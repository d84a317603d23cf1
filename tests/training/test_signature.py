"""What a training program exports: TR1 to TR3."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.cli.train import OWN
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.explain import page
from osprey_py.training.options import program_options
from osprey_py.training.program import load_training_program
from osprey_py.training.signature import REQUIRED
from tests.training.support import BIGRAM

RIGHT = page("E0601").right


def told(tmp_path: Path, program: str) -> list[Diagnostic]:
    path = tmp_path / "program.osp"
    path.write_text(program, encoding="utf-8")
    try:
        _, signature, _ = load_training_program(path)
        program_options(signature, OWN)
    except OspreyError as refused:
        return list(refused.diagnostics)
    return []


def changed(old: str, new: str) -> str:
    assert old in RIGHT
    return RIGHT.replace(old, new)


def test_the_page_and_the_model_of_the_tests_are_training_programs(tmp_path: Path) -> None:
    """TR1"""
    assert told(tmp_path, RIGHT) == []
    assert told(tmp_path, f"namespace mean;\n{RIGHT}") == []
    _, signature, _ = load_training_program(BIGRAM)
    assert set(signature.functions) == {*REQUIRED, "complaint"}


@pytest.mark.parametrize("name", REQUIRED)
def test_each_function_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    """TR1"""
    found = told(tmp_path, RIGHT.replace(f"fn {name}(", f"fn {name}2("))
    assert [d.code for d in found] == ["E0601"]
    assert f"exports `{name}`" in found[0].title and "it is a function (" in found[0].help


@pytest.mark.parametrize(
    ("old", "new", "title", "said"),
    [
        ("export fn window", "fn window", "`window` is not exported", "training calls it"),
        (
            "export fn window(o: Options) -> (int, int) = (4, 16)",
            "export let window = (4, 16)",
            "is a function",
            "this is none",
        ),
        (
            "(o: Options) -> (int, int) = (4, 16)",
            "(o: Options) -> int = 4",
            "`window` has not the type",
            "wanted: (Options) -> (int, int)|found:  (Options) -> int",
        ),
        (
            "fn init(o: Options, v: string, seed: int)",
            "fn init(o: Options, seed: int)",
            "`init` has not the type",
            "wanted: (Options, string, int) -> State|found:  (Options, int) -> State",
        ),
        (
            "evaluate(o: Options, s: State, inputs: GpuBuffer<int>, targets: GpuBuffer<int>) -> float = s.mean",
            "evaluate(o: Options, s: State, inputs: GpuBuffer<float>, targets: GpuBuffer<int>) -> float = s.mean",
            "`evaluate` has not the type",
            "(Options, State, GpuBuffer<int>, GpuBuffer<int>) -> float",
        ),
        (
            "string = text",
            'string = { print("learning")  text }',
            "`learn` of a training program is pure",
            "it performs IO",
        ),
        (
            "Result<List<int>, string> = Success { value: toUtf8(text) }",
            "List<int> = toUtf8(text)",
            "`encode` has not the type",
            "wanted: (string, string) -> Result<List<int>, string>",
        ),
        (
            "export fn options",
            "export fn complaint(o: Options) -> bool = true\nexport fn options",
            "`complaint` has not the type",
            "(Options) -> string",
        ),
    ],
)
def test_a_function_that_is_not_as_wanted(tmp_path: Path, old: str, new: str, title: str, said: str) -> None:
    """TR1"""
    found = told(tmp_path, changed(old, new))
    assert [d.code for d in found] == ["E0601"], found
    shown = " ".join([found[0].text, *found[0].notes, found[0].help])
    assert title in found[0].title and all(part in shown for part in said.split("|")), shown


def test_functions_may_be_generic(tmp_path: Path) -> None:
    """TR1: what can be called so is right, whatever else it can do."""
    program = changed("fn window(o: Options) -> (int, int)", "fn window(_)")
    program = program.replace("fn vocabularySize(v: string) -> int", "fn vocabularySize(_)")
    assert told(tmp_path, program) == []
    wrong = changed("fn evaluate(o: Options, s: State, inputs", "fn evaluate<T>(o: T, s: T, inputs").replace(
        "= s.mean\n", "= 0.0\n", 1
    )
    assert any("`evaluate`" in d.title for d in told(tmp_path, wrong.replace("-> float = s.mean", "-> float = 1.0")))


@pytest.mark.parametrize(
    ("old", "new", "title"),
    [
        ("rate: float }", "rate: float, sizes: List<int> }", "no record of ints, floats, bools and strings"),
        ("Options = { rate: float }", "Options = { rate: { x: float } }", "no record of ints"),
        ("{ rate: float }", "{ rate: float, data: int }", "the field `data` of the options would be `--data`"),
        ("{ rate: float }", "{ rate: float, help: bool }", "would be `--help`"),
        ("{ rate: float }", "{ rate: float, steps: float }", "would be `--steps`"),
        ("{ rate: float }", "{ rate: float, noFast: int, fast: bool }", "would be `--no-fast`"),
        ("{ rate: float }", "{ rate: float, aB: int, a_b: int }", "would be `--a-b`"),
    ],
)
def test_options_the_command_line_cannot_give(tmp_path: Path, old: str, new: str, title: str) -> None:
    """TR2, TR3"""
    values = {
        "sizes": "[]",
        "data": "1",
        "help": "true",
        "steps": "1.0",
        "noFast": "1",
        "fast": "true",
        "aB": "1",
        "a_b": "1",
    }
    more = "".join(f", {name}: {value}" for name, value in values.items() if f"{name}:" in new)
    program = changed(old, new).replace("{ rate: 0.1 }", f"{{ rate: 0.1{more} }}")
    if "x: float" in new:
        program = program.replace("{ rate: 0.1 }", "{ rate: { x: 0.1 } }").replace("o.rate", "o.rate.x")
    found = told(tmp_path, program)
    assert [d.code for d in found] == ["E0602"], found
    assert title in found[0].title


def test_steps_may_be_shared(tmp_path: Path) -> None:
    """TR4"""
    program = changed("{ rate: float }", "{ rate: float, steps: int }").replace(
        "{ rate: 0.1 }", "{ rate: 0.1, steps: 9 }"
    )
    assert told(tmp_path, program) == []


def test_state_and_vocabulary_are_plain(tmp_path: Path) -> None:
    """TR2"""
    state = "State { mean: 0.0, more: Some(1.0) }"
    program = changed("{ mean: float }", "{ mean: float, more: Maybe }\ntype Maybe = None | Some(float)")
    program = program.replace("State { mean: 0.0 }", state).replace("(State { mean: s.mean", "(s { mean: s.mean")
    assert [(d.code, d.title) for d in told(tmp_path, program)] == [
        ("E0602", "`state.more` is of type `Maybe`, which is not plain data")
    ]
    program = RIGHT.replace("v: string", "v: GpuBuffer<int>").replace("string = text", "GpuBuffer<int> = toGpu([1])")
    assert [(d.code, d.title) for d in told(tmp_path, program)] == [
        ("E0602", "`vocabulary` is of type `GpuBuffer<int>`, which is not plain data")
    ]


def test_default_data_is_a_record(tmp_path: Path) -> None:
    """TR5"""
    wrong = f'{RIGHT}\nexport fn data() = {{ file: "a", url: "b" }}\n'
    assert "sha256: string }" in told(tmp_path, wrong)[0].title
    right = f'{RIGHT}\nexport fn data() = {{ file: "a", url: "b", bytes: 3, sha256: "c" }}\n'
    assert told(tmp_path, right) == []
