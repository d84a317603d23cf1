"""Structural equality (spec/evaluation V3.1).

Comes in: two values of one type. Goes out: bool. Iterative, so that data of any depth can be compared.
"""

from __future__ import annotations

from typing import Any

from osprey_py.eval.pipelines import elements
from osprey_py.eval.values import Iterator, List, Map, Record, attribute, key

_SCALARS = frozenset((int, float, str, bool))


def equal(a: Any, b: Any) -> bool:
    """NaN equals nothing, itself included; 0.0 equals -0.0; maps are equal whatever their order."""
    t = type(a)
    if t in _SCALARS:
        return bool(a == b)
    todo: list[tuple[Any, Any]] = [(a, b)]
    while todo:
        a, b = todo.pop()
        t = type(a)
        if t in _SCALARS:
            if a != b:
                return False
        elif t is List or t is tuple or t is Iterator:
            xs, ys = list(elements(a)), list(elements(b))
            if len(xs) != len(ys):
                return False
            todo.extend(zip(reversed(xs), reversed(ys), strict=True))
        elif t is Map:
            if len(a) != len(b):
                return False
            theirs = {key(k): v for _, k, v in b.entries()}
            for _, k, v in a.entries():
                c = key(k)
                if c not in theirs:
                    return False
                todo.append((v, theirs[c]))
        elif isinstance(a, Record):
            if t is not type(b):
                return False
            todo.extend((getattr(a, n), getattr(b, n)) for n in map(attribute, reversed(t.fields)))
        elif a is not b:
            return False
    return True
