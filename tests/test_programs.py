"""Programs in the language with what they print: tests/programs/NAME.osp and NAME.out, on the oracle and on the host.

NAME.out holds standard output; then, where there is any, `--- stderr` and standard error; then, when it is not 0,
`--- exit N`. A first line `// args: a b` gives the program arguments, `// stdin: text` its input.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.render import render
from tests import snapshots

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(p.name for p in FOLDER.glob("*.osp"))
BACKENDS = {"oracle": OracleBackend, "host": lambda: HostBackend(threads=2)}


def directive(text: str, name: str) -> str:
    """What follows `// name:` in the comment lines at the top."""
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        if line.startswith(f"// {name}:"):
            return line.split(":", 1)[1].strip()
    return ""


def outcome(path: str, backend: str) -> str:
    """Run a program of the working directory; everything that can be seen of it as one text."""
    text = Path(path).read_text(encoding="utf-8")
    program, diagnostics = load_program(Path(path))
    assert program is not None, "\n".join(render(d) for d in diagnostics)
    out, err = io.StringIO(), io.StringIO()
    stdin = io.StringIO(directive(text, "stdin").replace("\\n", "\n"))
    args = directive(text, "args").split()
    runtime = Runtime(BACKENDS[backend]())
    code = run_program(program, args=args, runtime=runtime, stdout=out, stderr=err, stdin=stdin)
    shown = out.getvalue()
    if err.getvalue():
        shown += f"--- stderr\n{err.getvalue()}"
    return shown + (f"--- exit {code}\n" if code else "")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, backend, monkeypatch):
    monkeypatch.chdir(FOLDER)
    snapshots.check(outcome(name, backend), FOLDER / name.replace(".osp", ".out"))
