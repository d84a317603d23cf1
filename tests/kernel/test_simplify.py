"""Simplification, rule by rule: no value and no fault changes (spec/gpu-surface S7.1)."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import pytest

from osprey_py.backends.protocol import Kind
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    Bound,
    FoldAttr,
    Kernel,
    Node,
    Ty,
    const,
    fold,
    length,
    load,
    loop,
    select,
    seq,
    uniform,
    var,
    walk,
)
from osprey_py.kernel.scalars import SCALARS
from osprey_py.kernel.simplify import simplify
from osprey_py.kernel.verify import SIGNATURES, verify
from tests.kernel.building import COMPARISONS, elements, launch, op, recover, storage

MIN, MAX = -(2**63), 2**63 - 1
EDGES: dict[Ty, tuple[Any, ...]] = {
    INT: (0, 1, -1, 2, 63, 64, MIN, MAX),
    FLOAT: (0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), float("nan"), 5e-324),
    BOOL: (True, False),
}
TRAPPING = ("uquot", "urem", "ushl", "ushr", "ushru", "utoint")


def seen(kernel: Kernel, args: tuple[Any, ...]) -> object:
    """The one element as bits, or the fault's message."""
    try:
        (value,) = elements(launch(kernel, [], args))
    except MathFault as fault:
        return fault.message
    return struct.pack("<d", value) if isinstance(value, float) else int(value)


def signatures(name: str) -> list[tuple[tuple[Ty, ...], Ty]]:
    if name not in COMPARISONS:
        return [SIGNATURES[name]]
    return [((t, t), BOOL) for t in ((INT, FLOAT, BOOL) if name in ("eq", "ne") else (INT, FLOAT))]


def defined(name: str, args: tuple[Any, ...]) -> bool:
    """Operands that an unchecked op is meant for."""
    if name in ("uquot", "urem"):
        return args[1] != 0 and args != (MIN, -1)
    return name not in TRAPPING or name == "utoint" or 0 <= args[1] <= 63


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_an_op_with_constants_and_with_itself(name: str) -> None:
    """Every choice of operands as constant, argument or twice the same argument, at all edges."""
    for types, _ in signatures(name):
        if name in ("exp", "ln", "tanh"):
            continue
        for values in product(*(EDGES[t] for t in types)):
            if not defined(name, values):
                continue
            plain = [uniform(k, t) for k, t in enumerate(types)]
            constants = [const(v) for v in values]
            choices = [tuple(pair) for pair in product(*zip(plain, constants, strict=True))]
            for args in choices:
                kernel = Kernel((), types, op(name, *args))
                simple = simplify(kernel)
                verify(simple)
                assert seen(simple, values) == seen(kernel, values), (name, values)
        for v in EDGES[types[0]] if len(types) == 2 else ():
            if defined(name, (v, v)):
                x = uniform(0, types[0])
                kernel = Kernel((), types[:1], op(name, x, x))
                assert seen(simplify(kernel), (v,)) == seen(kernel, (v,)), (name, v)


def test_constants_are_computed_unless_they_fault() -> None:
    assert simplify(Kernel((), (), op("add", const(2), const(3)))).result.attr == 5
    assert simplify(Kernel((), (), op("add", const(MAX), const(1)))).result.op == "add"
    assert OPS[simplify(Kernel((), (), op("quot", const(1), const(0)))).result.op].checked


X, FAULTY = uniform(0, INT), op("quot", const(1), uniform(0, INT))
KEPT = {
    "a product by zero": op("mul", FAULTY, const(0)),
    "an unused first": seq([FAULTY], const(1)),
    "a choice between equals": select(op("lt", FAULTY, const(1)), const(1), const(1)),
    "a fold without a turn": fold(const(0), Bound(INT), (Bound(INT),), (FAULTY,), (const(1),))[0],
}


@pytest.mark.parametrize("name", KEPT)
def test_what_may_fault_stays(name: str) -> None:
    kernel = Kernel((), (INT,), KEPT[name])
    assert seen(simplify(kernel), (0,)) == "division by zero"


def test_a_recover_of_what_cannot_fault_goes() -> None:
    kernel = simplify(Kernel((), (INT,), recover(op("wadd", X, const(1)), const(5))))
    assert kernel.result.op == "wadd"


def accumulators(kernel: Kernel) -> int:
    (attr,) = (n.attr for n in walk(kernel.roots) if n.op == "fold")
    assert isinstance(attr, FoldAttr)
    return len(attr.accs)


def pair(first: Node, second: Node, k: Bound, accs: tuple[Bound, Bound], read: int) -> Kernel:
    results = fold(length(0), k, accs, (const(0.0), const(1.5)), (first, second))
    return Kernel((FLOAT,), (), results[read])


def test_accumulators_that_nobody_needs_go() -> None:
    k, accs = Bound(INT), (Bound(FLOAT), Bound(FLOAT))
    add = op("fadd", var(accs[0]), load(0, FLOAT, var(k)))
    other = op("fmul", var(accs[1]), var(accs[0]))
    assert accumulators(simplify(pair(add, other, k, accs, 0))) == 1
    assert accumulators(simplify(pair(add, other, k, accs, 1))) == 2
    faulty = op("fdiv", var(accs[1]), load(0, FLOAT, var(k)))
    assert accumulators(simplify(pair(add, faulty, k, accs, 0))) == 2


def test_accumulators_that_never_change_go() -> None:
    k, accs = Bound(INT), (Bound(FLOAT), Bound(FLOAT))
    add = op("fadd", var(accs[0]), op("fmul", var(accs[1]), load(0, FLOAT, var(k))))
    kernel = pair(add, var(accs[1]), k, accs, 0)
    simple = simplify(kernel)
    verify(simple)
    assert accumulators(simple) == 1
    data = [storage([1.0, 2.0, 4.0], Kind.F64)]
    assert elements(launch(simple, data)) == elements(launch(kernel, data)) == [10.5]


