"""Recipes carried out on a backend, launch by launch: what graph/backward.py does, in the plainest way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import KIND_OF, Backend, Step, Storage
from osprey_py.kernel.derive.derive import recipe
from osprey_py.kernel.derive.recipe import Adjoint, Dense, Given, Input, Made, Ref, Result
from osprey_py.kernel.ir import FLOAT, Kernel
from osprey_py.kernel.verify import verify


def buffer(values: Sequence[Any], like: Any = FLOAT) -> Storage:
    return Storage(KIND_OF[like], np.array(values, KIND_OF[like].dtype))


def run(
    backend: Backend, op: Any, kernel: Kernel, inputs: tuple[Storage, ...], uniforms: tuple[Any, ...], n: int
) -> Storage:
    output = Storage(KIND_OF[kernel.type], np.empty(n, KIND_OF[kernel.type].dtype))
    if n:
        kinds = tuple(s.kind for s in inputs)
        example = Step(op, kernel, inputs, uniforms, n, output, None)
        step = Step(op, kernel, inputs, uniforms, n, output, backend.compile(op, kernel, kinds, example))
        assert backend.run([step]).fault is None
    return output


def subtotals(
    op: Any,
    kernel: Kernel,
    active: tuple[int, ...],
    inputs: tuple[Storage, ...],
    uniforms: tuple[Any, ...],
    n: int,
    result: Storage,
    adjoint: Storage,
    backend: Backend | None = None,
    iotas: tuple[int, ...] = (),
) -> list[tuple[int, list[float]]]:
    """(slot, subtotal of each element), in order."""
    backend = backend or OracleBackend()
    found = recipe(op, kernel, active, tuple(s.length for s in inputs), uniforms, n, iotas)
    made: list[Storage] = []

    def of(ref: Ref) -> Storage:
        match ref:
            case Input(k):
                return inputs[k]
            case Result():
                return result
            case Adjoint():
                return adjoint
            case Made(j):
                return made[j]

    for m in found.makes:
        verify(m.kernel)
        given = tuple(uniforms[u.k] if isinstance(u, Given) else u for u in m.uniforms)
        made.append(run(backend, m.op, m.kernel, tuple(map(of, m.inputs)), given, m.length))
    out: list[tuple[int, list[float]]] = []
    for k, sub in found.subtotals:
        if isinstance(sub, Dense):
            values = of(sub.values).data.tolist()
            assert len(values) == inputs[k].length
            if sub.exact:
                assert not any(v == 0.0 and np.signbit(v) for v in values)
        else:
            values = [0.0] * inputs[k].length
            for i, v in zip(of(sub.indices).data.tolist(), of(sub.values).data.tolist(), strict=True):
                if i != -1:
                    values[i] += v
        out.append((k, values))
    return out
