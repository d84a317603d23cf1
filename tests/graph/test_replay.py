"""Functions that are traced once and replayed: the same results, the same faults, and really replayed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import PLAIN_CALLS, Runtime, Stats

LAYERS = """
fn at(b: GpuBuffer<float>, i: int) -> float = gpuGet(b, i) ?: 0.0
fn layer(x: GpuBuffer<float>, k: float, shift: int) -> GpuBuffer<float> = {
    let n = gpuLength(x)
    let y = gpuIota(n) |> gpuMap(fn(i) => at(x, (i + shift) % n) * k + toFloat(shift))
    gpuZipWith(x, y, fn(a, b) => a - b)
}
fn deep(x: GpuBuffer<float>, k: float, shift: int, depth: int) -> GpuBuffer<float> =
    if depth == 0 { x } else { deep(layer(x, k, shift), k * 0.5, shift + 1, depth - 1) }
"""


def run(tmp_path: Path, text: str, *, replay: bool) -> tuple[str, str, Stats]:
    """(standard output, standard error, statistics)"""
    path = tmp_path / "program.osp"
    path.write_text(text)
    program, diagnostics = load_program(path)
    assert program is not None, [d.title for d in diagnostics]
    out, err = io.StringIO(), io.StringIO()
    rt = Runtime(OracleBackend(), replay=replay)
    run_program(program, runtime=rt, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue(), rt.stats


def same(tmp_path: Path, text: str, *, replays: int | None = None) -> str:
    """The output, the same with replay and without. replays: at least so many calls were replayed; None: none was."""
    out, err, stats = run(tmp_path, text, replay=True)
    plain, plain_err, plain_stats = run(tmp_path, text, replay=False)
    assert (out, err) == (plain, plain_err)
    assert plain_stats.replays == 0
    if replays is None:
        assert stats.replays == 0
    else:
        assert stats.replays >= replays
    return out + err


def test_other_numbers_lengths_and_buffers_are_replayed(tmp_path: Path) -> None:
    text = (
        LAYERS
        + """
fn main() -> Unit = forEach(range(1, 9), fn(t) => {
    let x = gpuIota(t + 2) |> gpuMap(fn(i) => toFloat(i * t))
    print(fromGpu(deep(x, 1.0 / toFloat(t), t, 10)))
})
"""
    )
    same(tmp_path, text, replays=5)


def test_what_is_decided_differently_is_recorded_again(tmp_path: Path) -> None:
    """The depth decides how much is launched: each depth its own recording, found again later."""
    text = (
        LAYERS
        + """
fn main() -> Unit = forEach(range(0, 16), fn(t) => {
    let x = toGpu([1.0, 2.0, toFloat(t)])
    print(fromGpu(deep(x, 0.5, t, 8 + t % 3)))
})
"""
    )
    same(tmp_path, text, replays=8)


def test_records_lists_and_tuples_come_and_go(tmp_path: Path) -> None:
    text = (
        LAYERS
        + """
type State = { name: string, step: int, rate: float, buffers: List<GpuBuffer<float>> }
fn step(s: State, flags: (bool, int)) -> (State, float, string) = {
    let (flag, extra) = flags
    let moved = s.buffers |> map(fn(b) => deep(b, s.rate, s.step + extra, 5)) |> toList
    let rate = flag ? s.rate * 0.5 : s.rate + exp(-s.rate)
    let total = gpuFold(listGet(moved, 0) ?: toGpu([]), 0.0, fn(a, b) => a + b)
    (s { step: s.step + 1, rate: rate, buffers: moved }, total, "${s.name}!")
}
fn go(s: State, n: int) -> Unit =
    if n == 0 { print(s.buffers |> map(fn(b) => fromGpu(b)) |> toList) } else {
        let (next, total, name) = step(s, (n % 2 == 0, 3))
        print("${name} ${total} ${next.rate}")
        go(next, n - 1)
    }
