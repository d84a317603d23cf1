"""What a machine can do at most, so that a profile can say how near a step comes.

Comes in: figures that a backend has measured once (backends/host/limits.py). Goes out: the least time that work takes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """operations: on floats a second, multiplications and additions rounded one by one. rates: bytes read a second, by how
    many bytes there are, ascending; the last is memory's and holds for all that is larger.
    described: where the figures come from, for people."""

    operations: float
    rates: tuple[tuple[int, float], ...]
    described: str

    def rate(self, size: int) -> float:
        """Bytes a second of a step that moves so many."""
        return next((rate for bound, rate in self.rates if size <= bound), self.rates[-1][1])

    def arithmetic(self, operations: int) -> float:
        """Seconds that so many operations take at least."""
        return operations / self.operations

    def traffic(self, size: int) -> float:
        """Seconds that moving so many bytes takes at least."""
        return size / self.rate(size)
