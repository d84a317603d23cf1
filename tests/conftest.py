"""What every test folder shares: the option that rewrites snapshots, and recording at the first opportunity."""

from __future__ import annotations

import pytest

from osprey_py.graph import runtime
from tests import snapshots


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="rewrite the expected texts with what came out")


def pytest_configure(config: pytest.Config) -> None:
    snapshots.update = bool(config.getoption("--update-snapshots"))
    config.addinivalue_line("markers", "late_recording: functions are recorded as late as outside of tests")


@pytest.fixture(autouse=True)
def early_recording(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are recorded in their second call, so that replays are seen; `late_recording` leaves it as it is."""
    if not request.node.get_closest_marker("late_recording"):
        monkeypatch.setattr(runtime, "PLAIN_CALLS", 1)