fn main() -> Unit = go(State { name: "a", step: 0, rate: 1.0, buffers: [toGpu([1.0, 2.0]), toGpu([0.5])] }, 12)
"""
    )
    same(tmp_path, text, replays=6)


def test_a_decision_by_a_buffer_is_a_guard(tmp_path: Path) -> None:
    text = (
        LAYERS
        + """
fn descend(x: GpuBuffer<float>, n: int) -> GpuBuffer<float> = {
    let y = deep(x, 0.9, n, 6)
    let size = gpuFold(y, 0.0, fn(a, b) => a + b * b)
    if size > 40.0 { gpuMap(y, fn(v) => v * 0.25) } else { gpuMap(y, fn(v) => v * 3.0 + size) }
}
fn go(x: GpuBuffer<float>, n: int) -> Unit =
    if n == 0 { () } else {
        let y = descend(x, n)
        print(fromGpu(y))
        go(y, n - 1)
    }
fn main() -> Unit = go(toGpu([1.0, -2.0, 0.5]), 14)
"""
    )
    same(tmp_path, text, replays=4)


def test_a_fault_in_a_replay_is_the_fault_of_the_program(tmp_path: Path) -> None:
    text = """
fn chain(x: GpuBuffer<int>, d: int, n: int) -> GpuBuffer<int> =
    if n == 0 { x } else { chain(gpuMap(x, fn(v) => intDiv(v * 3, d) + 1), d - 1, n - 1) }
fn main() -> Unit = forEach(range(0, 6), fn(t) => print(fromGpu(chain(toGpu([5, t]), 23 - t, 19))))
"""
    out = same(tmp_path, text, replays=1)
    assert "division by zero" in out


def test_a_recovered_region_in_a_replay(tmp_path: Path) -> None:
    """The region's launch faults for some numbers only: then the call is evaluated plainly."""
    text = (
        LAYERS
        + """
fn sum(b: GpuBuffer<int>) -> int = gpuFold(b, 0, fn(a, v) => a + v)
fn guarded(x: GpuBuffer<float>, d: int) -> (GpuBuffer<float>, int) = {
    let y = deep(x, 0.5, 1, 9)
    let q = sum(gpuMap(gpuIota(4), fn(i) => intDiv(12, d - i))) ?: -1
    (y, q)
}
fn main() -> Unit = forEach(range(0, 12), fn(t) => {
    let (y, q) = guarded(toGpu([1.0, toFloat(t)]), t)
    print("${fromGpu(y)} ${q}")
})
"""
    )
    out = same(tmp_path, text, replays=3)
    assert " -1\n" in out


def test_a_region_is_left_only_when_its_launches_have_run(tmp_path: Path) -> None:
    """V3.7: Nobody reads the launch in the region; it faults for the third number, and the region recovers."""
    text = (
        LAYERS
        + """
fn pick(x: GpuBuffer<float>, d: float) -> (GpuBuffer<float>, GpuBuffer<float>) = {
    let y = deep(x, 0.5, 1, 9)
    let z = gpuSlice(gpuMap(x, fn(v) => v / (v - d)), 0, 1) ?: y
    (y, z)
}
fn main() -> Unit = forEach(range(0, 9), fn(t) => {
    let (y, z) = pick(toGpu([3.0, 4.0]), toFloat(t))
    print("${fromGpu(y)} ${fromGpu(z)}")
})
"""
    )
    same(tmp_path, text, replays=4)


def test_numbers_become_text_places_and_counts(tmp_path: Path) -> None:
    text = (
        LAYERS
        + """
fn go(x: GpuBuffer<float>, n: int, k: float, names: List<string>) -> (GpuBuffer<float>, string) = {
    let name = listGet(names, n % 3) ?: "none"
    let sum = range(0, n) |> fold(0, fn(a, i) => a + i)
    (deep(x, k, sum, 9), "${name} ${n} ${k} ${sum}")
}
fn main() -> Unit = forEach(range(0, 20), fn(t) => {
    let (y, told) = go(toGpu([3.0, 4.0]), t % 3, toFloat(intDiv(t, 6)) + 0.5, ["a", "b", "c"])
    print("${fromGpu(y)} ${told}")
})
"""
    )
    same(tmp_path, text, replays=5)


