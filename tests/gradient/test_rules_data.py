"""G6, G7, G8, G11: folds, scans, products of matrices, data that moves. Expected values by hand, then judged."""

from __future__ import annotations

from math import nan
from typing import Any

from tests.gradient.literal_compare import bits, judged, program

BUFFER = "GpuBuffer<float>"
LISTS = """
let rising = toGpu([1.0, 1e17, -1e17])
let falling = toGpu([1e17, -1e17, 1.0])
let weights = toGpu([3.0, 5.0, 7.0, 11.0])
"""


def check(kind: str, point: str, body: str, want: Any) -> None:
    assert bits(judged(program(kind, point, body, LISTS))[1]) == bits(want)


# --- G6: folds and scans ------------------------------------------------------------------------------------------


def test_a_product() -> None:
    """G6: the accumulators were 1, 2, 6; their adjoints, backwards, 12, 4, 1. A zero is nothing special."""
    check(BUFFER, "toGpu([2.0, 3.0, 4.0])", "gpuFold(p, 1.0, fn(a, x) => a * x)", [12.0, 8.0, 6.0])
    check(BUFFER, "toGpu([2.0, 0.0, 4.0])", "gpuFold(p, 1.0, fn(a, x) => a * x)", [0.0, 8.0, 0.0])
    check(BUFFER, "toGpu([2.0, 3.0, 4.0])", "gpuFold(p, 1.0, fn(a, x) => x * a)", [12.0, 8.0, 6.0])
    inside = "total(gpuIota(2) |> gpuMap(fn(i) => gpuFold(gpuIota(2), 1.0, fn(a, k) => a * at(p, i * 2 + k))))"
    check(BUFFER, "toGpu([2.0, 3.0, 4.0, 5.0])", inside, [3.0, 2.0, 5.0, 4.0])


def test_what_the_steps_read_still_adds_ascending() -> None:
    """G6: the accumulator's adjoint goes backwards, the captured float's contributions forwards: (1.0 + 1e17) - 1e17."""
    check("float", "1.0", "gpuFold(rising, 0.0, fn(a, x) => a * 1.0 + p * x)", 0.0)
    check("float", "1.0", "gpuFold(falling, 0.0, fn(a, x) => a * 1.0 + p * x)", 1.0)
    inside = "total(gpuMap(p, fn(v) => gpuFold(gpuIota(3), 0.0, fn(a, k) => a * 1.0 + v * at(rising, k))))"
    check(BUFFER, "toGpu([1.0])", inside, [0.0])


def test_the_first_accumulator_is_read_before_the_steps() -> None:
    """G6, G2: -1e17 after the fold, 1e17 in it, 1.0 before."""
    body = "total(gpuMap(p, fn(v) => gpuFold(gpuIota(1), v, fn(a, k) => a + v * 1e17) - v * 1e17))"
    check(BUFFER, "toGpu([1.0])", body, [1.0])


def test_a_fold_without_steps_is_its_first_accumulator() -> None:
    """G6"""
    check(BUFFER, "toGpu([])", "gpuFold(p, 2.0, fn(a, x) => a * x)", [])
    check("{ x: float }", "{ x: 2.0 }", "gpuFold(gpuIota(0), p.x, fn(a, k) => a * inf)", {"x": 1.0})
    body = "total(gpuMap(p, fn(v) => gpuFold(gpuIota(0), v, fn(a, k) => a * inf)))"
    check(BUFFER, "toGpu([2.0, 3.0])", body, [1.0, 1.0])


def test_an_accumulator_that_is_not_read_passes_nothing_back() -> None:
    """G5, G6: only the last step counts; sqrt at 0.0 says whether zeros were passed."""
    check(BUFFER, "toGpu([0.0, 4.0])", "gpuFold(p, 0.0, fn(a, x) => sqrt(x))", [0.0, 0.25])
    body = "total(gpuIota(1) |> gpuMap(fn(i) => gpuFold(gpuIota(2), 0.0, fn(a, k) => sqrt(at(p, k)))))"
    check(BUFFER, "toGpu([0.0, 4.0])", body, [0.0, 0.25])


