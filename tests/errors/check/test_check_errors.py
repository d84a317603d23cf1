"""Programs that the checker must refuse (or warn about), with all that is said about them. Each file names its rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.check import check_source
from osprey_py.source.codes import CODES
from osprey_py.source.render import render
from tests import snapshots

CASES = sorted(Path(__file__).parent.glob("*.osp"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_rendered(path: Path) -> None:
    program, diagnostics = check_source(path.read_text(encoding="utf-8"), path.name)
    assert diagnostics
    assert (program is None) == any(d.is_error for d in diagnostics)
    assert {d.code for d in diagnostics} <= set(CODES)
    snapshots.check("\n\n".join(map(render, diagnostics)) + "\n", path.with_suffix(".expected"))
