"""Plain data: taken apart, put together, as JSON (TR2, TR16)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source
from osprey_py.check.core import Program
from osprey_py.check.types import FunctionType
from osprey_py.eval.equality import equal
from osprey_py.eval.session import Session
from osprey_py.graph.runtime import Runtime
from osprey_py.training.plain import NotPlain, build, count_floats, from_json, leaves, schema_of, to_json

DATA = """
type Pair<A> = { left: A, right: A }
type Inner = { on: bool, name: string, where: (int, float) }
type Outer = { many: List<Inner>, pair: Pair<GpuBuffer<float>>, open: { z: GpuBuffer<int>, a: GpuBuffer<bool> } }
fn value() = Outer {
    many: [Inner { on: true, name: "é\\"", where: (-3, 0.1) }, Inner { on: false, name: "", where: (9, -inf) }],
    pair: Pair { left: toGpu([1.5, -0.0]), right: toGpu([2.0]) },
    open: { z: toGpu([7]), a: toGpu([true, false]) },
}
type Words = { ids: Map<string, int>, by: Map<int, List<(float, bool)>>, none: List<string> }
fn texts() = Words { ids: { "b": 1, "a": 2 }, by: { 5: [(0.1, true), (nan, false)], -1: [] }, none: [] }
type Tree = { below: List<Tree> }
fn tree() = Tree { below: [] }
type Shape = Dot | Line { length: float }
fn deep() = { pair: Pair { left: [(1, Dot)], right: [] } }
fn held() = [fn(x: int) => x + 1]
"""


@pytest.fixture(scope="module")
def program() -> Program:
    found, told = check_source(DATA)
    assert found is not None, told
    return found


def made(program: Program, name: str) -> tuple[Any, Runtime]:
    runtime = Runtime(OracleBackend())
    return Session(program, [name], runtime).call(name), runtime


def result(program: Program, name: str) -> Any:
    found = program.functions[name].type
    assert isinstance(found, FunctionType)
    return found.result


def test_leaves_have_paths_and_are_put_together_again(program: Program) -> None:
    schema = schema_of(result(program, "value"), program.types, "state", buffers=True)
    value, runtime = made(program, "value")
    found = {path: x for path, _, x in leaves(schema, value)}
    assert list(found) == [
        *("many", "many.0.on", "many.0.name", "many.0.where.0", "many.0.where.1"),
        *("many.1.on", "many.1.name", "many.1.where.0", "many.1.where.1"),
        *("pair.left", "pair.right", "open.a", "open.z"),
    ]
    assert (found["many"], found["many.0.name"], found["many.1.where.1"]) == (2, 'é"', -math.inf)
    assert [runtime.read(found[k]) for k in ("pair.left", "open.a", "open.z")] == [[1.5, -0.0], [True, False], [7]]
    assert count_floats(schema, value) == 2 + 2 + 1
    again = build(schema, lambda path, _: found[path])
    assert {path: x for path, _, x in leaves(schema, again)} == found and type(again) is type(value)


def test_json_and_back(program: Program) -> None:
    schema = schema_of(result(program, "texts"), program.types, "vocabulary", maps=True)
    value, _ = made(program, "texts")
    data = to_json(schema, value)
    assert data == {"ids": [["b", 1], ["a", 2]], "by": [[5, [[0.1, True], ["nan", False]]], [-1, []]], "none": []}
    again = from_json(schema, json.loads(json.dumps(data)))
    assert to_json(schema, again) == data and not equal(again, value)  # a NaN equals nothing
    for wrong in (
        {**data, "more": 1},
        {"ids": data["ids"], "by": data["by"]},
        {**data, "none": [1]},
        {**data, "none": "x"},
        {**data, "ids": [["b"]]},
        {**data, "ids": [["b", True]]},
        {**data, "ids": [["b", 2**63]]},
        {**data, "by": [[5, [[1, True]]]]},
        [],
    ):
        with pytest.raises(ValueError, match=r"no |another"):
            from_json(schema, wrong)


@pytest.mark.parametrize(
    ("name", "allowed", "path"),
    [
        ("tree", {}, "it.below[]"),
        ("deep", {}, "it.pair.left[].1"),
        ("held", {}, "it[]"),
        ("value", {}, "it.pair.left"),
        ("texts", {"buffers": True}, "it.ids"),
    ],
)
def test_what_is_not_plain_is_named(program: Program, name: str, allowed: dict[str, bool], path: str) -> None:
    with pytest.raises(NotPlain) as told:
        schema_of(result(program, name), program.types, "it", **allowed)
    assert told.value.path == path
