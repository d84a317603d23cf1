"""`buffersOf mapBuffers zipBuffers` (O10 to O13): every kind of structure, both backends, gradients, effects, refusals."""

from __future__ import annotations

import pytest

from osprey_py.check import check_source
from tests.random.support import BACKENDS, printed

TYPES = """
    type Linear = { weight: GpuBuffer<float>, bias: GpuBuffer<float> }
    type Model = { zeta: Linear, alpha: List<Linear>, scale: float, pair: (GpuBuffer<float>, float) }
    fn linear(x) = Linear { weight: toGpu([x, x + 1.0]), bias: toGpu([x + 2.0]) }
    fn model(x) = Model {
        zeta: linear(x), alpha: [linear(x + 10.0), linear(x + 20.0)], scale: x + 30.0, pair: (toGpu([x + 40.0]), x + 50.0),
    }
    fn values(m) = buffersOf(m) |> map(fromGpu) |> toList
"""
ONE = [[1.0, 2.0], [3.0], [11.0, 12.0], [13.0], [21.0, 22.0], [23.0], [31.0], [41.0], [51.0]]
"""The buffers of model(1.0)."""


def changed(f: object) -> list[list[float]]:
    assert callable(f)
    return [[f(x) for x in b] for b in ONE]


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers_come_as_declared(backend: str) -> None:
    """O10: `zeta` is declared before `alpha`; one buffer, one float and an empty list are structures too."""
    assert printed(f"""{TYPES}
        print(values(model(1.0)))
        print(values(toGpu([5.0])))
        print(values(0.5))
        print(values((1.0, [toGpu([2.0]), toGpu([])])))
        let none: List<GpuBuffer<float>> = []
        print(length(buffersOf(none)))
    """, backend) == [ONE, [[5.0]], [[0.5]], [[1.0], [2.0], []], 0]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_map_keeps_the_structure(backend: str) -> None:
    """O11."""
    lines = printed(
        f"""{TYPES}
        let twice = mapBuffers(model(1.0), fn(b) => gpuMap(b, fn(x) => 2.0 * x))
        print(values(twice))
        let (buffer, number) = twice.pair
        print((twice.scale, number, fromGpu(buffer), length(twice.alpha)))
        print(values(mapBuffers(model(1.0), fn(b) => gpuConcat(b, b))))
        print(values(mapBuffers(model(1.0), fn(b) => gpuIota(0) |> gpuMap(toFloat))))
    """,
        backend,
    )
    assert lines[0] == changed(lambda x: 2.0 * x)
    assert lines[1] == (62.0, 102.0, [82.0], 2)
    # A float is the first element of what was made of it, and itself when there is none.
    floats = (6, 8)
    assert lines[2] == [b if k in floats else b + b for k, b in enumerate(ONE)]
    assert lines[3] == [b if k in floats else [] for k, b in enumerate(ONE)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_zip_pairs_what_stands_at_one_place(backend: str) -> None:
    """O12; the lists in x have two layers, those in y one."""
    lines = printed(
        f"""{TYPES}
        fn minus(a, b) = gpuZipWith(a, b, fn(x, y) => 10.0 * x - y)
        let ones = model(1.0)
        print(values(zipBuffers(ones, model(2.0), minus)))
        print(values(zipBuffers(ones, ones {{ alpha: [linear(0.0)] }}, minus)))
        print(values(zipBuffers(ones {{ alpha: [] }}, ones, minus)))
    """,
        backend,
    )
    assert lines[0] == changed(lambda x: 10.0 * x - (x + 1.0))
    assert lines[1] == [[9.0, 18.0], [27.0], [110.0, 119.0], [128.0], [279.0], [369.0], [459.0]]
    assert lines[2] == [[9.0, 18.0], [27.0], [279.0], [369.0], [459.0]]


def test_functions_may_perform() -> None:
    """O11, O12: in order, under the handlers around the call."""
    assert printed(f"""{TYPES}
        effect Count {{ next: fn() -> float }}
        fn numbered(m) = mapBuffers(m, fn(b) => {{ let n = perform Count.next()  gpuMap(b, fn(_) => n) }})
        mut count = 0.0
        let m = handle Count next => {{ count = count + 1.0  count }} in numbered(model(1.0))
        print(values(m))
    """) == [[[1.0, 1.0], [2.0], [3.0, 3.0], [4.0], [5.0, 5.0], [6.0], [7.0], [8.0], [9.0]]]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_go_through(backend: str) -> None:
    """O13: a penalty on all parameters, and one on what was made of them; 2·w each, and 2·3·(3·w)."""
    lines = printed(
        f"""{TYPES}
        fn squares(m) = buffersOf(m) |> fold(0.0, fn(sum, b) => sum + gpuFold(b, 0.0, fn(s, x) => s + x * x))
        fn tripled(m) = mapBuffers(m, fn(b) => gpuMap(b, fn(x) => 3.0 * x))
        fn summed(m) = zipBuffers(m, m, fn(a, b) => gpuZipWith(a, b, fn(x, y) => x + y))
        print(values(gradient(squares, model(1.0))))
        print(values(gradient(fn(m: Model) => squares(tripled(m)), model(1.0))))
        print(values(gradient(fn(m: Model) => squares(summed(m)), model(1.0))))
    """,
        backend,
    )
    assert lines == [changed(lambda x: 2.0 * x), changed(lambda x: 18.0 * x), changed(lambda x: 8.0 * x)]


def test_generic_functions_keep_the_demand() -> None:
    """A function that hands its parameter on serves every structure, and refuses what is none, at the call."""
    helper = "fn halved(x) = mapBuffers(x, fn(b) => gpuMap(b, fn(v) => 0.5 * v))\n"
    assert printed(helper + "print(halved(3.0))\nprint(buffersOf(halved([toGpu([1.0])])) |> map(fromGpu))") == [
        1.5,
        [[0.5]],
    ]
    program, told = check_source(
        helper + "type State = { steps: int, rate: float }\nprint(halved(State { steps: 1, rate: 2.0 }).rate)"
    )
    assert program is None
    assert [(d.code, "steps: int" in d.title) for d in told] == [("E0219", True)]


@pytest.mark.parametrize("given", ['"text"', "[1, 2]", "true", "toGpu([1, 2])", '{ "a": 1.0 }'])
def test_other_things_are_refused(given: str) -> None:
    for call in (
        f"buffersOf({given})",
        f"mapBuffers({given}, fn(b) => b)",
        f"zipBuffers({given}, {given}, fn(a, _) => a)",
    ):
        program, told = check_source(f"print({call})")
        assert program is None and told[0].code in ("E0219", "E0201"), (call, told)
