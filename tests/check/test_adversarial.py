"""Programs that try to hide an effect from the kernel rule, or to be what their types do not say: L5.4 to L5.8, L5.11,
L6.2, L6.3.

`adversarial/NAME.refuse.osp` begins with `// refuse: CODE part of the title`: every error has this code, one this title.
Its twin `NAME.accept.osp` does the same without the effect; it is accepted, and prints the same on the oracle and on the
host, fused or not. Some ways of not performing an effect have no twin that performs it.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source
from osprey_py.check.core import Program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.render import render
from tests import snapshots

FOLDER = Path(__file__).parent / "adversarial"
REFUSED = sorted(p.name for p in FOLDER.glob("*.refuse.osp"))
ACCEPTED = sorted(p.name for p in FOLDER.glob("*.accept.osp"))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    code, title = text.splitlines()[0].removeprefix("// refuse: ").split(" ", 1)
    program, told = check_source(text, name)
    errors = [d for d in told if d.is_error]
    assert program is None
    assert {d.code for d in errors} == {code}, "\n".join(map(render, errors))
    assert any(title in d.title for d in errors), [d.title for d in errors]


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    program, told = check_source(text, name)
    assert program is not None, "\n".join(map(render, told))
    oracle = _seen(program, Runtime(OracleBackend()))
    assert oracle == _seen(program, Runtime(HostBackend(threads=2)))
    assert oracle == _seen(program, Runtime(HostBackend(threads=1), fusion=False))
    snapshots.check(oracle, FOLDER / name.replace(".osp", ".out"))


def _seen(program: Program, runtime: Runtime) -> str:
    out, err = io.StringIO(), io.StringIO()
    code = run_program(program, runtime=runtime, stdout=out, stderr=err, stdin=io.StringIO())
    assert (code, err.getvalue()) == (0, "")
    return out.getvalue()


def test_twins() -> None:
    """What is refused has a twin that is accepted."""
    accepted = {name.replace(".accept.", ".refuse.") for name in ACCEPTED}
    assert len(REFUSED) >= 80
    assert set(REFUSED) <= accepted
