"""Can this launch fault? Cheap answers that may err to one side only.

Comes in: a kernel; then the integers of a launch of it. Goes out: False when no element can fault, True when that is not
known. What the kernel alone does not tell (a product of indices, a division by a number of columns), its ranges at these
lengths and uniforms often do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from osprey_py.graph.buffer import Node
from osprey_py.graph.kernels import IOTA
from osprey_py.kernel import faults
from osprey_py.kernel.derive.lifted import counted
from osprey_py.kernel.ir import FLOAT, Kernel
from osprey_py.kernel.passes import prepared
from osprey_py.kernel.proof import Proofs
from osprey_py.kernel.ranges import Questions

MOST_REMEMBERED = 1024
"""Launches of a kernel that are remembered; when there are more it begins anew."""

_known: dict[Kernel, bool] = {}
_sized: dict[tuple[Kernel, tuple[int, ...]], _Sized | None] = {}


def may_fault(kernel: Kernel) -> bool:
    """Whether a fault bit is left when faults are made into values. A kernel is looked at once."""
    known = _known.get(kernel)
    if known is None:
        known = _known[kernel] = faults.may_fault(kernel)
    return known


def may_fault_here(node: Node) -> bool:
    """Whether a launch may fault, its integers considered."""
    kernel = node.kernel
    if node.length == 0 or kernel is None or not may_fault(kernel):
        return False
    iotas = tuple([k for k, x in enumerate(node.inputs) if x.kernel is IOTA])
    key = (kernel, iotas)
    if key not in _sized:
        # How deep a general kernel recurses is no part of a fault bit.
        _sized[key] = None if kernel.general else _Sized(counted(kernel, iotas))
    sized = _sized[key]
    return sized is None or sized.may_fault(node)


class _Sized:
    """What is known of the launches of one kernel. kernel: regular."""

    def __init__(self, kernel: Kernel) -> None:
        self._lowered = prepared(kernel)
        self._questions = Questions(self._lowered)
        self._integers = tuple(k for k, t in enumerate(kernel.uniforms) if t is not FLOAT)
        self._answers: dict[tuple[int, ...], bool] = {}
        self._proofs = Proofs(self._prove)

    def may_fault(self, node: Node) -> bool:
        uniforms: Sequence[int] = node.uniforms  # type: ignore[assignment]  # those that are asked for are ints
        key = (node.length, *[x.length for x in node.inputs], *[uniforms[k] for k in self._integers])
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= MOST_REMEMBERED:
                self._answers.clear()
            found = self._answers[key] = self._proofs.of(key)
        return found

    def _prove(self, key: Sequence[int]) -> bool:
        fault = self._lowered.fault
        if fault is None:
            return False
        slots = len(self._lowered.slots)
        known: list[int | float] = [nan] * len(self._lowered.uniforms)
        for k, value in zip(self._integers, key[1 + slots :], strict=True):
            known[k] = value
        return self._questions.answer(key[1 : 1 + slots], known, key[0]).values[fault] is not False
