"""Values as text: `toString`, `print` and `${}` (spec/library B1).

Comes in: any run-time value. Goes out: text. Iterative, so that data of any depth can be written.
"""

from __future__ import annotations

from typing import Any

from osprey_py.eval.pipelines import elements
from osprey_py.eval.values import Error, Iterator, List, Map, Record, Success, attribute

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e", "\0": "\\0", '"': '\\"', "\\": "\\\\"}


def quote(text: str) -> str:
    """A string as it is written in source."""
    return '"' + "".join(map(_escape, text)).replace("${", "\\${") + '"'


def _escape(c: str) -> str:
    found = _ESCAPES.get(c)
    if found is not None:
        return found
    return f"\\u{{{ord(c):X}}}" if c < " " or "\x7f" <= c < "\xa0" else c


def to_string(value: Any) -> str:
    """A string is itself; inside data it is quoted, except directly in Success and Error."""
    t = type(value)
    if t is str:
        return str(value)
    if t is int or t is float:
        return repr(value)
    if t is bool:
        return "true" if value else "false"
    return _structured(value)


def _structured(root: Any) -> str:
    out: list[str] = []
    # Text to be written as it is comes as a one-element list, everything else is a value; last first.
    todo: list[Any] = [root]
    while todo:
        v = todo.pop()
        t = type(v)
        if t is list:
            out.append(v[0])
        elif t is str:
            out.append(quote(v))
        elif t is int or t is float or t is bool:
            out.append(to_string(v))
        elif t is tuple:
            _push(todo, "(", [[x] for x in v], ")")
        elif t is List or t is Iterator:
            _push(todo, "[", [[x] for x in elements(v)], "]")
        elif t is Map:
            entries = v.entries()
            if entries:
                _push(todo, "{ ", [[k, [": "], x] for _, k, x in entries], " }")
            else:
                out.append("Map()")
        elif isinstance(v, Record):
            _push_record(todo, v)
        else:
            out.append(_opaque(v))
    return "".join(out)


def _push(todo: list[Any], begin: str, groups: list[list[Any]], end: str) -> None:
    """Schedule `begin group, group, … end`."""
    todo.append([end])
    for k in range(len(groups) - 1, -1, -1):
        todo.extend(reversed(groups[k]))
        if k:
            todo.append([", "])
    todo.append([begin])


def _push_record(todo: list[Any], v: Record) -> None:
    cls = type(v)
    name = cls.constructor.name if cls.constructor is not None else ""
    parts = [(n, getattr(v, attribute(n))) for n in cls.fields]
    if cls is Success or cls is Error:
        payload = parts[0][1]
        _push(todo, f"{name}(", [[[payload] if type(payload) is str else payload]], ")")
    elif cls.constructor is not None and cls.constructor.positional and parts:
        _push(todo, f"{name}(", [[x] for _, x in parts], ")")
    elif parts or cls.constructor is None:
        opening = f"{name} {{ " if name else "{ "
        _push(todo, opening, [[[f"{n}: "], x] for n, x in parts], " }")
    else:
        todo.append([name])


def _opaque(v: Any) -> str:
    """Functions and buffers."""
    from osprey_py.eval.library.gpu import buffer_text

    return "<function>" if callable(v) else buffer_text(v)