def test_the_greatest_gets_it_all_and_of_equals_the_first() -> None:
    """G4, G6: max keeps its first operand in a tie, a comparison as it is written."""
    check(BUFFER, "toGpu([1.0, 3.0, 3.0, 2.0])", "gpuFold(p, -inf, max)", [0.0, 1.0, 0.0, 0.0])
    check(BUFFER, "toGpu([1.0, 3.0, 3.0, 2.0])", "gpuFold(p, -inf, fn(a, x) => max(x, a))", [0.0, 0.0, 1.0, 0.0])
    check(BUFFER, "toGpu([1.0, 3.0, 3.0])", "gpuFold(p, -inf, fn(a, x) => x > a ? x : a)", [0.0, 1.0, 0.0])
    check(BUFFER, "toGpu([1.0, 3.0, 3.0])", "gpuFold(p, -inf, fn(a, x) => x >= a ? x : a)", [0.0, 0.0, 1.0])
    check(BUFFER, "toGpu([1.0, 3.0])", "gpuFold(p, 9.0, max)", [0.0, 0.0])
    # -inf < 1.0: to 1.0. With a NaN on either side nothing is less: to the first operand, the accumulator.
    check(BUFFER, "toGpu([1.0, nan, 3.0])", "gpuFold(p, -inf, max)", [1.0, 0.0, 0.0])
    check(BUFFER, "toGpu([4.0, 3.0, 5.0])", "gpuFold(p, inf, min)", [0.0, 1.0, 0.0])
    body = "total(gpuIota(2) |> gpuMap(fn(i) => gpuFold(gpuIota(2), -inf, fn(a, k) => max(a, at(p, i * 2 + k)))))"
    check(BUFFER, "toGpu([1.0, 2.0, 4.0, 3.0])", body, [0.0, 1.0, 1.0, 0.0])


def test_filtered_steps() -> None:
    """G6: a step that a filter leaves out passes the accumulator on."""
    body = """total(gpuIota(1) |> gpuMap(fn(i) =>
        gpuFold(gpuFilter(p, fn(x) => x > 0.0), 1.0, fn(a, x) => a * x)))"""
    check(BUFFER, "toGpu([2.0, -3.0, 4.0])", body, [4.0, 0.0, 2.0])


def test_a_scan_s_outputs_are_read_by_the_next_step_and_by_others() -> None:
    """G6: running products 2, 6, 24 with weights 3, 5, 7: adjoints backwards 7, 5 + 7*4, 3 + 33*3."""
    body = "{ let s = gpuScan(p, 1.0, fn(a, x) => a * x)\ntotal(gpuZipWith(s, weights, fn(u, v) => u * v)) }"
    check(BUFFER, "toGpu([2.0, 3.0, 4.0])", body, [102.0, 66.0, 42.0])
    # The readers' subtotals first, then the next step's: (-1e17 + 1e17) + 1.0, in that order.
    body = """{ let s = gpuScan(p, 0.0, fn(a, x) => a * 1.0 + x)
        at(s, 1) + at(s, 0) * 1e17 - at(s, 0) * 1e17 }"""
    check(BUFFER, "toGpu([2.0, 3.0])", body, [1.0, 1.0])
    check(BUFFER, "toGpu([])", "{ let s = gpuScan(p, 0.0, fn(a, x) => a + x)\ntotal(s) }", [])
    body = "at(gpuScan(p.x, p.s, fn(a, x) => a * x), 1)"
    check("{ x: GpuBuffer<float>, s: float }", "{ x: toGpu([2.0, 3.0]), s: 5.0 }", body, {"x": [15.0, 10.0], "s": 6.0})


# --- G7: products of matrices ---------------------------------------------------------------------------------------