def test_a_fold_whose_result_is_unread_still_faults() -> None:
    """The second accumulator goes, the first stays for its fault, and the sequence for the first."""
    k, accs = Bound(INT), (Bound(INT), Bound(INT))
    results = fold(length(0), k, accs, (const(0), const(0)), (op("quot", const(0), const(0)), const(0)))
    kernel = Kernel((INT,), (), seq([results[0]], const(True)))
    simple = simplify(kernel)
    with pytest.raises(MathFault):
        elements(launch(simple, [storage([0], Kind.I64)]))


def test_a_fold_of_which_only_what_never_changes_is_read_still_faults() -> None:
    k, accs = Bound(INT), (Bound(INT), Bound(INT))
    results = fold(length(0), k, accs, (const(7), const(0)), (var(accs[0]), op("quot", const(0), const(0))))
    simple = simplify(Kernel((INT,), (), results[0]))
    verify(simple)
    with pytest.raises(MathFault):
        elements(launch(simple, [storage([0], Kind.I64)]))


def test_an_accumulator_kept_for_its_first_value_keeps_what_it_reads() -> None:
    k, accs = Bound(INT), (Bound(INT), Bound(INT), Bound(INT))
    inits = (const(0), const(1), op("quot", const(1), length(0)))
    results = fold(length(0), k, accs, inits, (const(5), op("wadd", var(accs[1]), const(1)), var(accs[1])))
    simple = simplify(Kernel((INT,), (), results[0]))
    verify(simple)
    assert elements(launch(simple, [storage([0], Kind.I64)])) == [5]


def test_a_proven_fold_loses_its_fault_bit() -> None:
    """What faults.py adds goes when the step's bit is false after all: matchers see the plain fold."""
    k, acc = Bound(INT), Bound(INT)
    step = op("wadd", var(acc), op("rem", var(k), op("imax", const(3), const(4))))
    lowered = lower(Kernel((), (INT,), fold(X, k, (acc,), (const(0),), (step,))[0]))
    assert accumulators(lowered) == 2
    simple = simplify(lowered)
    assert accumulators(simple) == 1
    assert getattr(simple, "fault", None) is None


def test_a_count_that_faulted_runs_no_turns() -> None:
    """MIN - 1 wraps to the greatest int: a fold that ran so long would never end (faults.py)."""
    acc = Bound(INT)
    count = op("sub", const(MIN), X)
    lowered = lower(
        Kernel((), (INT,), fold(count, Bound(INT), (acc,), (const(0),), (op("wadd", var(acc), const(1)),))[0])
    )
    (folded,) = (n for n in walk(lowered.roots) if n.op == "fold")
    assert folded.args[0].op == "select"
    assert elements(launch(Kernel((), (INT,), lowered.result), [], (1,))) == [0]


def test_a_fold_that_is_read_inside_and_outside_another_stays_one() -> None:
    """The outer fold loses an accumulator, and what its step shares with the rest of the kernel is not made anew."""
    i, j, a, kept, same = Bound(INT), Bound(INT), Bound(FLOAT), Bound(FLOAT), Bound(FLOAT)
    guard = select(op("eq", length(0), const(0)), const(False), op("lt", X, const(5)))
    (inner,) = fold(length(0), i, (a,), (select(guard, const(2.0), const(1.0)),), (op("fmul", var(a), const(3.0)),))
    outer, never = fold(length(0), j, (kept, same), (const(0.0), const(5.0)), (inner, var(same)))
    lowered = lower(Kernel((INT,), (INT,), op("fadd", op("fadd", inner, outer), never)))
    simple = simplify(lowered)
    verify(simple)
    assert len([n for n in walk(simple.roots) if n.op == "fold"]) == 2
    assert elements(launch(Kernel((INT,), (INT,), simple.result), [storage([7, 7], Kind.I64)], (1,))) == [41.0]


def test_a_fold_over_what_may_not_end_stays_whole_once_faults_are_values() -> None:
    """One result never changes; the other comes from a loop, which may not be left out, and `seq` is gone."""
    v, i, moving, same = Bound(INT), Bound(INT), Bound(INT), Bound(INT)
    (counted,) = loop((v,), (const(0),), op("lt", var(v), length(0)), (op("wadd", var(v), const(1)),))
    nexts = (op("wadd", var(moving), const(1)), var(same))
    moved, never = fold(length(0), i, (moving, same), (counted, const(5)), nexts)
    lowered = lower(Kernel((INT,), (), op("wadd", moved, never)))
    simple = simplify(lowered)
    verify(simple)
    (folded,) = (n for n in walk(simple.roots) if n.op == "fold")
    assert len(folded.args) == 1 + 2 * 2
    assert elements(launch(Kernel((INT,), (), simple.result), [storage([7, 7], Kind.I64)])) == [9]


def test_what_a_fold_is_kept_for_is_kept_with_it() -> None:
    """A fold is read for what never changes, in a `seq` that throws away more: its other step still faults."""
    k, moving, same = Bound(INT), Bound(INT), Bound(BOOL)
    overflow = op("add", const(MIN), op("neg", X))
    results = fold(const(1), k, (same, moving), (const(False), const(0)), (var(same), overflow))
    kernel = Kernel((), (INT,), seq((const(7),), results[0]))
    simple = simplify(kernel)
    verify(simple)
    assert isinstance(seen(kernel, (1,)), str)
    for x in (1, -1):
        assert seen(simple, (x,)) == seen(kernel, (x,))
