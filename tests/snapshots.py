"""Texts that tests compare with files, rewritten by `pytest --update-snapshots` and read in review.

from tests import snapshots
snapshots.check(text, Path(__file__).parent / "cases" / "name.expected")
"""

from __future__ import annotations

from pathlib import Path

update = False
"""Set by tests/conftest.py from the command line."""


def check(text: str, path: Path) -> None:
    """Asserts that the file holds exactly this text; writes it instead when snapshots are being updated."""
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        return
    assert path.exists(), f"{path.name} does not exist; write it with --update-snapshots and read it:\n{text}"
    expected = path.read_bytes().decode("utf-8")
    assert text == expected, f"differs from {path.name} (--update-snapshots rewrites it)"
