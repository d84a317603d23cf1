"""The kernels that models are made of, at sizes with whole vectors, rests, one row and none: the oracle's bytes (S7.1,
S3.4, N14)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Scalar, Storage
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Kernel, Node, const, fold, index, load, select, uniform, var
from tests.fuzz.kernels import Launch, outcome
from tests.host.arrays import guarded, op

HOSTS = [HostBackend(threads=t) for t in (1, 2)]
ORACLE = OracleBackend()
W = uniform(0, INT)
X = load(0, FLOAT, index())
ROW, COLUMN = op("quot", INT, index(), W), op("rem", INT, index(), W)


def add(a: Node, b: Node) -> Node:
    return op("add" if a.type is INT else "fadd", a.type, a, b)


def mul(a: Node, b: Node) -> Node:
    return op("mul" if a.type is INT else "fmul", a.type, a, b)


def along(row: Node, count: Node, start: float, step: Callable[[Node, Node], Node]) -> Node:
    """A fold over x[row * W + k]: step(acc, element)."""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    element = guarded(0, add(mul(row, W), var(k)))
    return fold(count, k, (acc,), (const(start),), (step(var(acc), element),))[0]


def mean(row: Node) -> Node:
    return op("fdiv", FLOAT, along(row, W, 0.0, add), op("tofloat", FLOAT, W))


def layer_norm() -> Node:
    """Mean and variance inside: row work under columns."""
    m = mean(ROW)

    def squared(acc: Node, x: Node) -> Node:
        d = op("fsub", FLOAT, x, m)
        return add(acc, mul(d, d))

    variance = op("fdiv", FLOAT, along(ROW, W, 0.0, squared), op("tofloat", FLOAT, W))
    scaled = op("fdiv", FLOAT, op("fsub", FLOAT, guarded(0, index()), m), op("sqrt", FLOAT, add(variance, const(1e-5))))
    return add(mul(scaled, guarded(1, COLUMN)), guarded(1, COLUMN))


def causal() -> Node:
    """The largest of the first `row + 1` elements of a row, then the sum of exponentials of what lies below it."""
    length = op("imin", INT, add(index(), const(1)), W)
    top = along(index(), length, -np.inf, lambda acc, x: op("fmax", FLOAT, acc, x))
    return along(index(), length, 0.0, lambda acc, x: add(acc, op("exp", FLOAT, op("fsub", FLOAT, x, top))))


def heads() -> Node:
    """A fold whose index is cut: k / 4 and k % 4 go different ways through memory."""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    four = const(4)
    at = add(
        mul(op("rem", INT, var(k), four), W), add(mul(op("quot", INT, var(k), four), four), op("rem", INT, index(), W))
    )
    return fold(const(8), k, (acc,), (const(0.5),), (add(var(acc), guarded(0, at)),))[0]


def nested() -> Node:
    """A fold in a fold, the inner place depending on both."""
    j, k, inner, outer = Bound(INT, "j"), Bound(INT, "k"), Bound(FLOAT, "inner"), Bound(FLOAT, "outer")
    at = add(mul(index(), W), add(mul(var(j), const(3)), var(k)))
    (row,) = fold(const(3), k, (inner,), (var(outer),), (add(var(inner), guarded(0, at)),))
    (total,) = fold(op("quot", INT, W, const(3)), j, (outer,), (const(0.0),), (mul(row, const(0.75)),))
    return total


ROWS: dict[str, Node] = {
    "sum": along(index(), W, 0.0, add),
    "largest": along(index(), W, -np.inf, lambda acc, x: op("fmax", FLOAT, acc, x)),
    "least": along(index(), W, 0.0, lambda acc, x: op("fmin", FLOAT, acc, x)),
    "mean": mean(index()),
    "causal": causal(),
    "nested": nested(),
    "divided": along(index(), W, 0.0, lambda acc, x: add(acc, op("fdivi", FLOAT, const(1.0), x))),
}
ELEMENTS: dict[str, Node] = {
    "layer norm": layer_norm(),
    "transposed": guarded(0, add(mul(COLUMN, op("quot", INT, Node("length", INT, (), 0), W)), ROW)),
    "reversed": guarded(0, op("sub", INT, op("sub", INT, Node("length", INT, (), 0), const(1)), index())),
    "shifted": add(guarded(0, op("sub", INT, index(), W)), guarded(0, add(index(), const(1)))),
    "heads": heads(),
    "masked": select(op("lt", BOOL, COLUMN, ROW), X, const(-1.0)),
    "counted": op("tofloat", FLOAT, add(mul(ROW, const(1000)), COLUMN)),
}


def storage(kind: Kind, n: int) -> Storage:
    values = np.random.default_rng(n).standard_normal(n) * 4
    values[::7], values[3::11], values[5::13] = 0.0, -0.0, np.nan
    if kind is Kind.BF16:
        return Storage(kind, (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    return Storage(kind, values.astype(kind.dtype))


def check(result: Node, inputs: tuple[Storage, ...], uniforms: tuple[Scalar, ...], n: int) -> None:
    launch = Launch("map", Kernel((FLOAT,) * len(inputs), (INT,) * len(uniforms), result), inputs, uniforms, n)
    expected = outcome(ORACLE, launch)
    assert expected != "fault"
    for host in HOSTS:
        assert outcome(host, launch) == expected


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("rows", "width"), [(1, 9), (5, 24), (8, 8), (9, 1), (32, 33), (37, 6), (70, 3), (3, 0)])
def test_folds_along_rows(name: str, rows: int, width: int) -> None:
    if name == "mean" and width == 0:
        width = 3
    for kind in (Kind.F64, Kind.BF16):
        check(ROWS[name], (storage(kind, rows * width),), (width,), rows)


@pytest.mark.parametrize("name", ROWS)
def test_folds_along_rows_that_are_cut_short(name: str) -> None:
    """The last row's end is missing: nothing is proven, and the default is read there."""
    check(ROWS[name], (storage(Kind.F64, 20 * 12 - 5),), (12,), 20)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (1, 20), (3, 7), (5, 8), (4, 33), (33, 4), (2, 70)])
