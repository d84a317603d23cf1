"""Every pass on or off, a kernel means the same (spec/gpu-surface S7.1)."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.passes import Passes, prepared
from osprey_py.kernel.share import share
from osprey_py.kernel.simplify import simplify
from osprey_py.kernel.verify import verify
from tests.fuzz.kernels import Launch, launches, outcome
from tests.kernel.lowered import lowered_outcome, replaced

SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain}
)
SWITCHES = [f.name for f in fields(Passes) if f.name != "verify"]


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("off", ["none", "all", *SWITCHES])
def test_a_pass_changes_no_byte(off: str, general: bool) -> None:
    switches = {s: off not in ("all", s) for s in SWITCHES}

    @SETTINGS
    @given(launches(general=general))
    def same(launch: Launch) -> None:
        lowered = prepared(launch.kernel, Passes(verify=True, **switches))
        assert lowered_outcome(launch, lowered, eager=True) == outcome(OracleBackend(), launch)

    same()


@pytest.mark.parametrize("general", [False, True])
def test_faults_keep_their_place_before_lowering(general: bool) -> None:
    """Simplified and shared as extracted, a kernel has the same bytes, or the same first fault at the same element."""

    @SETTINGS
    @given(launches(general=general))
    def same(launch: Launch) -> None:
        wanted = outcome(OracleBackend(), launch, places=True)
        for run in (simplify, share):
            kernel = run(launch.kernel)
            verify(kernel)
            assert outcome(OracleBackend(), replaced(launch, kernel), places=True) == wanted

    same()
