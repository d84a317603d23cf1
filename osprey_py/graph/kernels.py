"""The few kernels that the runtime itself launches: iota, copies of (a part of) a buffer, and what moves adjoints."""

from __future__ import annotations

from functools import cache

from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    Bound,
    Kernel,
    Node,
    Ty,
    const,
    index,
    inrange,
    load,
    select,
    uniform,
    var,
    walk,
)

IOTA = Kernel((), (), index(), name="iota")
"""Element i is i."""


@cache
def copy_kernel(ty: Ty) -> Kernel:
    """Element i is element i of the only slot."""
    return Kernel((ty,), (), load(0, ty, index()), name="copy")


@cache
def slice_kernel(ty: Ty) -> Kernel:
    """Element i is element i + u0 of the only slot."""
    return Kernel((ty,), (INT,), load(0, ty, Node("wadd", INT, (index(), uniform(0, INT)))), name="slice")


@cache
def reads_only_at_index(kernel: Kernel) -> frozenset[int]:
    """The slots whose elements a kernel reads at no other place than its own index."""
    elsewhere = {
        n.attr
        for root in (*kernel.roots, *(r for f in kernel.functions for r in f.results))
        for n in walk((root,))
        if n.op == "load" and n.args[0].op != "index"
    }
    return frozenset(s for s in range(len(kernel.slots)) if s not in elsewhere)


@cache
def has_folds(kernel: Kernel) -> bool:
    """Whether an element needs more than a fixed number of operations."""
    return bool(kernel.functions) or any(n.op in ("fold", "loop") for n in walk(kernel.roots))


@cache
def adds(kernel: Kernel) -> bool:
    """Whether element i is the sum of the i-th elements of the two slots, which are floats."""
    result = kernel.result
    return (
        kernel.slots == (FLOAT, FLOAT)
        and kernel.acc is None
        and result.op == "fadd"
        and {(x.op, x.attr) for x in result.args} == {("load", 0), ("load", 1)}
        and all(x.args[0].op == "index" for x in result.args)
    )


# --- of gradients --------------------------------------------------------------------------------------------------


@cache
def operation_kernel(op: str, taped: tuple[bool, ...]) -> Kernel:
    """A scalar operation on floats: its operands are the elements of slots where `taped`, else uniforms."""
    slots, uniforms, operands = 0, 0, []
    for is_slot in taped:
        operands.append(load(slots, FLOAT, index()) if is_slot else uniform(uniforms, FLOAT))
        slots, uniforms = slots + is_slot, uniforms + (not is_slot)
    result = Node(op, FLOAT, tuple(operands))
    return Kernel((FLOAT,) * slots, (FLOAT,) * uniforms, result, name=op)


@cache
def constant_kernel(value: float) -> Kernel:
    """Every element is the value."""
    return Kernel((), (), const(value), name=str(value))


ADD = Kernel(
    (FLOAT, FLOAT), (), Node("fadd", FLOAT, (load(0, FLOAT, index()), load(1, FLOAT, index()))), name="adjoint"
)
"""An adjoint and one more subtotal."""

FROM_ZERO = Kernel((FLOAT,), (), Node("fadd", FLOAT, (const(0.0), load(0, FLOAT, index()))), name="adjoint")
"""0.0 + the element: -0.0 is gone."""

GATHER = Kernel((FLOAT, INT), (), load(0, FLOAT, load(1, INT, index())), name="gather")
"""The element of slot 0 at the index in slot 1, which is in range."""

OFFSET = Kernel((), (INT,), Node("wadd", INT, (index(), uniform(0, INT))), name="offset")
"""u0, u0 + 1, …"""


def _placed() -> Kernel:
    at = Node("wsub", INT, (index(), uniform(0, INT)))
    return Kernel((FLOAT,), (INT,), select(inrange(0, at), load(0, FLOAT, at), const(0.0)), name="placed")


PLACED = _placed()
"""The only slot from element u0 on, 0.0 around it."""


@cache
def row_kernel(count: int) -> Kernel:
    """Element k is the one element of slot k."""
    result = load(count - 1, FLOAT, const(0))
    for k in reversed(range(count - 1)):
        result = select(Node("eq", BOOL, (index(), const(k))), load(k, FLOAT, const(0)), result)
    return Kernel((FLOAT,) * count, (), result, name="row")


@cache
def count_kernel(kept: Kernel) -> Kernel:
    """A scan: how many of the elements up to this one a filter keeps. It cannot fault where the filter did not."""
    lowered = lower(kept)
    acc = Bound(INT, "count")
    step = Node("wadd", INT, (var(acc), select(lowered.result, const(1), const(0))))
    return Kernel(kept.slots, kept.uniforms, step, lowered.functions, acc, const(0), "count", kept.sources)


def _spread() -> Kernel:
    count = load(1, INT, index())
    before = load(1, INT, Node("wsub", INT, (index(), const(1))))
    earlier = select(Node("eq", BOOL, (index(), const(0))), const(0), before)
    value = load(0, FLOAT, Node("wsub", INT, (count, const(1))))
    return Kernel((FLOAT, INT), (), select(Node("ne", BOOL, (count, earlier)), value, const(0.0)), name="spread")


SPREAD = _spread()
"""What a filter kept, where it was: slot 0 the kept elements, slot 1 the counts; 0.0 elsewhere."""
