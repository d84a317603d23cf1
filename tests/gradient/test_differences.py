"""The gradient by the book against central differences of the same program in 60 digits: are these derivatives at all?

This is the one place with a tolerance: a gradient is rounded at each step, a slope is not."""

from __future__ import annotations

import math

from hypothesis import assume, given

from osprey_py.kernel.fault import MathFault
from tests.gradient.literal import literal
from tests.gradient.literal_compare import program
from tests.gradient.literal_precise import flat, slopes
from tests.gradient.literal_programs import programs
from tests.gradient.test_generated import TIME, settings

CLOSE = 1e-9


def check(text: str) -> int:
    """How many floats of the point have a slope that was compared."""
    value, gradient = literal(text, "loss", "point")
    found = flat(gradient)
    if not all(map(math.isfinite, (value, *found))):
        return 0
    most = max([1.0, abs(value), *map(abs, found)])
    if most > 1e6:
        return 0
    count = 0
    for g, slope in zip(found, slopes(text, "loss", "point"), strict=True):
        if slope == slope:
            assert abs(g - float(slope)) <= CLOSE * most, (g, float(slope), text)
            count += 1
    return count


@settings(TIME, max_examples=30)
@given(programs())
def test_a_random_program(text: str) -> None:
    """G4"""
    try:
        assume(check(text) > 0)
    except MathFault:
        assume(False)


def test_every_operation() -> None:
    """G4"""
    body = """{
        let a = at(p, 0)
        let b = at(p, 1)
        a + b * a - a / b + sqrt(a) * exp(b) + ln(a) * tanh(b) + abs(-a) + max(a, b) * min(a, b) + (a % b) * a - floor(b)
    }"""
    assert check(program("GpuBuffer<float>", "toGpu([1.7, 0.6])", body)) == 2