PAIR = "{ a: GpuBuffer<float>, b: GpuBuffer<float> }"


def test_a_product_of_matrices_adds_over_columns_and_over_rows() -> None:
    """G7: a's over n ascending, b's over m ascending."""
    body = "total(gpuMatMul(p.a, p.b, {}, {}, {}) ?: p.a)"
    point = "{ a: toGpu([1.0]), b: rising }"
    check(PAIR, point, body.format(1, 1, 3), {"a": [0.0], "b": [1.0, 1.0, 1.0]})
    check(PAIR, "{ a: rising, b: toGpu([1.0]) }", body.format(3, 1, 1), {"a": [1.0, 1.0, 1.0], "b": [0.0]})
    point = "{ a: toGpu([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), b: toGpu([1.0, 3.0, 5.0, 7.0, 11.0, 13.0]) }"
    check(PAIR, point, body.format(2, 3, 2), {"a": [4.0, 12.0, 24.0] * 2, "b": [5.0, 5.0, 7.0, 7.0, 9.0, 9.0]})
    check(PAIR, "{ a: toGpu([]), b: toGpu([]) }", body.format(2, 0, 3), {"a": [], "b": []})
    square = "total(gpuMatMul(p, p, 2, 2, 2) ?: p)"
    check(BUFFER, "toGpu([1.0, 2.0, 3.0, 4.0])", square, [7.0, 11.0, 9.0, 13.0])


# --- G11: data that moves ---------------------------------------------------------------------------------------------


def weighted(b: str) -> str:
    return f"total(gpuZipWith({b}, weights, fn(u, v) => u * v))"


def test_pieces_and_wholes() -> None:
    """G11: each element's adjoint goes to where it came from."""
    check(
        PAIR,
        "{ a: toGpu([1.0]), b: toGpu([2.0, 3.0]) }",
        weighted("gpuConcat(p.a, p.b)"),
        {"a": [3.0], "b": [5.0, 7.0]},
    )
    check(BUFFER, "toGpu([1.0, 2.0])", weighted("gpuConcat(p, p)"), [10.0, 16.0])
    check(BUFFER, "toGpu([1.0, 2.0, 3.0])", weighted("(gpuSlice(p, 1, 3) ?: p)"), [0.0, 3.0, 5.0])
    check(BUFFER, "toGpu([1.0, 2.0])", weighted("(gpuSlice(p, 1, 5) ?: p)"), [3.0, 5.0])
    check(BUFFER, "toGpu([1.0, -2.0, 3.0])", weighted("gpuFilter(p, fn(x) => x > 0.0)"), [3.0, 0.0, 5.0])
    check("{ x: float, y: float }", "{ x: 1.0, y: 2.0 }", weighted("toGpu([p.x, p.y, p.x])"), {"x": 10.0, "y": 5.0})
    check(BUFFER, "toGpu([1.0, 2.0])", "fromGpu(p) |> fold(1.0, fn(a, x) => a * x)", [2.0, 1.0])
    check(BUFFER, "toGpu([1.0, 2.0])", "(gpuGet(p, 1) ?: 0.0) * 3.0", [0.0, 3.0])
    body = weighted("(gpuAccumulate(2, toGpu([1, 0, 1]), p) ?: p)")
    check(BUFFER, "toGpu([1.0, 2.0, 4.0])", body, [5.0, 3.0, 5.0])


def test_to_gpu_is_one_site_and_concat_two() -> None:
    """G11, G3: x's subtotal in toGpu is (1.0 + 1e17) - 1e17; a buffer's in a concat are the right one, then the left."""
    body = "total(gpuZipWith(toGpu([p, p, p]), rising, fn(u, v) => u * v))"
    check("float", "1.0", body, 0.0)
    body = "total(gpuZipWith(gpuConcat(gpuConcat(p, p), p), rising, fn(u, v) => u * v))"
    check(BUFFER, "toGpu([2.0])", body, [1.0])


