"""The tape: what it keeps alive and for how long, what it forces, and that a training step is replayed."""

from __future__ import annotations

import gc
import io
import weakref
from pathlib import Path

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Report, Step, Storage
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph import entries
from osprey_py.graph.runtime import Runtime
from osprey_py.source.diagnostic import OspreyError
from osprey_py.source.render import render


class Counting(OracleBackend):
    """Counts elements of floats that are allocated and not released."""

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self.peaks: list[int] = []
        self._known: dict[int, Storage] = {}

    def allocate(self, kind: Kind, n: int) -> Storage:
        storage = super().allocate(kind, n)
        if kind is Kind.F64:
            self._known[id(storage)] = storage
            self.live += n
            self.peak = max(self.peak, self.live)
        return storage

    def release(self, storage: Storage) -> None:
        if self._known.pop(id(storage), None) is not None:
            self.live -= storage.length

    def run(self, steps: list[Step]) -> Report:  # type: ignore[override]
        report = super().run(steps)
        self.peaks.append(self.peak)
        return report


def run(
    tmp_path: Path, text: str, backend: OracleBackend | None = None, *, fusion: bool = True, replay: bool = True
) -> tuple[str, Runtime]:
    """(what the program printed, its runtime)"""
    path = tmp_path / "program.osp"
    path.write_text(text)
    program, diagnostics = load_program(path)
    assert program is not None, "\n".join(map(render, diagnostics))
    out = io.StringIO()
    rt = Runtime(backend or OracleBackend(), fusion=fusion, replay=replay)
    code = run_program(program, runtime=rt, stdout=out, stderr=out)
    assert code == 0, out.getvalue()
    return out.getvalue(), rt


STEPS = """
type Layer = {{ w: GpuBuffer<float>, b: GpuBuffer<float> }}
type Model = {{ layers: List<Layer>, gain: float }}
fn at(b: GpuBuffer<float>, i: int) = gpuGet(b, i) ?: 0.0
fn dense(l: Layer, x: GpuBuffer<float>, rows: int) =
    gpuIota(rows * 4) |> gpuMap(fn(i) => {{
        let r = intDiv(i, 4)
        let c = i % 4
        gpuIota(4) |> gpuFold(at(l.b, c), fn(a, k) => a + at(x, r * 4 + k) * at(l.w, k * 4 + c))
    }})
fn loss(m: Model, x: GpuBuffer<float>, y: GpuBuffer<float>, rows: int, keep: int) = {{
    let p = m.layers |> fold(x, fn(h, l) => gpuMap(dense(l, h, rows), tanh))
    let gain = m.gain
    let dropped = gpuZipWith(p, gpuIota(rows * 4), fn(v, i) => if (i + keep) % 5 == 0 {{ 0.0 }} else {{ v * 1.25 }})
    (gpuZipWith(dropped, y, fn(a, b) => (a * gain - b) * (a * gain - b)) |> gpuFold(0.0, fn(s, e) => s + e)) / toFloat(rows)
}}
fn step(m: Model, x: GpuBuffer<float>, y: GpuBuffer<float>, rows: int, keep: int, rate: float) = {{
    let (l, g) = valueAndGradient(fn(m) => loss(m, x, y, rows, keep), m)
    fn updated(w, d) = gpuZipWith(w, d, fn(w, d) => w - rate * d)
    let none = Layer {{ w: x, b: x }}
    let layers = range(0, listLength(m.layers)) |> map(fn(k) => {{
        let a = m.layers[k] ?: none
        let d = g.layers[k] ?: none
        Layer {{ w: updated(a.w, d.w), b: updated(a.b, d.b) }}
    }}) |> toList
    (Model {{ layers: layers, gain: m.gain - rate * g.gain }}, l)
}}
fn made(n: int, s: int) = gpuIota(n) |> gpuMap(fn(i) => toFloat((i * 37 + s * 11) % 17 - 8) / 20.0)
fn train(m: Model, k: int) -> int = if k == 0 {{ 0 }} else {{
    let (next, l) = step(m, made({rows} * 4, k), made({rows} * 4, k + 2), {rows}, k, 0.1 / toFloat(k))
    print("${{l}} ${{next.gain}} ${{next.layers[0] |> first}}")
    train(next, k - 1)
}}
fn first(l: Result<Layer, Error>) = match l {{
    Success {{ value }} => "${{fromGpu(value.w)}}"
    Error {{ message }} => message
}}
print(train(Model {{
    layers: range(0, {layers}) |> map(fn(k) => Layer {{ w: made(16, k), b: made(4, k + 3) }}) |> toList,
    gain: 1.5
}}, {steps}))
"""


