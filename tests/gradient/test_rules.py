"""G1, G2, G3, G5, G13: which numbers are added, in which order. Expected values are worked out by hand: 1e17 + 1.0 is
1e17, so every other order gives another number. Each program is judged: by the book, on the oracle, on the host."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.gradient.literal_compare import bits, judged, program

BUFFER = "GpuBuffer<float>"
LISTS = """
let rising = toGpu([1.0, 1e17, -1e17])
let falling = toGpu([1e17, -1e17, 1.0])
let c = toGpu([1e17, 1.0])
let d = toGpu([-1e17, 0.0])
let four = toGpu([1e17, 1.0, -1e17, 5.0])
fn times(x: float, y: float) -> float = x * y
"""


def gradient(kind: str, point: str, body: str) -> Any:
    return judged(program(kind, point, body, LISTS))[1]


def check(kind: str, point: str, body: str, want: Any) -> None:
    assert bits(gradient(kind, point, body)) == bits(want)


# --- G2: the site evaluated last comes first ------------------------------------------------------------------


def test_the_sites_of_a_number_of_the_host_last_first() -> None:
    """G2: ((0.0 - 1e17) + 1e17) + 1.0."""
    check("float", "1.0", "p * 1.0 + p * 1e17 - p * 1e17", 1.0)


def test_the_order_is_that_of_evaluation_not_of_use() -> None:
    """G2: the sites stand where the lets stand: (-1e17 + 1.0) + 1e17."""
    check("float", "1.0", "{ let a = p * 1e17\nlet b = p * 1.0\nlet e = p * (-1e17)\nb + a + e }", 0.0)


def test_the_sites_of_a_number_in_a_kernel_last_first() -> None:
    """G2, one element."""
    check(BUFFER, "toGpu([1.0])", "total(gpuMap(p, fn(x) => x * 1.0 + x * 1e17 - x * 1e17))", [1.0])
    body = "total(gpuMap(p, fn(x) => { let a = x * 1e17\nlet b = x * 1.0\nlet e = x * (-1e17)\nb + a + e }))"
    check(BUFFER, "toGpu([1.0])", body, [0.0])


@pytest.mark.parametrize(("order", "want"), [(("1.0", "1e17", "-1e17"), 1.0), (("1e17", "1.0", "-1e17"), 0.0)])
def test_launches_as_made(order: tuple[str, ...], want: float) -> None:
    """G2: a buffer that three launches read."""
    lets = "".join(f"let y{k} = gpuMap(p, fn(x) => x * ({f}))\n" for k, f in enumerate(order))
    check(BUFFER, "toGpu([1.0])", f"{{ {lets}total(y0) + total(y1) + total(y2) }}", [want])


def test_calls_are_inlined() -> None:
    """G1: one helper called from three places is three sites; so in kernels."""
    check("float", "1.0", "times(p, 1.0) + times(p, 1e17) - times(p, 1e17)", 1.0)
    body = "total(gpuMap(p, fn(x) => times(x, 1.0) + times(x, 1e17) - times(x, 1e17)))"
    check(BUFFER, "toGpu([1.0])", body, [1.0])
    body = "total(gpuIota(2) |> gpuMap(fn(i) => times(at(p, 0), at(c, i)) + times(at(p, 0), at(d, i))))"
    check(BUFFER, "toGpu([1.0])", body, [0.0])


def test_nothing_is_simplified() -> None:
    """G1: x - x is two sites, x * 0.0 one, and an inf on the way stays."""
    check("float", "2.0", "p - p", 0.0)
    check("float", "2.0", "(p * 0.0) * inf", math.nan)


def test_control_flow_moves_values() -> None:
    """G2: what an `if` gives is the value of the branch: sites of the whole are sites of it, each in its place."""
    body = "{ let y = if p > 0.0 { p } else { 0.0 }\ny * 1.0 + p * 1e17 - y * 1e17 }"
    check("float", "1.0", body, 1.0)
    kernel = "if x > 0.0 { x } else { 0.0 }"
    body = f"total(gpuMap(p, fn(x) => {{ let y = {kernel}\ny * 1.0 + x * 1e17 - y * 1e17 }}))"
    check(BUFFER, "toGpu([1.0])", body, [1.0])
    body = f"total(gpuMap(p, fn(x) => {{ let y = {kernel}\nx * 1e17 + y * 1.0 - y * 1e17 }}))"
    check(BUFFER, "toGpu([1.0])", body, [0.0])
    kernel = "match (x, true) { (v, true) => v\n_ => 0.0 }"
    body = f"total(gpuMap(p, fn(x) => {{ let y = {kernel}\ny * 1.0 + x * 1e17 - y * 1e17 }}))"
    check(BUFFER, "toGpu([1.0])", body, [1.0])
    kernel = "(x / x ?: 0.0) * 0.0 + (sqrt(x) ?: 0.0)"
    check(BUFFER, "toGpu([4.0])", f"total(gpuMap(p, fn(x) => {kernel}))", [0.25])


# --- G3: contributions ascending --------------------------------------------------------------------------------


def test_contributions_of_a_site_by_element() -> None:
    """G3: (1.0 + 1e17) - 1e17, and (1e17 - 1e17) + 1.0."""
    check(BUFFER, "toGpu([1.0])", "total(gpuIota(3) |> gpuMap(fn(i) => at(p, 0) * at(rising, i)))", [0.0])
    check(BUFFER, "toGpu([1.0])", "total(gpuIota(3) |> gpuMap(fn(i) => at(p, 0) * at(falling, i)))", [1.0])


def test_each_site_has_a_subtotal_of_its_own() -> None:
    """G3: (0.0 + (-1e17 + 0.0)) + (1e17 + 1.0)."""
    body = "total(gpuIota(2) |> gpuMap(fn(i) => at(p, 0) * at(c, i) + at(p, 0) * at(d, i)))"
    check(BUFFER, "toGpu([1.0])", body, [0.0])


def test_by_element_then_by_step() -> None:
    """G3: ((1e17 + 1.0) - 1e17) + 5.0."""
    step = "fn(a, k) => a + at(p, 0) * at(four, i * 2 + k)"
    check(BUFFER, "toGpu([1.0])", f"total(gpuIota(2) |> gpuMap(fn(i) => gpuFold(gpuIota(2), 0.0, {step})))", [5.0])


def test_folds_in_folds_outermost_first() -> None:
    """G3"""
    inner = "fn(a, k) => a + at(p, 0) * at(four, i * 2 + k)"
    outer = f"fn(b, i) => b + gpuFold(gpuIota(2), 0.0, {inner})"
    check(BUFFER, "toGpu([1.0])", f"total(gpuIota(1) |> gpuMap(fn(j) => gpuFold(gpuIota(2), 0.0, {outer})))", [5.0])


def test_a_value_of_one_element_adds_over_the_steps_that_read_it() -> None:
    """G3: the float read before the fold gets 1e17 in element 0 and -1e17 in element 1."""
    step = "fn(a, k) => a + v * at(four, i * 2 + k)"
    body = f"total(gpuIota(2) |> gpuMap(fn(i) => {{ let v = at(p, 0)\ngpuFold(gpuIota(2), 0.0, {step}) }}))"
    check(BUFFER, "toGpu([1.0])", body, [0.0])


def test_what_is_written_in_a_step_is_executed_in_each() -> None:
    """G1, G3: -(v * 1.0) reads nothing of the step. Its adjoint is that of each step: 1e17, 1.0, -1e17, in order; made once
    before the fold it would be the same sum with another sign at the end. exp shows it: 3 products, or one."""
    a, b, e = 0.1, 0.7, 1.3
    y = 1.6487212707001282  # exp(0.5)
    step = "fn(a, k) => a + exp(v) * at(w, k)"
    body = f"{{ let w = toGpu([{a}, {b}, {e}])\ntotal(gpuMap(p, fn(v) => gpuFold(gpuIota(3), 0.0, {step}))) }}"
    check(BUFFER, "toGpu([0.5])", body, [((0.0 + a * y) + b * y) + e * y])
    body = (
        body.replace("exp(v) *", "u *").replace("fn(v) =>", "fn(v) => { let u = exp(v)\n").replace("))) }", ") })) }")
    )
    check(BUFFER, "toGpu([0.5])", body, [(((0.0 + a) + b) + e) * y])
    assert ((0.0 + a * y) + b * y) + e * y != (((0.0 + a) + b) + e) * y


def test_a_pipeline_is_computed_in_the_fold_that_ends_it() -> None:
    """G1: two folds over one pipeline are two computations: two subtotals, each a product."""
    body = """total(gpuMap(p, fn(v) => {
        let squares = gpuIota(2) |> gpuMap(fn(k) => exp(v))
        gpuFold(squares, 0.0, fn(a, x) => a + x * 0.1) + gpuFold(squares, 0.0, fn(a, x) => a + x * 0.7)
    }))"""
    y = 1.6487212707001282
    check(BUFFER, "toGpu([0.5])", body, [(0.0 + ((0.0 + 0.7 * y) + 0.7 * y)) + ((0.0 + 0.1 * y) + 0.1 * y)])


# --- G5: what is not executed -----------------------------------------------------------------------------------


def test_the_branch_not_taken_contributes_nothing() -> None:
    """G5: no zero times inf."""
    check("float", "1.0", "if p > 0.0 { p } else { p * inf }", 1.0)
    check(BUFFER, "toGpu([1.0, -1.0])", "total(gpuMap(p, fn(x) => x > 0.0 ? x : x * inf))", [1.0, math.inf])
    check(BUFFER, "toGpu([0.0, 4.0])", "total(gpuMap(p, fn(x) => x > 0.0 ? sqrt(x) : 0.0))", [0.0, 0.25])
    check(BUFFER, "toGpu([2.0])", "total(gpuMap(p, fn(x) => x > 0.0 && x * inf > 0.0 ? x : 0.0))", [1.0])


def test_a_number_that_nobody_read_contributes_nothing() -> None:
    """G5: y is computed, and not used."""
    check("float", "0.0", "{ let y = sqrt(p)\nif p > 0.0 { y } else { p } }", 1.0)
    body = "total(gpuMap(p, fn(x) => { let y = sqrt(x)\nif x > 0.0 { y } else { x } }))"
    check(BUFFER, "toGpu([0.0, 4.0])", body, [1.0, 0.25])


def test_the_loser_of_max_contributes_nothing() -> None:
    """G4, G5"""
    check("float", "0.0", "max(1.0, sqrt(p))", 0.0)
    check("float", "0.0", "min(sqrt(p), -1.0)", 0.0)
    check(BUFFER, "toGpu([0.0, 4.0])", "total(gpuMap(p, fn(x) => max(1.0, sqrt(x))))", [0.0, 0.25])


def test_an_element_always_has_an_adjoint() -> None:
    """G5: sqrt's slope at 0.0 is inf, and the adjoint of its element, which nobody reads, is 0.0."""
    check(BUFFER, "toGpu([0.0, 4.0])", "at(gpuMap(p, fn(x) => sqrt(x)), 1)", [math.nan, 0.25])
    # The text of the second launch can read the elements of the first, and never does.
    body = "{ let b = gpuMap(p, fn(x) => sqrt(x))\ntotal(gpuIota(2) |> gpuMap(fn(i) => i > 5 ? at(b, i) : at(p, i))) }"
    check(BUFFER, "toGpu([0.0, 4.0])", body, [math.nan, 1.0])
    # Nor does a fold without steps.
    body = """{ let b = gpuMap(p, fn(x) => sqrt(x))
        total(gpuIota(2) |> gpuMap(fn(i) => gpuFold(gpuIota(0), at(p, i), fn(a, k) => a + at(b, k)))) }"""
    check(BUFFER, "toGpu([0.0, 4.0])", body, [math.nan, 1.0])


