"""V4.2: source nested 2,000 deep runs, in time that grows with its length."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime

DEEP = 2000
SOURCES = {
    "parentheses": ("print(" + "(" * DEEP + "1" + ")" * DEEP + ")\n", "1\n"),
    "lists": ("print(" + "[" * DEEP + "1" + "]" * DEEP + ")\n", "[" * DEEP + "1" + "]" * DEEP + "\n"),
    "a chain": ("print(" + " + ".join(["1"] * DEEP) + ")\n", f"{DEEP}\n"),
    "calls": ("fn f(x) = x\nprint(" + "f(" * DEEP + "1" + ")" * DEEP + ")\n", "1\n"),
    "branches": ("print(" + "if true { " * DEEP + "1" + " } else { 2 }" * DEEP + ")\n", "1\n"),
    "matches": ("print(" + "match 1 { 1 => " * DEEP + "1" + " _ => 0 }" * DEEP + ")\n", "1\n"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_deep_source(name: str, tmp_path: Path) -> None:
    text, expected = SOURCES[name]
    path = tmp_path / "deep.osp"
    path.write_text(text)
    program, diagnostics = load_program(path)
    assert program is not None, diagnostics
    out = io.StringIO()
    assert run_program(program, runtime=Runtime(OracleBackend()), stdout=out) == 0
    assert out.getvalue() == expected
