"""`buffersOf mapBuffers zipBuffers`: what stands in a structure of parameters, and the same structure with other buffers
in it (spec/training-library O10 to O12).

Comes in: floats, float buffers, and records, tuples and lists of these; functions of buffers. Goes out: lists of
buffers, structures. Nothing is read but what a function makes of a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from osprey_py.eval.leaves import attributes, is_leaf, leaves_of
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import List, Record, make_list
from osprey_py.eval.world import World
from osprey_py.graph.buffer import Buffer
from osprey_py.kernel.ir import FLOAT

Function = Callable[..., Buffer]


@builtin("buffersOf", world=True)
def buffers_of(w: World, x: Any) -> List:
    return make_list([_buffer(w, leaf) for leaf in leaves_of(x)])


@builtin("mapBuffers", world=True)
def map_buffers(w: World, x: Any, f: Function) -> Any:
    return _made(w, f, x)


@builtin("zipBuffers", world=True)
def zip_buffers(w: World, x: Any, y: Any, f: Function) -> Any:
    return _made(w, f, x, y)


def _made(w: World, f: Function, *structures: Any) -> Any:
    """The structure of f's results, leaf by leaf of structures of one type; lists end with the shortest."""
    first = structures[0]
    if is_leaf(first):
        made = f(*[_buffer(w, leaf) for leaf in structures])
        if isinstance(first, Buffer):
            return made
        found = w.runtime.get(made, 0)
        return first if found is None else found
    kind = type(first)
    if kind is tuple:
        return tuple([_made(w, f, *parts) for parts in zip(*structures, strict=True)])
    if kind is List:
        return make_list([_made(w, f, *parts) for parts in zip(*structures, strict=False)])
    if isinstance(first, Record):
        return kind(*[_made(w, f, *[getattr(s, name) for s in structures]) for name in attributes(kind)])
    raise AssertionError(f"the checker lets no {kind.__name__} through")


def _buffer(w: World, leaf: Any) -> Any:
    return leaf if isinstance(leaf, Buffer) else w.runtime.from_list([leaf], FLOAT)
