"""The kernel rule against what happens (L5.2, L5.4): a function that performs when it is called is never accepted as a
kernel, and one that is made of pure functions alone always is."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source, core
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from tests.check.function_values import called, function, launched


def output(program: core.Program) -> str:
    out = io.StringIO()
    run_program(
        program, args=[], runtime=Runtime(OracleBackend()), stdout=out, stderr=io.StringIO(), stdin=io.StringIO()
    )
    return out.getvalue()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 4).flatmap(function))
def test_never_a_false_pure(f: str) -> None:
    program, told = check_source(called(f))
    assert program is not None, [d.title for d in told]
    as_kernel, refused = check_source(launched(f))
    errors = {d.code for d in refused if d.is_error}
    if as_kernel is None:
        assert errors <= {"E0301", "E0310"}, [d.title for d in refused]
    if "noisy" in output(program):
        assert as_kernel is None
    if "shout" not in f:
        assert "E0301" not in errors
