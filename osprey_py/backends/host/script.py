"""Steps whose argument words stay: a later run on other storage, with other uniforms, changes the words that differ.

Comes in: steps, and the storages they name. Goes out: a `HostScript` (backends/protocol.py), or None for steps that
cannot share one native plan. The functions, units and grains of the native plan depend on lengths, and on the integers
that code was chosen by; `ready` compares these. All other words are addresses and uniforms, whose places are noted
while they are written (packing.py), so a run is a few array assignments and one native call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from osprey_py.backends.host.blocks import Blocks
from osprey_py.backends.host.packing import Frame, Notes
from osprey_py.backends.host.pool import Plan, Pool
from osprey_py.backends.protocol import Kind, Report, Scalar, Step, Storage
from osprey_py.backends.taking import taker
from osprey_py.kernel.ir import FLOAT

Words = npt.NDArray[np.int64]


class _Scatter:
    """Values to be put into argument words: of all values, `which`; `offset` is added to each."""

    def __init__(self, frame: Frame, places: Sequence[tuple[int, int, int]]) -> None:
        """places: (address of a word, which value, offset)."""
        by_chunk: dict[int, list[tuple[int, int, int]]] = {}
        for address, which, offset in places:
            chunk, word = frame.locate(address)
            by_chunk.setdefault(chunk, []).append((word, which, offset))
        self._parts = [
            (frame.words(chunk), *(np.array(column, np.int64) for column in zip(*found, strict=True)))
            for chunk, found in by_chunk.items()
        ]

    def put(self, values: Words) -> None:
        for words, at, which, offset in self._parts:
            words[at] = values[which] + offset


class HostScript:
    """Made by `script`."""

    def __init__(
        self,
        steps: Sequence[Step],
        storages: Sequence[Storage],
        temporary: Sequence[Storage],
        frame: Frame,
        notes: Notes,
        plan: Plan,
        scratch: int,
        blocks: Blocks,
        pool: Callable[[], Pool],
    ) -> None:
        self._frame, self._plan, self._scratch, self._blocks, self._pool = frame, plan, scratch, blocks, pool
        self._count = len(steps)
        self._filters = [p for p, s in enumerate(steps) if s.op == "filter"]
        self._zeros = [s.length for s in notes.zeros]
        self._temporary = [(s.kind, s.length) for s in temporary]
        # The code lives as long as this.
        self._compiled = [s.compiled for s in steps]
        slots = {id(s): k for k, s in enumerate([*storages, *notes.zeros, *temporary])}
        self._addresses = _Scatter(frame, [(at, slots[id(s)], offset) for at, s, offset in notes.pointers])

        first = [0]
        for s in steps:
            first.append(first[-1] + len(s.uniforms))
        uniforms = [u for s in steps for u in s.uniforms]
        floats = {
            first[p] + k
            for p, s in enumerate(steps)
            if s.kernel is not None
            for k, ty in enumerate(s.kernel.uniforms)
            if ty is FLOAT
        }
        deciding = sorted(first[p] + k for p, k in notes.deciding)
        self._take_integers = taker([u for u in deciding if u not in floats])
        self._take_seeds = taker([u for u in deciding if u in floats])
        self._integers, self._seeds = self._take_integers(uniforms), self._bits(self._take_seeds(uniforms))
        free: list[list[tuple[int, int]]] = [[], []]
        for at, p, k in notes.uniforms:
            if (p, k) not in notes.deciding:
                free[first[p] + k in floats].append((at, first[p] + k))
        self._take_free, self._free = zip(*(self._scattered(f) for f in free), strict=True)

    def _scattered(self, free: list[tuple[int, int]]) -> tuple[Callable[[Sequence[Any]], tuple[Any, ...]], _Scatter]:
        """How to take what is put, and how to put it."""
        which = sorted({u for _, u in free})
        order = {u: k for k, u in enumerate(which)}
        return taker(which), _Scatter(self._frame, [(at, order[u], 0) for at, u in free])

    @staticmethod
    def _bits(floats: tuple[Any, ...]) -> bytes:
        return struct.pack(f"<{len(floats)}d", *floats)

    def ready(self, uniforms: Sequence[Scalar]) -> bool:
        if self._take_integers(uniforms) != self._integers or self._bits(self._take_seeds(uniforms)) != self._seeds:
            return False
        if self._plan.shared:
            self._pool().rouse()
        return True

    def run(self, storages: Sequence[Storage], uniforms: Sequence[Scalar]) -> Report:
        own = [Storage(Kind.F64, np.zeros(n)) for n in self._zeros]
        temporary = [self._blocks.allocate(kind, n) for kind, n in self._temporary]
        self._addresses.put(np.array([s.address for s in (*storages, *own, *temporary)], np.int64))
        integers, floats = [take(uniforms) for take in self._take_free]
        self._free[0].put(np.array(integers, np.int64))
        self._free[1].put(np.array(floats, np.float64).view(np.int64))
        frame = self._frame
        frame.lower(self._count)
        self._pool().run(self._plan, self._scratch)
        for s in temporary:
            self._blocks.release(s)
        return Report(frame.first_fault(0, self._count), {p: frame.kept(p) for p in self._filters})


def script(
    steps: Sequence[Step], storages: Sequence[Storage], blocks: Blocks, pool: Callable[[], Pool]
) -> HostScript | None:
    """blocks, pool: the backend's."""
    if any(s.compiled.apart for s in steps):
        return None
    notes = Notes()
    frame, plan = Frame(notes), Plan(len(steps))
    frame.begin(len(steps))
    temporary: list[Storage] = []
    scratch = 0
    for position, step in enumerate(steps):
        scratch = max(scratch, step.compiled.add(plan, frame, position, step, blocks, temporary))
    made = HostScript(steps, storages, temporary, frame, notes, plan, scratch, blocks, pool)
    frame.release()
    for s in temporary:
        blocks.release(s)
    return made
