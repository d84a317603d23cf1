"""One case on two backends, and what differs first.

Comes in: a `Case`, the backend that is right and the one under test. Goes out: None, or a sentence that names the element
and both values in hexadecimal.
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
    return Outcome(report.fault is not None, Storage(output.kind, output.data[:kept]))


def difference(case: Case, right: Backend, tested: Backend) -> str | None:
    """What differs, in a sentence; None when nothing does. Recursion may be refused by who says so."""
    try:
        found = run_case(tested, case)
    except Refused as refused:
        if case.kernel is not None and case.kernel.functions and not tested.capabilities.recursion:
            return None
        return f"{tested.name} refuses it: {refused.text}"
    expected = run_case(right, case)
    if expected.fault or found.fault:
        if expected.fault == found.fault:
            return None
        return (
            f"{right.name} faults, {tested.name} does not"
            if expected.fault
            else f"{tested.name} faults, {right.name} does not"
        )
    a, b = expected.output.data, found.output.data
    if len(a) != len(b):
        return f"{right.name} gives {len(a)} elements, {tested.name} {len(b)}"
    if a.tobytes() == b.tobytes():
        return None
    size = a.dtype.itemsize
    left, other = (np.frombuffer(x.tobytes(), dtype=f"V{size}") for x in (a, b))
    at = next(i for i in range(len(a)) if left[i] != other[i])
    return f"element {at}: {right.name} {_hex(expected.output, at)}, {tested.name} {_hex(found.output, at)}"


def _hex(storage: Storage, at: int) -> str:
    value = storage.data[at].item()
    if storage.kind.type is not FLOAT:
        return str(value)
    bits = int(storage.data[at : at + 1].view(np.uint64)[0])
    return f"{value.hex()} (0x{bits:016x})"
