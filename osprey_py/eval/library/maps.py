"""Maps (spec/library B4)."""

from __future__ import annotations

from typing import Any

from osprey_py.eval.formatting import quote, to_string
from osprey_py.eval.library.absent import ABSENT
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, List, Map, Success, empty_map, make_list, map_entry, map_remove, map_set

builtin("Map")(empty_map)
builtin("mapSet")(map_set)
builtin("mapRemove")(map_remove)


def item(m: Map, k: Any) -> Any:
    """The value of k, or ABSENT."""
    found = map_entry(m, k)
    return found[2] if found is not None else ABSENT


@builtin("mapGet")
def get(m: Map, k: Any) -> Any:
    found = map_entry(m, k)
    if found is not None:
        return Success(found[2])
    return Error(f"no key {quote(k) if type(k) is str else to_string(k)}")


@builtin("mapContains")
def contains(m: Map, k: Any) -> bool:
    return map_entry(m, k) is not None


@builtin("mapMerge")
def merge(a: Map, b: Map) -> Map:
    """a with b's entries set, in b's order."""
    for _, k, v in b.entries():
        a = map_set(a, k, v)
    return a


@builtin("mapKeys")
def keys(m: Map) -> List:
    return make_list([k for _, k, _ in m.entries()])


@builtin("mapValues")
def values(m: Map) -> List:
    return make_list([v for _, _, v in m.entries()])
