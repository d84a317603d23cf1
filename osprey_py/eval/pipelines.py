"""`range map filter fold forEach toList`: one lazy pipeline, consumed element by element (spec/library B3.4).

Comes in: a List or an Iterator, and functions. Goes out: what consuming gives. For each shape of pipeline (a word of
m and f) one loop is generated, so that a stage costs one Python call and no generator, and no C stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from osprey_py.eval.values import Iterator, List

Source = List | Iterator


def _parts(xs: Source) -> tuple[Iterable[Any], tuple[tuple[str, Any], ...]]:
    if type(xs) is List:
        return xs.items[xs.lo : xs.hi], ()
    assert type(xs) is Iterator
    source = xs.source
    return (source if type(source) is range else source.items[source.lo : source.hi]), xs.stages


@lru_cache(maxsize=512)
def _loop(shape: str, sink: str) -> Callable[..., Any]:
    """fold: loop(source, *stages, acc, k); each: loop(source, *stages, k); list: loop(source, *stages).
    The accumulator is moved into the call, so that it can die inside it."""
    names = [f"s{i}" for i in range(len(shape))]
    extra = {"fold": ["acc", "k"], "each": ["k"], "list": []}[sink]
    lines = [f"def loop({', '.join(['source', *names, *extra])}):"]
    if sink == "list":
        lines.append("    out = []")
    lines.append("    for x in source:")
    for kind, name in zip(shape, names, strict=True):
        lines.append(f"        x = {name}(x)" if kind == "m" else f"        if not {name}(x): continue")
    lines.append(
        {
            "fold": "        acc = k((acc, acc := None)[0], x)",
            "each": "        k(x)",
            "list": "        out.append(x)",
        }[sink]
    )
    lines.append({"fold": "    return acc", "each": "    return ()", "list": "    return out"}[sink])
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    made: Callable[..., Any] = namespace["loop"]
    return made


def _shape(stages: tuple[tuple[str, Any], ...]) -> str:
    return "".join(kind for kind, _ in stages)


def fold(xs: Source, init: Any, k: Callable[[Any, Any], Any]) -> Any:
    source, stages = _parts(xs)
    if not stages:
        return _plain_fold(source, (init, init := None)[0], k)
    return _loop(_shape(stages), "fold")(source, *[f for _, f in stages], (init, init := None)[0], k)


_plain_fold = _loop("", "fold")
_plain_each = _loop("", "each")


def for_each(xs: Source, k: Callable[[Any], Any]) -> tuple[()]:
    source, stages = _parts(xs)
    if not stages:
        _plain_each(source, k)
    else:
        _loop(_shape(stages), "each")(source, *[f for _, f in stages], k)
    return ()


def elements(xs: Source | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """The elements, evaluated in order, as a fresh Python list (a tuple is itself)."""
    if isinstance(xs, tuple):
        return xs
    source, stages = _parts(xs)
    if not stages:
        try:
            return list(source)
        except OverflowError:  # a range of more numbers than a list can count
            raise MemoryError from None
    out: list[Any] = _loop(_shape(stages), "list")(source, *[f for _, f in stages])
    return out


def stage(xs: Source, kind: str, f: Any) -> Iterator:
    """xs with one more stage at its end."""
    if type(xs) is List:
        return Iterator(xs, ((kind, f),))
    assert type(xs) is Iterator
    return Iterator(xs.source, (*xs.stages, (kind, f)))
