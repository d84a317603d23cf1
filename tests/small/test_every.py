"""Every program of examples/small/ is run by a test of this folder."""

from __future__ import annotations

from pathlib import Path

from tests.small.support import FOLDER


def test_every_example_is_run() -> None:
    texts = "".join(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py"))
    missing = [p.stem for p in FOLDER.glob("*.osp") if f'shown("{p.stem}"' not in texts]
    assert not missing
