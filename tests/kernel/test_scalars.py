"""Every scalar op by hand-computed values at its edges: the definitions that all backends are compared with.

spec/numerics N1, N4-N11.
"""

from __future__ import annotations

import math
import struct

import pytest

from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, INT, OPS, Node, TableAttr, const, uniform
from osprey_py.kernel.scalars import SCALARS
from tests.kernel.building import op, value

MIN, MAX = -(2**63), 2**63 - 1
NAN, INF = math.nan, math.inf
OVERFLOW, ZERO, SHIFT, RANGE = "integer overflow", "division by zero", "shift out of range", "not an integer in range"

CASES = {
    "add": [((1, 2), 3), ((MAX, 0), MAX), ((MAX, 1), OVERFLOW), ((MIN, -1), OVERFLOW), ((MIN, MAX), -1)],
    "sub": [((1, 2), -1), ((MIN, 1), OVERFLOW), ((0, MIN), OVERFLOW), ((-1, MIN), MAX)],
    "mul": [((3, -4), -12), ((MIN, -1), OVERFLOW), ((2**32, 2**31), OVERFLOW), ((-(2**32), 2**31), MIN)],
    "neg": [((5,), -5), ((MIN,), OVERFLOW), ((MAX,), -MAX)],
    "iabs": [((-5,), 5), ((MIN,), OVERFLOW), ((0,), 0)],
    "quot": [((7, 2), 3), ((-7, 2), -3), ((7, -2), -3), ((-7, -2), 3), ((1, 0), ZERO), ((MIN, -1), OVERFLOW),
            ((MIN, 1), MIN)],
    "rem": [((7, 3), 1), ((-7, 3), -1), ((7, -3), 1), ((-7, -3), -1), ((1, 0), ZERO), ((MIN, -1), 0)],
    "shl": [((1, 63), MIN), ((3, 63), MIN), ((1, 64), SHIFT), ((1, -1), SHIFT), ((-1, 1), -2), ((5, 0), 5)],
    "shr": [((-8, 1), -4), ((-1, 63), -1), ((MAX, 62), 1), ((1, 64), SHIFT), ((1, MIN), SHIFT)],
    "shru": [((-1, 63), 1), ((-1, 0), -1), ((MIN, 1), 2**62), ((1, 65), SHIFT)],
    "wadd": [((MAX, 1), MIN), ((MIN, -1), MAX)],
    "wsub": [((MIN, 1), MAX), ((0, MIN), MIN)],
    "wmul": [((MAX, 2), -2), ((MIN, -1), MIN), ((2**62, 4), 0)],
    "uquot": [((-7, 2), -3), ((MIN, 2), -(2**62))],
    "urem": [((-7, 2), -1), ((MIN, 3), -2)],
    "ushl": [((1, 63), MIN)],
    "ushr": [((-8, 1), -4)],
    "ushru": [((-8, 1), 2**63 - 4)],
    "mulhigh": [((-1, -1), -2), ((2**62, 4), 1), ((MIN, 2), 1), ((1, -1), 0)],
    "addo": [((MAX, 1), True), ((MAX, 0), False), ((MIN, -1), True)],
    "subo": [((MIN, 1), True), ((0, MIN), True), ((-1, MIN), False)],
    "mulo": [((MIN, -1), True), ((2**31, 2**31), False), ((2**32, 2**31), True)],
    "and": [((12, 10), 8), ((-1, MIN), MIN)],
    "or": [((12, 10), 14)],
    "xor": [((12, 10), 6), ((-1, -1), 0)],
    "inot": [((0,), -1), ((MIN,), MAX)],
    "imin": [((MIN, MAX), MIN)],
    "imax": [((MIN, MAX), MAX)],
    "fadd": [((0.1, 0.2), 0.30000000000000004), ((-0.0, -0.0), -0.0), ((0.0, -0.0), 0.0), ((INF, -INF), NAN)],
    "fsub": [((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0), ((1e308, -1e308), INF)],
    "fmul": [((5e-324, 0.5), 0.0), ((-5e-324, 0.5), -0.0), ((0.0, INF), NAN), ((3e-324, 1.0), 5e-324)],
    "fdiv": [((1.0, 0.0), ZERO), ((1.0, -0.0), ZERO), ((0.0, 5e-324), 0.0), ((1.0, 3.0), 1 / 3), ((NAN, 0.0), ZERO)],
    "fmod": [((5.5, 2.0), 1.5), ((-5.5, 2.0), -1.5), ((-4.0, 2.0), -0.0), ((1.0, INF), 1.0),
            ((INF, 1.0), NAN), ((1.0, 0.0), ZERO)],
    "fdivi": [((1.0, 0.0), INF), ((1.0, -0.0), -INF), ((-1.0, 0.0), -INF), ((0.0, 0.0), NAN),
            ((NAN, 0.0), NAN), ((1e-300, 1e300), 0.0)],
    "fmodi": [((1.0, 0.0), NAN), ((5.0, -3.0), 2.0), ((NAN, 1.0), NAN)],
    "fneg": [((0.0,), -0.0), ((-0.0,), 0.0), ((INF,), -INF)],
    "fabs": [((-0.0,), 0.0), ((-INF,), INF)],
    "fmin": [((0.0, -0.0), -0.0), ((-0.0, 0.0), -0.0), ((NAN, 1.0), NAN), ((1.0, NAN), NAN),
            ((-INF, 1.0), -INF), ((2.0, 1.0), 1.0)],
    "fmax": [((0.0, -0.0), 0.0), ((-0.0, 0.0), 0.0), ((NAN, 1.0), NAN), ((1.0, NAN), NAN), ((INF, 1.0), INF),
            ((2.0, 1.0), 2.0)],
    "floor": [((-0.5,), -1.0), ((0.5,), 0.0), ((-0.0,), -0.0), ((INF,), INF), ((NAN,), NAN),
            ((-4503599627370497.5,), -4503599627370498.0)],
    "ceil": [((-0.5,), -0.0), ((0.5,), 1.0), ((2.0**53,), 2.0**53)],
    "round": [((0.5,), 0.0), ((1.5,), 2.0), ((2.5,), 2.0), ((-0.5,), -0.0), ((-0.4,), -0.0),
            ((0.49999999999999994,), 0.0)],
    "sqrt": [((2.0,), 1.4142135623730951), ((-0.0,), -0.0), ((-1.0,), NAN), ((INF,), INF),
            ((5e-324,), 2.2227587494850775e-162)],
    "exp": [((0.0,), 1.0), ((-INF,), 0.0), ((1.0,), 2.718281828459045), ((710.0,), INF), ((-745.2,), 0.0),
            ((NAN,), NAN)],
    "ln": [((1.0,), 0.0), ((0.0,), -INF), ((-0.0,), -INF), ((-1.0,), NAN), ((2.0,), 0.6931471805599453)],
    "stop": [((0.5,), 0.5), ((-0.0,), -0.0), ((INF,), INF)],
    "tanh": [((0.0,), 0.0), ((-0.0,), -0.0), ((INF,), 1.0), ((-20.0,), -1.0), ((0.5,), 0.46211715726000973)],
    "tofloat": [((MAX,), 2.0**63), ((2**53 + 1,), 2.0**53), ((2**53 + 3,), 2.0**53 + 4), ((MIN,), -(2.0**63))],
    "toint": [((-2.9,), -2), ((2.0**63,), RANGE), ((-(2.0**63),), MIN), ((NAN,), RANGE), ((INF,), RANGE),
            ((9.223372036854775e18,), 9223372036854774784)],
    "utoint": [((2.9,), 2), ((-0.0,), 0)],
    "floatbits": [((NAN,), 0x7FF8000000000000), ((-0.0,), MIN), ((1.0,), 0x3FF0000000000000)],
    "ubits": [((-2.0,), -(2**62))],
    "bitsfloat": [((0x7FF8000000000000,), NAN), ((MIN,), -0.0), ((1,), 5e-324), ((-1,), NAN)],
    "eq": [((1, 1), True), ((0.0, -0.0), True), ((NAN, NAN), False), ((True, False), False)],
    "ne": [((1, 1), False), ((NAN, NAN), True), ((True, False), True)],
    "lt": [((MIN, MAX), True), ((NAN, 1.0), False), ((-0.0, 0.0), False), ((1, 1), False)],
    "le": [((1, 1), True), ((1.0, NAN), False), ((-0.0, 0.0), True)],
    "band": [((True, True), True), ((True, False), False), ((False, True), False)],
    "bor": [((False, False), False), ((True, False), True)],
    "bnot": [((True,), False), ((False,), True)],
}  # fmt: skip
ROWS = [(name, args, wanted) for name, cases in CASES.items() for args, wanted in cases]


def bits(x: object) -> object:
    """A float as its bits, so that -0.0 and NaN are told apart; other things with their type."""
    return struct.pack("<d", x) if isinstance(x, float) else (type(x).__name__, x)


@pytest.mark.parametrize(("name", "args", "wanted"), ROWS, ids=[f"{n}{a}" for n, a, _ in ROWS])
def test_op(name: str, args: tuple[object, ...], wanted: object) -> None:
    node = op(name, *(uniform(k, const(a).type) for k, a in enumerate(args)))
    if isinstance(wanted, str):
        with pytest.raises(MathFault) as caught:
            value(node, *args)
        assert caught.value.message == wanted
        assert caught.value.element == 0
    else:
        assert bits(value(node, *args)) == bits(wanted)


def test_every_scalar_op_has_cases() -> None:
    scalar = {name for name, info in OPS.items() if info.scalar} - {"table"}
    assert scalar == set(SCALARS) == set(CASES)


def test_table() -> None:
    node = Node("table", FLOAT, (uniform(0, INT),), TableAttr((0.5, -0.0, 2.0)))
    assert [bits(value(node, k)) for k in range(3)] == [bits(0.5), bits(-0.0), bits(2.0)]