def test_a_steady_step_is_one_replay(tmp_path: Path) -> None:
    """The rate and the seed change with each step; what is launched, and the plans, do not."""
    text = STEPS.format(rows=3, layers=6, steps=12)
    plain, slow = run(tmp_path, text, replay=False)
    few, short = run(tmp_path, STEPS.format(rows=3, layers=6, steps=4))
    replayed, quick = run(tmp_path, text)
    assert replayed == plain
    assert slow.stats.replays == 0
    assert (short.stats.replays, quick.stats.replays) == (2, 10)
    assert short.stats.planned == quick.stats.planned
    assert few.splitlines()[0] != replayed.splitlines()[0]


@pytest.mark.parametrize("replay", [True, False])
def test_memory_is_flat_over_steps(tmp_path: Path, replay: bool) -> None:
    few, many = Counting(), Counting()
    run(tmp_path, STEPS.format(rows=50, layers=6, steps=6), few, replay=replay)
    run(tmp_path, STEPS.format(rows=50, layers=6, steps=12), many, replay=replay)
    assert many.peak == few.peak


def test_everything_dies_with_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cycle keeps a value of a tape alive: what is left is found without a collection."""
    made: list[weakref.ref[entries.Value]] = []
    plain = entries.Value.__init__

    def noted(self: entries.Value) -> None:
        made.append(weakref.ref(self))
        plain(self)

    monkeypatch.setattr(entries.Value, "__init__", noted)
    gc.disable()
    try:
        run(tmp_path, STEPS.format(rows=3, layers=3, steps=3))
    finally:
        gc.enable()
    assert len(made) > 30
    assert [r for r in made if r() is not None] == []


CHAIN = """
fn deep(x: GpuBuffer<float>, k: int) -> GpuBuffer<float> = if k == 0 {{ x }} else {{ deep(gpuMap(x, sqrt), k - 1) }}
let x = gpuIota(10000) |> gpuMap(fn(i) => toFloat(i + 1) / 1000.0)
let g = gradient(fn(x) => gpuFold(deep(x, {depth}), 0.0, fn(a, v) => a + v), x)
print(gpuFold(g, 0.0, fn(a, v) => a + v))
"""


def test_activations_are_released_during_the_backward_pass(tmp_path: Path) -> None:
    """Forwards, each of the 40 results is kept; backwards, each adjoint takes the place of one."""
    backend = Counting()
    run(tmp_path, CHAIN.format(depth=40), backend, fusion=False)
    assert 400_000 < backend.peak < 450_000
    assert backend.live < 20_000


def test_nothing_is_forced_before_it_must(tmp_path: Path) -> None:
    """A loss and its gradient with floats of the host on the way: a mean, a deviation, a scale."""
    text = """
fn loss(x: GpuBuffer<float>) = {
    let mean = gpuFold(x, 0.0, fn(a, v) => a + v) / 4.0
    let square = gpuFold(x, 0.0, fn(a, v) => a + (v - mean) * (v - mean))
    let scale = sqrt(square) * 0.5 - mean
    gpuFold(gpuMap(x, fn(v) => v * scale), 0.0, fn(a, v) => a + v)
}
let x = toGpu([1.0, 2.0, 4.0, 8.0])
let (l, g) = valueAndGradient(loss, x)
"""
    _, rt = run(tmp_path, text)
    assert rt.stats.forces == 1
    _, rt = run(tmp_path, text + "print(fromGpu(g))\n")
    assert rt.stats.forces == 2
    _, rt = run(tmp_path, text.replace("let (l, g) = valueAndG", "let g = g"))
    assert rt.stats.forces == 0


def test_a_gradient_inside_a_gradient_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OspreyError) as refused:
        run(tmp_path, "fn f(x) = gradient(fn(y) => y * x, x)\nprint(gradient(fn(x) => f(x), 3.0))")
    (told,) = refused.value.diagnostics
    assert (told.code, told.span.text) == ("E0357", "gradient(fn(y) => y * x, x)")
