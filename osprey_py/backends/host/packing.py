"""A step's arguments as 64-bit words (the layout is in memory.py), packed with as little Python as possible."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from osprey_py.backends.protocol import Kind, Step, Storage
from osprey_py.kernel.ir import FLOAT, INT, Ty

_CODES = {FLOAT: "d", INT: "q"}
_EMPTY = np.zeros(64, np.uint8)
_NOWHERE: int = _EMPTY.__array_interface__["data"][0]
"""Where an empty slot points: readable, whatever element is read."""

CHUNK = 1 << 12
"""Words of argument memory that are taken at a time."""


_OUTPUT, _SLOTS = 2, 4
"""Word numbers, as memory.py says."""


class Notes:
    """Where the addresses and uniforms of a run lie among its argument words, for who puts others in their place.

    pointers: (address of a word, the storage that it points into, how far in). uniforms: (address of a word, step,
    which of its uniforms). deciding: (step, which of its uniforms) where code was chosen by the value. zeros: storage
    that begins as zeros in every run."""

    def __init__(self) -> None:
        self.pointers: list[tuple[int, Storage, int]] = []
        self.uniforms: list[tuple[int, int, int]] = []
        self.deciding: set[tuple[int, int]] = set()
        self.zeros: list[Storage] = []

    def point(self, word: int, storage: Storage, offset: int = 0) -> None:
        self.pointers.append((word, storage, offset))

    def decide(self, position: int, uniforms: Sequence[int]) -> None:
        self.deciding.update((position, k) for k in uniforms)

    def arguments(self, address: int, position: int, step: Step, inputs: Sequence[Storage]) -> None:
        """The words that `Packer.pack` wrote."""
        self.point(address + 8 * _OUTPUT, step.output)
        at = address + 8 * _SLOTS
        for s in inputs:
            if s.length:
                self.point(at, s)
            at += 16
        self.uniforms.extend((at + 8 * k, position, k) for k in range(len(step.uniforms)))


class _Chunk:
    """Some argument memory. A run may need several; they are used again by the next."""

    def __init__(self, words: int) -> None:
        self.words = np.zeros(words, np.int64)
        self.base: int = self.words.__array_interface__["data"][0]
        self.view = self.words.data.cast("B")


class Frame:
    """The memory of one run: a status word and a count for each step, and the steps' argument words. notes: to be
    written while these are."""

    def __init__(self, notes: Notes | None = None) -> None:
        self.notes = notes
        self._states = _Chunk(CHUNK)
        self._chunks = [_Chunk(CHUNK)]
        self._current = 0
        self._top = 0
        self._kept: list[object] = []

    def begin(self, steps: int) -> None:
        """For a run of so many steps: flags are down, counts zero, argument memory is free again."""
        if 2 * steps > len(self._states.words):
            self._states = _Chunk(4 * steps)
        self.lower(steps)
        self._current = self._top = 0
        self._kept.clear()

    def release(self) -> None:
        """The notes have been read: what they name is held no longer, argument blocks of matrix steps are."""
        self.notes = None
        self._kept = [thing for thing in self._kept if not isinstance(thing, Storage)]

    def lower(self, steps: int) -> None:
        """Flags are down again, counts zero."""
        self._states.words[: 2 * steps] = 0

    def zeros(self, n: int) -> Storage:
        """Floats that are zero when the run begins, and are there until the next. Pages that nothing comes to never are."""
        storage = Storage(Kind.F64, np.zeros(n))
        self._kept.append(storage)
        if self.notes is not None:
            self.notes.zeros.append(storage)
        return storage

    def locate(self, address: int) -> tuple[int, int]:
        """(chunk, word in it) of an argument word."""
        for k, chunk in enumerate(self._chunks):
            if chunk.base <= address < chunk.base + len(chunk.view):
                return k, (address - chunk.base) >> 3
        raise ValueError(address)

    def words(self, chunk: int) -> npt.NDArray[np.int64]:
        return self._chunks[chunk].words

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
        size = layout.size + len(more)
        chunk, start = self._room(size)
        state = self._states.base + 16 * position
        layout.pack_into(chunk.view, start, state, n, output, state + 8, *rest)
        if more:
            chunk.view[start + layout.size : start + size] = more
        return chunk.base + start

    def put(self, words: bytes) -> int:
        """Write argument words as they are; their address."""
        chunk, start = self._room(len(words))
        chunk.view[start : start + len(words)] = words
        return chunk.base + start

    def _room(self, size: int) -> tuple[_Chunk, int]:
        """Some bytes that are free: a chunk and a place in it."""
        start = self._top
        chunk = self._chunks[self._current]
        if start + size > len(chunk.view):
            chunk, start = self._next(size), 0
        self._top = start + size
        return chunk, start

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
        address = frame.pack(self._struct, position, step.n, step.output.address, words, numbers)
        if frame.notes is not None:
            frame.notes.arguments(address, position, step, inputs)
        return address
