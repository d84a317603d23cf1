"""The host backend: kernels become machine code, steps become plans of native calls.

Comes in: `Step`s (backends/protocol.py). Goes out: bytes equal to the oracle's, or a report of the first step that
faulted (running.py), now or, for steps that run again and again, later (script.py)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from osprey_py.backends.host.blocks import IDLE, Blocks
from osprey_py.backends.host.compiled import Compiled
from osprey_py.backends.host.packing import Frame
from osprey_py.backends.host.pool import Plan, Pool
from osprey_py.backends.host.running import Running
from osprey_py.backends.host.script import script
from osprey_py.backends.limits import Limits
from osprey_py.backends.protocol import Capabilities, Kind, Report, Script, Step, StepOp, Storage
from osprey_py.kernel.ir import Kernel
from osprey_py.kernel.passes import ALL, Passes, prepared


class HostBackend:
    """Native code on this machine's processors. threads: how many, all of them by default. nests: whether loops
    rely on what a launch's integers prove, vectors included; vectors: whether they do so in vectors. contractions:
    whether sums of products go to the matrix kernels. recycling: whether memory that was released is handed out again.
    passes: which of the kernel's passes run. Results depend on none of these."""

    name = "host"
    # _blocks: what the graph asks for. _apart: what steps need for themselves, for what the graph has given back in a run
    # may still be read in it.

    def __init__(
        self,
        threads: int | None = None,
        *,
        nests: bool = True,
        vectors: bool = True,
        contractions: bool = True,
        recycling: bool = True,
        passes: Passes = ALL,
    ) -> None:
        self.threads = threads or os.cpu_count() or 1
        self.nests = nests
        self.vectors = vectors
        self.contractions = contractions
        self.passes = passes
        self.capabilities = Capabilities("this machine's processors, native code", units=self.threads, bases=True)
        self._blocks, self._apart = (Blocks(IDLE if recycling else 0) for _ in range(2))
        self._frame = Frame()
        self._plan = Plan()
        self._pool: Pool | None = None

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Compiled:
        lowered = None if kernel is None else prepared(kernel, self.passes)
        return Compiled(
            op, lowered, kinds, self.threads, nests=self.nests, vectors=self.vectors, contractions=self.contractions
        )

    def allocate(self, kind: Kind, n: int) -> Storage:
        return self._blocks.allocate(kind, n)

    def release(self, storage: Storage) -> None:
        self._blocks.release(storage)

    def limits(self) -> Limits:
        """What these threads can do at most."""
        from osprey_py.backends.host.limits import measured

        return measured(self.threads)

    def ready(self, step: Step) -> None:
        """Make or load the code of a step, and do nothing else, so that profiles can time it apart."""
        if step.n > 0:
            temporary: list[Storage] = []
            self._frame.begin(1)
            self._plan.clear()
            step.compiled.add(self._plan, self._frame, 0, step, self._apart, temporary)
            self._plan.clear()
            for storage in temporary:
                self._apart.release(storage)

    def script(self, steps: Sequence[Step], storages: Sequence[Storage]) -> Script | None:
        return script(steps, storages, self._apart, self._threads)

    def begin(self, count: int) -> Running:
        return self._running(count)

    def run(self, steps: Sequence[Step]) -> Report:
        running = self._running(len(steps))
        try:
            for step in steps:
                running.add(step)
            return running.end()
        except BaseException:
            running.abandon()
            raise

    def _running(self, count: int) -> Running:
        return Running(self._frame, self._plan, self._apart, self._threads, self.threads, count)

    def _threads(self) -> Pool:
        if self._pool is None:
            self._pool = Pool(self.threads)
        return self._pool
