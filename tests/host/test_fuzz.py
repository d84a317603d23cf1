"""Random kernels: the host's bytes are the oracle's, faults included, for any number of threads (spec/backends)."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from tests.fuzz.kernels import Launch, launches, outcome

ORACLE = OracleBackend()
HOST = HostBackend(threads=1)
THREADS = [HostBackend(threads=t) for t in (2, 7)]
SETTINGS = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(launches())
def test_regular_kernels_equal_the_oracle(launch: Launch) -> None:
    assert outcome(HOST, launch) == outcome(ORACLE, launch)


@SETTINGS
@given(launches(general=True))
def test_general_kernels_equal_the_oracle(launch: Launch) -> None:
    assert outcome(HOST, launch) == outcome(ORACLE, launch)
