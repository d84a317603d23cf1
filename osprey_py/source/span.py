"""Where things stand in source text.

Comes in: file paths and text. Goes out: `Source` and `Span`, which every later stage carries along unchanged.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Source:
    """One source text. `path` is what diagnostics show; equality is identity."""

    path: str
    text: str

    @cached_property
    def line_starts(self) -> list[int]:
        """Offsets, in code points, at which each line begins."""
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column) of a code-point offset, both from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its line break."""
        begin = self.line_starts[number - 1]
        end = self.line_starts[number] - 1 if number < len(self.line_starts) else len(self.text)
        return self.text[begin:end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open range [start, end) of code points in `source`."""

    source: Source = field(repr=False)
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> str:
        """`path:line:column` of the first code point."""
        line, column = self.source.position(self.start)
        return f"{self.source.path}:{line}:{column}"


BUILTIN_SOURCE = Source("<builtin>", "")
NO_SPAN = Span(BUILTIN_SOURCE, 0, 0)
"""The span of things that no user wrote."""
