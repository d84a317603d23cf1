"""Where the parser is stuck: what syntax/hints.py looks at.

Comes in: the tokens, the place, what was expected, the symbols read so far. Goes out: `Stuck`, with the questions that
hints ask, and the ways to answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import Source, Span
from osprey_py.syntax.expected import either, found, phrases
from osprey_py.syntax.tokens import END, KEYWORDS, Token

CLOSERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "STRING_BEGIN": "STRING_END"}
_CLOSING = frozenset(CLOSERS.values())
_KEYWORD_KINDS = frozenset(KEYWORDS.values())


@dataclass(frozen=True)
class Stuck:
    """tokens[at] cannot follow; kinds are the refined ones; expected: what could; stack: the values read so far."""

    source: Source
    tokens: Sequence[Token]
    kinds: Sequence[str]
    at: int
    expected: frozenset[str]
    stack: Sequence[Any]

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    @property
    def before(self) -> str:
        """The kind of the token before, empty at the start of the file."""
        return self.kinds[self.at - 1] if self.at else ""

    @cached_property
    def span(self) -> Span:
        """Of the token; the end of the file is shown behind its last token."""
        if self.token.kind == END and self.at:
            end = self.tokens[self.at - 1].end
            return Span(self.source, end, end)
        return self.span_of(self.token)

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    @cached_property
    def open_brackets(self) -> tuple[Token, ...]:
        """The brackets that are still open, innermost first."""
        out: list[Token] = []
        closed = 0
        for value in reversed(self.stack):
            if isinstance(value, Token):
                if value.kind in _CLOSING:
                    closed += 1
                elif value.kind in CLOSERS:
                    if closed:
                        closed -= 1
                    else:
                        out.append(value)
        return tuple(out)

    @property
    def open_bracket(self) -> Token | None:
        return self.open_brackets[0] if self.open_brackets else None

    @cached_property
    def open_kind(self) -> str:
        """The refined kind of the innermost open bracket, empty when there is none."""
        opened = self.open_bracket
        if opened is None:
            return ""
        return self.kinds[bisect_left(self.tokens, opened.start, 0, self.at, key=lambda t: t.start)]

    @cached_property
    def words(self) -> frozenset[str]:
        """The keywords whose construct is not complete."""
        return frozenset(v.kind for v in self.stack if isinstance(v, Token) and v.kind in _KEYWORD_KINDS)

    @cached_property
    def first_on_line(self) -> tuple[Token, Token]:
        """The first two tokens of the line."""
        k = self.at
        while k and not self.tokens[k].starts_line:
            k -= 1
        return self.tokens[k], self.tokens[min(k + 1, len(self.tokens) - 1)]

    @cached_property
    def wanted(self) -> str:
        items = phrases(self.expected)
        return f"expected {either(items)}, found {found(self.token, self.span)}" if 0 < len(items) < 5 else ""

    def says(
        self, title: str, text: str = "", help: str = "", code: str = "E0001", labels: tuple[Label, ...] = ()
    ) -> Diagnostic:
        return Diagnostic(code, title, self.span, text, labels, (), help)

    def advises(self, help: str) -> Diagnostic:
        """The plain message with a remedy."""
        return self.says(self.wanted or f"{found(self.token, self.span)} cannot stand here", help=help)
