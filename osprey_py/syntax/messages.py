"""What to say about a token that cannot follow.

Comes in: the parser's state and the token. Goes out: a diagnostic that names what was found, what was expected in words,
and the remedy where syntax/hints.py knows one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import Source, Span
from osprey_py.syntax.expected import either, found, phrases
from osprey_py.syntax.hints import hint
from osprey_py.syntax.machine import accepts
from osprey_py.syntax.stuck import CLOSERS, Stuck
from osprey_py.syntax.tables import Tables
from osprey_py.syntax.tokens import KIND_NAMES, Token

_MOST = 4
"""More alternatives than this are not listed."""


class Explainer:
    """Collects one diagnostic a line, and none where the lexer has complained (`lexical`): on that line, or right before
    the token, where something was passed over that may have been what is missed."""

    def __init__(
        self,
        tables: Tables,
        source: Source,
        tokens: Sequence[Token],
        kinds: Sequence[str],
        lexical: Sequence[Diagnostic],
    ) -> None:
        self.tables = tables
        self.source = source
        self.tokens = tokens
        self.kinds = kinds
        self.lexical = [d.span.start for d in lexical]
        self.quiet = {source.position(start)[0] for start in self.lexical}
        self.diagnostics: list[Diagnostic] = []

    def __call__(self, states: Sequence[int], stack: Sequence[Any], at: int) -> None:
        kinds = [k for k in self.tables.steps[states[-1]] if k in KIND_NAMES and accepts(self.tables, states, k)]
        stuck = Stuck(self.source, self.tokens, self.kinds, at, frozenset(kinds), stack)
        line = self.source.position(stuck.span.start)[0]
        before = self.tokens[at - 1].end if at else 0
        passed_over = any(before <= start <= self.tokens[at].start for start in self.lexical)
        if line not in self.quiet and not passed_over:
            self.quiet.add(line)
            self.diagnostics.append(hint(stuck) or self.plain(stuck))

    def plain(self, stuck: Stuck) -> Diagnostic:
        """Expected this, found that; with the open bracket that the expected closer would close."""
        wanted = phrases(stuck.expected)
        what = found(stuck.token, stuck.span)
        if not wanted or len(wanted) > _MOST:
            title = f"{what} cannot stand here"
        else:
            title = f"expected {either(wanted)}, found {what}"
        opened = stuck.open_bracket
        labels: tuple[Label, ...] = ()
        if opened is not None and CLOSERS[opened.kind] in stuck.expected:
            labels = (Label(Span(self.source, opened.start, opened.end), "opened here"),)
        return Diagnostic("E0001", title, stuck.span, "", labels)
