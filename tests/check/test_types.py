"""Programs that are accepted, with the types inferred for what they declare. Each file names its rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.check import check_source
from osprey_py.source.render import render
from tests import snapshots

CASES = sorted((Path(__file__).parent / "types").glob("*.osp"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_inferred(path: Path) -> None:
    program, told = check_source(path.read_text(encoding="utf-8"), path.name)
    assert program is not None, "\n".join(map(render, told))
    lines = [f"{name}: {f.type}" for name, f in program.functions.items()]
    lines += [f"{name}: {v.type}" for name, v in program.globals.items()]
    lines += [render(d) for d in told]
    snapshots.check("\n".join(lines) + "\n", path.with_suffix(".types"))
