"""Lookups under `?:` that need no Result: `listGet(xs, i) ?: d`, `xs[i] ?: d`, `mapGet(m, k) ?: d`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from osprey_py.check import core as c
from osprey_py.check.types import FLOAT, STRING, Named, Type
from osprey_py.eval.body import Body
from osprey_py.eval.emit import P
from osprey_py.eval.generate.base import VALUE, nest, operands

LOOKUPS = {
    "listGet": "_list_item",
    "mapGet": "_map_item",
    "byteAt": "_byte_item",
    "codePointAt": "_code_point_item",
}
"""Built-ins with a twin that gives the value itself, or ABSENT."""

INDEX = {
    "List": ("_index_list", "_list_item"),
    "Map": ("_index_map", "_map_item"),
    "string": ("_index_text", "_text_item"),
}
"""By the container's type: what indexing calls for a Result, and its twin."""


def _container(b: Body, e: c.Index) -> str:
    t = b.type_of(e.container)
    return t.name if isinstance(t, Named) else ""


def lookup(b: Body, e: c.Expr) -> tuple[Callable[[Sequence[P]], str], tuple[c.Expr, ...]] | None:
    """(how to call the twin, arguments), when e is a lookup."""
    if isinstance(e, c.Call) and isinstance(e.callee, c.BuiltinRef) and e.callee.name in LOOKUPS:
        name = LOOKUPS[e.callee.name]
        args = e.args
    elif isinstance(e, c.Index) and _container(b, e) in INDEX:
        name = INDEX[_container(b, e)][1]
        args = (e.container, e.index)
    else:
        return None
    return lambda ps: f"{name}({', '.join(p.text for p in ps)})", args


_FAULTING = frozenset(
    "intDiv toInt abs shiftLeft shiftRight shiftRightLogical exit gpuMap gpuZipWith gpuFilter gpuFold gpuScan "
    "valueAndGradient gradient".split()
)
"""Built-ins that may fault by themselves or launch what may. (Those that only read a buffer may meet the fault of an
earlier launch, but that belongs to whoever made the launch.)"""


def total(b: Body, e: c.Expr) -> bool:
    """Evaluating e makes no fault of its own, so `?:` around it needs no region. Where in doubt, False."""
    match e:
        case c.Literal() | c.LocalRef() | c.GlobalRef():
            return True
        case c.Field(record=r):
            return total(b, r)
        case c.TupleNew(items=items) | c.ListNew(items=items):
            return all(total(b, x) for x in items)
        case c.RecordNew(fields=fields):
            return all(total(b, x) for _, x in fields)
        case c.Index(container=container, index=index):
            return total(b, container) and total(b, index)
        case c.Unary(op=op, operand=x):
            known = isinstance(x, c.Literal) and x.value != -(2**63)
            return total(b, x) and (op == "!" or b.type_of(e) == FLOAT or known)
        case c.Binary(op=op, left=left, right=right):
            harmless = b.type_of(left) in (STRING, FLOAT) if op in ("+", "-", "*") else op not in ("/", "%")
            return harmless and _plain_type(b, left.type) and total(b, left) and total(b, right)
        case c.Call(callee=c.BuiltinRef(name=name), args=args) if name in LOOKUPS:
            return all(total(b, x) for x in args)
        case c.Call(callee=c.BuiltinRef(name=name), args=args) if name not in _FAULTING:
            return all(_plain_type(b, x.type) and total(b, x) for x in args)
    return False


def _plain_type(b: Body, t: Type) -> bool:
    """Looking at a value of this type runs no code: it holds no function and no pipeline."""
    return (isinstance(t, Named) and t.name == "GpuBuffer") or not b.holds(t)


def _index(b: Body, e: c.Index) -> P:
    ps = operands(b, (e.container, e.index))
    known = INDEX.get(_container(b, e))
    name = known[0] if known is not None else "_index_any"
    return P(f"{name}({ps[0].text}, {ps[1].text})", nest=nest(ps))


VALUE[c.Index] = _index
