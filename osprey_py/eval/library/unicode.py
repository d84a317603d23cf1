"""Code points and their classes by one pinned version of Unicode, 16.0 (spec/library B2).

Comes in: eval/unicode.bin, made by tools/unicode_table.py. Goes out: the classes and case mappings that text
functions use, whatever version the running Python knows.
"""

from __future__ import annotations

import json
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, List, Success, make_list

LETTER, NUMBER, SPACE = 1, 2, 4
_FILE = Path(__file__).resolve().parent.parent / "unicode.bin"

WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""The 25 code points of White_Space; a test compares them with the table."""


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(zlib.decompress(_FILE.read_bytes()))
    return table


@lru_cache(maxsize=1)
def classes() -> bytearray:
    """For every code point, LETTER, NUMBER or SPACE, or 0."""
    found = bytearray(0x110000)
    for name, mark in (("letter", LETTER), ("number", NUMBER), ("space", SPACE)):
        ends = _table()[name]
        for begin, end in zip(ends[::2], ends[1::2], strict=True):
            found[begin:end] = bytes([mark]) * (end - begin)
    return found


@lru_cache(maxsize=2)
def mapping(kind: str) -> dict[int, str]:
    """`upper` or `lower`: for str.translate."""
    return {int(c): text for c, text in _table()[kind].items()}


def _class(c: int) -> int:
    return classes()[c] if 0 <= c < 0x110000 else 0


@builtin("isLetter")
def is_letter(c: int) -> bool:
    """General category L."""
    return _class(c) == LETTER


@builtin("isNumber")
def is_number(c: int) -> bool:
    """General category N."""
    return _class(c) == NUMBER


@builtin("isWhiteSpace")
def is_white_space(c: int) -> bool:
    """The property White_Space."""
    return _class(c) == SPACE


@builtin("codePoints")
def code_points(text: str) -> List:
    return make_list(list(map(ord, text)))


@builtin("fromCodePoint")
def from_code_point(c: int) -> Any:
    if 0 <= c < 0xD800 or 0xE000 <= c < 0x110000:
        return Success(chr(c))
    return Error(f"fromCodePoint: {c} is not a Unicode scalar value")


@builtin("codePointWidth")
def code_point_width(c: int) -> int:
    """How many bytes c takes in UTF-8; 0 for what is not a scalar value."""
    if not (0 <= c < 0xD800 or 0xE000 <= c < 0x110000):
        return 0
    return 1 if c < 0x80 else 2 if c < 0x800 else 3 if c < 0x10000 else 4
