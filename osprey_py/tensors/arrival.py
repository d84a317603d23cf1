"""Mapped data is brought in while the program does something else.

Comes in: storage in a mapped file. Goes out: nothing; in the background its pages are read and entered into the process's
page table, in one call of the kernel instead of one fault for every few pages. Half a gigabyte takes 30 ms, which a launch
need not wait for then; what a disk has to bring takes longer, and waits no longer either. Where the system cannot do it,
pages come when they are read, as ever.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterable

from osprey_py.backends.protocol import Storage

LEAST = 1 << 20
"""Bytes: smaller tensors are not worth a thread."""

SHARE = 2
"""What comes in has to fit into this part of the machine's memory, or it would drive out what came before."""

_POPULATE_READ = 22
"""MADV_POPULATE_READ, Linux 5.14 and later (madvise(2)); older ones answer EINVAL."""


class Arrivals:
    """bound: bytes that may be brought in, in all. The thread lives as long as there is something to bring."""

    def __init__(self, bound: int) -> None:
        self.left = bound
        self._lock = threading.Lock()
        self._pending: list[Storage] = []
        self._thread: threading.Thread | None = None

    def bring(self, storage: Storage) -> None:
        """Soon, and without a word if it cannot be."""
        size = storage.nbytes
        if size < LEAST or size > self.left:
            return
        with self._lock:
            self.left -= size
            self._pending.append(storage)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="osprey arrivals", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # no more threads
                    self._pending.clear()

    def wait(self) -> None:
        """Until all is there."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                storages, self._pending = self._pending, []
                if not storages:
                    self._thread = None
                    return
            for begin, end in merged((s.address, s.address + s.nbytes) for s in storages):
                _populate(begin, end - begin)


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of addresses, ascending, in whole pages; those that touch are one."""
    page = _page()
    found: list[tuple[int, int]] = []
    for begin, end in sorted((b // page * page, -(-e // page) * page) for b, e in ranges):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _page() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def _memory() -> int:
    """Bytes that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * _page()


def _populate(address: int, size: int) -> None:
    ctypes.CDLL(None).madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _POPULATE_READ)


arrivals = Arrivals(_memory() // SHARE if sys.platform == "linux" else 0)
