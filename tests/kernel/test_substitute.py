"""Inlining, merging of arguments, and sharing: the primitives of fusion keep values and faults (spec/gpu-surface
S1.1, S3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from osprey_py.backends.protocol import Kind
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import (
    FLOAT,
    INT,
    Bound,
    Kernel,
    KFunction,
    Node,
    call,
    const,
    fold,
    index,
    inrange,
    length,
    load,
    select,
    uniform,
    var,
    walk,
)
from osprey_py.kernel.share import share
from osprey_py.kernel.show import show
from osprey_py.kernel.substitute import dedupe, dedupe_slots, inline, instantiate, read_places
from osprey_py.kernel.verify import verify
from tests.kernel.building import elements, fault, launch, op, recover, site, storage

DATA = storage([4.0, 0.0, -2.5], Kind.F64)
OTHER = storage([1.0, 0.5, 8.0], Kind.F64)
HERE = load(0, FLOAT, index())


def total(of: Node | None = None, at: Bound | None = None) -> Node:
    """The sum of slot 0, or of an expression of k."""
    k, acc = at or Bound(INT, "k"), Bound(FLOAT, "acc")
    term = load(0, FLOAT, var(k)) if of is None else of
    return fold(length(0), k, (acc,), (const(0.0),), (op("fadd", var(acc), term),))[0]


HALVES = Kernel((FLOAT,), (FLOAT,), op("fmul", HERE, uniform(0, FLOAT)))
INVERSES = Kernel((FLOAT,), (), op("fdiv", const(1.0), HERE, at=7))
ROWS = Kernel((FLOAT,), (), op("fadd", total(), op("tofloat", index())))


def both(
    producer: Kernel, consumer: Kernel, slot: int, n: int, uniforms: tuple[Any, ...], more: tuple[Any, ...]
) -> None:
    """The consumer over the producer's elements is the inlined kernel over the producer's data."""
    made = elements(launch(producer, [DATA], more, 3))
    apart = [OTHER] * len(consumer.slots)
    apart[slot] = storage(made, Kind.F64)
    wanted = elements(launch(consumer, apart, uniforms, n))
    found = inline(consumer, slot, producer, same_extent=n == 3)
    assert found is not None
    verify(found.kernel)
    size = (3,) if found.reads_length else ()
    inputs = [OTHER] * (len(consumer.slots) - 1) + [DATA]
    assert elements(launch(found.kernel, inputs, (*uniforms, *more, *size), n)) == wanted


def test_at_the_index() -> None:
    both(HALVES, Kernel((FLOAT,), (), op("fneg", HERE)), 0, 3, (), (0.5,))
    both(
        HALVES,
        Kernel((FLOAT, FLOAT), (FLOAT,), op("fadd", load(1, FLOAT, index()), op("fmul", HERE, uniform(0, FLOAT)))),
        1,
        3,
        (3.0,),
        (0.5,),
    )


def test_in_a_fold_and_at_gathers() -> None:
    both(HALVES, Kernel((FLOAT,), (), total()), 0, 1, (), (0.5,))
    turned = op("wsub", const(2), index())
    gather = select(inrange(0, turned), load(0, FLOAT, turned), const(9.0))
    both(HALVES, Kernel((FLOAT,), (), op("fadd", gather, HERE)), 0, 3, (), (0.5,))
    both(ROWS, Kernel((FLOAT,), (), gather), 0, 5, (), ())


def test_copies_have_variables_of_their_own() -> None:
    """A producer with a fold that depends on its index, read at two places."""
    k, acc = Bound(INT), Bound(FLOAT)
    step = op("fadd", var(acc), op("tofloat", op("wmul", var(k), index())))
    producer = Kernel((FLOAT,), (), fold(length(0), k, (acc,), (const(0.0),), (step,))[0])
    turned = op("wsub", const(2), index())
    both(producer, Kernel((FLOAT,), (), op("fsub", HERE, load(0, FLOAT, turned))), 0, 3, (), ())


def test_recursive_producers() -> None:
    n = Bound(INT)
    down = call(0, (op("sub", var(n), const(1)),), (INT,), site())[0]
    body = select(op("le", var(n), const(0)), const(0), op("add", const(2), down))
    producer = Kernel(
        (FLOAT,), (), op("tofloat", call(0, (index(),), (INT,), site())[0]), (KFunction("f", (n,), (body,)),)
    )
    consumer = Kernel((FLOAT, FLOAT), (), op("fadd", HERE, load(1, FLOAT, index())))
    once = inline(consumer, 0, producer, same_extent=True)
    assert once is not None
    twice = inline(once.kernel, 0, producer, same_extent=True)
    assert twice is not None
    verify(twice.kernel)
    assert elements(launch(twice.kernel, [DATA, DATA], (), 3)) == [0.0, 4.0, 8.0]


def test_a_fault_of_the_producer_is_outside_of_the_consumers_recover() -> None:
    consumer = Kernel((FLOAT,), (), recover(op("fdiv", HERE, const(2.0)), const(7.0)))
    found = inline(consumer, 0, INVERSES, same_extent=True)
    assert found is not None
    step = launch(found.kernel, [DATA], (), 3)
    assert (fault(step).element, fault(step).span.start) == (1, 7)
    lazy = Kernel((FLOAT,), (), select(op("eq", index(), const(9)), HERE, const(0.0)))
    found = inline(lazy, 0, INVERSES, same_extent=True)
    assert found is not None
    assert fault(launch(found.kernel, [DATA], (), 3)).element == 1


def test_a_fault_in_a_fold_over_the_producer() -> None:
    k, acc = Bound(INT), Bound(FLOAT)
    forgiving = recover(op("fdiv", var(acc), load(0, FLOAT, var(k))), const(1.0))
    consumer = Kernel((FLOAT,), (), fold(length(0), k, (acc,), (const(1.0),), (forgiving,))[0])
    found = inline(consumer, 0, INVERSES, same_extent=False)
    assert found is not None
    with pytest.raises(MathFault):
        elements(launch(found.kernel, [DATA], (3,), 1))


def test_what_may_fault_goes_nowhere_else() -> None:
    turned = op("wsub", const(2), index())
    assert inline(Kernel((FLOAT,), (), load(0, FLOAT, turned)), 0, INVERSES, same_extent=True) is None
    scan = Kernel((FLOAT,), (FLOAT,), var(Bound(FLOAT)), acc=Bound(FLOAT), init=uniform(0, FLOAT))
    assert inline(HALVES, 0, scan, same_extent=True) is None


def test_arguments_merge() -> None:
    kernel = Kernel(
        (FLOAT, INT, FLOAT),
        (INT, FLOAT, INT),
        select(
            op("lt", load(1, INT, index()), op("wadd", uniform(0, INT), uniform(2, INT))),
            op("fadd", load(0, FLOAT, index()), load(2, FLOAT, index())),
            uniform(1, FLOAT),
        ),
    )
    merged = dedupe(kernel, ["x", "y", "x"], [5, "z", 5])
    assert merged.slots == (0, 1)
    assert merged.uniforms == (0, 1)
    assert merged.kernel.slots == (FLOAT, INT)
    assert merged.kernel.uniforms == (INT, FLOAT)
    verify(merged.kernel)
    assert len([n for n in walk(share(merged.kernel).roots) if n.op == "load"]) == 2
    assert dedupe_slots(kernel, [1, 2, 3]) == (kernel, (0, 1, 2))


def test_read_places() -> None:
    places = read_places(Kernel((FLOAT,), (), op("fadd", HERE, total())), 0)
    assert [p.op for p in places] == ["index", "var"]


def test_instantiate_copies_only_what_reads_the_variables() -> None:
    x, free = Bound(FLOAT), op("fneg", HERE)
    root = op("fadd", free, op("fmul", var(x), free))
    (new,) = instantiate([root], {x: const(2.0)})
    assert new.args[0] is free
    assert new.args[1].args[0].attr == 2.0


def test_instantiate_leaves_a_variable_that_a_fold_binds_again() -> None:
    """In `x + fold over k of k's elements`, where k is also free, only the free one is replaced."""
    k = Bound(INT)
    whole = total(load(0, FLOAT, var(k)), k)
    root = op("fadd", op("tofloat", var(k)), whole)
    (new,) = instantiate([root], {k: const(5)})
    assert new.args[0].args[0].attr == 5
    inner = new.args[1].args[0]
    assert inner.attr.index is not k
    assert any(n.op == "load" and n.args[0].attr is inner.attr.index for n in walk(inner.args))
    verify(Kernel((FLOAT,), (), new))


def test_alike_folds_are_shared_and_others_are_not() -> None:
    def two(a: Node, b: Node) -> int:
        return len([n for n in walk(share(Kernel((FLOAT,), (), op("fadd", a, b))).roots) if n.op == "fold"])

    def squares(factor: float) -> Node:
        k = Bound(INT)
        x = load(0, FLOAT, var(k))
        return total(op("fmul", x, op("fmul", x, const(factor))), k)

    assert two(total(), total()) == 1
    assert two(squares(1.0), squares(1.0)) == 1
    assert two(squares(0.0), squares(-0.0)) == 2
    assert two(total(), squares(1.0)) == 2
    k, j = Bound(INT), Bound(INT)
    inner, other = total(op("tofloat", var(k)), j), total(op("tofloat", var(j)), k)
    assert two(total(inner, k), total(other, j)) == 2


def test_text_of_a_kernel() -> None:
    kernel = Kernel(
        (FLOAT,), (INT,), op("fadd", total(), op("tofloat", op("add", index(), uniform(0, INT)))), name="rows"
    )
    assert show(kernel) == (
        "kernel rows(s0: float; u0: int) -> float\n"
        "  %0 = fold k.0 < length(s0), acc.1 = 0.0\n"
        "    %1 = load s0 k.0\n"
        "    %2 = fadd acc.1, %1\n"
        "    next %2\n"
        "  %3 = add i, u0\n"
        "  %4 = tofloat %3\n"
        "  %5 = fadd %0.0, %4\n"
        "  return %5"
    )
