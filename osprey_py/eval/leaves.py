"""Values taken apart into numbers and buffers, and put together again with others.

Comes in: a value of the language. Goes out: its leaves in order (ints, floats, buffers, and what stands for them while a
function is recorded or differentiated), its shape, and the same value with other leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from osprey_py.eval.pipelines import elements
from osprey_py.eval.values import Iterator as Pipeline
from osprey_py.eval.values import List, Map, Record, attribute, make_list, make_map
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.symbols import Sym, Unrecordable

MOST_LEAVES = 4096
"""Numbers and buffers in the arguments of a function that is recorded."""


def flatten(value: Any, shape: list[Any], leaves: list[Any]) -> None:
    """The shape of a value, and its numbers and buffers in order. Raises Unrecordable for functions, maps and
    pipelines."""
    kind = type(value)
    if kind is int or kind is float:
        shape.append(kind)
        leaves.append(value)
    elif kind is Buffer:
        shape.append(value.type)
        leaves.append(value)
    elif kind is tuple:
        shape.append(len(value))
        for x in value:
            flatten(x, shape, leaves)
    elif kind is List:
        shape.append(kind)
        shape.append(value.hi - value.lo)
        if len(leaves) + value.hi - value.lo > MOST_LEAVES:
            raise Unrecordable("too many numbers")
        for x in islice(value.items, value.lo, value.hi):
            flatten(x, shape, leaves)
    elif kind is str or kind is bool:
        shape.append(kind)
        shape.append(value)
    elif isinstance(value, Record):
        shape.append(kind)
        for name in attributes(kind):
            flatten(getattr(value, name), shape, leaves)
    else:
        raise Unrecordable("a function, a map or a pipeline")


_known_attributes: dict[type, tuple[str, ...]] = {}


def attributes(kind: type[Record]) -> tuple[str, ...]:
    """The Python attributes of a record's fields."""
    known = _known_attributes.get(kind)
    if known is None:
        known = _known_attributes[kind] = tuple(map(attribute, kind.fields))
    return known


def is_leaf(value: Any) -> bool:
    return isinstance(value, Sym | Buffer) or type(value) is int or type(value) is float


def rebuilt(value: Any, leaves: Iterator[Any]) -> Any:
    """The value with other numbers and buffers."""
    if is_leaf(value):
        return next(leaves)
    kind = type(value)
    if kind is tuple:
        return tuple([rebuilt(x, leaves) for x in value])
    if kind is List:
        return make_list([rebuilt(x, leaves) for x in value])
    if isinstance(value, Record):
        return kind(*[rebuilt(getattr(value, name), leaves) for name in attributes(kind)])
    return value


def leaves_of(value: Any) -> list[Any]:
    """The numbers and buffers in order. Raises Unrecordable for functions, maps and pipelines."""
    if is_leaf(value):
        return [value]
    if isinstance(value, tuple | List):
        return [leaf for x in value for leaf in leaves_of(x)]
    if isinstance(value, Record):
        return [leaf for name in attributes(type(value)) for leaf in leaves_of(getattr(value, name))]
    if type(value) is str or type(value) is bool:
        return []
    raise Unrecordable("the result holds a function, a map or a pipeline")


def plain(value: Any) -> Any:
    """The value with numbers in the place of symbols, each under its guard."""
    kind = type(value)
    if isinstance(value, Sym):
        return value.concrete()
    if kind is tuple:
        return tuple(map(plain, value))
    if kind is List:
        return make_list(list(map(plain, value)))
    if kind is Map:
        return make_map([(plain(k), plain(v)) for _, k, v in value.entries()])
    if kind is Pipeline:
        return Pipeline(make_list(list(map(plain, elements(value)))))
    if isinstance(value, Record):
        return kind(*[plain(getattr(value, name)) for name in attributes(kind)])
    return value


def calls(value: Any) -> bool:
    """Whether there is a function in a value, or what may hold one."""
    kind = type(value)
    if kind is tuple or kind is List:
        return any(map(calls, value))
    if isinstance(value, Record):
        return any(calls(getattr(value, name)) for name in attributes(kind))
    return kind not in (int, float, bool, str, Buffer)
