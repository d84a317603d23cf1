"""One run of the host: steps become native ones as they come, and the pool's workers begin with the first meanwhile.

Comes in: steps, one by one, and how many at most. Goes out: a `Report`. To make a step ready takes about ten microseconds
of Python on one thread; a run of hundreds would keep the others waiting for milliseconds. A kernel that may run without
end, or needs a deep stack, runs apart, after it is known that nothing before it faulted."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.backends.host.blocks import Blocks
from osprey_py.backends.host.compiled import Compiled
from osprey_py.backends.host.packing import Frame
from osprey_py.backends.host.pool import Plan, Pool
from osprey_py.backends.host.stack import on_deep_stack
from osprey_py.backends.protocol import Report, Step, Storage

EARLY = 16
"""Steps that a run must be going to have before workers begin early: waking them takes as long as some ten steps take."""

PORTION = 4
"""Native steps that are published at a time."""

ROOM = 3
"""Native steps that there is room for, for each step of a run; most become one. When there is none left, what is there has
to run first."""


class Running:
    """frame, plan: for this run alone until it ends. count: of steps, at most. pool: makes it when it is needed."""

    def __init__(
        self, frame: Frame, plan: Plan, blocks: Blocks, pool: Callable[[], Pool], threads: int, count: int
    ) -> None:
        self._frame, self._plan, self._blocks, self._pool = frame, plan, blocks, pool
        self._steps: list[Step] = []
        """All of them: they hold the storage that native steps know by address."""
        self._temporary: list[Storage] = []
        self._scratch = 0
        self._checked = 0
        self._faulted = False
        self._early = threads > 1 and count >= EARLY
        self._begun = False
        self._published = 0
        frame.begin(count)
        plan.clear(ROOM * count if self._early else 0)

    def add(self, step: Step) -> None:
        position = len(self._steps)
        self._steps.append(step)
        if step.n <= 0 or self._faulted:
            return
        plan = self._plan
        compiled: Compiled = step.compiled
        if compiled.apart:
            self._apart(step, position)
            return
        if self._begun and plan.steps + compiled.most > plan.room:
            self._flush()
        scratch = compiled.add(plan, self._frame, position, step, self._blocks, self._temporary)
        if scratch > self._scratch:
            self._scratch = scratch
        if self._early and plan.shared and plan.steps - self._published >= PORTION:
            if not self._begun:
                self._pool().begin(plan)
                self._begun = True
            self._pool().publish(plan, self._scratch)
            self._published = plan.steps

    def end(self) -> Report:
        """Everything has run."""
        self._flush()
        self._release()
        count = len(self._steps)
        kept = {p: self._frame.kept(p) for p, s in enumerate(self._steps) if s.op == "filter"}
        return Report(self._frame.first_fault(0, count), kept)

    def abandon(self) -> None:
        """Nothing runs any more, and nobody asks what came of it."""
        if self._begun:
            self._flush()
        self._plan.clear()
        self._release()

    def _apart(self, step: Step, position: int) -> None:
        self._flush()
        if self._frame.first_fault(self._checked, position) is not None:
            self._faulted = True
            return
        self._checked = position
        step.compiled.add(self._plan, self._frame, position, step, self._blocks, self._temporary)
        on_deep_stack(self._flush)

    def _flush(self) -> None:
        """Run what has been collected."""
        plan = self._plan
        if self._begun:
            self._begun = False
            self._pool().finish(plan, self._scratch)
        elif plan.steps:
            self._pool().run(plan, self._scratch)
        plan.clear()
        self._published = 0

    def _release(self) -> None:
        for storage in self._temporary:
            self._blocks.release(storage)
        self._temporary.clear()
