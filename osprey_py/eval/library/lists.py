"""Lists and pipelines (spec/library B3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from osprey_py.eval import pipelines
from osprey_py.eval.arithmetic import MAX, overflow
from osprey_py.eval.equality import equal
from osprey_py.eval.handlers import handled_here
from osprey_py.eval.library.absent import ABSENT
from osprey_py.eval.pipelines import Source, elements
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, Iterator, List, Success, append, concat, make_list, prepend
from osprey_py.eval.world import World
from osprey_py.source.span import Span


def item(xs: List, i: int) -> Any:
    """Element i, or ABSENT."""
    at = xs.lo + i
    return xs.items[at] if i >= 0 and at < xs.hi else ABSENT


@builtin("listGet")
def get(xs: List, i: int) -> Any:
    at = xs.lo + i
    if i >= 0 and at < xs.hi:
        return Success(xs.items[at])
    return Error(f"listGet: index {i} out of bounds for length {xs.hi - xs.lo}")


def index(xs: List, i: int) -> Any:
    """xs[i]"""
    at = xs.lo + i
    if i >= 0 and at < xs.hi:
        return Success(xs.items[at])
    return Error(f"index {i} out of bounds for length {xs.hi - xs.lo}")


@builtin("List")
def empty() -> List:
    return List([], 0, 0)


@builtin("listLength")
def length(xs: List) -> int:
    return xs.hi - xs.lo


builtin("listAppend")(append)
builtin("listPrepend")(prepend)
builtin("listConcat")(concat)


@builtin("listReverse")
def reverse(xs: List) -> List:
    return make_list(xs.items[xs.lo : xs.hi][::-1])


@builtin("listContains")
def contains(xs: List, x: Any) -> bool:
    items = xs.items[xs.lo : xs.hi]
    if type(x) in (int, str, bool):
        return x in items
    return any(equal(y, x) for y in items)


@builtin("listSlice")
def list_slice(xs: List, begin: int, end: int) -> List:
    """Elements begin … end-1, as far as there are such; a view."""
    n = xs.hi - xs.lo
    begin = min(max(begin, 0), n)
    end = min(max(end, begin), n)
    return List(xs.items, xs.lo + begin, xs.lo + end)


@builtin("forEachList")
def for_each_list(xs: List, f: Callable[[Any], Any]) -> tuple[()]:
    return pipelines.for_each(xs, f)


@builtin("range")
def numbers(begin: int, end: int) -> Iterator:
    return Iterator(range(begin, end))


@builtin("map", world=True)
def mapped(w: World, xs: Source, f: Callable[[Any], Any]) -> Iterator:
    return pipelines.stage(xs, "m", handled_here(w, f))


@builtin("filter", world=True)
def filtered(w: World, xs: Source, f: Callable[[Any], Any]) -> Iterator:
    return pipelines.stage(xs, "f", handled_here(w, f))


builtin("fold")(pipelines.fold)
builtin("forEach")(pipelines.for_each)


@builtin("toList")
def to_list(xs: Source) -> List:
    return xs if type(xs) is List else make_list(list(elements(xs)))


@builtin("length", span=True)
def sized_length(xs: Any, span: Span) -> int:
    """Of a string, List, Map or Iterator."""
    if type(xs) is not Iterator:
        return len(xs)
    if type(xs.source) is not range or xs.stages:
        return len(elements(xs))
    numbers = max(xs.source.stop - xs.source.start, 0)
    return numbers if numbers <= MAX else overflow(span)


@builtin("isEmpty")
def is_empty(xs: Any) -> bool:
    if type(xs) is Iterator and type(xs.source) is range and not xs.stages:
        return not xs.source
    return len(elements(xs) if type(xs) is Iterator else xs) == 0
