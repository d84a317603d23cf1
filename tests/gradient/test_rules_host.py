"""G2, G8, G9: floats of the host go wherever the language's values go, and a function is differentiated again and again
by replay, with other numbers, lengths and branches. Expected values by hand, or by the book."""

from __future__ import annotations

from typing import Any

import pytest

from osprey_py.backends.oracle import OracleBackend
from tests.gradient.literal import literal
from tests.gradient.literal_compare import HEAD, HOST, bits, real

PROGRAMS: list[tuple[str, str, str, Any]] = [
    ("text", 'fn f(x: float) -> float = if "${x}" == "1.5" { x * 2.0 } else { x * 3.0 }',
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("toString", "fn f(x: float) -> float = toFloat(length(toString(x * 2.0))) * x",
     "valueAndGradient(f, 1.5)", (4.5, 3.0)),
    ("map values", """fn f(x: float) -> float = { let m = { "a": x, "b": x * x }
        (mapGet(m, "b") ?: 0.0) + (m["a"] ?: 0.0) }""",
     "valueAndGradient(f, 1.5)", (3.75, 4.0)),
    ("map keys", """fn f(x: float) -> float = { let m = mapSet(Map(), x, 2.0)
        (mapGet(m, 1.5) ?: 0.0) * x }""",
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("map key lookup", """fn f(x: float) -> float = { let m = mapSet(Map(), 1.5, 2.0)
        (mapGet(m, x) ?: 0.0) * x }""",
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("equal tuples", "fn f(x: float) -> float = if (x, 1) == (1.5, 1) { x * 2.0 } else { 0.0 }",
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("contains", "fn f(x: float) -> float = if listContains([1.0, 1.5], x) { x * 2.0 } else { 0.0 }",
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("literal pattern", """fn f(x: float) -> float = match x { 1.5 => x * 2.0
        _ => 0.0 }""",
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("tuple pattern", """fn f(x: float) -> float = match (x, 2) { (1.5, 2) => x * 2.0
        _ => 0.0 }""",
     "valueAndGradient(f, 1.5)", (3.0, 2.0)),
    ("toInt range", "fn f(x: float) -> float = range(0, toInt(x)) |> fold(0.0, fn(a, k) => a + x * toFloat(k + 1))",
     "valueAndGradient(f, 3.5)", (21.0, 6.0)),
    ("sort", """fn ins(x: float, l: List<float>) -> List<float> = match l { [] => [x]
        [h, ...t] => if x < h { listPrepend(l, x) } else { listPrepend(ins(x, t), h) } }
        fn f(p: List<float>) -> float = match (p |> fold(List(), fn(a, x) => ins(x, a))) {
        [a, b, c] => a + b * 2.0 + c * 3.0
        _ => 0.0 }""",
     "valueAndGradient(f, [3.0, 1.0, 2.0])", (14.0, [3.0, 1.0, 2.0])),
    ("record update", """type R = { a: float, b: float }
        fn f(r: R) -> float = { let s = r { a: r.b * 2.0 }
        s.a * s.b }""",
     "valueAndGradient(f, R { a: 1.0, b: 3.0 })", (18.0, {'a': 0.0, 'b': 12.0})),
    ("buffer in map", """fn f(b: GpuBuffer<float>) -> float = { let m = { "w": b }
        total(mapGet(m, "w") ?: toGpu([])) }""",
     "valueAndGradient(f, toGpu([1.0, 2.0]))", (3.0, [1.0, 1.0])),
    ("buffer text", 'fn f(b: GpuBuffer<float>) -> float = if "${b}" == "GpuBuffer(2)" { total(b) } else { 0.0 }',
     "valueAndGradient(f, toGpu([1.0, 2.0]))", (3.0, [1.0, 1.0])),
    ("variants of buffers", """type S = One(GpuBuffer<float>) | Two(float)
        fn g(s: S) -> float = match s { One(b) => total(b)
        Two(x) => x * 2.0 }
        fn f(p: (GpuBuffer<float>, float)) -> float = { let (b, x) = p
        g(One(b)) * g(Two(x)) }""",
     "valueAndGradient(f, (toGpu([1.0, 2.0]), 3.0))", (18.0, ([6.0, 6.0], 6.0))),
    ("functions in lists", """fn f(x: float) -> float =
        [fn(y: float) => y * x, sqrt, fn(y: float) => y + x] |> fold(1.0, fn(a, g) => g(a))""",
     "valueAndGradient(f, 4.0)", (6.0, 1.25)),
    ("captured param buffer", """let w = toGpu([2.0])
        fn f(p: GpuBuffer<float>) -> float = at(p, 0) * at(w, 0) * at(w, 0)""",
     "valueAndGradient(f, w)", (8.0, [4.0])),
    ("zip param with captured self", """let w = toGpu([2.0, 3.0])
        fn f(p: GpuBuffer<float>) -> float = total(gpuZipWith(w, p, fn(x, y) => x * y))""",
     "valueAndGradient(f, w)", (13.0, [2.0, 3.0])),
    ("result type", """fn d(x: float) -> Result<float, MathError> = x / (x - 1.0)
        fn f(x: float) -> float = match d(x) { Success { value } => value
        Error { message: _ } => x * 7.0 }""",
     "valueAndGradient(f, 1.0)", (7.0, 7.0)),
    ("stop host buffer", """fn f(b: GpuBuffer<float>) -> float = { let c = stopGradient(gpuMap(b, fn(x) => x * 2.0))
        total(gpuZipWith(b, c, fn(x, y) => x * y)) }""",
     "valueAndGradient(f, toGpu([1.0, 2.0]))", (10.0, [2.0, 4.0])),
    ("stop list", """fn f(p: List<float>) -> float = match stopGradient(p) { [a, b] => (listGet(p, 0) ?: 0.0) * a + b
        _ => 0.0 }""",
     "valueAndGradient(f, [3.0, 2.0])", (11.0, [3.0, 0.0])),
    ("stop as value", "",
     "([1.0, 2.0] |> map(stopGradient) |> toList)", [1.0, 2.0]),
    ("stop kernel itself", "fn f(b: GpuBuffer<float>) -> float = total(gpuMap(b, stopGradient)) + total(b)",
     "valueAndGradient(f, toGpu([1.0]))", (2.0, [1.0])),
    ("fault order", """fn f(x: float) -> float = { let a = gpuMap(toGpu([0.0]), fn(v) => 1.0 / v)
        x * 2.0 }""",
     "(gradient(f, 1.0) ?: 9.0)", 9.0),
    ("grad of grad twice sequential", "fn f(x: float) -> float = x * x",
     """({ let g = gradient(f, 2.0)
        let h = gradient(fn(y: float) => y * g, 3.0)
        h })""", 4.0),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "ask", "want"), PROGRAMS)
def test_a_float_goes_anywhere(what: str, text: str, ask: str, want: Any) -> None:
    """G2, G8, G9"""
    assert bits(real(HEAD + text, OracleBackend(), ask=ask)) == bits(want), what


CHANGING = f"""{HEAD}
fn step(x: GpuBuffer<float>, w: GpuBuffer<float>) -> GpuBuffer<float> = gpuIota(gpuLength(x)) |> gpuMap(fn(i) =>
    tanh(gpuFold(gpuIota(gpuLength(x)), 0.0, fn(s, j) => s + at(x, j) * at(w, (i + j) % gpuLength(w)))))
fn many(x: GpuBuffer<float>, w: GpuBuffer<float>, n: int) -> GpuBuffer<float> =
    if n <= 0 {{ x }} else {{ many(step(x, w), w, n - 1) }}
type P = {{ a: GpuBuffer<float>, s: float, l: List<float> }}
fn loss(p: P) -> float = {{
    let y = many(p.a, gpuMap(p.a, fn(x) => x * p.s), if p.s > 1.0 {{ 17 }} else {{ 18 }})
    let t = total(y)
    let u = if t > 0.3 {{ t * p.s }} else {{ p.s * p.s - t * 0.7 }}
    let z = gpuFilter(y, fn(v) => v > 0.1)
    let m = max(t, p.s) * min(u, 0.9) + (gpuGet(y, if gpuLength(p.a) > 2 {{ 2 }} else {{ 0 }}) ?: 0.0)
    m + total(gpuMap(z, fn(v) => v * u)) + (gpuLength(z) > 1 ? at(z, 1) * 2.0 : p.s)
        + (p.l |> fold(0.0, fn(a, b) => a * p.s + max(b, t) + tanh(p.s) * tanh(p.s)))
}}
fn go(p: P) -> (float, P) = valueAndGradient(loss, p)
"""
POINTS = [
    "P { a: toGpu([0.1, 0.7, -0.3]), s: 1.3, l: [0.1, 0.2] }",
    "P { a: toGpu([0.5, -0.7, -0.3]), s: 0.3, l: [0.1, 0.2] }",
    "P { a: toGpu([0.1, 0.7]), s: 0.9, l: [0.4, 0.2] }",
    "P { a: toGpu([0.9, 0.7, 0.8, 1.1]), s: 1.9, l: [0.4, 0.2] }",
    "P { a: toGpu([0.1, 0.7, -0.3]), s: 1.3, l: [3.1, 0.2] }",
]
SEQUENCE = (0, 0, 1, 0, 1, 2, 2, 3, 4, 1, 0, 4)


def test_again_and_again_with_other_numbers_lengths_and_branches() -> None:
    """G1: a replay shares what occurs twice; a gradient does not."""
    want = [bits(literal(f"{CHANGING}let point = {point}", "loss", "point")) for point in POINTS]
    ask = f"([{', '.join(POINTS[k] for k in SEQUENCE)}] |> map(go) |> toList)"
    for backend in (OracleBackend(), HOST):
        assert bits(real(CHANGING, backend, ask=ask)) == [want[k] for k in SEQUENCE]
