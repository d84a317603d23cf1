"""Random kernels: the host's bytes are the oracle's, faults included, whatever the threads, vectors and proofs
(S7.1, S3.1, N14)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host.native import machine
from osprey_py.backends.oracle import OracleBackend
from tests.fuzz.kernels import Launch, launches, outcome
from tests.host.arrays import arrays

ORACLE = OracleBackend()
HOSTS = [HostBackend(threads=t) for t in (1, 2, 7)]
CHECKED = HostBackend(threads=1, nests=False, contractions=False)
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(launches())
def test_regular_kernels_equal_the_oracle(launch: Launch) -> None:
    expected = outcome(ORACLE, launch)
    assert outcome(HOSTS[0], launch) == expected
    assert outcome(CHECKED, launch) == expected


@SETTINGS
@given(launches(general=True))
def test_general_kernels_equal_the_oracle(launch: Launch) -> None:
    assert outcome(HOSTS[1], launch) == outcome(ORACLE, launch)


@SETTINGS
@given(arrays())
def test_array_kernels_equal_the_oracle_on_any_number_of_threads(launch: Launch) -> None:
    expected = outcome(ORACLE, launch)
    for host in HOSTS:
        assert outcome(host, launch) == expected


@SETTINGS
@given(arrays())
def test_fast_and_checked_loops_are_alike(launch: Launch) -> None:
    assert outcome(HostBackend(threads=1, contractions=False), launch) == outcome(CHECKED, launch)


@pytest.mark.parametrize("lanes", [2, 4])
def test_vectors_of_other_processors(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine(), "lanes", lanes)

    @settings(SETTINGS, max_examples=10)
    @given(arrays())
    def check(launch: Launch) -> None:
        assert outcome(HOSTS[0], launch) == outcome(ORACLE, launch)

    check()
