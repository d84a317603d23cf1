"""Names: what is declared where, and what a name means in a place.

Comes in: declared symbols and imports. Goes out: lookups that find one symbol, or say that it is missing, private or
ambiguous. Spec: types-and-effects L7.3 to L7.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from osprey_py.source.span import NO_SPAN, Span
from osprey_py.syntax import ast

Sort = Literal["value", "type", "effect", "module"]
SORTS: tuple[Sort, ...] = ("value", "type", "effect", "module")


@dataclass(eq=False, slots=True)
class Symbol:
    """A declared thing. key: its qualified name, unique in the program for its sort.
    what: `function`, `let`, `mut`, `variant`, `record`, `union`, `alias`, `effect`, `module`, `namespace`, `built-in`.
    decl: its declaration; owner: the type of a variant; inside: the space of a module or namespace."""

    name: str
    key: str
    sort: Sort
    what: str
    span: Span
    space: Space | None
    exported: bool = True
    decl: ast.Node | None = None
    owner: Symbol | None = None
    inside: Space | None = None


@dataclass(eq=False, slots=True)
class Space:
    """A region of names: a namespace, one file of it, or a module. Names are looked up outwards along `parent`.
    imports: per name, every symbol that some import brings in. path: the qualified prefix of what is declared in it."""

    path: tuple[str, ...]
    parent: Space | None
    what: str
    names: dict[Sort, dict[str, Symbol]] = field(default_factory=lambda: {s: {} for s in SORTS})
    imports: dict[Sort, dict[str, list[Symbol]]] = field(default_factory=lambda: {s: {} for s in SORTS})

    def chain(self) -> Iterator[Space]:
        at: Space | None = self
        while at is not None:
            yield at
            at = at.parent

    def bring(self, name: str, symbol: Symbol) -> None:
        known = self.imports[symbol.sort].setdefault(name, [])
        if symbol not in known:
            known.append(symbol)

    def encloses(self, other: Space) -> bool:
        return any(s is self for s in other.chain())


@dataclass(frozen=True, slots=True)
class Missing:
    """No such name. at: the part of the path that is missing; within: where it was looked for, None for the open scope."""

    at: ast.Name
    within: Symbol | None


@dataclass(frozen=True, slots=True)
class Private:
    at: ast.Name
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Ambiguous:
    at: ast.Name
    symbols: tuple[Symbol, ...]


Found = Symbol | Missing | Private | Ambiguous


def look(space: Space, path: tuple[ast.Name, ...], sort: Sort) -> Found:
    """The symbol that `path` names, seen from `space`."""
    if len(path) == 1:
        return _open(space, path[0], sort)
    at = _open(space, path[0], "module")
    for name in path[1:-1]:
        if not isinstance(at, Symbol):
            return at
        at = member(at, name, "module", space)
    return member(at, path[-1], sort, space) if isinstance(at, Symbol) else at


def member(of: Symbol, name: ast.Name, sort: Sort, seen_from: Space) -> Found:
    """A name inside a module or namespace; what is not exported is seen by what stands inside it alone."""
    assert of.inside is not None
    symbol = of.inside.names[sort].get(name.text)
    if symbol is None:
        return Missing(name, of)
    if not symbol.exported and not of.inside.encloses(seen_from):
        return Private(name, symbol)
    return symbol


def _open(space: Space, name: ast.Name, sort: Sort) -> Found:
    for s in space.chain():
        candidates = list(s.imports[sort].get(name.text, ()))
        own = s.names[sort].get(name.text)
        if own is not None and own not in candidates:
            candidates.append(own)
        if s.what == "file" and s.parent is not None:
            shared = s.parent.names[sort].get(name.text)
            if shared is not None and shared not in candidates:
                candidates.append(shared)
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            return Ambiguous(name, tuple(candidates))
    return Missing(name, None)


def visible_names(space: Space, sort: Sort) -> list[str]:
    """Every name of the sort that can be used unqualified, for suggestions."""
    names: dict[str, None] = {}
    for s in space.chain():
        names.update(dict.fromkeys(s.names[sort]))
        names.update(dict.fromkeys(s.imports[sort]))
    return list(names)


def qualified(path: tuple[str, ...], name: str) -> str:
    return "::".join((*path, name))


BUILTINS = Space((), None, "built-ins")
"""The outermost space; check/signatures fills it."""


def builtin_symbol(name: str, sort: Sort) -> Symbol:
    return Symbol(name, name, sort, "built-in", NO_SPAN, BUILTINS)
