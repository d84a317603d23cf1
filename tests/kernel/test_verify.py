"""Each rule of kernel/verify.py refuses a kernel that breaks it, and nothing else of that kernel is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from osprey_py.kernel.faults import Lowered, lower
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    Bound,
    FoldAttr,
    Kernel,
    KFunction,
    Node,
    TableAttr,
    call,
    const,
    fold,
    index,
    inrange,
    length,
    load,
    loop,
    select,
    seq,
    uniform,
    var,
)
from osprey_py.kernel.verify import KernelError, verify
from tests.kernel.building import op, recover, site

K, J, A, B = Bound(INT), Bound(INT), Bound(FLOAT), Bound(FLOAT)
ONE, HALF, YES = const(1), const(0.5), const(True)
SUM = fold(const(3), K, (A,), (HALF,), (op("fadd", var(A), load(0, FLOAT, var(K))),))[0]
INNER = Node("fold", FLOAT, (ONE, HALF, HALF), FoldAttr(J, (B,)))


def kernel(result: Node, functions: tuple[KFunction, ...] = (), **more: object) -> Kernel:
    return Kernel((FLOAT, INT), (INT,), result, functions, **more)  # type: ignore[arg-type]


def lowered(result: Node, fault: Node | None = None) -> Lowered:
    return replace(lower(kernel(ONE)), result=result, fault=fault)


N = Bound(INT)
DOWN = call(0, (op("sub", var(N), ONE),), (INT, FLOAT), site())
COUNT = KFunction("count", (N,), (select(op("le", var(N), ONE), ONE, DOWN[0]), HALF))
TWICE = Bound(INT)

GOOD = {
    "scalars": kernel(op("add", index(), uniform(0, INT))),
    "a gather": kernel(select(recover(inrange(0, index()), const(False)), load(0, FLOAT, index()), HALF)),
    "a fold": kernel(SUM),
    "a loop": kernel(loop((K,), (ONE,), op("lt", var(K), length(1)), (op("add", var(K), ONE),))[0]),
    "a function": kernel(call(0, (ONE,), (INT, FLOAT), site())[1], (COUNT,)),
    "a scan": kernel(op("add", var(K), load(1, INT, index())), acc=K, init=uniform(0, INT)),
    "a sequence": kernel(seq([HALF, ONE], YES)),
    "a table": kernel(Node("table", FLOAT, (ONE,), TableAttr((0.5, 1.5)))),
    "a fault": kernel(Node("fault", INT, (), "no such thing", site())),
    "lowered": lower(kernel(op("quot", ONE, index()))),
}

BAD = {
    "V1": [
        kernel(Node("nothing", INT)),
        kernel(Node("wadd", INT, (ONE, HALF))),
        kernel(Node("wadd", INT, (ONE,))),
        kernel(Node("wadd", FLOAT, (ONE, ONE))),
        kernel(Node("wadd", INT, (ONE, ONE), 7)),
        kernel(Node("const", INT, (), True)),
        kernel(Node("const", INT, (), 2**63)),
        kernel(Node("const", FLOAT, (), 1)),
        kernel(Node("eq", BOOL, (ONE, HALF))),
        kernel(Node("lt", BOOL, (YES, YES))),
        kernel(Node("select", INT, (ONE, ONE, ONE))),
        kernel(Node("select", INT, (YES, ONE, HALF))),
        kernel(Node("recover", INT, (ONE, HALF))),
        kernel(Node("var", INT, (), "x")),
        kernel(Node("table", FLOAT, (ONE,), TableAttr(()))),
        kernel(Node("fold", INT, (ONE, ONE, ONE), None)),
        kernel(Node("proj", INT, (Node("fold", INT, (HALF, ONE, ONE), FoldAttr(K, (J,))),), 0)),
        kernel(Node("proj", INT, (Node("fold", INT, (ONE, ONE, HALF), FoldAttr(K, (J,))),), 0)),
        kernel(Node("fault", INT, (), None, site())),
        kernel(Node("seq", INT)),
    ],
    "V2": [kernel(Node("add", INT, (ONE, ONE))), kernel(Node("wadd", INT, (ONE, ONE), None, site()))],
    "V3": [
        kernel(uniform(1, INT)),
        kernel(load(2, INT, ONE)),
        kernel(inrange(-1, ONE)),
        kernel(length(2)),
        kernel(call(1, (ONE,), (INT,), site())[0], (COUNT,)),
    ],
    "V4": [
        kernel(var(K)),
        kernel(fold(var(J), J, (B,), (HALF,), (var(B),))[0]),
        kernel(op("fadd", SUM, fold(ONE, K, (B,), (HALF,), (var(B),))[0])),
        kernel(op("fadd", Node("proj", FLOAT, (INNER,), 0), var(B))),
        kernel(call(0, (ONE,), (INT, FLOAT), site())[0], (KFunction("f", (TWICE,), (index(), HALF)),)),
        kernel(call(0, (ONE, ONE), (INT, FLOAT), site())[0], (KFunction("f", (TWICE, TWICE), (ONE, HALF)),)),
    ],
    "V5": [
        kernel(INNER),
        kernel(op("fneg", INNER)),
        kernel(Node("proj", FLOAT, (INNER,), 1)),
        kernel(Node("proj", FLOAT, (HALF,), 0)),
    ],
    "V6": [
        kernel(ONE, acc=K),
        kernel(ONE, init=ONE),
        kernel(ONE, acc=K, init=HALF),
        kernel(ONE, acc=K, init=index()),
        kernel(ONE, acc=K, init=op("add", ONE, ONE)),
    ],
    "V7": [
        lowered(op("add", ONE, ONE)),
        lowered(recover(ONE, ONE)),
        lowered(seq([ONE], ONE)),
        lowered(Node("fault", INT, (), "x", site())),
        lowered(ONE, ONE),
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_kernels_that_keep_the_rules(name: str) -> None:
    verify(GOOD[name])


@pytest.mark.parametrize(("rule", "bad"), [(r, k) for r, ks in BAD.items() for k in ks])
def test_a_broken_rule_is_named(rule: str, bad: Kernel) -> None:
    with pytest.raises(KernelError) as caught:
        verify(bad)
    assert caught.value.rule == rule
