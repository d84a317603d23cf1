"""Kernels by hand (conformance/by_hand.py), and an oracle that counts what it is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Report, Step, Storage
from osprey_py.conformance.by_hand import TEXT, at, elementwise, gather, op, running, span, total
from osprey_py.kernel.ir import walk

__all__ = ["TEXT", "Counting", "at", "elementwise", "gather", "op", "running", "span", "total"]


def check_overlap(step: Step) -> None:
    """An output lies over an input only where a map without folds reads it at its index, and over the base of an
    accumulate (the oracle would not notice)."""
    for slot, storage in enumerate(step.inputs):
        if np.shares_memory(storage.data, step.output.data):
            if step.op == "accumulate" and slot == 2:
                assert storage is step.output
                continue
            assert step.op == "map" and step.kernel is not None
            assert storage.address == step.output.address and storage.kind is step.output.kind
            loads = [n for n in walk(step.kernel.roots) if n.op == "load" and n.attr == slot]
            assert all(n.args[0].op == "index" for n in loads)
            assert all(n.op not in ("fold", "loop", "call") for n in walk(step.kernel.roots))


class Counting(OracleBackend):
    """Counts launches and live bytes, and recycles memory so that a use after release is seen: a step's output is filled
    before the step runs. Not when it is allocated, for all steps of a run are made first, and what an early one reads for
    the last time is a later one's output."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.live: dict[int, Storage] = {}
        self.allocated = 0
        self.free: dict[tuple[Kind, int], list[Storage]] = {}

    @property
    def live_bytes(self) -> int:
        return sum(s.data.nbytes for s in self.live.values())

    def allocate(self, kind: Kind, n: int) -> Storage:
        self.allocated += 1
        again = self.free.get((kind, n))
        storage = again.pop() if again else super().allocate(kind, n)
        self.live[id(storage)] = storage
        return storage

    def release(self, storage: Storage) -> None:
        if self.live.pop(id(storage), None) is not None:
            self.free.setdefault((storage.kind, storage.length), []).append(storage)

    def run(self, steps: Sequence[Step]) -> Report:
        counts: dict[int, int] = {}
        for position, step in enumerate(steps):
            check_overlap(step)
            self.ran.append(step.op if step.kernel is None else step.kernel.name)
            if not any(np.shares_memory(s.data, step.output.data) for s in step.inputs):
                step.output.data[:] = 77
            report = super().run((step,))
            if report.fault is not None:
                return Report(position, counts)
            for kept in report.counts.values():
                counts[position] = kept
        return Report(None, counts)
