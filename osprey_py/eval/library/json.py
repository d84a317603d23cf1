"""`parseJson`: RFC 8259 text to the built-in union Json (spec/library B1)."""

from __future__ import annotations

import json
from typing import Any

from osprey_py.check.core import JSON
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, Success, class_of, make_list, make_map

_NULL, _BOOL, _NUMBER, _STRING, _ARRAY, _OBJECT = map(class_of, JSON)
MAX_NESTING = 1000


class _Refused(ValueError):
    pass


def _refuse(word: str) -> Any:
    raise _Refused(f"{word} is not JSON")


@builtin("parseJson")
def parse_json(text: str) -> Any:
    """Numbers become floats; of equal keys the last counts, at the first one's place."""
    if _nesting(text) > MAX_NESTING:
        return Error(f"parseJson: nested deeper than {MAX_NESTING}")
    try:
        found = json.loads(text, parse_int=float, parse_constant=_refuse, object_pairs_hook=_pairs)
        return Success(_convert(found))
    except json.JSONDecodeError as e:
        return Error(f"parseJson: {e.msg[0].lower()}{e.msg[1:]} at line {e.lineno}, column {e.colno}")
    except _Refused as e:
        return Error(f"parseJson: {e}")


class _Pairs(list[tuple[str, Any]]):
    """The entries of an object."""


def _pairs(entries: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs(entries)


def _nesting(text: str) -> int:
    """At least how deep the text nests (brackets in strings count too)."""
    depth = deepest = 0
    for c in text:
        if c in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif c in "]}":
            depth -= 1
    return deepest


def _convert(v: Any) -> Any:
    if v is None:
        return _NULL()
    if isinstance(v, bool):
        return _BOOL(v)  # type: ignore[call-arg]
    if isinstance(v, float):
        return _NUMBER(v)  # type: ignore[call-arg]
    if isinstance(v, str):
        if not v.isascii() and any(0xD800 <= ord(c) < 0xE000 for c in v):
            raise _Refused("half of a surrogate pair")
        return _STRING(v)  # type: ignore[call-arg]
    if isinstance(v, _Pairs):
        return _OBJECT(make_map([(k, _convert(x)) for k, x in v]))  # type: ignore[call-arg]
    return _ARRAY(make_list([_convert(x) for x in v]))  # type: ignore[call-arg]
