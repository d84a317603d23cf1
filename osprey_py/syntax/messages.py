"""What to say about a token that cannot follow.

Comes in: the parser's state and the token. Goes out: a diagnostic that names what was found, what was expected in words,
and the remedy where there is a usual one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osprey_py.source.diagnostic import Diagnostic
from osprey_py.source.span import Source, Span
from osprey_py.syntax.machine import accepts
from osprey_py.syntax.tables import Tables
from osprey_py.syntax.tokens import KIND_NAMES, Token


class Explainer:
    """Collects one diagnostic a line; lines in `quiet` have already been complained about."""

    def __init__(
        self, tables: Tables, source: Source, tokens: Sequence[Token], kinds: Sequence[str], quiet: set[int]
    ) -> None:
        self.tables = tables
        self.source = source
        self.tokens = tokens
        self.kinds = kinds
        self.quiet = set(quiet)
        self.diagnostics: list[Diagnostic] = []

    def __call__(self, states: Sequence[int], stack: Sequence[Any], at: int) -> None:
        token = self.tokens[at]
        line = self.source.position(token.start)[0]
        if line in self.quiet:
            return
        self.quiet.add(line)
        expected = [k for k in self.tables.steps[states[-1]] if k in KIND_NAMES and accepts(self.tables, states, k)]
        self.diagnostics.append(
            Diagnostic(
                "E0001",
                f"unexpected {KIND_NAMES.get(self.kinds[at], 'text')}",
                Span(self.source, token.start, token.end),
                "expected " + ", ".join(sorted(KIND_NAMES[k] for k in expected)),
            )
        )