def test_grids(name: str, rows: int, width: int) -> None:
    for kind in (Kind.F64, Kind.F16):
        check(ELEMENTS[name], (storage(kind, rows * width), storage(Kind.F32, width)), (width,), rows * width)


@pytest.mark.parametrize("name", ELEMENTS)
def test_grids_with_a_ragged_last_row(name: str) -> None:
    check(ELEMENTS[name], (storage(Kind.F64, 50), storage(Kind.F64, 9)), (9,), 50)


HARD: dict[str, tuple[str, ...]] = {
    "exp": ("-0x1.ed318efb627eap-27", "0x1.83d4bcdebb3f4p+2", "-0x1.9e9cbbfd6080bp-31"),
    "ln": ("0x1.62a88613629b6p+678", "0x1.c5ba1980d3174p+4"),
    "tanh": ("0x1.30587b18fbe5ep+2",),
}


@pytest.mark.parametrize("name", HARD)
def test_the_rare_path_in_any_lane(name: str) -> None:
    """Arguments whose value lies next to a midpoint take the exact phase: alone, in every lane, and all at once."""
    hard = [float.fromhex(x) for x in HARD[name]]
    for n in (1, 8, 37):
        for at in range(n):
            data: npt.NDArray[np.float64] = np.linspace(0.5, 3.0, n)
            data[at] = hard[at % len(hard)]
            check(op(name, FLOAT, X), (Storage(Kind.F64, data),), (), n)
        everywhere = np.array([hard[k % len(hard)] for k in range(n)])
        check(op(name, FLOAT, X), (Storage(Kind.F64, everywhere),), (), n)


def test_a_fault_in_one_lane_is_a_fault() -> None:
    kernel = Kernel((FLOAT,), (), op("fdiv", FLOAT, const(1.0), X))
    for n in (1, 8, 40, 75):
        for at in range(n):
            data = np.ones(n)
            data[at] = -0.0
            for host in HOSTS:
                assert outcome(host, Launch("map", kernel, (Storage(Kind.F64, data),), (), n)) == "fault"


def test_lanes_beyond_the_end_raise_no_fault() -> None:
    """Five minus the index is a divisor of its last element's neighbour only."""
    divisor = op("tofloat", FLOAT, op("sub", INT, const(5), index()))
    whole = op("quot", INT, const(100), op("sub", INT, const(5), index()))
    result = add(op("fdiv", FLOAT, const(1.0), divisor), op("tofloat", FLOAT, whole))
    check(result, (storage(Kind.F64, 5),), (), 5)
    kernel = Kernel((FLOAT,), (), result)
    assert outcome(HOSTS[0], Launch("map", kernel, (storage(Kind.F64, 6),), (), 6)) == "fault"
