"""Source lines as a terminal shows them.

Comes in: one line of text. Goes out: a `Shown` line with tabs laid out and nothing in it that moves the cursor, and the
display column of every code point, so that carets stand under what they mean.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

TAB = 4


@dataclass(frozen=True, slots=True)
class Shown:
    """columns[k]: the display column (from 0) of code point k; the last entry is the width of the whole line."""

    text: str
    columns: tuple[int, ...]


def show_line(line: str) -> Shown:
    parts: list[str] = []
    columns = [0]
    at = 0
    for c in line:
        shown, width = (" " * (TAB - at % TAB), TAB - at % TAB) if c == "\t" else _cell(c)
        parts.append(shown)
        at += width
        columns.append(at)
    return Shown("".join(parts), tuple(columns))


def _cell(c: str) -> tuple[str, int]:
    """How a code point is shown and how many columns it takes."""
    if " " <= c <= "~":
        return c, 1
    category = unicodedata.category(c)
    if category == "Cc":
        return (chr(0x2400 + ord(c)) if c < " " else "\u2421" if c == "\x7f" else "\ufffd"), 1
    if category in ("Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        # Direction marks and the like could make a line read as something it is not; surrogates cannot be written.
        return "\ufffd", 1
    if category in ("Mn", "Me"):
        return c, 0
    return c, 2 if unicodedata.east_asian_width(c) in "WF" else 1
