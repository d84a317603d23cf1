"""What every test folder shares: the option that rewrites snapshots."""

from __future__ import annotations

import pytest

from tests import snapshots


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="rewrite the expected texts with what came out")


def pytest_configure(config: pytest.Config) -> None:
    snapshots.update = bool(config.getoption("--update-snapshots"))
