"""The table of diagnostic codes."""

from __future__ import annotations

import re
from pathlib import Path

import osprey_py
from osprey_py.source.codes import CODES

CODE = re.compile(r"""["']([EW]0\d{3})["']""")


def test_every_code_is_in_the_table_and_used() -> None:
    table = Path(osprey_py.__file__).parent / "source" / "codes.py"
    used = {
        code
        for path in Path(osprey_py.__file__).parent.rglob("*.py")
        if path != table
        for code in CODE.findall(path.read_text(encoding="utf-8"))
    }
    assert used == set(CODES)


def test_each_says_what_it_is_about_once() -> None:
    assert list(CODES) == sorted(CODES, key=lambda code: code[1:])
    assert len(set(CODES.values())) == len(CODES)
