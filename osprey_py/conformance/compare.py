"""What two backends made of the same thing, and what differs first.

Comes in: a `Case`, the backend that is right and the one under test; or two outcomes. Goes out: None, or a sentence that
names the element and both values in hexadecimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osprey_py.backends.protocol import KIND_OF, Backend, Refused, Step, Storage
from osprey_py.conformance.cases import Case
from osprey_py.kernel.ir import FLOAT


@dataclass(frozen=True, slots=True)
class Outcome:
    """fault: the step faulted, and output says nothing. output: what the step left, cut to what a filter kept."""

    fault: bool
    output: Storage


def run_case(backend: Backend, case: Case) -> Outcome:
    """One case on one backend."""
    result = FLOAT if case.kernel is None else case.kernel.type
    output = backend.allocate(KIND_OF[case.inputs[0].kind.type if case.op == "filter" else result], case.n)
    bare = Step(case.op, case.kernel, case.inputs, case.uniforms, case.n, output, None)
    compiled = backend.compile(case.op, case.kernel, tuple(s.kind for s in case.inputs), bare)
    step = Step(case.op, case.kernel, case.inputs, case.uniforms, case.n, output, compiled)
    report = backend.run([step])
    kept = report.counts[0] if case.op == "filter" and report.fault is None else case.n
    return Outcome(report.fault is not None, output.part(0, kept))


def difference(case: Case, right: Backend, tested: Backend) -> str | None:
    """What differs, in a sentence; None when nothing does. Recursion may be refused by who says so."""
    try:
        found = run_case(tested, case)
    except Refused as refused:
        return None if may_refuse(case, tested) else f"{tested.name} refuses it: {refused.text}"
    expected = run_case(right, case)
    return first_difference((expected.fault, expected.output), (found.fault, found.output), (right.name, tested.name))


def may_refuse(case: Case, tested: Backend) -> bool:
    """Whether a backend may refuse a case: recursion, by who says that it has none."""
    return case.kernel is not None and bool(case.kernel.functions) and not tested.capabilities.recursion


def first_difference(expected: tuple[bool, Storage], found: tuple[bool, Storage], names: tuple[str, str]) -> str | None:
    """(faulted, output) of the right one and of the tested: what differs first."""
    right, tested = names
    if expected[0] or found[0]:
        if expected[0] == found[0]:
            return None
        return f"{right} faults, {tested} does not" if expected[0] else f"{tested} faults, {right} does not"
    a, b = expected[1].data, found[1].data
    if len(a) != len(b):
        return f"{right} gives {len(a)} elements, {tested} {len(b)}"
    if a.tobytes() == b.tobytes():
        return None
    size = a.dtype.itemsize
    left, other = (np.frombuffer(x.tobytes(), dtype=f"V{size}") for x in (a, b))
    at = next(i for i in range(len(a)) if left[i] != other[i])
    return f"element {at}: {right} {_hex(expected[1], at)}, {tested} {_hex(found[1], at)}"


def _hex(storage: Storage, at: int) -> str:
    data = storage.data
    value = data[at].item()
    if storage.kind.type is not FLOAT:
        return f"{value} (0x{value & (1 << 8 * data.dtype.itemsize) - 1:0{2 * data.dtype.itemsize}x})"
    bits = int(data[at : at + 1].view(np.uint64)[0])
    return f"{value.hex()} (0x{bits:016x})"
