"""Which files there are and which namespace each one belongs to, without parsing them.

Comes in: folders. Goes out: paths by namespace. Spec: types-and-effects L7.1, L7.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

_COMMENT_OR_BLANK = re.compile(r"(?:\s+|//[^\n]*(?:\n|$))+")
_EXPORT = re.compile(r"^export (?:fn|let|type|effect|module) (\w+)", re.MULTILINE)
_NAMESPACE = re.compile(r"namespace\s+([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)")


@lru_cache(maxsize=1)
def stdlib_path() -> Path:
    """The folder of the standard library: inside the installed package, else beside it in a source checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "stdlib"
    return inside if inside.is_dir() else package.parent / "stdlib"


def namespace_of(text: str) -> tuple[str, ...]:
    """The namespace a file's text declares, () for none: its first line that is no comment."""
    lead = _COMMENT_OR_BLANK.match(text)
    found = _NAMESPACE.match(text, lead.end() if lead else 0)
    return tuple(part.strip() for part in found.group(1).split("::")) if found else ()


def read_text(path: Path) -> str:
    """The text of a source file. Errors: OSError; UnicodeDecodeError for what is not UTF-8."""
    return path.read_bytes().decode("utf-8").removeprefix("﻿")


@lru_cache(maxsize=1)
def library_names() -> dict[str, str]:
    """What the namespaces of the standard library export, each name with its namespace: for suggestions."""
    names: dict[str, str] = {}
    for namespace, paths in files_by_namespace([stdlib_path()]).items():
        for path in paths if namespace else ():
            for name in _EXPORT.findall(read_text(path)):
                names.setdefault(name, "::".join(namespace))
    return names


def files_by_namespace(folders: Iterable[Path]) -> dict[tuple[str, ...], list[Path]]:
    """The `.osp` files of some folders, by namespace, in order of folder and name. Files that cannot be read belong to
    none: nothing can import them."""
    table: dict[tuple[str, ...], list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.osp")):
            try:
                namespace = namespace_of(read_text(path))
            except (OSError, UnicodeDecodeError):
                continue
            table.setdefault(namespace, []).append(path)
    return table
