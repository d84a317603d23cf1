"""Self tail calls whose later arguments need statements (spec/evaluation V4.1, V5)."""

from __future__ import annotations

import io

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime

PROGRAM = """
fn count(held: GpuBuffer<int>, n: int, said: string) -> string =
    if n == 0 { said } else {
        count(held, n - 1, "${said}${gpuGet(held, n % 3) ?: 9}${[1, 2][n] ?: 0}${fromCodePoint(48 + n) ?: "?"}")
    }
print(count(toGpu([5, 6, 7]), 4, ""))
"""


def test_a_buffer_that_is_handed_on_beside_an_argument_with_statements() -> None:
    program, told = check_source(PROGRAM)
    assert program is not None, told
    out = io.StringIO()
    assert run_program(program, runtime=Runtime(OracleBackend()), stdout=out) == 0
    assert out.getvalue() == "604503702621\n"
