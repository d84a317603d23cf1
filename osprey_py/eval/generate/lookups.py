"""Lookups under `?:` that need no Result: `listGet(xs, i) ?: d`, `xs[i] ?: d`, `mapGet(m, k) ?: d`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from osprey_py.check import core as c
from osprey_py.check.types import Named
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


def lookup(b: Body, e: c.Expr) -> tuple[Callable[[Sequence[P]], str], tuple[c.Expr, ...]] | None:
    """(how to call the twin, arguments), when e is a lookup."""
    if isinstance(e, c.Call) and isinstance(e.callee, c.BuiltinRef) and e.callee.name in LOOKUPS:
        name = LOOKUPS[e.callee.name]
        args = e.args
    elif isinstance(e, c.Index) and isinstance(e.container.type, Named) and e.container.type.name in INDEX:
        name = INDEX[e.container.type.name][1]
        args = (e.container, e.index)
    else:
        return None
    return lambda ps: f"{name}({', '.join(p.text for p in ps)})", args


def total(e: c.Expr) -> bool:
    """Evaluating e can neither fault nor launch."""
    match e:
        case c.Literal() | c.LocalRef() | c.GlobalRef():
            return True
        case c.Field(record=r):
            return total(r)
        case c.TupleNew(items=items):
            return all(map(total, items))
        case c.Call(callee=c.BuiltinRef(name="listLength" | "length" | "codePoints"), args=args):
            return all(map(total, args))
        case c.Binary(op="+", left=a, right=b) if a.type == Named("string"):
            return total(a) and total(b)
    return False


def _index(b: Body, e: c.Index) -> P:
    ps = operands(b, (e.container, e.index))
    t = e.container.type
    name = INDEX[t.name][0] if isinstance(t, Named) and t.name in INDEX else "_index_any"
    return P(f"{name}({ps[0].text}, {ps[1].text})", nest=nest(ps))


VALUE[c.Index] = _index
