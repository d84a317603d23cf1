"""A step's arguments as 64-bit words (the layout is in memory.py), packed with as little Python as possible."""

from __future__ import annotations

import struct

import numpy as np

from osprey_py.backends.protocol import Step, Storage
from osprey_py.kernel.ir import FLOAT, INT, Ty

_CODES = {FLOAT: "d", INT: "q"}
_EMPTY = np.zeros(64, np.uint8)
_NOWHERE: int = _EMPTY.__array_interface__["data"][0]
"""Where an empty slot points: readable, whatever element is read."""

CHUNK = 1 << 12
"""Words of argument memory that are taken at a time."""


class _Chunk:
    """Some argument memory. A run may need several; they are used again by the next."""

    def __init__(self, words: int) -> None:
        self.words = np.zeros(words, np.int64)
        self.base: int = self.words.__array_interface__["data"][0]
        self.view = self.words.data.cast("B")


class Frame:
    """The memory of one run: a status word and a count for each step, and the steps' argument words."""

    def __init__(self) -> None:
        self._states = _Chunk(CHUNK)
        self._chunks = [_Chunk(CHUNK)]
        self._current = 0
        self._top = 0
        self._kept: list[object] = []

    def begin(self, steps: int) -> None:
        """For a run of so many steps: flags are down, counts zero, argument memory is free again."""
        if 2 * steps > len(self._states.words):
            self._states = _Chunk(4 * steps)
        self._states.words[: 2 * steps] = 0
        self._current = self._top = 0
        self._kept.clear()

    def keep(self, thing: object) -> None:
        """Hold something until the next run begins."""
        self._kept.append(thing)

    def first_fault(self, start: int, end: int) -> int | None:
        """The first step from start to end - 1 whose flag is up."""
        flags = self._states.words[2 * start : 2 * end : 2]
        if not flags.any():
            return None
        return start + int(flags.argmax())

    def kept(self, position: int) -> int:
        """How many elements a filter kept."""
        return int(self._states.words[2 * position + 1])

    def pack(self, layout: struct.Struct, position: int, n: int, output: int, rest: list[float], more: bytes) -> int:
        """Write argument words, then more of them as bytes; their address."""
        start = self._top
        size = layout.size + len(more)
        chunk = self._chunks[self._current]
        if start + size > len(chunk.view):
            chunk, start = self._next(size), 0
        state = self._states.base + 16 * position
        layout.pack_into(chunk.view, start, state, n, output, state + 8, *rest)
        if more:
            chunk.view[start + layout.size : start + size] = more
        self._top = start + size
        return chunk.base + start

    def _next(self, size: int) -> _Chunk:
        """The next chunk with room for so many bytes."""
        self._current += 1
        if self._current == len(self._chunks):
            self._chunks.append(_Chunk(max(CHUNK, size >> 3)))
        elif len(self._chunks[self._current].view) < size:
            self._chunks[self._current] = _Chunk(size >> 3)
        return self._chunks[self._current]


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
