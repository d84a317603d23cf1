"""The machine's limits: measured once, kept in a file, measured again when it is damaged; the steps do what is counted."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import numpy as np
import pytest

from osprey_py.backends.host import limits, objects
from osprey_py.backends.host.native import machine
from osprey_py.backends.limits import Limits


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """A folder of its own and measurements that cost nothing, counted."""
    asked: list[int] = []

    def measure(threads: int, clock: object) -> limits.Figures:
        asked.append(threads)
        return 1e9 * threads, ((1024, 4e9), (1 << 30, 2e9))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(limits, "_measure", measure)
    return asked


def test_limits_are_measured_once_for_a_number_of_threads(quick: list[int], tmp_path: Path) -> None:
    first = limits.measured(2)
    assert limits.measured(2) == first
    assert limits.measured(3).operations == 3e9
    assert quick == [2, 3]
    files = list((objects.folder().parent / "limits").iterdir())
    assert len(files) == 2 and any(str(f) in first.described for f in files)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"operations": 0, "rates": [[1, 1]]}', '{"operations": 1, "rates": []}']
)
def test_a_damaged_file_is_measured_anew(quick: list[int], text: str) -> None:
    limits.measured(2)
    (file,) = (objects.folder().parent / "limits").iterdir()
    file.write_text(text, "utf-8")
    assert limits.measured(2).operations == 2e9
    assert quick == [2, 2]
    assert json.loads(file.read_text("utf-8"))["operations"] == 2e9


def test_a_disk_that_takes_nothing_is_no_error(
    quick: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert limits.measured(1).operations == 1e9


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_the_steps_compute_what_is_counted(lanes: int) -> None:
    """Sum c is that of x * y_c over the turns, x rising by y_0; a unit of reading adds up all of its bytes."""
    if lanes > machine().lanes:
        lanes = machine().lanes
    library = machine().load(limits.text(lanes), ("arithmetic", "reading"))
    step = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    out = np.zeros(512)
    factors = np.repeat(np.arange(1.0, 17.0), lanes)
    step(library.addresses["arithmetic"])(factors.ctypes.data, 3, 4, out.ctypes.data)
    turns = limits.TURNS
    sums = out[: limits.CHAINS * lanes].reshape(limits.CHAINS, lanes)
    assert (sums == np.arange(1.0, limits.CHAINS + 1)[:, None] * (turns * (turns - 1) // 2)).all()
    data = np.arange(3.0 * limits.CHUNK / 8)
    place = np.array([data.ctypes.data], np.int64)
    out[:] = 0.0
    step(library.addresses["reading"])(place.ctypes.data, 1, 3, out.ctypes.data)
    assert out.sum() == data[limits.CHUNK // 8 :].sum()


def test_the_rate_is_that_of_the_smallest_size_that_holds_it() -> None:
    known = Limits(8.0, ((10, 5.0), (100, 2.0)), "")
    assert [known.rate(n) for n in (1, 10, 11, 100, 1000)] == [5.0, 5.0, 2.0, 2.0, 2.0]
    assert (known.arithmetic(16), known.traffic(50)) == (2.0, 25.0)
