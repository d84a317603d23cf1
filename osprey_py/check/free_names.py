"""Which outer names a piece of code mentions.

Comes in: expressions and statements. Goes out: the paths that are not bound by a name inside. `now` tells those mentioned
where evaluating the code mentions them at once from those inside lambdas. Used to order declarations by what they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from osprey_py.modules.declare import pattern_names
from osprey_py.syntax import ast

Path = tuple[ast.Name, ...]


_PLAIN = frozenset({"span", "op_span", "doc", "exported", "op", "kind"})
_known_fields: dict[str, tuple[str, ...]] = {}


def _child_fields(node: ast.Node) -> tuple[str, ...]:
    """The attributes that may hold nodes."""
    name = type(node).__name__
    known = _known_fields.get(name)
    if known is None:
        known = tuple(f.name for f in fields(node) if f.name not in _PLAIN)
        _known_fields[name] = known
    return known


def mentioned(node: ast.Node) -> list[Path]:
    """Every outer name in `node`, in order; also the names of method calls, which may be functions, and assigned cells."""
    found: list[Path] = []
    _walk(node, _Names(None), found)
    return found


class _Names:
    """Names bound around a place."""

    __slots__ = ("bound", "parent")

    def __init__(self, parent: _Names | None) -> None:
        self.parent = parent
        self.bound: set[str] = set()

    def __contains__(self, name: str) -> bool:
        at: _Names | None = self
        while at is not None:
            if name in at.bound:
                return True
            at = at.parent
        return False


def _walk(node: object, names: _Names, found: list[Path]) -> None:
    match node:
        case ast.Reference(path=path):
            if len(path) > 1 or path[0].text not in names:
                found.append(path)
        case ast.Binary():
            spine = [node]
            while isinstance(spine[-1].left, ast.Binary):
                spine.append(spine[-1].left)
            _walk(spine[-1].left, names, found)
            for b in reversed(spine):
                _walk(b.right, names, found)
        case ast.MethodCall(receiver=receiver, name=name, args=args):
            _walk(receiver, names, found)
            if name.text not in names:
                found.append((name,))
            for a in args:
                _walk(a.value, names, found)
        case ast.Lambda(params=params, body=body) | ast.FunctionDecl(params=params, body=body):
            inner = _Names(names)
            inner.bound.update(p.name.text for p in params if p.name is not None)
            _walk(body, inner, found)
        case ast.Block(statements=statements, result=result):
            inner = _Names(names)
            for k, s in enumerate(statements):
                if isinstance(s, ast.FunctionDecl):
                    inner.bound.update(_adjacent(statements, k))
                _walk(s, inner, found)
                _bind(s, inner)
            _walk(result, inner, found)
        case ast.Let(value=value) | ast.Mut(value=value):
            _walk(value, names, found)
        case ast.Assign(name=name, value=value):
            _walk(value, names, found)
            if name.text not in names:
                found.append((name,))
        case ast.Arm(pattern=pattern, guard=guard, body=body):
            inner = _Names(names)
            inner.bound.update(n.text for n in pattern_names(pattern))
            if guard is not None:
                _walk(guard, inner, found)
            _walk(body, inner, found)
        case ast.HandlerArm(params=params, body=body):
            inner = _Names(names)
            inner.bound.update(p.name.text for p in params if p.name is not None)
            _walk(body, inner, found)
        case ast.Name() | ast.TypeExpr() | ast.EffectRef() | ast.Pattern():
            pass
        case ast.Node():
            for f in _child_fields(node):
                _walk(getattr(node, f), names, found)
        case tuple():
            for item in node:
                _walk(item, names, found)


def _adjacent(statements: tuple[ast.Statement, ...], at: int) -> Iterator[str]:
    """The names of the functions declared from `at` on without anything between: they see each other."""
    for s in statements[at:]:
        if not isinstance(s, ast.FunctionDecl):
            return
        yield s.name.text


def inner_nodes(node: ast.Node, sugar: Mapping[ast.Node, ast.Node]) -> Iterator[ast.Node]:
    """Every node inside `node`, with sugar replaced by what it stands for."""
    stack: list[object] = [node]
    while stack:
        n = stack.pop()
        if isinstance(n, tuple):
            stack.extend(n)
        elif isinstance(n, ast.Node):
            n = sugar.get(n, n)
            yield n
            stack.extend(getattr(n, f) for f in _child_fields(n))


def _bind(s: ast.Statement, names: _Names) -> None:
    if isinstance(s, ast.Let):
        names.bound.update(n.text for n in pattern_names(s.pattern))
    elif isinstance(s, ast.Mut):
        names.bound.add(s.name.text)


def lambdas_apart(node: ast.Node) -> Iterator[Path]:
    """The outer names that evaluating `node` reads at once: those not inside lambdas."""
    if isinstance(node, ast.Lambda):
        return
    inside: set[int] = set()
    stack: list[object] = [node]
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Lambda):
            inside.update(id(p) for p in mentioned(n))
        elif isinstance(n, tuple):
            stack.extend(n)
        elif isinstance(n, ast.Node):
            stack.extend(getattr(n, f) for f in _child_fields(n))
    yield from (p for p in mentioned(node) if id(p) not in inside)