def test_a_buffer_without_a_way_to_the_result_has_no_adjoint() -> None:
    """G5"""
    made = "let b = gpuMap(p, fn(x) => sqrt(x))\n"
    check(BUFFER, "toGpu([0.0, 4.0])", f"{{ {made}let unused = total(b)\nat(p, 1) }}", [0.0, 1.0])
    body = f"{{ {made}total(gpuIota(2) |> gpuMap(fn(i) => at(b, i) > 1.0 ? at(p, i) : 0.0)) }}"
    check(BUFFER, "toGpu([0.0, 4.0])", body, [0.0, 1.0])
    body = f"{{ {made}total(gpuIota(2) |> gpuMap(fn(i) => floor(at(b, i)) + at(p, i))) }}"
    check(BUFFER, "toGpu([0.0, 4.0])", body, [1.0, 1.0])
    body = f"{{ {made}total(gpuIota(2) |> gpuMap(fn(i) => if false {{ at(b, i) }} else {{ at(p, i) }})) }}"
    check(BUFFER, "toGpu([0.0, 4.0])", body, [1.0, 1.0])


def test_a_gather_out_of_range_reads_nothing() -> None:
    """G4, G5"""
    check(BUFFER, "toGpu([3.0, 4.0])", "total(gpuIota(4) |> gpuMap(fn(i) => at(p, i - 1) * 2.0))", [2.0, 2.0])
    check(BUFFER, "toGpu([3.0])", "(gpuGet(p, 7) ?: 5.0) + (gpuGet(p, 0) ?: 5.0)", [1.0])


