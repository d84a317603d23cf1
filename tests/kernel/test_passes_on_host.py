"""Every pass on or off, the host's bytes are the oracle's (spec/gpu-surface S7.1)."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.passes import Passes
from tests.fuzz.kernels import Launch, launches, outcome
from tests.host.arrays import arrays

SWITCHES = [f.name for f in fields(Passes) if f.name != "verify"]


@pytest.mark.parametrize("off", ["all", *SWITCHES])
def test_a_pass_changes_no_byte_on_the_host(off: str) -> None:
    switches = {s: off not in ("all", s) for s in SWITCHES}
    backend = HostBackend(threads=1, passes=Passes(verify=True, **switches))

    @settings(
        max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain}
    )
    @given(launches() | arrays())
    def same(launch: Launch) -> None:
        assert outcome(backend, launch) == outcome(OracleBackend(), launch)

    same()
