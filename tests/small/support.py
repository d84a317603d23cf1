"""Running the programs of examples/small/ on both backends."""

from __future__ import annotations

import io
from pathlib import Path

from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.render import render
from tests.random.support import BACKENDS

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples" / "small"


def shown(name: str, backend: str, *args: str) -> list[str]:
    """The lines that an example prints. Files that it writes are in the current folder."""
    program, told = load_program(FOLDER / f"{name}.osp")
    assert program is not None and not told, "\n".join(map(render, told))
    out, err = io.StringIO(), io.StringIO()
    runtime = Runtime(BACKENDS[backend]())
    code = run_program(program, args=list(args), runtime=runtime, stdout=out, stderr=err, stdin=io.StringIO())
    assert (code, err.getvalue()) == (0, "")
    return out.getvalue().splitlines()
