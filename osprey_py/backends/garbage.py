"""When Python looks for cycles of objects that nobody holds: seldom by their number, soon by the bytes of buffers.

Python looks after every 700 new objects. A program's objects live long or die at once, so that this found next to
nothing and took a tenth of a generation. But a cycle may hold buffers (a closure in a cell that it reads), and of these
a few are a lot of memory: so allocators say how much they take from the system, and Python looks when that grows.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (20_000, 10, 10)
"""New objects before the young ones are looked at; how often that is before the older ones are."""

BYTES = 256 << 20
"""Memory that an allocator takes from the system between two looks. To touch it for the first time takes longer."""


@contextmanager
def seldom() -> Iterator[None]:
    """For a process that does one thing."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def keep() -> None:
    """Within `seldom`: what there is now, the checked program above all, lives until its end and is not looked at."""
    gc.freeze()


class Taken:
    """What one allocator took from the system."""

    def __init__(self) -> None:
        self._bytes = 0

    def more(self, size: int) -> None:
        """So many bytes are about to be taken."""
        self._bytes += size
        if self._bytes >= BYTES:
            self._bytes = 0
            gc.collect()
