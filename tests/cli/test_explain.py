"""`osprey explain`: a page, the list, a code that is not there."""

from __future__ import annotations

import pytest

from osprey_py.cli.main import main
from osprey_py.source.codes import CODES


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "e0308"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"E0308: {CODES['E0308']}\n\n") and "\nWrong:\n\n    fn total(xs) {\n        mut" in shown
    assert main(["explain"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{code}  {title}" for code, title in CODES.items()]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("E0108", "did you mean E0107?"),
        ("w402", "did you mean W0401?"),
        ("101", "did you mean E0101?"),
        ("E9999", "`osprey explain` lists them"),
        ("apple", "`osprey explain` lists them"),
    ],
)
def test_unknown_code(wrong: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", wrong]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and f"no code `{wrong}`; {hint}" in captured.err
