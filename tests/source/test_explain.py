"""Every code has a page; its wrong program gets exactly that code, its right one runs."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import bounds, load_program
from osprey_py.cli.main import main
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.codes import CODES
from osprey_py.source.diagnostic import OspreyError
from osprey_py.source.explain import files_of, page
from osprey_py.source.render import render

FOLDER = Path(bounds.__file__).parent.parent / "source" / "explain"
SAVED = re.compile(r"// saved as: (\S+)\n")
TOLD = re.compile(r"^(?:error|warning)\[([EW]\d{4})\]", re.MULTILINE)


def said(program: str) -> tuple[set[str], int | None, str]:
    """The codes told when a program of a page is checked and run in the working directory, its exit code, its output."""
    files = files_of(program)
    for name, text in files.items():
        saved = SAVED.match(text)
        Path(name).write_bytes(text.encode(saved[1] if saved else "utf-8"))
    path = Path("example.osp") if "example.osp" in files else Path(os.curdir)
    checked, diagnostics = load_program(path)
    shown = "\n".join(map(render, diagnostics))
    codes = {d.code for d in diagnostics}
    if checked is None:
        return codes, None, shown
    out, err = io.StringIO(), io.StringIO()
    try:
        code = run_program(checked, runtime=Runtime(OracleBackend()), stdout=out, stderr=err, stdin=io.StringIO())
    except OspreyError as error:
        return codes | {d.code for d in error.diagnostics}, 1, shown + "\n".join(map(render, error.diagnostics))
    return codes | set(TOLD.findall(err.getvalue())), code, shown + out.getvalue() + err.getvalue()


def test_a_page_for_each_code_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_wrong(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if code == "E0302":  # what is behind the proof: seen only where inference is made blind
        monkeypatch.setattr(bounds, "_kernel", lambda *_: None)
    codes, left, shown = said(page(code).wrong)
    assert codes == {code}, shown
    assert left == {"E": None, "W": 0}[code[0]] or (left == 1 and code > "E0350"), shown


@pytest.mark.parametrize("code", CODES)
def test_right(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    codes, left, shown = said(page(code).right)
    assert (codes, left) == (set(), 0), shown


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
        ("apple", "`osprey explain` lists them"),
    ],
)
def test_unknown_code(wrong: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", wrong]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and f"no code `{wrong}`; {hint}" in captured.err
