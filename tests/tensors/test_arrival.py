"""Pages that are brought in before anybody reads them."""

from __future__ import annotations

import mmap
import random
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from osprey_py.backends.protocol import Kind, Storage
from osprey_py.tensors import arrival
from osprey_py.tensors.arrival import LEAST, Arrivals, merged
from osprey_py.tensors.safetensors import open_tensors, save_tensors

PAGE = mmap.PAGESIZE
linux = pytest.mark.skipif(sys.platform != "linux", reason="madvise(MADV_POPULATE_READ) is Linux's")


def mapped(path: Path, size: int) -> Storage:
    path.write_bytes(random.Random(size).randbytes(size))
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return Storage(Kind.F64, np.frombuffer(data, "<f8", size // 8))


def resident(storage: Storage) -> int:
    """Bytes of its mapping that are in the page table."""
    inside, found = False, 0
    for line in Path("/proc/self/smaps").read_text("utf-8").splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            begin, end = (int(w, 16) for w in words[0].split("-"))
            inside = begin <= storage.address < end
        elif inside and words[0] == "Rss:":
            found += int(words[1]) << 10
    return found


def populates() -> bool:
    """Whether this kernel can: Linux 5.14."""
    import platform

    return tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2]) >= (5, 14)


@linux
def test_pages_come_in_the_background(tmp_path: Path) -> None:
    storage = mapped(tmp_path / "a", 8 * LEAST)
    arrivals = Arrivals(1 << 30)
    assert resident(storage) < LEAST
    arrivals.bring(storage)
    arrivals.wait()
    assert not populates() or resident(storage) == 8 * LEAST
    # The thread has ended; another begins.
    again = mapped(tmp_path / "b", 4 * LEAST)
    arrivals.bring(again)
    arrivals.wait()
    assert not populates() or resident(again) == 4 * LEAST


@linux
def test_small_and_too_much_is_left_alone(tmp_path: Path) -> None:
    small, large = mapped(tmp_path / "a", LEAST - 8), mapped(tmp_path / "b", 4 * LEAST)
    arrivals = Arrivals(6 * LEAST)
    for storage in (small, large, large):  # the second time there is no room for it
        arrivals.bring(storage)
    arrivals.wait()
    assert resident(small) == 0
    assert arrivals.left == 2 * LEAST
    nothing = Arrivals(0)
    nothing.bring(large)
    assert nothing.left == 0


@linux
def test_where_the_system_cannot_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "_POPULATE_READ", 9999)
    storage = mapped(tmp_path / "a", 4 * LEAST)
    wanted = storage.data.copy()
    arrivals = Arrivals(1 << 30)
    arrivals.bring(storage)
    arrivals.wait()
    assert storage.data.tobytes() == wanted.tobytes()


@linux
def test_a_file_that_became_shorter_kills_nobody(tmp_path: Path) -> None:
    """Reading it would; bringing it in says no."""
    path = tmp_path / "a"
    storage = mapped(path, 4 * LEAST)
    with path.open("r+b") as file:
        file.truncate(PAGE)
    arrivals = Arrivals(1 << 30)
    arrivals.bring(storage)
    arrivals.wait()


@linux
def test_tensors_are_brought_in_when_they_are_asked_for(tmp_path: Path) -> None:
    values = np.arange(LEAST, dtype="<f8")
    path = str(tmp_path / "x.safetensors")
    save_tensors(path, [("w", (LEAST,), Storage(Kind.F64, values))])
    storage = open_tensors(path).read("w")
    arrival.arrivals.wait()
    assert not populates() or resident(storage) >= 8 * LEAST
    assert storage.data.tobytes() == values.tobytes()


def test_ranges_that_touch_are_one() -> None:
    base = 100 * PAGE
    assert merged([]) == []
    assert merged([(base + 5, base + 6)]) == [(base, base + PAGE)]
    assert merged([(base + PAGE, base + 2 * PAGE), (base, base + 1)]) == [(base, base + 2 * PAGE)]
    assert merged([(base, base + 1), (base + 2 * PAGE, base + 2 * PAGE + 1)]) == [
        (base, base + PAGE),
        (base + 2 * PAGE, base + 3 * PAGE),
    ]
    rng = random.Random(1)
    for _ in range(200):
        ranges = [(b, b + rng.randrange(1, 5 * PAGE)) for b in (rng.randrange(50 * PAGE) for _ in range(6))]
        pages = {page for b, e in ranges for page in range(b // PAGE, -(-e // PAGE))}
        found = merged(ranges)
        assert [page for b, e in found for page in range(b // PAGE, e // PAGE)] == sorted(pages)
        assert all(first[1] < second[0] for first, second in pairwise(found))
