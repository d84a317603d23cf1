"""Every backend gives the oracle's bytes on the conformance cases (S1, S2, N1, N14), and the cases can tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Report, Step
from osprey_py.conformance.cases import GUARDED, cases
from osprey_py.conformance.compare import difference
from osprey_py.kernel.ir import OPS, walk

CASES = list(cases())


def test_every_op_is_in_a_case() -> None:
    seen = set(GUARDED)
    for case in CASES:
        if case.kernel is not None:
            roots = [*case.kernel.roots, *(r for f in case.kernel.functions for r in f.results)]
            seen |= {node.op for node in walk(roots)}
    assert set(OPS) - seen == set()


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_host(threads: int) -> None:
    oracle, host = OracleBackend(), HostBackend(threads=threads)
    assert {case.name: found for case in CASES if (found := difference(case, oracle, host))} == {}


class _Wrong(OracleBackend):
    """The oracle, with its outputs spoilt."""

    name = "wrong"

    def __init__(self, spoil: Callable[[Any], None] | None, drop_faults: bool = False) -> None:
        self.spoil = spoil
        self.drop_faults = drop_faults

    def run(self, steps: Sequence[Step]) -> Report:
        report = super().run(steps)
        for step in steps:
            if self.spoil and step.output.kind is Kind.F64:
                self.spoil(step.output.data)
        return Report(None, dict.fromkeys(report.counts, 0)) if self.drop_faults else report


def _flush(data: Any) -> None:
    data[np.abs(data) < 2.0**-1022] = 0.0


def _negative_nan(data: Any) -> None:
    data[np.isnan(data)] = -np.nan


def _last_bit(data: Any) -> None:
    bits = data.view(np.uint64)
    bits[7:8] ^= np.uint64(1)


@pytest.mark.parametrize("spoil", [_flush, _negative_nan, _last_bit])
def test_a_wrong_backend_is_found(spoil: Callable[[Any], None]) -> None:
    oracle, wrong = OracleBackend(), _Wrong(spoil)
    assert any(difference(case, oracle, wrong) for case in CASES)


def test_dropped_faults_are_found() -> None:
    oracle, wrong = OracleBackend(), _Wrong(None, drop_faults=True)
    named = {case.name for case in CASES if difference(case, oracle, wrong)}
    assert "add of int, int, faulting" in named and "a fold that overflows" in named


def test_the_difference_names_the_element_and_both_values() -> None:
    case = next(c for c in CASES if c.name == "map of 8")
    found = difference(case, OracleBackend(), _Wrong(_last_bit))
    assert found is not None and found.startswith("element 7: oracle ") and found.count("(0x") == 2
