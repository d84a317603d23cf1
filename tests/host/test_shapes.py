"""Launches share code: what is compiled, and what is only remembered, when lengths and captured integers change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host.elementwise import MOST_SHAPES, Elementwise
from osprey_py.backends.host.packing import Frame
from osprey_py.backends.host.pool import Plan, Pool
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Backend, Kind, Scalar, Step, Storage
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, inrange, load, select, uniform, var
from osprey_py.kernel.nest import Nest
from tests.host.arrays import guarded, op

ROW = op("quot", INT, index(), uniform(0, INT))
COLUMN = op("rem", INT, index(), uniform(0, INT))


def normalised() -> Kernel:
    """(x[i] - mean[row]) * gain[column]."""
    centred = op("fsub", FLOAT, load(0, FLOAT, index()), guarded(1, ROW))
    return Kernel((FLOAT,) * 3, (INT,), op("fmul", FLOAT, centred, guarded(2, COLUMN)))


def bytes_of(
    backend: Backend, kernel: Kernel, inputs: Sequence[Storage], uniforms: tuple[Scalar, ...], n: int
) -> bytes:
    output = backend.allocate(Kind.F64, n)
    plain = Step("map", kernel, tuple(inputs), uniforms, n, output, None)
    kinds = tuple(s.kind for s in inputs)
    step = Step("map", kernel, tuple(inputs), uniforms, n, output, backend.compile("map", kernel, kinds, plain))
    assert backend.run([step]).fault is None
    return bytes(output.data.tobytes())


class Launches:
    """One kernel's code, launched again and again."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.code = Elementwise("map", lower(kernel), (Kind.F64,) * len(kernel.slots))
        self.pool = Pool(1)

    def run(self, inputs: Sequence[Storage], uniforms: tuple[Scalar, ...], n: int) -> bytes:
        output = Storage(Kind.F64, np.zeros(n))
        step = Step("map", self.kernel, tuple(inputs), uniforms, n, output, None)
        frame, plan = Frame(), Plan()
        frame.begin(1)
        self.code.add(plan, frame, 0, step, step.inputs)
        self.pool.run(plan)
        assert frame.first_fault(0, 1) is None
        return bytes(output.data.tobytes())


def floats(n: int) -> Storage:
    return Storage(Kind.F64, np.random.default_rng(n).standard_normal(n))


def test_a_growing_number_of_rows_compiles_once() -> None:
    launches = Launches(normalised())
    for rows in range(2, 30):
        inputs = [floats(rows * 40), floats(rows), floats(40)]
        assert launches.run(inputs, (40,), rows * 40) == bytes_of(
            OracleBackend(), launches.kernel, inputs, (40,), rows * 40
        )
    assert len(launches.code.versions) == 1
    assert len(launches.code.entries) == 28


def test_an_integer_that_is_only_computed_with_decides_nothing() -> None:
    step = op("tofloat", FLOAT, op("add", INT, uniform(0, INT), const(1)))
    launches = Launches(Kernel((FLOAT,), (INT,), op("fmul", FLOAT, load(0, FLOAT, index()), step)))
    x = floats(50)
    for t in range(10):
        assert launches.run([x], (t,), 50) == bytes_of(OracleBackend(), launches.kernel, [x], (t,), 50)
    assert len(launches.code.entries) == len(launches.code.versions) == 1


def test_a_kernel_of_many_shapes_ends_with_code_that_relies_on_nothing() -> None:
    """Each shift makes other reads fall outside."""
    total = load(0, FLOAT, index())
    for k in range(6):
        at = op("add", INT, index(), uniform(k, INT))
        total = op("fadd", FLOAT, total, select(inrange(0, at), load(0, FLOAT, at), const(0.0)))
    launches = Launches(Kernel((FLOAT,), (INT,) * 6, total))
    x = floats(40)
    for k in range(40):
        shifts = tuple((k >> j & 1) * 100 for j in range(6))
        assert launches.run([x], shifts, 40) == bytes_of(OracleBackend(), launches.kernel, [x], shifts, 40)
    assert len(launches.code.versions) == MOST_SHAPES


def test_what_is_proven_leaves_no_check() -> None:
    """The normalisation's bounds and overflow checks all go; with a short gain one bounds check stays."""
    nest = Nest(lower(normalised()))
    shape = nest.shape(nest.facts([400, 10, 40], (40,), 400))
    assert shape.kernel.fault is None
    assert len(shape.in_range) == 3
    assert len(shape.digits) == 2
    short = nest.shape(nest.facts([400, 10, 39], (40,), 400))
    assert len(short.in_range) == 2


def test_a_fold_over_rows_is_proven_and_its_flag_goes() -> None:
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    at = op("add", INT, op("mul", INT, index(), uniform(0, INT)), var(k))
    (total,) = fold(uniform(0, INT), k, (acc,), (const(0.0),), (Node("fadd", FLOAT, (var(acc), guarded(0, at))),))
    nest = Nest(lower(Kernel((FLOAT,), (INT,), total)))
    shape = nest.shape(nest.facts([400], (40,), 10))
    assert shape.kernel.fault is None
    assert len(shape.in_range) == 1
    assert nest.shape(nest.facts([399], (40,), 10)).in_range == frozenset()
    assert nest.shape(nest.facts([400], (2**62,), 10)).kernel.fault is not None


def test_the_number_of_threads_is_at_least_one() -> None:
    assert HostBackend().threads >= 1
