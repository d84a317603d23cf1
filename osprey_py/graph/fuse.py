"""Which launches become one: from the shape of a pending graph to the groups that a plan runs.

Comes in: a `Shape`. Goes out: `Group`s in strict order, each one step of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.backends.protocol import StepOp
from osprey_py.graph.buffer import STEP_OF
from osprey_py.graph.kernels import copy_kernel
from osprey_py.graph.schedule import Shape
from osprey_py.kernel.ir import Kernel, Ty

Pick = tuple[int, int]
"""A uniform of a step: (node, k) is the node's k-th; (value, LENGTH) is the value's length."""
LENGTH = -1


@dataclass(frozen=True, slots=True)
class Group:
    """One step. value: the node whose result it makes. part: which half of a concat it fills, else None.
    extent: the value whose length is the number of elements. inputs: value ids, by slot. members: the nodes
    computed."""

    op: StepOp
    kernel: Kernel | None
    value: int
    part: int | None
    extent: int
    inputs: tuple[int, ...]
    picks: tuple[Pick, ...]
    members: tuple[int, ...]
    risky: bool


def unfused(shape: Shape, types: tuple[Ty, ...]) -> list[Group]:
    """Each launch by itself (a concat is two copies). types: of the nodes' results."""
    groups = []
    for p in range(shape.count):
        op, kernel, inputs = shape.ops[p], shape.kernels[p], shape.inputs[p]
        if op == "concat":
            for part, source in enumerate(inputs):
                groups.append(Group("map", copy_kernel(types[p]), p, part, source, (source,), (), (p,), False))
            continue
        picks = tuple((p, k) for k in range(len(kernel.uniforms))) if kernel is not None else ()
        groups.append(Group(STEP_OF[op], kernel, p, None, p, inputs, picks, (p,), shape.risky[p]))
    return groups
