"""A backend that has a driver: kernels become C, steps become launches in one queue.

Comes in: `Step`s (backends/protocol.py). Goes out: bytes equal to the oracle's, or a report of a step that faulted, or the
reason why the device cannot run one. The queue keeps the order of the steps; the host waits only where it must know
something: whether a step faulted, what a filter kept, an element. A kernel that may run without end waits until it is known
that nothing before it faulted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osprey_py.backends.c.driver import Driver
from osprey_py.backends.c.launches import Compiled, Device, Run, Tiles
from osprey_py.backends.c.memory import Block, Memory
from osprey_py.backends.c.product import Tile
from osprey_py.backends.protocol import Capabilities, DeviceError, Kind, Refused, Report, Step, StepOp, Storage
from osprey_py.kernel.associative import reduction
from osprey_py.kernel.ir import Kernel
from osprey_py.kernel.passes import prepared

SMALLEST = Tile((1, 1), (1, 1), 16)


class QueueBackend:
    """name: of the device. tiles: of contractions, those that fit the device; bytes do not depend on them. shares: how
    many items an accumulation gets, and at most a reduction."""

    def __init__(
        self, name: str, driver: Driver, capabilities: Capabilities, tiles: Sequence[Tile], shares: int
    ) -> None:
        self.name = name
        self.driver = driver
        self.capabilities = capabilities
        self.memory = Memory(driver)
        self.device = Device(driver, self.memory, Tiles(_fitting(tiles, capabilities) or [SMALLEST]), shares)
        self._answers: tuple[Block, Block] | None = None
        self._down = np.zeros(0, np.int32)

    @property
    def moved(self) -> tuple[int, int]:
        """Bytes that came to the device, and that went from it."""
        return self.memory.moved[0], self.memory.moved[1]

    @property
    def launched(self) -> int:
        """How many launches the driver was given."""
        return self.device.launched

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Compiled:
        if kernel is not None and kernel.functions:
            raise Refused(
                f"a kernel with recursion that is no loop (`{kernel.functions[0].name}`), which this device does not have",
                "a call that is the last thing its function does is a loop, which every device runs",
            )
        if kernel is None:
            return Compiled(self.device, op, None, kinds)
        return Compiled(self.device, op, prepared(kernel), kinds, reduction(kernel))

    def allocate(self, kind: Kind, n: int) -> Storage:
        return self.memory.allocate(kind, n)

    def release(self, storage: Storage) -> None:
        self.memory.release(storage)

    def run(self, steps: Sequence[Step]) -> Report:
        filters = any(s.op == "filter" for s in steps)
        asked = filters or any(s.compiled.faults for s in steps)
        run = self._begin(len(steps), asked)
        pending = False
        position = 0
        try:
            for position, step in enumerate(steps):
                if step.n <= 0:
                    continue
                compiled: Compiled = step.compiled
                if pending and compiled.apart and self._read(len(steps))[0] is not None:
                    break
                compiled.enqueue(step, run, position)
                pending = pending or compiled.faults
            fault, totals = self._read(len(steps), filters) if asked else (None, [])
            self.driver.flush()
        except DeviceError as error:
            if error.step is None:
                error.step = position
            raise
        for block in run.temporary:
            self.memory.give_back(block)
        return Report(fault, {p: totals[p] if s.n > 0 else 0 for p, s in enumerate(steps) if s.op == "filter"})

    def _begin(self, count: int, asked: bool) -> Run:
        """Flags that are down, where somebody will look, and places for totals, for so many steps."""
        if self._answers is None or count > len(self._down):
            room = max(64, 2 * count)
            self._answers = self.memory.block(4 * room, apart=True), self.memory.block(8 * room, apart=True)
            self._down = np.zeros(room, np.int32)
        flags, totals = self._answers
        if asked:
            self.driver.write(flags.buffer, 0, self._down[:count])
        return Run(flags.buffer, totals.buffer)

    def _read(self, count: int, filters: bool = False) -> tuple[int | None, list[int]]:
        """(the first step whose flag is up, the totals of filters; of other steps, and if there is none, anything)."""
        assert self._answers is not None
        flags, totals = np.empty(count, np.int32), np.empty(count, np.int64)
        self.driver.read(self._answers[0].buffer, 0, flags)
        if filters:
            self.driver.read(self._answers[1].buffer, 0, totals)
        raised = np.flatnonzero(flags)
        return (int(raised[0]) if len(raised) else None), [int(t) for t in totals]


def _fitting(tiles: Sequence[Tile], c: Capabilities) -> list[Tile]:
    return [t for t in tiles if t.items[0] * t.items[1] <= c.work_group and t.local_bytes <= c.local_memory]
