"""The tests of OpenCL want a device. Where there is none they are not collected, and the report says so at its end;
`.ci/run` installs PoCL and insists on one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from osprey_py.backends.discovery import open_device
from osprey_py.backends.protocol import Unusable

NEED_OPENCL = ("test_opencl.py", "test_wrong.py", "wrong.py")


@cache
def missing() -> str:
    """Why OpenCL cannot be used; empty when it can."""
    try:
        open_device("opencl")
    except Unusable as error:
        return error.text
    return ""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name in NEED_OPENCL and missing() else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if missing():
        terminalreporter.write_line(f"OpenCL was not tested: {missing()} (docs/backends.md)")
