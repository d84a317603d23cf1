"""A step's arguments as 64-bit words (the layout is in memory.py), packed with as little Python as possible."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from osprey_py.backends.protocol import Step, Storage
from osprey_py.kernel.ir import FLOAT, INT, Ty

_CODES = {FLOAT: "d", INT: "q"}
_EMPTY = np.zeros(64, np.uint8)
_NOWHERE: int = _EMPTY.__array_interface__["data"][0]
"""Where an empty slot points: readable, whatever element is read."""

ROOM = 1 << 10
"""Words that a step's arguments take at most, its inputs and uniforms aside."""


class Frame:
    """The memory of one run: a status word and a count for each step, then argument words."""

    def __init__(self) -> None:
        self._resize(1 << 12)
        self._top = 0
        self._kept: list[object] = []

    def _resize(self, words: int) -> None:
        self._words = np.zeros(words, np.int64)
        self._base: int = self._words.__array_interface__["data"][0]
        self._view = self._words.data.cast("B")

    def begin(self, steps: Sequence[Step]) -> None:
        """Flags are down, counts zero, and there is room for every step's arguments."""
        room = 0
        for s in steps:
            room += ROOM + 2 * len(s.inputs) + len(s.uniforms)
        if room > len(self._words):
            self._resize(2 * room)
        self._words[: 2 * len(steps)] = 0
        self._top = 2 * len(steps)
        self._kept.clear()

    def keep(self, thing: object) -> None:
        """Hold something until the next run begins."""
        self._kept.append(thing)

    def first_fault(self, start: int, end: int) -> int | None:
        """The first step from start to end - 1 whose flag is up."""
        flags = self._words[2 * start : 2 * end : 2]
        if not flags.any():
            return None
        return start + int(flags.argmax())

    def kept(self, position: int) -> int:
        """How many elements a filter kept."""
        return int(self._words[2 * position + 1])

    def pack(self, layout: struct.Struct, position: int, n: int, output: int, rest: list[float], more: bytes) -> int:
        """Write argument words, then more of them as bytes; their address."""
        start = 8 * self._top
        layout.pack_into(
            self._view, start, self._base + 16 * position, n, output, self._base + 16 * position + 8, *rest
        )
        end = start + layout.size
        if more:
            self._view[end : end + len(more)] = more
        self._top = (end + len(more)) >> 3
        return self._base + start


class Packer:
    """Packs the arguments of one kernel's launches."""

    def __init__(self, slots: int, uniforms: tuple[Ty, ...]) -> None:
        self._struct = struct.Struct("<4q" + "2q" * slots + "".join(_CODES.get(u, "q") for u in uniforms))

    def pack(self, frame: Frame, position: int, step: Step, inputs: tuple[Storage, ...], numbers: bytes) -> int:
        """Write the words of a step on these inputs, the numbers of its shape behind; their address."""
        words: list[float] = []
        for s in inputs:
            n = len(s.data)
            words.append(s.address if n else _NOWHERE)
            words.append(n)
        words.extend(step.uniforms)
        return frame.pack(self._struct, position, step.n, step.output.address, words, numbers)
