"""Kernels with their arguments changed, and kernels that have no gradient (G10, G13)."""

from __future__ import annotations

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.derive.derive import recipe
from osprey_py.kernel.derive.lifted import counted, lifted
from osprey_py.kernel.derive.recipe import Dense, Recipe, Scattered
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    Bound,
    Kernel,
    Node,
    const,
    fold,
    index,
    inrange,
    load,
    loop,
    select,
    uniform,
    var,
    walk,
)
from osprey_py.kernel.verify import verify
from osprey_py.source.diagnostic import OspreyError
from tests.kernel.building import op
from tests.kernel.derive.carrying import buffer, run


def test_lifted_reads_each_scalar_once_and_first() -> None:
    """G13: one read of a new slot for each, the first uniform's first, before all that the kernel does."""
    x = load(0, FLOAT, index())
    step = op("fadd", op("fmul", x, uniform(2, FLOAT)), op("fmul", uniform(0, FLOAT), op("tofloat", uniform(1, INT))))
    kernel = Kernel((FLOAT,), (FLOAT, INT, FLOAT), op("fadd", step, uniform(2, FLOAT)))
    made = lifted(kernel, (0, 2))
    verify(made)
    assert made.slots == (FLOAT, FLOAT, FLOAT) and made.uniforms == (INT,)
    reads = sorted((n for n in walk((made.result,)) if n.op == "load"), key=lambda n: n.serial)
    assert [n.attr for n in reads] == [1, 2, 0]
    data = buffer([1.0, 2.0])
    want = run(OracleBackend(), "map", kernel, (data,), (0.5, 3, 0.25), 2)
    got = run(OracleBackend(), "map", made, (data, buffer([0.5]), buffer([0.25])), (3,), 2)
    assert got.data.tobytes() == want.data.tobytes()


def test_lifted_keeps_the_order_of_evaluation() -> None:
    """G2: what was made in an order is still in it, whatever is rebuilt."""
    first, second = op("fmul", load(0, FLOAT, index()), uniform(0, FLOAT)), op("exp", uniform(0, FLOAT))
    kernel = Kernel((FLOAT,), (FLOAT,), op("fsub", second, first))
    made = lifted(kernel, (0,)).result
    assert [a.op for a in sorted(made.args, key=lambda n: n.serial)] == ["fmul", "exp"]
    assert [a.serial for a in made.args] == [second.serial, first.serial]


def test_lifted_scan_reads_its_first_accumulator_at_element_0() -> None:
    acc = Bound(FLOAT, "acc")
    result = op("fadd", op("fmul", var(acc), uniform(1, FLOAT)), load(0, FLOAT, index()))
    kernel = Kernel((FLOAT,), (FLOAT, FLOAT), result, acc=acc, init=uniform(0, FLOAT))
    data = buffer([1.0, 2.0, 3.0])
    want = run(OracleBackend(), "scan", kernel, (data,), (7.0, 0.5), 3)
    for lift, more, left in (((0,), [7.0], (0.5,)), ((1,), [0.5], (7.0,)), ((0, 1), [7.0, 0.5], ())):
        made = lifted(kernel, lift)
        verify(made)
        got = run(OracleBackend(), "scan", made, (data, *(buffer([x]) for x in more)), left, 3)
        assert got.data.tobytes() == want.data.tobytes()


def test_counted_slots_are_not_read() -> None:
    """0, 1, 2 …: the element is its place, so addresses made of it can be turned around."""
    k = select(inrange(0, index()), load(0, INT, index()), const(0))
    at = op("wadd", op("wmul", k, const(2)), const(1))
    kernel = Kernel((INT, FLOAT), (), op("exp", load(1, FLOAT, at)))

    def kind(r: Recipe) -> list[type]:
        return [type(s) for _, s in r.subtotals]

    verify(counted(kernel, (0,)))
    assert not any(n.op in ("load", "inrange") and n.attr == 0 for n in walk((counted(kernel, (0,)).result,)))
    assert kind(recipe("map", kernel, (1,), (4, 8), (), 4)) == [Scattered]
    assert kind(recipe("map", kernel, (1,), (4, 8), (), 4, (0,))) == [Dense]


def unbounded() -> Kernel:
    """A fold whose length is read from slot 1."""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    step = op("fadd", var(acc), load(0, FLOAT, index()))
    return Kernel((FLOAT, INT), (), fold(load(1, INT, index()), k, (acc,), (const(0.0),), (step,))[0])


def recursive() -> Kernel:
    """x doubled until it is large."""
    x = Bound(FLOAT, "x")
    double = op("fadd", var(x), var(x))
    condition = Node("lt", BOOL, (var(x), const(100.0)))
    return Kernel((FLOAT,), (), loop((x,), (load(0, FLOAT, index()),), condition, (double,))[0])


@pytest.mark.parametrize(("kernel", "says"), [(unbounded(), "length the data decides"), (recursive(), "recursion")])
def test_refused_by_name(kernel: Kernel, says: str) -> None:
    """G10, at the launch."""
    with pytest.raises(OspreyError, match=says) as refused:
        recipe("map", kernel, (0,), (4,) * len(kernel.slots), (), 4)
    assert [d.code for d in refused.value.diagnostics] == ["E0356"]


def test_what_no_parameter_reaches_is_not_refused() -> None:
    """G10: a loop that a parameter's value does not reach is none of the gradient's business."""
    assert recipe("map", recursive(), (), (4,), (), 4) == Recipe((), ())


def test_a_launch_of_no_elements_gives_zeros() -> None:
    """G5: each element of what it could have read has the adjoint 0.0."""
    kernel = Kernel((FLOAT,), (), op("exp", load(0, FLOAT, const(2))))
    r = recipe("map", kernel, (0,), (3,), (), 0)
    ((slot, zeros),) = r.subtotals
    assert (slot, [m.length for m in r.makes]) == (0, [3])
    assert isinstance(zeros, Dense) and zeros.exact
