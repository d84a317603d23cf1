"""Programs that must be refused, with all that is said about them. Each file names its rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.source.codes import CODES
from osprey_py.source.render import render
from osprey_py.source.span import Source
from osprey_py.syntax.parser import parse
from tests import snapshots

CASES = sorted(Path(__file__).parent.glob("*.osp"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_rendered(path: Path) -> None:
    _, diagnostics = parse(Source(path.name, path.read_text(encoding="utf-8")))
    assert diagnostics
    assert {d.code for d in diagnostics} <= set(CODES)
    snapshots.check("\n\n".join(map(render, diagnostics)) + "\n", path.with_suffix(".expected"))
