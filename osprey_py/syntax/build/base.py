"""What all actions share: spans, names, reports.

An action is a method `on_NAME` for the alternative NAME of grammar.lark. It is given the children (tokens, values, None for
an optional part that is absent) and the offsets its text begins and ends at, and returns the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import Source, Span
from osprey_py.syntax import ast
from osprey_py.syntax.machine import Action
from osprey_py.syntax.tokens import Token

Children = list[Any]


class Actions:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    def action(self, name: str) -> Action:
        action: Action = getattr(self, f"on_{name}")
        return action

    def at(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)

    def name(self, token: Token) -> ast.Name:
        assert isinstance(token.value, str)
        return ast.Name(Span(self.source, token.start, token.end), token.value)

    def report(
        self, code: str, title: str, span: Span, text: str = "", help: str = "", labels: tuple[Label, ...] = ()
    ) -> None:
        self.diagnostics.append(Diagnostic(code, title, span, text, labels, help=help))

    def distinct(self, names: Iterable[ast.Name], what: str) -> None:
        """Reports every name that is there twice."""
        first: dict[str, ast.Name] = {}
        for name in names:
            if name.text in first:
                self.report(
                    "E0014",
                    f"the {what} `{name.text}` is given twice",
                    name.span,
                    "again here",
                    labels=(Label(first[name.text].span, "first here"),),
                )
            else:
                first[name.text] = name

    def on_broken(self, c: Children, start: int, end: int) -> Token:
        """What the parser gave up: already reported, left out of the tree."""
        token = c[0]
        assert isinstance(token, Token)
        return token


def nodes(children: Children) -> list[Any]:
    """The children that are values, not punctuation and not absent."""
    return [c for c in children if c is not None and not isinstance(c, Token)]
