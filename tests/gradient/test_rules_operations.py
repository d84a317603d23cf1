"""G4, G9, G12: the rule of every operation alone, at its edges, on the host and in a kernel. Expected values by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.gradient.literal_compare import bits, judged, program

INF, NAN = math.inf, math.nan
THIRD = 1.0 / 3.0
TINY = 5e-324

EDGES: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("a + b", (2.0, 3.0), (1.0, 1.0)),
    ("a - b", (2.0, 3.0), (1.0, -1.0)),
    ("a + b", (INF, -INF), (1.0, 1.0)),
    ("a * b", (2.0, 3.0), (3.0, 2.0)),
    ("a * b", (0.0, INF), (INF, 0.0)),
    ("a * b", (-0.0, -0.0), (0.0, 0.0)),
    ("a * b", (NAN, 2.0), (2.0, NAN)),
    ("a * b", (1e300, 1e300), (1e300, 1e300)),
    ("a * a + b", (3.0, 0.0), (6.0, 1.0)),
    ("a / b", (1.0, 3.0), (THIRD, -(THIRD * THIRD))),
    ("a / b", (2.0, -4.0), (-0.25, -(-0.25 * -0.5))),
    ("a / b", (INF, 2.0), (0.5, -INF)),
    ("a / b", (1.0, INF), (0.0, 0.0)),
    ("a / b", (1.0, TINY), (INF, -INF)),
    ("ieeeDiv(a, b)", (1.0, 3.0), (THIRD, -(THIRD * THIRD))),
    ("ieeeDiv(a, b)", (1.0, 0.0), (INF, -INF)),
    ("ieeeDiv(a, b)", (1.0, -0.0), (-INF, -INF)),
    ("ieeeDiv(a, b)", (0.0, 0.0), (INF, NAN)),
    ("-a", (2.0,), (-1.0,)),
    ("a % b", (7.0, 2.0), (1.0, -3.0)),
    ("a % b", (-7.0, 2.0), (1.0, 3.0)),
    ("a % b", (7.0, -2.0), (1.0, 3.0)),
    ("a % b", (1.0, 2.0), (1.0, 0.0)),
    ("a % b", (INF, 2.0), (1.0, -INF)),
    ("a % b", (1.0, INF), (1.0, 0.0)),
    ("a % b", (2.9999999999999996, 1.0), (1.0, -2.0)),
    ("a % b", (0.3, 0.1), (1.0, -2.0)),
    # The quotient rounds up to 9.0, and the remainder is not 0.0 all the same. The rule takes the rounded quotient.
    ("a % b", (0.9, 0.1), (1.0, -9.0)),
    ("sqrt(a)", (4.0,), (0.25,)),
    ("sqrt(a)", (0.0,), (INF,)),
    ("sqrt(a)", (-0.0,), (-INF,)),
    ("sqrt(a)", (-1.0,), (NAN,)),
    ("sqrt(a)", (INF,), (0.0,)),
    ("sqrt(a)", (TINY,), (0.5 / math.sqrt(TINY),)),
    ("sqrt(a) * 0.0", (0.0,), (NAN,)),
    ("exp(a)", (0.0,), (1.0,)),
    ("exp(a)", (-INF,), (0.0,)),
    ("exp(a)", (710.0,), (INF,)),
    ("exp(a)", (-745.2,), (0.0,)),
    ("exp(a) * 0.0", (710.0,), (NAN,)),
    ("ln(a)", (2.0,), (0.5,)),
    ("ln(a)", (0.0,), (INF,)),
    ("ln(a)", (-0.0,), (-INF,)),
    ("ln(a)", (-2.0,), (-0.5,)),
    ("ln(a)", (INF,), (0.0,)),
    ("tanh(a)", (0.0,), (1.0,)),
    ("tanh(a)", (INF,), (0.0,)),
    ("tanh(a)", (20.0,), (0.0,)),
    ("tanh(a)", (NAN,), (NAN,)),
    ("abs(a)", (-2.0,), (-1.0,)),
    ("abs(a)", (2.0,), (1.0,)),
    ("abs(a)", (0.0,), (1.0,)),
    ("abs(a)", (-0.0,), (1.0,)),
    ("abs(a)", (NAN,), (1.0,)),
    ("max(a, b)", (1.0, 2.0), (0.0, 1.0)),
    ("max(a, b)", (2.0, 1.0), (1.0, 0.0)),
    ("max(a, b)", (1.0, 1.0), (1.0, 0.0)),
    ("max(a, b)", (-0.0, 0.0), (1.0, 0.0)),
    ("max(a, b)", (NAN, 1.0), (1.0, 0.0)),
    ("max(a, b)", (1.0, NAN), (1.0, 0.0)),
    ("min(a, b)", (1.0, 2.0), (1.0, 0.0)),
    ("min(a, b)", (2.0, 1.0), (0.0, 1.0)),
    ("min(a, b)", (1.0, 1.0), (1.0, 0.0)),
    ("min(a, b)", (0.0, -0.0), (1.0, 0.0)),
    ("min(a, b)", (1.0, NAN), (1.0, 0.0)),
    ("max(a, a)", (1.0,), (1.0,)),
    ("max(0.0, a)", (0.0,), (0.0,)),
    ("max(a, 0.0)", (0.0,), (1.0,)),
    ("a > 0.0 ? a : 0.0", (0.0,), (0.0,)),
    ("a >= 0.0 ? a : 0.0", (-0.0,), (1.0,)),
    ("if a < b { a } else { b * 2.0 }", (NAN, 1.0), (0.0, 2.0)),
    ("match a { 0.0 => b\nx if x > 1.0 => x * 3.0\n_ => a + b }", (-0.0, 5.0), (0.0, 1.0)),
    ("match a { 0.0 => b\nx if x > 1.0 => x * 3.0\n_ => a + b }", (2.0, 5.0), (3.0, 0.0)),
    ("match a { 0.0 => b\nx if x > 1.0 => x * 3.0\n_ => a + b }", (NAN, 5.0), (1.0, 1.0)),
    ("a > 0.0 && b > 0.0 ? a * 2.0 : b", (1.0, 1.0), (2.0, 0.0)),
    ("a > 0.0 || b > 0.0 ? a * 2.0 : b", (1.0, -1.0), (2.0, 0.0)),
    ("(a / b) ?: a", (1.0, 0.0), (1.0, 0.0)),
    ("(a / b) ?: a", (1.0, 2.0), (0.5, -0.25)),
    ("((a / b) ?: 7.0) * a", (3.0, -0.0), (7.0, 0.0)),
    # G9: what has no gradient.
    ("floor(a) * b", (2.5, 3.0), (0.0, 2.0)),
    ("ceil(a) * b", (2.5, 3.0), (0.0, 3.0)),
    ("round(a) * b", (2.5, 3.0), (0.0, 2.0)),
    ("toFloat(toInt(a)) * b", (2.5, 3.0), (0.0, 2.0)),
    ("floatFromBits(floatBits(a)) * b", (2.5, 3.0), (0.0, 2.5)),
    ("(isNan(a) ? a : b) * b", (2.5, 3.0), (0.0, 6.0)),
    ("a - floor(a)", (2.5,), (1.0,)),
    ("floor(sqrt(a)) + b", (0.0, 1.0), (0.0, 1.0)),
    ("5.0", (1.0,), (0.0,)),
    ("a", (1.0,), (1.0,)),
    # G12: never -0.0, and one NaN.
    ("a * (-0.0)", (1.0,), (0.0,)),
    ("(-a) * 0.0", (1.0,), (0.0,)),
    ("0.0 - a * 0.0", (3.0,), (0.0,)),
    ("a * floatFromBits(-1)", (1.0,), (NAN,)),
]

STOPPED: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("stopGradient(a) * a", (3.0,), (3.0,)),
    ("stopGradient(a * b) + b", (3.0, 2.0), (0.0, 1.0)),
    ("stopGradient(sqrt(a)) + b", (0.0, 2.0), (0.0, 1.0)),
    ("{ let (x, y) = stopGradient((a, b))\nx * y + a }", (3.0, 2.0), (1.0, 0.0)),
    ("max(stopGradient(a), b)", (3.0, 2.0), (0.0, 0.0)),
]


def text(x: float) -> str:
    return repr(x) if x >= 0.0 and math.copysign(1.0, x) > 0.0 else f"(-{abs(x)!r})" if x == x else "nan"


def on_the_host(rule: str, at: tuple[float, ...]) -> Any:
    names = "ab"[: len(at)]
    kind = "(float, float)" if len(at) == 2 else "{ a: float }"
    point = f"({text(at[0])}, {text(at[1])})" if len(at) == 2 else f"{{ a: {text(at[0])} }}"
    lets = "let (a, b) = p" if len(names) == 2 else "let a = p.a"
    _, found = judged(program(kind, point, f"{{ {lets}\n{rule} }}"))
    return tuple(found.values()) if isinstance(found, dict) else found


def in_a_kernel(rule: str, at: tuple[float, ...]) -> Any:
    lets = "\n".join(f"let {name} = at(p, {k})" for k, name in enumerate("ab"[: len(at)]))
    body = f"total(gpuIota(1) |> gpuMap(fn(i) => {{ {lets}\n{rule} }}))"
    _, found = judged(program("GpuBuffer<float>", f"toGpu([{', '.join(map(text, at))}])", body))
    return tuple(found)


@pytest.mark.parametrize("where", [on_the_host, in_a_kernel])
@pytest.mark.parametrize(("rule", "at", "want"), EDGES + STOPPED)
def test_the_rule_of_one_operation(where: Any, rule: str, at: tuple[float, ...], want: tuple[float, ...]) -> None:
    """G4, G9, G12"""
    assert bits(where(rule, at)) == bits(want)


def test_a_gradient_faults_only_where_the_function_does() -> None:
    """G5: at 0.0 sqrt divides 0.5 by 0.0; the function itself divides by it where it says so."""
    assert in_a_kernel("sqrt(a) * b", (0.0, 1.0)) == (INF, 0.0)
