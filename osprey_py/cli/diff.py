"""`osprey diff A B`: where two traces first differ (JSON lines as `--trace` writes them)."""

from __future__ import annotations

import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

from osprey_py.cli.options import Parser


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey diff", description="Compare two traces; exit code 0 when every byte is the same, 1 when not."
    )
    parser.add_argument("a", type=Path, metavar="A")
    parser.add_argument("b", type=Path, metavar="B")
    options = parser.parse_args(argv)
    texts = []
    for path in (options.a, options.b):
        try:
            texts.append(path.read_bytes())
        except OSError as error:
            print(f"osprey diff: cannot read {path}: {error.strerror}", file=sys.stderr)
            return 1
    if texts[0] == texts[1]:
        count = texts[0].count(b"\n")
        print(f"identical: {count} {'line' if count == 1 else 'lines'}, {len(texts[0])} bytes")
        return 0
    print(first_difference(*texts))
    return 1


def first_difference(a: bytes, b: bytes) -> str:
    """One or two lines of text that name the first place where two different traces differ."""
    for number, (left, right) in enumerate(zip_longest(a.splitlines(), b.splitlines()), start=1):
        if left == right:
            continue
        if left is None or right is None:
            return f"line {number}: only {'A' if right is None else 'B'} has it; the other trace ends"
        try:
            where = _difference(json.loads(left), json.loads(right))
        except ValueError:
            where = None
        return f"line {number}: {where or f'A: {_short(left)}  B: {_short(right)}'}"
    return "the lines are the same; the traces differ in line ends"


def _difference(a: Any, b: Any, path: str = "") -> str | None:
    if isinstance(a, dict) and isinstance(b, dict):
        step = f"step {a['step']}, " if "step" in a and not path else ""
        if list(a) != list(b):
            return f"{step}A has {', '.join(a)}; B has {', '.join(b)}"
        for key in a:
            found = _difference(a[key], b[key], f"{path}.{key}" if path else key)
            if found:
                return step + found
        return None
    if isinstance(a, list) and isinstance(b, list):
        for row, (x, y) in enumerate(zip(a, b, strict=False)):
            found = _difference(x, y, f"{path}[{row}]")
            if found:
                return found
        return f"{path}: A has {len(a)} values, B has {len(b)}" if len(a) != len(b) else None
    return None if a == b else f"{path}: A {a}  B {b}"


def _short(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= 60 else text[:57] + "…"
