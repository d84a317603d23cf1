"""N1-N4: the oracle's exp, ln and tanh against MPFR, an independent implementation of correct rounding."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import gmpy2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from osprey_py.numerics import exact

MPFR = gmpy2.context(precision=53, emax=1024, emin=-1073, subnormalize=True)
FUNCTIONS: dict[str, tuple[Callable[[float], float], str]] = {
    "exp": (exact.exp, "exp"),
    "ln": (exact.ln, "log"),
    "tanh": (exact.tanh, "tanh"),
}
HARD = {
    "exp": ["-0x1.ed318efb627eap-27", "0x1.83d4bcdebb3f4p+2", "-0x1.9e9cbbfd6080bp-31"],
    "ln": ["0x1.62a88613629b6p+678", "0x1.c5ba1980d3174p+4"],
    "tanh": ["0x1.30587b18fbe5ep+2"],
}
"""Values whose image lies within 2^-58 ulp of a midpoint of two doubles."""

EDGES = [
    0.0,
    5e-324,
    2.0**-1022,
    2.0**-60,
    2.0**-27,
    0.5,
    1.0,
    2.0,
    19.06154,
    19.07,
    708.5,
    709.79,
    745.2,
    746.5,
    1e300,
    math.inf,
]


def bits(x: float) -> bytes:
    """The bytes that are compared; every NaN is one value."""
    return struct.pack("<d", math.nan if x != x else x)


def truth(name: str, x: float) -> float:
    with MPFR.copy() as context:
        return float(getattr(context, FUNCTIONS[name][1])(gmpy2.mpfr(x)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges_and_hard_cases(name: str) -> None:
    ours = FUNCTIONS[name][0]
    points = [float.fromhex(h) for h in HARD[name]] + [s * e for e in EDGES for s in (1.0, -1.0)] + [math.nan]
    for x in points:
        if name == "ln" and x == 0.0:
            assert ours(x) == -math.inf
        else:
            assert bits(ours(x)) == bits(truth(name, x)), x.hex()


@pytest.mark.parametrize("name", FUNCTIONS)
@given(x=st.floats(allow_nan=False) | st.floats(-30, 30) | st.floats(-746, 710))
@example(x=math.nextafter(1.0, 2.0))
@settings(max_examples=400, deadline=None)
def test_random(name: str, x: float) -> None:
    if x == 0.0 and name == "ln":
        return
    assert bits(FUNCTIONS[name][0](x)) == bits(truth(name, x)), x.hex()
