"""kernel/faults.py keeps the meaning of every kernel."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from osprey_py.backends.oracle import OracleBackend
from osprey_py.kernel.faults import lower
from osprey_py.kernel.verify import verify
from tests.fuzz.kernels import Launch, launches, outcome
from tests.kernel.lowered import lowered_outcome

SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=set(Phase) - {Phase.explain}
)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("general", [False, True])
def test_lowered_kernels_mean_the_same(eager: bool, general: bool) -> None:
    @SETTINGS
    @given(launches(general=general))
    def same(launch: Launch) -> None:
        verify(launch.kernel)
        lowered = lower(launch.kernel)
        verify(lowered)
        assert lowered_outcome(launch, lowered, eager=eager) == outcome(OracleBackend(), launch)

    same()