def test_every_place_is_a_parameter_of_its_own() -> None:
    """G8, G11: one buffer in two places, and captured by the function besides."""
    helpers = f"{LISTS}let w = toGpu([2.0])\n"
    text = program(PAIR, "{ a: w, b: w }", "at(p.a, 0) * at(p.b, 0) * at(p.b, 0) * at(w, 0)", helpers)
    assert judged(text)[1] == {"a": [8.0], "b": [16.0]}
    text = program("List<GpuBuffer<float>>", "[w, w]", "p |> fold(3.0, fn(a, b) => a * at(b, 0))", helpers)
    assert judged(text)[1] == [[6.0], [6.0]]


def test_lists_and_recursion_on_the_host() -> None:
    """G2, G8: iterations are sites of their own, the last one first: ((0.0 - 1e17) + 1e17) + 1.0."""
    helpers = f"""{LISTS}
fn through(x: float, fs: List<float>) -> float = match fs {{
    [] => 0.0
    [f, ...more] => x * f + through(x, more)
}}
type Layer = {{ weight: GpuBuffer<float>, scale: float }}
fn layers(x: GpuBuffer<float>, ls: List<Layer>) -> GpuBuffer<float> = match ls {{
    [] => x
    [l, ...more] => layers(gpuZipWith(x, l.weight, fn(u, w) => u * w * l.scale), more)
}}
"""
    assert judged(program("float", "1.0", "through(p, [1.0, 1e17, -1e17])", helpers))[1] == 1.0
    assert judged(program("List<float>", "[1.0, 2.0]", "through(3.0, p)", helpers))[1] == [3.0, 3.0]
    point = "[Layer { weight: toGpu([2.0]), scale: 3.0 }, Layer { weight: toGpu([5.0]), scale: 7.0 }]"
    text = program("List<Layer>", point, "total(layers(toGpu([1.0]), p))", helpers)
    assert judged(text)[1] == [{"weight": [105.0], "scale": 70.0}, {"weight": [42.0], "scale": 30.0}]


def test_shapes() -> None:
    """G8: records, tuples and lists in any nesting; what nothing reads is 0.0."""
    kind = "{ a: (float, List<GpuBuffer<float>>), b: List<{ c: float }>, e: List<float> }"
    point = "{ a: (2.0, [toGpu([1.0, 2.0]), toGpu([])]), b: [{ c: 3.0 }, { c: 4.0 }], e: List() }"
    body = "{ let (x, _) = p.a\nmatch p.b { [u, ..._] => x * u.c\n_ => 0.0 } }"
    check(kind, point, body, {"a": (3.0, [[0.0, 0.0], []]), "b": [{"c": 2.0}, {"c": 0.0}], "e": []})


def test_a_fold_whose_result_decides_what_becomes_of_it() -> None:
    """G5, G6: min asks for the fold's value, whose own steps are not those that the adjoint goes back through."""
    kept = "gpuFilter(gpuMap(p.a, fn(x) => x), fn(x) => x > p.s)"
    body = f"total(gpuMap(gpuIota(1), fn(i) => min(gpuFold({kept}, p.s, fn(v, x) => v * p.s), 1.0)))"
    check("{ a: GpuBuffer<float>, s: float }", "{ a: toGpu([3.0]), s: 0.5 }", body, {"a": [0.0], "s": 1.0})


def test_a_filter_that_keeps_nothing_has_read_all_the_same() -> None:
    """G5, G11: a sum of what was kept can read it, so all elements have an adjoint: 0.0, and 0.0 * inf is a NaN."""
    body = "total(gpuFilter(gpuMap(p.a, fn(x) => x * p.s), fn(x) => x < 0.0))"
    check("{ a: GpuBuffer<float>, s: float }", "{ a: toGpu([inf]), s: 1.0 }", body, {"a": [0.0], "s": nan})
