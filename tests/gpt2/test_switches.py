"""No byte depends on an optimisation: each that has a switch is off alone, and scores, losses and gradients stay."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bench.variants import VARIANTS, Variant
from osprey_py.check import load_program
from osprey_py.check.core import Program
from osprey_py.eval.run import run_program
from tests.gpt2.support import PROGRAM, TINY, make_weights, run_reference

WORDS = {"gpt2.osp": ("--tokens", "6", "--prompt", "to be"), "train.osp": ("--prompt", "abcab")}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("tiny"), TINY, "--config")


@pytest.fixture(scope="module")
def programs() -> dict[str, Program]:
    loaded = {}
    for name in WORDS:
        program, diagnostics = load_program(PROGRAM.parent / name)
        assert program is not None, diagnostics
        loaded[name] = program
    return loaded


@pytest.fixture(scope="module")
def expected(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The traces of reference.py."""
    path = tmp_path_factory.mktemp("reference") / "trace"
    traces = {}
    for name, command in (("gpt2.osp", "generate"), ("train.osp", "train")):
        run = run_reference("--weights", str(tiny), *WORDS[name], "--trace", str(path), command=command)
        assert run.code == 0, run.error
        traces[name] = path.read_bytes()
    return traces


@pytest.mark.parametrize("program", WORDS)
@pytest.mark.parametrize("variant", [v for v in VARIANTS if not v.cold], ids=lambda v: v.name)
def test_a_switch_changes_no_byte(
    variant: Variant,
    program: str,
    tiny: Path,
    programs: dict[str, Program],
    expected: dict[str, bytes],
    tmp_path: Path,
) -> None:
    words = ("--weights", str(tiny), *WORDS[program], "--trace", str(tmp_path / "trace"))
    out = io.StringIO()
    assert run_program(programs[program], args=words, runtime=variant.make(2), stdout=out, stderr=out) == 0, (
        out.getvalue()
    )
    assert (tmp_path / "trace").read_bytes() == expected[program]


def test_every_switch_of_the_runtime_is_among_them() -> None:
    """A new one has to be tried here."""
    from inspect import signature

    from osprey_py.backends.host import HostBackend
    from osprey_py.graph.runtime import Runtime

    switches = {*signature(HostBackend).parameters, *signature(Runtime).parameters} - {"backend", "profile"}
    tried = {key for v in VARIANTS for key in (*v.host, *v.runtime)} | {"threads"}
    assert tried == switches
