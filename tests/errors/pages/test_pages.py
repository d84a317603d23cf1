"""Every code has a page; its wrong program gets exactly that code, told as CODE.expected shows; its right one runs.

What is told at a launch or at run time is the same text on the oracle and on the host.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Refused, Step, StepOp
from osprey_py.check import bounds, load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import Kernel
from osprey_py.source.codes import CODES
from osprey_py.source.diagnostic import OspreyError
from osprey_py.source.explain import files_of, page
from osprey_py.source.render import render
from osprey_py.training.program import load_training_program
from tests import snapshots

FOLDER = Path(bounds.__file__).parent.parent / "source" / "explain"
SAVED = re.compile(r"// saved as: (\S+)\n")
TOLD = re.compile(r"^(?:error|warning)\[([EW]\d{4})\]", re.MULTILINE)


class _NoRecursion(OracleBackend):
    """A device such as graphics processors are."""

    name = "flat"

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step | None = None) -> Any:
        if kernel is not None and kernel.functions:
            raise Refused("recursion that is no loop")
        return super().compile(op, kernel, kinds, example)


BACKENDS = {"oracle": OracleBackend, "host": lambda: HostBackend(threads=2), "flat": _NoRecursion}
AT_RUN_TIME = "E035", "E05"
CASES = [
    (code, backend)
    for code in CODES
    for backend in ("oracle", "host")
    if backend == "oracle" or code.startswith(AT_RUN_TIME)
]


def said(program: str, backend: str = "oracle") -> tuple[set[str], int | None, str]:
    """The codes told when a program of a page is checked (as a training program, if it looks like one) and run in the
    working directory, its exit code (None when it is not run) and everything that can be seen of it."""
    files = files_of(program)
    for name, text in files.items():
        saved = SAVED.match(text)
        Path(name).write_bytes(text.encode(saved[1] if saved else "utf-8"))
    path = Path("example.osp") if "example.osp" in files else Path(os.curdir)
    if "// on a device without recursion" in program:
        backend = "flat"
    if "export fn options()" in program:
        try:
            load_training_program(path)
        except OspreyError as refused:
            return {d.code for d in refused.diagnostics}, None, "".join(f"{render(d)}\n" for d in refused.diagnostics)
    checked, diagnostics = load_program(path)
    shown = "".join(f"{render(d)}\n" for d in diagnostics)
    codes = {d.code for d in diagnostics}
    if checked is None:
        return codes, None, shown
    out, err = io.StringIO(), io.StringIO()
    runtime = Runtime(BACKENDS[backend]())
    try:
        left = run_program(checked, runtime=runtime, stdout=out, stderr=err, stdin=io.StringIO())
    except OspreyError as refused:  # at a launch; the command line renders it
        left = 1
        err.write("".join(f"{render(d)}\n" for d in refused.diagnostics))
    return codes | set(TOLD.findall(err.getvalue())), left, shown + out.getvalue() + err.getvalue()


def test_a_page_for_each_code_and_no_other() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(CODES)


@pytest.mark.parametrize(("code", "backend"), CASES)
def test_wrong(code: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if code == "E0302":  # what is behind the proof: seen only where inference is made blind
        monkeypatch.setattr(bounds, "_kernel", lambda *_: None)
    codes, left, shown = said(page(code).wrong, backend)
    assert codes == {code}, shown
    assert left == (1 if code.startswith(AT_RUN_TIME) else None if code.startswith("E") else 0), shown
    snapshots.check(shown, Path(__file__).parent / f"{code}.expected")


@pytest.mark.parametrize("code", CODES)
def test_right(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    codes, left, shown = said(page(code).right)
    assert (codes, left) == (set(), 0), shown
