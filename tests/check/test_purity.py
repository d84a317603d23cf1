"""The kernel rule on many small programs: L5.4, L5.5, L5.6, L5.7, L5.8. The first line of each says what must happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.check import check_source

FILES = sorted((Path(__file__).parent / "purity").glob("*.osp"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_purity(path: Path) -> None:
    text = path.read_text()
    verdict, _, rest = text.splitlines()[0].removeprefix("// ").partition(": ")
    program, told = check_source(text, path.name)
    errors = [d for d in told if d.is_error]
    if verdict == "pure":
        assert errors == []
        assert program is not None
        assert program.kernels == int(rest.split()[0])
        return
    assert verdict == "refused"
    assert program is None
    assert {d.code for d in errors} == {"E0301"}
    assert all(rest in d.title for d in errors), [d.title for d in errors]


def test_there_are_enough() -> None:
    """At least sixty, half of them refused."""
    refused = sum(".refused" in p.name for p in FILES)
    assert len(FILES) >= 60
    assert refused >= 30
    assert len(FILES) - refused >= 30
