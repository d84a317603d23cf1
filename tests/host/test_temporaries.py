"""What a step needs for itself lies apart from what the plan frees: its own inputs may be among that."""

from __future__ import annotations

import numpy as np
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Kind, Storage
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, const, fold, index, load, uniform, var
from tests.graph.support import elementwise, op

N = 640
DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")


def below() -> Kernel:
    """Whether element [r, c] of the product of two square matrices is less than 0.0: sums that are no output."""
    k, acc = Bound(INT), Bound(FLOAT)
    row, column = op("quot", index(), uniform(0, INT)), op("rem", index(), uniform(0, INT))
    left = load(0, FLOAT, op("add", op("mul", row, uniform(0, INT)), var(k)))
    right = load(1, FLOAT, op("add", op("mul", var(k), uniform(0, INT)), column))
    (total,) = fold(uniform(0, INT), k, (acc,), (const(0.0),), (op("fadd", var(acc), op("fmul", left, right)),))
    return Kernel((FLOAT, FLOAT), (INT,), op("lt", total, const(0.0)), name="below")


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_do_not_lie_where_an_input_dies(threads: int) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-9, 10, (N, N)).astype(np.float64) for _ in range(2))  # sums of these are exact
    expected = a @ (2.0 * b) < 0.0
    rt = Runtime(HostBackend(threads=threads))
    x, y = (rt.data(Storage(Kind.F64, m.reshape(-1).copy())) for m in (a, b))
    kernel = below()

    def made() -> list[bool]:
        return rt.read(rt.map(kernel, (x, rt.map(DOUBLE, (y,), (), N * N)), (N,), N * N))

    for _ in range(4):  # bound, rehearsed, repeated
        assert made() == expected.reshape(-1).tolist()
    assert rt.engine.repeats > 0
