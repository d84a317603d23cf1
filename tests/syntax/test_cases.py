"""The golden trees: cases/NAME.osp parses without a complaint to what NAME.ast says. Each file names its rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.source.span import Source
from osprey_py.syntax.parser import parse
from osprey_py.syntax.show import show
from tests import snapshots

CASES = sorted((Path(__file__).parent / "cases").glob("*.osp"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_tree(path: Path) -> None:
    file, diagnostics = parse(Source(path.name, path.read_text(encoding="utf-8")))
    assert [d.title for d in diagnostics] == []
    snapshots.check(show(file) + "\n", path.with_suffix(".ast"))
