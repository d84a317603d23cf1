"""What each diagnostic code means: a page with an explanation, a wrong program and a right one.

Comes in: a code. Goes out: its `Page`, read from `CODE.md` in this folder. A program of several files shows each below a
line `// file: NAME`; `// saved as: ENCODING` says that the text is not UTF-8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PAGE = re.compile(r"(.*?)\n\nWrong:\n\n```osprey\n(.*?)```\n\nRight:\n\n```osprey\n(.*?)```\n", re.DOTALL)
_FILE = re.compile(r"^// file: (\S+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """text: paragraphs; wrong, right: source text."""

    code: str
    text: str
    wrong: str
    right: str


def page(code: str) -> Page:
    """The page of a code of the table."""
    found = _PAGE.fullmatch((Path(__file__).parent / f"{code}.md").read_text(encoding="utf-8"))
    assert found is not None, f"{code}.md is a text, a wrong program and a right one"
    return Page(code, *found.groups())


def files_of(program: str) -> dict[str, str]:
    """The files of a program on a page, by name."""
    parts = _FILE.split(program)
    return {"example.osp": program} if len(parts) == 1 else dict(zip(parts[1::2], parts[2::2], strict=True))
