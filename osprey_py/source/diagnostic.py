"""The one record that every complaint is, at compile time and at run time.

Stages build `Diagnostic`s and hand them up; only `render` (source/render.py) turns them into text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osprey_py.source.span import Span


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary span with what is to be said about it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """code: `E0xxx` (or `W0xxx` for a warning); title: one line; span and text: the primary place and what to say there."""

    code: str
    title: str
    span: Span
    text: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""

    @property
    def is_error(self) -> bool:
        return self.code.startswith("E")


class OspreyError(Exception):
    """A user's mistake: carries diagnostics; the command line renders them and exits with code 1."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics[0].title if diagnostics else "")
        self.diagnostics = tuple(diagnostics)
