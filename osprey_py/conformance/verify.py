"""Two backends in step: every step runs on both, and every buffer is compared as it is made.

Comes in: the backend that is right and the one under test. Goes out: a `Backend` that gives the right one's results, or a
`Differs` at the first step whose bytes or faults are not the same. Each has memory of its own, so what went wrong in one
buffer is not passed on to the next comparison's other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from osprey_py.backends.protocol import (
    Backend,
    Capabilities,
    DeviceError,
    Kind,
    Report,
    Step,
    StepOp,
    Storage,
)
from osprey_py.conformance.compare import first_difference
from osprey_py.kernel.ir import Kernel


class Differs(DeviceError):
    """The tested backend gave other bytes, or another fault."""


class Pair(Storage):
    """The same elements in the memory of both backends."""

    __slots__ = ("right", "tested")

    right: Storage
    tested: Storage

    def __init__(self, right: Storage, tested: Storage) -> None:
        for name, value in (
            ("right", right),
            ("tested", tested),
            ("kind", right.kind),
            ("length", right.length),
            ("whole", None),
            ("begin", right.begin),
            ("address", right.address),
        ):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> npt.NDArray[Any]:
        return self.right.data

    def part(self, begin: int, end: int) -> Storage:
        return Pair(self.right.part(begin, end), self.tested.part(begin, end))

    def put(self, values: Any) -> None:
        self.right.put(values)
        self.tested.put(values)


class Verifying:
    """name: the right backend's. steps: how many were compared."""

    def __init__(self, right: Backend, tested: Backend) -> None:
        self.right = right
        self.tested = tested
        self.name = right.name
        self.steps = 0

    @property
    def capabilities(self) -> Capabilities:
        """The right one's, but for what changes which launches are made: that both must have."""
        right = self.right.capabilities
        return replace(right, bases=right.bases and self.tested.capabilities.bases)

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Any:
        right, tested = _sides(example)
        return self.right.compile(op, kernel, kinds, right), self.tested.compile(op, kernel, kinds, tested)

    def allocate(self, kind: Kind, n: int) -> Storage:
        return Pair(self.right.allocate(kind, n), self.tested.allocate(kind, n))

    def release(self, storage: Storage) -> None:
        if isinstance(storage, Pair):
            self.right.release(storage.right)
            self.tested.release(storage.tested)

    def summary(self) -> str:
        """What was found when nothing was."""
        return f"{self.steps} steps: {self.tested.name} gave {self.right.name}'s bytes in each"

    def run(self, steps: Sequence[Step]) -> Report:
        counts: dict[int, int] = {}
        for position, step in enumerate(steps):
            right, tested = _sides(step)
            expected = self.right.run([replace(right, compiled=step.compiled[0])])
            found = self.tested.run([replace(tested, compiled=step.compiled[1])])
            self.steps += 1
            kept = expected.counts.get(0)
            names = self.right.name, self.tested.name
            text = first_difference(
                (expected.fault is not None, right.output.part(0, step.n if kept is None else kept)),
                (found.fault is not None, tested.output.part(0, step.n if kept is None else found.counts.get(0, 0))),
                names,
            )
            if text is not None:
                what = step.op if step.kernel is None else f"{step.op} `{step.kernel.name}`"
                raise Differs(f"{what} differs: {text}", _HELP, position, self.tested.name)
            if expected.fault is not None:
                return Report(position, counts)
            if kept is not None:
                counts[position] = kept
        return Report(None, counts)


_HELP = "a device that gives other bytes than the host is a mistake of the device's backend"


def _sides(step: Step) -> tuple[Step, Step]:
    right = tuple(s.right if isinstance(s, Pair) else s for s in step.inputs)
    tested = tuple(s.tested if isinstance(s, Pair) else s for s in step.inputs)
    assert isinstance(step.output, Pair)
    return replace(step, inputs=right, output=step.output.right), replace(
        step, inputs=tested, output=step.output.tested
    )