def test_int_and_float_in_one_generic_function(tmp_path: Path) -> None:
    text = (
        LAYERS
        + """
fn twice<T>(a: T) -> T = a + a
fn go(x: GpuBuffer<float>, k: float, n: int) -> GpuBuffer<float> = deep(x, twice(k) * min(k, 0.3), twice(n) % 7, 9)
fn main() -> Unit = forEach(range(1, 9), fn(t) => print(fromGpu(go(toGpu([1.0, 2.0, 3.0]), toFloat(t) * 0.1, t))))
"""
    )
    same(tmp_path, text, replays=4)


def test_overflow_of_the_host_is_seen_in_a_replay(tmp_path: Path) -> None:
    text = (
        LAYERS
        + """
fn go(x: GpuBuffer<float>, n: int) -> (GpuBuffer<float>, int) = {
    let big = n * 1000000007
    (deep(x, 0.5, big % 5, 9), big)
}
fn main() -> Unit = forEach(range(0, 7), fn(t) => {
    let (y, big) = go(toGpu([1.0]), 1 + t * 1537228672)
    print("${fromGpu(y)} ${big}")
})
"""
    )
    out = same(tmp_path, text, replays=3)
    assert "integer overflow" in out


@pytest.mark.parametrize(
    "body",
    [
        "{ let first = listGet(fromGpu(y), 0) ?: 0.0  gpuMap(y, fn(v) => v + first) }",
        "handle Noise get => 0.5 in gpuMap(y, { let k = perform Noise.get()  fn(v) => v + k })",
    ],
    ids=["reads all of a buffer", "handles an effect"],
)
def test_what_cannot_be_recorded_is_evaluated_plainly(tmp_path: Path, body: str) -> None:
    text = (
        "effect Noise { get: fn() -> float }\n"
        + LAYERS
        + f"""
fn odd(x: GpuBuffer<float>, n: int) -> GpuBuffer<float> = {{
    let y = layer(layer(layer(layer(layer(layer(layer(layer(x, 0.5, n), 0.5, 2), 0.1, 3), 0.2, 4), 0.3, 5), 1.0, 6),
        0.9, 7), 0.8, 8)
    {body}
}}
fn main() -> Unit = forEach(range(1, 7), fn(t) => print(fromGpu(odd(toGpu([1.0, toFloat(t)]), t))))
"""
    )
    same(tmp_path, text)


OFTEN = (
    LAYERS
    + """
fn of(t: int) -> float = gpuGet(deep(gpuIota(4) |> gpuMap(fn(i) => toFloat(i * t)), 0.5, 1, 10), 1) ?: 0.0
fn total(v: float) -> float =
    gpuFold(deep(gpuIota(4) |> gpuMap(fn(i) => toFloat(i) * v), v, 1, 10), 0.0, fn(s, e) => s + e)
fn slope(x: float) -> float = gradient(total, x)
"""
)


@pytest.mark.late_recording
@pytest.mark.parametrize(("call", "plainly"), [("of(t)", PLAIN_CALLS), ("slope(toFloat(t))", 1)])
def test_a_function_is_recorded_when_it_is_called_often_or_differentiates(
    tmp_path: Path, call: str, plainly: int
) -> None:
    """The plain calls, one that is recorded, and replays from then on."""
    for calls in (plainly + 1, plainly + 4):
        text = OFTEN + f"fn main() -> Unit = forEach(range(1, {calls + 1}), fn(t) => print({call}))"
        same(tmp_path, text, replays=calls - plainly - 1 or None)
