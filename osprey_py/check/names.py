"""Turning written names into symbols, with complaints that say what is wrong.

Comes in: a path and the space it stands in. Goes out: the symbol, or None after telling.
Spec: types-and-effects L7.3 to L7.7.
"""

from __future__ import annotations

from collections.abc import Iterable

from osprey_py.check.context import Context
from osprey_py.modules.paths import library_names
from osprey_py.modules.spaces import (
    SORTS,
    Ambiguous,
    Found,
    Missing,
    Private,
    Sort,
    Space,
    Symbol,
    look,
    member,
    visible_names,
)
from osprey_py.source.span import NO_SPAN
from osprey_py.source.suggest import did_you_mean
from osprey_py.syntax import ast

_CODES = {"value": "E0101", "type": "E0111", "effect": "E0112", "module": "E0106"}
_ALIASES = {
    "len": "length",
    "size": "length",
    "toUpper": "toUpperCase",
    "upper": "toUpperCase",
    "toLower": "toLowerCase",
    "lower": "toLowerCase",
    "strip": "trim",
    "substr": "substring",
    "push": "listAppend",
    "each": "forEach",
    "println": "print",
    "puts": "print",
    "str": "toString",
    "float": "toFloat",
    "int": "toInt",
    "log": "ln",
    "pow": "exp",
    "append": "listAppend",
    "head": "listGet",
    "reduce": "fold",
    "None": "Error",
    "Ok": "Success",
    "Err": "Error",
    "Some": "Success",
    "null": "()",
    "True": "true",
    "False": "false",
    "String": "string",
    "str_": "string",
    "boolean": "bool",
    "Int": "int",
    "Float": "float",
    "Bool": "bool",
    "double": "float",
    "unit": "Unit",
}
"""What people from other languages write, and what it is here."""
_TYPE_ALIASES = {"str": "string", "integer": "int", "i64": "int", "f64": "float", "void": "Unit", "Array": "List"}


def resolve(
    cx: Context, space: Space, path: tuple[ast.Name, ...], sort: Sort, locals: Iterable[str] = ()
) -> Symbol | None:
    """The symbol a path names. locals: local names, for suggestions."""
    found = look(space, path, sort)
    if isinstance(found, Symbol):
        return found
    inner = isinstance(found, Missing) and found.at is not path[-1]
    tell_not_found(cx, space, found, "module" if inner else sort, locals)
    return None


def tell_not_found(cx: Context, space: Space, found: Found, sort: Sort, locals: Iterable[str] = ()) -> None:
    match found:
        case Private(at=at, symbol=symbol):
            cx.tell(
                "E0102",
                f"{symbol.what} `{at.text}` is private",
                at.span,
                "it is not exported",
                () if symbol.span is NO_SPAN else ((symbol.span, "declared here"),),
                help="write `export` before its declaration to let others use it",
            )
        case Ambiguous(at=at, symbols=symbols):
            cx.tell(
                "E0103",
                f"`{at.text}` is ambiguous",
                at.span,
                "it may mean any of these",
                tuple((s.span, f"`{s.key}`") for s in symbols if s.span is not NO_SPAN),
                help="import one of them under another name: `import …::{" + at.text + " as other}`",
            )
        case Missing(at=at, within=within):
            _tell_missing(cx, space, at, within, sort, locals)
        case _:
            raise TypeError(found)


def _tell_missing(
    cx: Context, space: Space, at: ast.Name, within: Symbol | None, sort: Sort, locals: Iterable[str]
) -> None:
    what = {"value": "name", "type": "type", "effect": "effect", "module": "module"}[sort]
    if within is not None:
        assert within.inside is not None
        names = list(within.inside.names[sort]) + list(within.inside.names["module"])
        title = f"`{within.key}` has no {what} `{at.text}`"
        cx.tell(_CODES[sort], title, at.span, "not found there", help=did_you_mean(at.text, names))
        return
    other = next((o for o in SORTS if o != sort and isinstance(look(space, (at,), o), Symbol)), None)
    if sort == "type" and at.text in _TYPE_ALIASES:
        hint = f"did you mean `{_TYPE_ALIASES[at.text]}`?"
    elif other is None or at.text in _ALIASES:
        hint = known_elsewhere(at.text) or did_you_mean(at.text, [*locals, *visible_names(space, sort)])
    elif other == "type" and sort == "value":
        hint = f"`{at.text}` is a type; a record is made with `{at.text} {{ … }}`, a variant by its own name"
    else:
        hint = f"`{at.text}` is a{'n effect' if other == 'effect' else ' ' + other}, not a {what}"
        if other == "module":
            hint += f"; its names are written `{at.text}::…`"
    title = f"unknown {what} `{at.text}`"
    cx.tell(_CODES[sort], title, at.span, "not found in this scope", help=hint)


def known_elsewhere(name: str) -> str:
    """What a name of another language is here, or where the standard library has it."""
    if name in _ALIASES:
        return f"did you mean `{_ALIASES[name]}`?"
    namespace = library_names().get(name)
    return f"the standard library has it: `import {namespace}::{{{name}}}`" if namespace else ""


def quiet_look(space: Space, path: tuple[ast.Name, ...], sort: Sort) -> Symbol | None:
    found = look(space, path, sort)
    return found if isinstance(found, Symbol) else None


__all__ = ["known_elsewhere", "member", "quiet_look", "resolve", "tell_not_found"]
