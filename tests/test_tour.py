"""The programs of examples/tour/, each with what it prints in tests/tour/NAME.out, on the oracle and on the host."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.render import render
from tests import snapshots

FOLDER = Path(__file__).parent.parent / "examples" / "tour"
BACKENDS = {"oracle": OracleBackend, "host": lambda: HostBackend(threads=2)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.osp")), ids=lambda p: p.stem)
def test_prints(path: Path, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(path, path.name)
    program, told = load_program(Path(path.name))
    assert program is not None and not told, "\n".join(map(render, told))
    out, err = io.StringIO(), io.StringIO()
    runtime = Runtime(BACKENDS[backend]())
    code = run_program(program, runtime=runtime, stdout=out, stderr=err, stdin=io.StringIO())
    assert (code, err.getvalue()) == (0, "")
    snapshots.check(out.getvalue(), Path(__file__).parent / "tour" / f"{path.stem}.out")
