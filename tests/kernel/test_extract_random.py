"""Random functions: the kernel gives what the evaluator gives, the fault and its place included (spec/gpu-surface,
S1)."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from osprey_py.kernel.ir import FLOAT, INT
from tests.kernel.extraction import Module, evaluated, launched
from tests.kernel.sources import functions

ROWS = [(0, 0.0), (1, 2.5), (-3, -1.0), (7, float("nan")), (2**63 - 1, float("inf"))]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain})
@given(functions())
def test_a_random_kernel_is_its_function(text: str) -> None:
    module = Module(text)
    f = module.function("k")
    wanted = [evaluated(module, f, row) for row in ROWS]
    assert launched(f, (INT, FLOAT), ROWS) == wanted
