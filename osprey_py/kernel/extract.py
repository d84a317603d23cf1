"""From run-time closures to kernels.

Comes in: a kernel function as the evaluator made it, and the types of what a launch gives it. Goes out: a `Kernel`
and this launch's captured buffers and scalars. A kernel is extracted once for each code and each structure of
captures: the same object comes back at the next launch (the plan cache is keyed on it), and only a generated binder
runs (kernel/captures.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from osprey_py.eval.closures import BuiltinFunction, core_of
from osprey_py.graph.buffer import Buffer
from osprey_py.kernel import symbols as s
from osprey_py.kernel.captures import Binder, Captures, scalar_type
from osprey_py.kernel.ir import (
    FLOAT,
    INT,
    Bound,
    FoldAttr,
    Kernel,
    Node,
    Ty,
    const,
    fold,
    index,
    length,
    load,
    uniform,
    var,
)
from osprey_py.kernel.refusals import refuse
from osprey_py.kernel.regions import sequenced
from osprey_py.kernel.symbolic import Evaluator
from osprey_py.source.span import NO_SPAN, Span

Extracted = tuple[Kernel, tuple[Buffer, ...], tuple[Any, ...]]
"""(kernel, captured buffers, scalars). The kernel's slots are the launch's own buffers, then the captured ones; the
scalars are its uniforms, the launch's own (a fold's or scan's init) first."""


class Extractor:
    """Keeps the kernels of one program."""

    def __init__(self) -> None:
        self._binders: dict[Any, list[Binder]] = {}

    def map(self, f: Any, types: tuple[Ty, ...]) -> Extracted:
        """f: a function of one element of each of the launch's buffers (of these types) to a scalar; a filter's too."""
        return self._find("map", f, types, ())

    def fold(self, f: Any, element: Ty, init: Any) -> Extracted:
        """f: (U, T) -> U. A kernel to be launched for one element: the fold over the whole of slot 0 from uniform 0."""
        return self._find("fold", f, (element,), (init,))

    def scan(self, f: Any, element: Ty, init: Any) -> Extracted:
        """f: (U, T) -> U. A kernel with an accumulator, from uniform 0."""
        return self._find("scan", f, (element,), (init,))

    def matmul(self, m: int, k: int, n: int) -> tuple[Kernel, tuple[int, int, int]]:
        """The kernel of gpuMatMul over slots a [m,k] and b [k,n], and its uniforms."""
        return matmul_kernel(), (m, k, n)

    def _find(self, op: str, f: Any, types: tuple[Ty, ...], given: tuple[Any, ...]) -> Extracted:
        key = (op, getattr(f, "__code__", None) or f.name, types, *map(scalar_type, given))
        binders = self._binders.get(key)
        if binders is None:
            binders = self._binders[key] = []
        for bind in binders:
            found = bind(f, given)
            if found is not None:
                return found
        bind = _extract(op, f, types, tuple(_type_of(v) for v in given))
        binders.append(bind)
        found = bind(f, given)
        assert found is not None
        return found


def _extract(op: str, f: Any, types: tuple[Ty, ...], given: tuple[Ty, ...]) -> Binder:
    captures = Captures(types, given)
    x = Evaluator(captures)
    function: s.Value
    if isinstance(f, BuiltinFunction):
        function, span, name = s.Builtin(f.name), NO_SPAN, f.name
    else:
        core = core_of(f)
        assert core is not None
        function, span, name = captures.root(f), core.span, core.name.rsplit("::", 1)[-1].strip("<>")
    acc = Bound(given[0], "acc") if given else None
    match op:
        case "map":
            result = _root(x, function, [load(k, t, index()) for k, t in enumerate(types)], span)
            acc = None
        case "scan":
            assert acc is not None
            result = _root(x, function, [var(acc), load(0, types[0], index())], span)
        case _:
            assert acc is not None
            k = Bound(INT, "k")
            step = _root(x, function, [var(acc), load(0, types[0], var(k))], span)
            whole = Node("fold", acc.type, (length(0), uniform(0, acc.type), step), FoldAttr(k, (acc,)))
            result, acc = Node("proj", acc.type, (whole,), 0), None
    kernel = Kernel(
        tuple(captures.slots),
        tuple(captures.uniforms),
        result,
        tuple(x.functions),
        acc,
        None if acc is None else uniform(0, acc.type),
        f"{op} {name}",
        (span, *captures.functions),
    )
    return captures.binder(kernel)


def _type_of(value: Any) -> Ty:
    found = scalar_type(value)
    assert found is not None
    return found


def _root(x: Evaluator, function: s.Value, args: Sequence[Node], span: Span) -> Node:
    value = x.captures.resolve(x.apply(function, list(args), span))
    if not isinstance(value, Node):
        raise refuse(value, span)
    return sequenced(x.region.effects, value)


@cache
def matmul_kernel() -> Kernel:
    """Element i of [m,n] is ((0.0 + a·b) + …) over k ascending; the launch has made sure of the sizes."""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    inner, columns = uniform(1, INT), uniform(2, INT)

    def op(name: str, *args: Node) -> Node:
        return Node(name, INT, args)

    # Places lie within buffers that exist, so nothing here can overflow, and columns is positive where there are
    # elements.
    a = load(0, FLOAT, op("wadd", op("wmul", op("uquot", index(), columns), inner), var(k)))
    b = load(1, FLOAT, op("wadd", op("wmul", var(k), columns), op("urem", index(), columns)))
    step = Node("fadd", FLOAT, (var(acc), Node("fmul", FLOAT, (a, b))))
    (result,) = fold(inner, k, (acc,), (const(0.0),), (step,))
    return Kernel((FLOAT, FLOAT), (INT, INT, INT), result, name="gpuMatMul")
