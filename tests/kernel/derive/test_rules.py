"""Every operation of the IR has a derivative or a stated reason why not; the derivatives, at their edges (G4)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.derive.rules import NONE, RULES, STRUCTURE
from osprey_py.kernel.ir import FLOAT, OPS, Kernel, index, load
from tests.kernel.building import op
from tests.kernel.derive.carrying import buffer, run, subtotals

INF, NAN = math.inf, math.nan


def test_every_operation_has_a_derivative_or_a_reason() -> None:
    """G4, G9: an operation added to the IR has to be put into one of the three tables, and into one only."""
    assert sorted([*RULES, *NONE, *STRUCTURE]) == sorted(OPS)
    assert all(NONE.values())


def parts(name: str, *operands: float, adjoint: float = 1.0) -> list[float]:
    """What an operation's adjoint gives to each operand: through a kernel of one element."""
    kernel = Kernel((FLOAT,) * len(operands), (), op(name, *(load(k, FLOAT, index()) for k in range(len(operands)))))
    inputs = tuple(buffer([x]) for x in operands)
    result = run(OracleBackend(), "map", kernel, inputs, (), 1)
    active = tuple(range(len(operands)))
    found: list[float] = [0.0] * len(operands)
    for k, values in subtotals("map", kernel, active, inputs, (), 1, result, buffer([adjoint])):
        found[k] = 0.0 + values[0]
    return found


EDGES: list[tuple[str, tuple[float, ...], float, list[float]]] = [
    ("fadd", (1.0, 2.0), 3.0, [3.0, 3.0]),
    ("fsub", (1.0, 2.0), 3.0, [3.0, -3.0]),
    ("fmul", (2.0, 5.0), 3.0, [15.0, 6.0]),
    ("fmul", (0.0, INF), 1.0, [INF, 0.0]),
    ("fmul", (NAN, 2.0), 0.0, [0.0, NAN]),
    # q = 3 / 4, then -(q * y), y = 1 / 4
    ("fdiv", (1.0, 4.0), 3.0, [0.75, -0.1875]),
    # 1 / 10 three times rounded, not 1 / 100 once
    ("fdiv", (1.0, 10.0), 1.0, [0.1, -(0.1 * 0.1)]),
    ("fdivi", (1.0, 0.0), 1.0, [INF, -INF]),
    ("fdivi", (0.0, 0.0), 1.0, [INF, NAN]),
    ("fneg", (2.0,), 3.0, [-3.0]),
    # 7.5 % 2: t = trunc(3.75) = 3; -7.5 % 2: t = -3
    ("fmod", (7.5, 2.0), 1.5, [1.5, -4.5]),
    ("fmod", (-7.5, 2.0), 1.5, [1.5, 4.5]),
    ("fabs", (-2.0,), 3.0, [-3.0]),
    ("fabs", (0.0,), 3.0, [3.0]),
    ("fabs", (-0.0,), 3.0, [3.0]),
    ("fabs", (NAN,), 3.0, [3.0]),
    ("fmax", (1.0, 2.0), 3.0, [0.0, 3.0]),
    ("fmax", (2.0, 1.0), 3.0, [3.0, 0.0]),
    ("fmax", (2.0, 2.0), 3.0, [3.0, 0.0]),
    ("fmax", (-0.0, 0.0), 3.0, [3.0, 0.0]),
    ("fmax", (1.0, NAN), 3.0, [3.0, 0.0]),
    ("fmin", (1.0, 2.0), 3.0, [3.0, 0.0]),
    ("fmin", (2.0, 1.0), 3.0, [0.0, 3.0]),
    ("fmin", (2.0, 2.0), 3.0, [3.0, 0.0]),
    ("fmin", (NAN, 1.0), 3.0, [3.0, 0.0]),
    # nothing to the other operand of max, rather than 0 times its derivative: see `relu` in the tests by the book
    ("sqrt", (4.0,), 3.0, [0.75]),
    ("sqrt", (0.0,), 3.0, [INF]),
    ("sqrt", (0.0,), 0.0, [NAN]),
    ("exp", (0.0,), 3.0, [3.0]),
    ("exp", (1000.0,), 1.0, [INF]),
    ("ln", (4.0,), 3.0, [0.75]),
    ("ln", (0.0,), 1.0, [INF]),
    ("tanh", (0.0,), 3.0, [3.0]),
    ("tanh", (100.0,), 3.0, [0.0]),
    ("floor", (1.5,), 3.0, [0.0]),
    ("ceil", (1.5,), 3.0, [0.0]),
    ("round", (1.5,), 3.0, [0.0]),
]


@pytest.mark.parametrize(("name", "operands", "adjoint", "want"), EDGES)
def test_a_rule_at_its_edges(name: str, operands: tuple[float, ...], adjoint: float, want: list[float]) -> None:
    """G4, G12: the contributions, bit for bit; a gradient holds no -0.0."""

    def bits(xs: list[Any]) -> list[str]:
        return ["nan" if math.isnan(x) else float(x).hex() for x in xs]

    assert bits(parts(name, *operands, adjoint=adjoint)) == bits(want)


def test_every_rule_has_an_edge() -> None:
    """fmodi is what fmod becomes; no program writes it."""
    assert {name for name, *_ in EDGES} >= set(RULES) - {"fmodi"}