def test_a_recovered_fault_contributes_its_default() -> None:
    """G4"""
    check("{ a: float, b: float }", "{ a: 1.0, b: 0.0 }", "(p.a / p.b) ?: p.a * 3.0", {"a": 3.0, "b": 0.0})
    body = "total(gpuIota(2) |> gpuMap(fn(i) => (at(p, 0) / at(p, i)) ?: at(p, 1) * 3.0))"
    check(BUFFER, "toGpu([0.0, 2.0])", body, [0.5, 3.0])


# --- G13: captured floats ---------------------------------------------------------------------------------------


def test_a_captured_float_is_read_once_for_each_element() -> None:
    """G13: by element, (0.0 - 1e17) + 1e17 and 0.0 + 1.0; site by site it would be 0.0."""
    body = "total(gpuIota(2) |> gpuMap(fn(i) => p * at(c, i) + p * at(d, i)))"
    check("float", "1.0", body, 1.0)
    check("float", "1.0", "total(gpuIota(3) |> gpuMap(fn(i) => p * at(rising, i)))", 0.0)


def test_a_first_accumulator_is_read_before_everything() -> None:
    """G13: of a fold, -1e17 (later, on the host), then 1e17 in the fold, then its first accumulator."""
    body = "gpuFold(gpuIota(1), p, fn(a, k) => a + p * 1e17) - p * 1e17"
    check("float", "1.0", body, 1.0)
    body = "gpuFold(gpuIota(1), p * 1.0, fn(a, k) => a + q * 1e17) - p * 1e17".replace("q", "p")
    check("float", "1.0", body, 1.0)
    body = "{ let s = gpuScan(gpuIota(2), p, fn(a, k) => a + p * 1e17)\nat(s, 0) - p * 1e17 }"
    check("float", "1.0", body, 1.0)
