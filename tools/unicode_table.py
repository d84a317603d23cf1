"""Make osprey_py/eval/unicode.bin: letters, numbers, white space and case mappings of Unicode 16.0.

    .venv/bin/python tools/unicode_table.py

The classes are those of the `tokenizers` package (0.23), whose regular expressions GPT-2's tokenizer is defined by;
they are Unicode 16.0's, and the counts of L and N are checked against that version's. Case mappings are this Python's
(14.0 or later; no cased letter came between 14.0 and 16.0 but those of ADDED), one code point at a time.
The file is zlib-compressed JSON: ranges as [begin, end, begin, end, …], half open; mappings as {code point: text}.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from tokenizers import Regex, pre_tokenizers

TARGET = Path(__file__).resolve().parent.parent / "osprey_py" / "eval" / "unicode.bin"
COUNTS = {"letter": 141028, "number": 1911, "space": 25}
# Cased letters that are new in 16.0: (capital, small).
ADDED = [(0x1C89, 0x1C8A), (0xA7CB, 0x0264), (0xA7CC, 0xA7CD), (0xA7DA, 0xA7DB), (0xA7DC, 0x019B)]
ADDED += [(0x10D50 + k, 0x10D70 + k) for k in range(22)]


def members(pattern: str) -> list[int]:
    split = pre_tokenizers.Split(Regex(pattern), behavior="removed")
    scalars = (c for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    return [c for c in scalars if not split.pre_tokenize_str(chr(c))]


def ranges(points: list[int]) -> list[int]:
    out: list[int] = []
    for c in points:
        if out and out[-1] == c:
            out[-1] = c + 1
        else:
            out += [c, c + 1]
    return out


def main() -> None:
    found = {name: members(p) for name, p in (("letter", r"\p{L}"), ("number", r"\p{N}"), ("space", r"\s"))}
    assert {name: len(points) for name, points in found.items()} == COUNTS, "another version of Unicode"
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    upper = {c: c.upper() for c in chars if c.upper() != c}
    lower = {c: c.lower() for c in chars if c.lower() != c}
    for capital, small in ADDED:
        upper[chr(small)], lower[chr(capital)] = chr(capital), chr(small)
    table = {"version": "16.0.0", **{name: ranges(points) for name, points in found.items()}}
    table["upper"] = {str(ord(c)): upper[c] for c in sorted(upper)}
    table["lower"] = {str(ord(c)): lower[c] for c in sorted(lower)}
    TARGET.write_bytes(zlib.compress(json.dumps(table, separators=(",", ":")).encode(), 9))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, {len(upper)} upper, {len(lower)} lower")


if __name__ == "__main__":
    main()
