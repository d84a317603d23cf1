"""Scripts of the host: steps that run again on other storage and with other uniforms are what fresh steps are
(backends/protocol.py, `Script`)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Report, Scalar, Script, Step, Storage
from osprey_py.conformance.generated import launch
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, const, fold, index, load, uniform, var
from tests.fuzz.kernels import Drawn
from tests.host.arrays import op
from tests.host.test_gemm_launch import recognised
from tests.host.test_steps import INVERSE, POSITIVE, RUNNING, descent, floats, step
from tests.kernel.products import add, attention_scores, div, f, get, kernel, matmul, mod, mul, u

SCALED = Kernel((FLOAT,), (FLOAT,), op("fmul", FLOAT, load(0, FLOAT, index()), uniform(0, FLOAT)))
INDEX, ACC = Bound(INT, "k"), Bound(FLOAT, "acc")
K = var(INDEX)
REST = op("rem", INT, index(), uniform(0, INT))
STEPPED = Kernel((FLOAT,), (INT,), op("fadd", FLOAT, load(0, FLOAT, index()), op("tofloat", FLOAT, uniform(0, INT))))


def named(steps: Sequence[Step]) -> list[Storage]:
    return list({id(s): s for x in steps for s in (*x.inputs, x.output)}.values())


def kept(b: HostBackend, steps: Sequence[Step]) -> Script:
    made = b.script(steps, named(steps))
    assert made is not None
    return made


def moved(steps: Sequence[Step], seed: int) -> list[Step]:
    """The same steps on other storage: inputs hold other numbers, outputs nothing."""
    rng = np.random.default_rng(seed)
    read = {id(s) for x in steps for s in x.inputs}
    other: dict[int, Storage] = {}
    for s in named(steps):
        if id(s) not in read:
            data = np.zeros(s.length, s.kind.dtype)
        else:
            data = rng.standard_normal(s.length) if s.kind is Kind.F64 else s.data.copy()
        other[id(s)] = Storage(s.kind, data)
    return [replace(x, inputs=tuple(other[id(s)] for s in x.inputs), output=other[id(x.output)]) for x in steps]


def written(s: Step, position: int, report: Report) -> bytes:
    return bytes(s.output.data[: report.counts.get(position, s.n)].tobytes())


def agree(steps: Sequence[Step], uniforms: Sequence[Scalar] | None = None, seed: int = 1) -> bool:
    """Keep the steps, run them on other storage (with other uniforms, of all steps one after the other), and compare with
    the oracle. False: the script does not serve these uniforms."""
    b = HostBackend(2)
    script = kept(b, steps)
    again = moved(steps, seed)
    given = [x for s in steps for x in s.uniforms] if uniforms is None else list(uniforms)
    if not script.ready(given):
        return False
    wanted = moved(steps, seed)
    at = 0
    for k, s in enumerate(wanted):
        wanted[k] = replace(s, uniforms=tuple(given[at : at + len(s.uniforms)]))
        at += len(s.uniforms)
    for _ in range(2):  # what one run leaves behind is nothing to the next
        found = script.run(named(again), given)
        expected = OracleBackend().run(wanted)
        assert found.fault == expected.fault
        if found.fault is None:
            assert found.counts == expected.counts
            assert [written(x, k, found) for k, x in enumerate(again)] == [
                written(x, k, found) for k, x in enumerate(wanted)
            ]
    return True


def test_addresses_and_floats_are_put_in_place() -> None:
    b = HostBackend(2)
    first = step(b, "map", SCALED, (floats(*range(1, 2000)),), 1999, (0.5,))
    second = step(b, "scan", RUNNING, (first.output,), 1999, (1.0,))
    assert agree([first, second])
    assert agree([first, second], (-3.0, 1e300))
    assert agree([first, second], (float("nan"), -0.0))


def test_an_integer_that_decides_nothing_is_put_in_place_and_one_that_does_is_compared() -> None:
    b = HostBackend(1)
    x = floats(*range(60))
    free = step(b, "map", STEPPED, (x,), 60, (3,))
    assert agree([free], (4,)) and agree([free], (-(2**63),))
    row = Kernel((FLOAT,), (INT,), get(0, REST))
    chosen = step(b, "map", row, (x,), 60, (10,))
    assert agree([chosen], (10,))
    assert not agree([chosen], (12,))


def test_an_operand_that_begins_inside_its_buffer_does_so_again() -> None:
    rng = np.random.default_rng(4)
    r, c = div(index(), u(2)), mod(index(), u(2))
    left = get(0, add(add(mul(r, u(1)), K), const(5)))
    sums = fold(
        u(1), INDEX, (ACC,), (const(0.0),), (f("fadd", var(ACC), f("fmul", left, get(1, add(mul(K, u(2)), c)))),)
    )
    x, y = (Storage(Kind.F64, rng.standard_normal(k)) for k in (3 * 7 + 5, 7 * 19))
    s = step(HostBackend(2), "map", kernel(sums[0]), (x, y), 3 * 19, (3, 7, 19))
    assert recognised(s)
    assert agree([s])


def test_the_seed_of_a_product_is_compared_by_its_bits() -> None:
    rng = np.random.default_rng(3)
    r, c = div(index(), u(2)), mod(index(), u(2))
    terms = f("fmul", get(0, add(mul(r, u(1)), K)), get(1, add(mul(K, u(2)), c)))
    sums = fold(u(1), INDEX, (ACC,), (uniform(3, FLOAT),), (f("fadd", var(ACC), terms),))[0]
    seeded = Kernel((FLOAT, FLOAT), (INT, INT, INT, FLOAT), sums)
    x, y = (Storage(Kind.F64, rng.standard_normal(k)) for k in (3 * 7, 7 * 19))
    s = step(HostBackend(2), "map", seeded, (x, y), 3 * 19, (3, 7, 19, 0.0))
    assert agree([s], (3, 7, 19, 0.0))
    assert not agree([s], (3, 7, 19, -0.0))
    assert not agree([s], (19, 7, 3, 0.0))


def test_a_float_of_the_epilogue_is_put_in_place_and_may_fault() -> None:
    rng = np.random.default_rng(9)
    rows, cols, size, heads = 5, 9, 4, 3
    inputs = tuple(Storage(Kind.F64, rng.standard_normal(x * heads * size)) for x in (rows, cols))
    s = step(HostBackend(2), "map", attention_scores(), inputs, heads * rows * cols, (rows, cols, size, 12, 2.0))
    assert agree([s], (rows, cols, size, 12, 0.125))
    assert agree([s], (rows, cols, size, 12, 0.0))


@pytest.mark.parametrize("kind", [Kind.F64, Kind.F32, Kind.BF16])
def test_products_with_epilogues_and_sums_that_wait_elsewhere(kind: Kind) -> None:
    rng = np.random.default_rng(5)
    m, inner, cols = 14, 7, 19
    i = index()
    hidden = f("fadd", matmul().result, get(2, mod(i, u(2))))
    k = kernel(f("fadd", load(3, FLOAT, i), f("fmul", hidden, f("tanh", hidden))), 4)
    weights = rng.integers(0, 1 << 14, inner * cols).astype("<u2") if kind is Kind.BF16 else None
    wide = rng.standard_normal(inner * cols)
    right = Storage(kind, wide.astype(kind.dtype) if weights is None else weights)
    inputs = [Storage(Kind.F64, rng.standard_normal(x)) for x in (m * inner, cols, m * cols)]
    s = step(HostBackend(2), "map", k, (inputs[0], right, inputs[1], inputs[2]), m * cols, (m, inner, cols))
    assert agree([s])
    s = replace(s, output=s.inputs[3])  # in place: the sums wait in memory of their own
    assert agree([s])
    b = HostBackend(1)
    script, used = kept(b, [s]), len(b._apart._used)
    assert script.run(named([s]), s.uniforms).fault is None
    assert len(b._apart._used) == used and b._apart.idle > 0


def test_an_accumulate_onto_a_base_begins_with_zeros_every_time() -> None:
    at = Storage(Kind.I64, np.array([1, 1, -1, 1, 2]))
    s = step(HostBackend(2), "accumulate", None, (at, floats(1e17, -1e17, 5.0, 1.0, 2.0), floats(0.5, 0.25, 5e-324)), 3)
    assert agree([s])
    assert agree([replace(s, output=s.inputs[2])])


def test_what_is_reported_and_what_is_empty() -> None:
    b = HostBackend(2)
    places = Kernel((INT, FLOAT), (), get(1, load(0, INT, index())))
    none = Storage(Kind.F64, np.zeros(0))
    reads = step(b, "map", places, (Storage(Kind.I64, np.arange(50)), none), 50)
    keeps = step(b, "filter", POSITIVE, (floats(*[(-1.0) ** k * k for k in range(40)]),), 40)
    inverse = step(b, "map", INVERSE, (floats(1.0, 2.0, 4.0),), 3)
    assert agree([reads, keeps, inverse])
    script = kept(b, [reads, inverse])
    zero = floats(1.0, 0.0, 2.0)
    storages = [zero if s is inverse.inputs[0] else s for s in named([reads, inverse])]
    for _ in range(2):
        assert script.ready(()) and script.run(storages, ()) == Report(1, {})
    storages = named([reads, inverse])
    assert script.run(storages, ()) == Report(None, {})  # the flag is down again


def test_more_words_than_one_chunk_holds() -> None:
    b = HostBackend(2)
    steps = [step(b, "map", SCALED, (floats(*range(20)),), 20, (0.5,))]
    for _ in range(900):
        before = steps[-1]
        output = b.allocate(Kind.F64, 20)
        steps.append(replace(before, inputs=(before.output,), output=output))
    assert agree(steps, [1.0 + k / 1024 for k in range(901)])


def test_a_step_that_runs_apart_is_in_no_script() -> None:
    b = HostBackend(1)
    deep = step(b, "map", descent(uniform(0, INT)), (), 1, (5,))
    assert b.script([deep], named([deep])) is None


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_launches(data: st.DataObject) -> None:
    drawn = launch(Drawn(data.draw), depth=3)
    if drawn.n > 0:
        s = drawn.step(HostBackend(1))
        if not s.compiled.apart:
            agree([s])
            agree([s], [x + 1 if type(x) is int and x < 2**62 else x for x in s.uniforms])


def test_a_script_holds_no_storage() -> None:
    """What it was made from, zeros under an accumulate among it, may go while the script stays."""
    b = HostBackend(1)
    data = [np.arange(3.0), np.arange(3), np.ones(3)]
    base, at, values = (Storage(kind, x) for kind, x in zip((Kind.F64, Kind.I64, Kind.F64), data, strict=True))
    first = step(b, "map", SCALED, (base,), 3, (2.0,))
    steps = [first, step(b, "accumulate", None, (at, values, first.output), 3)]
    script = kept(b, steps)
    gone = [weakref.ref(x) for x in (*data, *(s.output.data.base for s in steps))]
    del steps, data, first, base, at, values
    assert all(g() is None for g in gone) and len(gone) == 5
    assert script.ready([2.0])
