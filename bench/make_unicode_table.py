#!/usr/bin/env python3
"""Print the table of letters and numbers that reference.py carries, as the tokenizers package classifies them.

Its regular expressions are Oniguruma's, whose Unicode is 16.0.0. The table lists, for letters and then for numbers, how
many code points to skip and how many to take, in turn; each count is a character of that number.
"""

from __future__ import annotations

import base64
import zlib

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

LINE = 113


def members(pattern: str) -> set[int]:
    """The code points that match a pattern for one character."""
    split = Split(Regex(pattern), "removed")
    found: set[int] = set()
    for begin in (*range(0, 0xD800, 1024), *range(0xE000, 0x110000, 1024)):
        text = "".join(map(chr, range(begin, begin + 1024)))
        kept = {c for piece, _ in split.pre_tokenize_str(text) for c in piece}
        found |= {ord(c) for c in text if c not in kept}
    return found


def gaps(points: set[int]) -> str:
    edges = [c for c in range(0x110000) if (c in points) != (c - 1 in points)]
    return "".join(chr(b - a) for a, b in zip([0, *edges], edges, strict=False))


def main() -> None:
    text = "\0".join(gaps(members(rf"\p{{{name}}}")) for name in "LN")
    packed = base64.b85encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")
    for at in range(0, len(packed), LINE):
        print(f'    "{packed[at : at + LINE]}"')


if __name__ == "__main__":
    main()
