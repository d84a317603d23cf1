"""The oracle backend: steps run element by element, in the order of the specification.

Comes in: `Step`s (backends/protocol.py). Goes out: bytes that every other backend must equal, or the fault that strict
order meets first (spec/gpu-surface, S1, S3, S4).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from osprey_py.backends.oracle.program import Depth, Program, write
from osprey_py.backends.protocol import Capabilities, Kind, Report, Scalar, Step, StepOp, Storage
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import Kernel
from osprey_py.kernel.scalars import NAN

_WHOLE = 1 << 17
"""Storage up to this length is turned into a list at once; longer storage is read one element at a time."""

_PYTHON_FRAMES = 20_000_000
"""More than MAX_DEPTH frames of kernel recursion, each a few Python frames, can need."""


def values(storage: Storage) -> list[Any]:
    """The elements as Python ints, floats or bools; narrow floats widened exactly."""
    return _widened(storage.kind, storage.data).tolist()  # type: ignore[no-any-return]


def _widened(kind: Kind, data: Any) -> Any:
    if kind is Kind.BF16:
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return data.astype(np.bool_) if kind is Kind.BOOL else data


def reader(storage: Storage) -> Callable[[int], Any]:
    """A function from a place in range to the element there."""
    if storage.length <= _WHOLE:
        return values(storage).__getitem__
    kind, data = storage.kind, storage.data
    return lambda at: _widened(kind, data[at : at + 1]).item()


def store(storage: Storage, elements: Sequence[Scalar]) -> None:
    """Write the first elements; every NaN becomes the canonical one."""
    if storage.kind is Kind.F64:
        elements = [NAN if e != e else e for e in elements]
    storage.data[: len(elements)] = elements


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for MAX_DEPTH frames of kernel recursion: Python calls of Python functions need no machine stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _PYTHON_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class OracleBackend:
    """The specification as a `Backend`. `compile` gives a Program, or None for steps without a kernel."""

    name = "oracle"
    capabilities = Capabilities("the specification in Python, one element at a time", bases=True)

    def compile(
        self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step | None = None
    ) -> Program | None:
        return None if kernel is None else write(kernel)

    def allocate(self, kind: Kind, n: int) -> Storage:
        if n * kind.itemsize > sys.maxsize:
            raise MemoryError
        return Storage(kind, np.empty(n, kind.dtype))

    def release(self, storage: Storage) -> None:
        pass

    def run(self, steps: Sequence[Step]) -> Report:
        counts: dict[int, int] = {}
        for position, step in enumerate(steps):
            try:
                kept = run_step(step)
            except MathFault:
                return Report(position, counts)
            if step.op == "filter":
                counts[position] = kept
        return Report(None, counts)


def run_step(step: Step) -> int:
    """Run one step and write its output; how many elements it has. Raises MathFault, with its element, from the first
    element that faults; nothing is written then."""
    if step.op == "accumulate":
        elements = _accumulate(step)
    else:
        with deep_recursion():
            elements = list(_elements(step))
    if step.op == "filter":
        source = reader(step.inputs[0])
        elements = [source(i) for i, kept in enumerate(elements) if kept]
    store(step.output, elements)
    return len(elements)


def evaluate_element(step: Step, i: int) -> Scalar:
    """What the kernel of a map, filter or scan step gives at index i (of a scan: after all elements before it).
    Raises MathFault with its element. O(i) for a scan."""
    with deep_recursion():
        if step.op == "scan":
            return next(islice(_elements(step), i, None))
        element, _ = _bind(step)
        return _at(element, i)


def find_fault(step: Step) -> MathFault | None:
    """The first fault of a step in strict order, with its element; None when there is none."""
    if step.op == "accumulate":
        return None
    try:
        with deep_recursion():
            for _ in _elements(step):
                pass
    except MathFault as fault:
        return fault
    return None


def _bind(step: Step) -> tuple[Callable[..., Scalar], Callable[[], Scalar] | None]:
    program = step.compiled
    if not isinstance(program, Program):
        assert step.kernel is not None
        program = write(step.kernel)
    inputs = step.inputs
    return program.bind([reader(s) for s in inputs], [s.length for s in inputs], step.uniforms, Depth())


def _elements(step: Step) -> Iterator[Scalar]:
    element, init = _bind(step)
    if step.op == "scan":
        assert init is not None
        acc = init()
        for i in range(step.n):
            acc = _at(element, i, acc)
            yield acc
    else:
        for i in range(step.n):
            yield _at(element, i)


def _at(element: Callable[..., Scalar], i: int, *acc: Scalar) -> Scalar:
    try:
        return element(i, *acc)
    except MathFault as fault:
        fault.element = i
        raise


def _accumulate(step: Step) -> list[Scalar]:
    sums: dict[int, float] = {}
    for at, value in zip(values(step.inputs[0]), values(step.inputs[1]), strict=True):
        if at >= 0:
            sums[at] = sums.get(at, 0.0) + value
    if len(step.inputs) < 3:
        return [sums.get(t, 0.0) for t in range(step.n)]
    return [x + sums[t] if t in sums else x for t, x in enumerate(values(step.inputs[2]))]
