"""Filling spaces: the symbols that a file declares.

Comes in: a parsed file and the space of its namespace. Goes out: symbols in that space, and complaints about names that are
declared twice or taken by a built-in. Spec: types-and-effects L7.4, L7.8.
"""

from __future__ import annotations

from collections.abc import Iterator

from osprey_py.check.builtins import TEST_NAMES
from osprey_py.modules.spaces import BUILTINS, Sort, Space, Symbol, qualified
from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import Span
from osprey_py.syntax import ast


def pattern_names(pattern: ast.Pattern) -> Iterator[ast.Name]:
    """The names a `let` pattern may bind, left to right."""
    match pattern:
        case ast.NamePattern(name=name):
            yield name
        case ast.ConstructorPattern(positional=positional, named=named):
            for p in positional or ():
                yield from pattern_names(p)
            for _, p in named or ():
                yield from pattern_names(p)
        case ast.RecordPattern(fields=fields):
            for _, p in fields:
                yield from pattern_names(p)
        case ast.TuplePattern(items=items):
            for p in items:
                yield from pattern_names(p)
        case ast.ListPattern(items=items, rest=rest):
            for p in items:
                yield from pattern_names(p)
            if rest is not None:
                yield from pattern_names(rest)


def declare(
    statements: tuple[ast.Statement, ...], space: Space, seen_from: Space, type_names: set[str], prelude: Space
) -> list[Diagnostic]:
    """Puts what the statements declare into `space`, modules included. seen_from: where names in the declarations are
    looked up, the file with its imports or a module. type_names: names of types that `type A = B` may mean as an alias;
    any other B there is a one-variant union. prelude: holds names that are taken like built-ins."""
    told: list[Diagnostic] = []

    def add(sort: Sort, name: ast.Name, what: str, node: ast.Node, exported: bool, **more: object) -> Symbol:
        symbol = Symbol(name.text, qualified(space.path, name.text), sort, what, name.span, seen_from, exported, node)
        for attribute, value in more.items():
            setattr(symbol, attribute, value)
        known = space.names[sort].get(name.text)
        if known is not None:
            told.append(_twice(name, known.span))
        elif _is_taken(name.text, sort, prelude):
            told.append(_taken(name, sort))
        else:
            space.names[sort][name.text] = symbol
        return symbol

    for s in statements:
        match s:
            case ast.FunctionDecl(name=name, exported=exported):
                add("value", name, "function", s, exported)
            case ast.Let(pattern=pattern, exported=exported):
                for name in pattern_names(pattern):
                    add("value", name, "let", s, exported)
            case ast.Mut(name=name):
                add("value", name, "mut", s, False)
            case ast.RecordDecl(name=name, exported=exported):
                add("type", name, "record", s, exported)
            case ast.UnionDecl(name=name, exported=exported, variants=variants):
                owner = add("type", name, "union", s, exported)
                for v in variants:
                    add("value", v.name, "variant", v, exported, owner=owner)
            case ast.AliasDecl(name=name, exported=exported):
                single = lone_variant(s, type_names)
                if single is None:
                    add("type", name, "alias", s, exported)
                else:
                    owner = add("type", name, "union", s, exported)
                    add("value", single, "variant", s, exported, owner=owner)
            case ast.EffectDecl(name=name, exported=exported):
                add("effect", name, "effect", s, exported)
            case ast.ModuleDecl(name=name, exported=exported, body=body):
                inside = Space((*space.path, name.text), seen_from, "module")
                add("module", name, "module", s, exported, inside=inside)
                told.extend(declare(body, inside, inside, type_names, prelude))
    return told


def lone_variant(decl: ast.AliasDecl, type_names: set[str]) -> ast.Name | None:
    """B of `type A = B` where B names no type, so that A is a union of the one variant B."""
    target = decl.target
    if not isinstance(target, ast.TypeName) or target.args or len(target.path) != 1:
        return None
    name = target.path[0]
    params = {p.name.text for p in decl.type_params}
    return None if name.text in type_names or name.text in params else name


def declared_types(statements: tuple[ast.Statement, ...]) -> Iterator[str]:
    """The names of all types the statements declare or import, modules included."""
    for s in statements:
        if isinstance(s, (ast.RecordDecl, ast.UnionDecl, ast.AliasDecl)):
            yield s.name.text
        elif isinstance(s, ast.ModuleDecl):
            yield from declared_types(s.body)
        elif isinstance(s, ast.Import):
            for item in s.items or ():
                yield (item.alias or item.name).text
            yield (s.alias or s.path[-1]).text


def _is_taken(name: str, sort: Sort, prelude: Space) -> bool:
    if name in prelude.imports[sort]:
        return True
    return name in BUILTINS.names[sort] and name not in TEST_NAMES


def _twice(name: ast.Name, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0104",
        f"`{name.text}` is declared twice",
        name.span,
        "declared again here",
        (Label(first, "first declared here"),),
        help="rename one of them",
    )


def _taken(name: ast.Name, sort: Sort) -> Diagnostic:
    kind = {"value": "function", "type": "type", "effect": "effect", "module": "module"}[sort]
    return Diagnostic(
        "E0105",
        f"`{name.text}` is a built-in {kind} and cannot be declared again",
        name.span,
        "this name is taken",
        help="choose another name; parameters and local names may shadow a built-in",
    )
