"""What the checker cannot see is refused at the launch, by name (L5.13)."""

from __future__ import annotations

import io

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.diagnostic import OspreyError


def test_host_work_in_a_kernel_that_arrives_as_a_value() -> None:
    text = "fn each(b, k) = gpuMap(b, k)\nprint(fromGpu(each(gpuIota(2), fn(i) => listLength([i]))))"
    program, told = check_source(text)
    assert program is not None, told
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(OspreyError, match="cannot be used inside a kernel"):
        run_program(program, args=[], runtime=Runtime(OracleBackend()), stdout=out, stderr=err, stdin=io.StringIO())
