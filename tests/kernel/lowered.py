"""Running kernels after kernel/faults.py with the oracle's own interpreter, to compare them with kernels as
extracted."""

from __future__ import annotations

import numpy as np

from osprey_py.backends.oracle.backend import deep_recursion, reader, store
from osprey_py.backends.oracle.program import Depth, write
from osprey_py.backends.protocol import KIND_OF, Storage
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import Kernel
from tests.fuzz.kernels import FAULT, Launch


def replaced(launch: Launch, kernel: Kernel) -> Launch:
    """The launch of another kernel with the same arguments."""
    return Launch(launch.op, kernel, launch.inputs, launch.uniforms, launch.n)


def lowered_outcome(launch: Launch, lowered: Lowered, *, eager: bool) -> bytes | str:
    """The bytes that a lowered kernel gives for the launch, or FAULT. eager: evaluate unchosen operands."""
    results = (lowered.result,) if lowered.fault is None else (lowered.result, lowered.fault)
    program = write(lowered, results, eager=eager)
    reads = [reader(s) for s in launch.inputs]
    element, init = program.bind(reads, [s.length for s in launch.inputs], launch.uniforms, Depth())
    values = []
    with deep_recursion():
        acc = () if init is None else (init(),)
        for i in range(launch.n):
            value, *fault = element(i, *acc)
            if fault and fault[0]:
                return FAULT
            values.append(value)
            acc = acc and (value,)
    if launch.op == "filter":
        values = [read for read, kept in zip(map(reads[0], range(launch.n)), values, strict=True) if kept]
    ty = launch.inputs[0].kind.type if launch.op == "filter" else lowered.type
    output = Storage(KIND_OF[ty], np.empty(len(values), KIND_OF[ty].dtype))
    store(output, values)
    return output.data.tobytes()
