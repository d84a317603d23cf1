"""The AST as text, for tests and for looking at.

Comes in: a node. Goes out: an S-expression: the class, then its fields in order. `-` is an absent part, a list stands in
brackets; names, literals and what only wraps them stand bare; an operator stands for its class; the end of a node is left
out where it only says what is usual (no docs, not exported). Recursive: meant for small programs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from osprey_py.source.span import Source, Span
from osprey_py.syntax import ast

WIDTH = 100


def show(value: Any, indent: int = 0) -> str:
    """Without a line break at the end; longer forms have one part a line."""
    opening, parts, closing = _parts(value)
    if not parts:
        return opening + closing
    texts = [show(p, indent + 2) for p in parts]
    separator = " " if closing == ")" else ""
    line = opening + separator + " ".join(texts) + closing
    if len(line) + indent <= WIDTH and "\n" not in line:
        return line
    pad = "\n" + " " * (indent + 2)
    # The short parts stay beside the head.
    head = opening
    while len(texts) > 1 and "\n" not in texts[0] and len(texts[0]) < 24 and len(head) + indent < WIDTH - 40:
        head += (" " if head[-1] not in "[" else "") + texts.pop(0)
    return head + pad + pad.join(texts) + closing


def _parts(value: Any) -> tuple[str, list[Any], str]:
    """(what opens the form, its parts, what closes it); no parts and no closing for what is one word."""
    match value:
        case None:
            return "-", [], ""
        case tuple() if value and all(isinstance(v, ast.Name) for v in value):
            return "::".join(v.text for v in value), [], ""
        case (ast.Name(text=name), ast.Node() as content):
            opening, parts, closing = _parts(content)
            return f"{name}: {opening}", parts, closing
        case tuple():
            return "[", list(value), "]"
        case ast.Name(text=text):
            return text, [], ""
        case ast.Reference(path=inner) | ast.TypeName(path=inner, args=()) | ast.EffectRef(path=inner, args=()):
            return _parts(inner)
        case ast.NamePattern(name=inner) | ast.TypeParameter(name=inner) | ast.ExprStatement(value=inner):
            return _parts(inner)
        case ast.Argument(name=None, value=inner):
            return _parts(inner)
        case ast.Argument(name=name, value=inner):
            return _parts((name, inner))
        case ast.Parameter(name=name, type=None):
            return ("_" if name is None else name.text), [], ""
        case ast.Parameter(name=name, type=inner):
            return _parts((name or ast.Name(value.span, "_"), inner))
        case ast.WildPattern():
            return "_", [], ""
        case ast.UnitLiteral():
            return "()", [], ""
        case (
            ast.IntLiteral(value=v) | ast.FloatLiteral(value=v) | ast.BoolLiteral(value=v) | ast.LiteralPattern(value=v)
        ):
            return ("()" if v is None else repr(v)), [], ""
        case ast.StringLiteral(parts=()):
            return "''", [], ""
        case ast.StringLiteral(parts=(str() as text,)):
            return repr(text), [], ""
        case ast.Unary(op=op, operand=operand):
            return f"({op}", [operand], ")"
        case ast.Binary(op=op, left=left, right=right):
            return f"({op}", [left, right], ")"
        case ast.Node() | ast.File():
            fields = [f for f in dataclasses.fields(value) if not isinstance(getattr(value, f.name), Span | Source)]
            while fields and fields[-1].default is not dataclasses.MISSING and _usual(value, fields[-1]):
                fields.pop()
            return f"({type(value).__name__}", [getattr(value, f.name) for f in fields], ")"
        case _:
            return repr(value), [], ""


def _usual(node: Any, field: Any) -> bool:
    return bool(getattr(node, field.name) == field.default)
