"""Whether a pending graph is better run as two plans, so that memory that dies in the first is used again at once.

Comes in: the `Shape` of a graph, and how large the data is that it reads. Goes out: a `Cut`, or None.

A plan lets go of data from outside, and writes over it, only behind its last launch that may fault: what comes before must
be repeatable (graph/locate.py). In a training loop the plan holds an optimiser's update, in which the old parameters and
the gradient die, and then the next step's forward pass, which may fault (a layer norm divides). As one plan it needs the
old parameters to its end, so twice the memory, touched afresh in every step. Cut behind the last launch that reads the old
parameters, the first plan updates them in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osprey_py.graph.schedule import Shape

LARGE = 1 << 16
"""Bytes of a buffer whose end is worth looking at."""
WORTH = 1 << 20
"""Bytes that have to die early for a second plan to be worth its cost, some tens of microseconds."""


@dataclass(frozen=True, slots=True)
class Cut:
    """first: the nodes whose results the rest reads or somebody waits for, to be run before the rest."""

    first: tuple[int, ...]


def cut(shape: Shape, sizes: Sequence[int]) -> Cut | None:
    """Where to cut, if anywhere. sizes: bytes of the externals."""
    risky = [p for p, r in enumerate(shape.risky) if r]
    if not risky or not any(shape.dying):
        return None
    last = [-1] * len(shape.dying)
    for p, inputs in enumerate(shape.inputs):
        for v in inputs:
            if v >= shape.count:
                last[v - shape.count] = p
    ends = {k: at for k, at in enumerate(last) if shape.dying[k] and sizes[k] >= LARGE and at < risky[-1]}
    if not ends:
        return None
    end = max(ends.values())
    before = max((p for p in risky if p <= end), default=-1)
    if sum(sizes[k] for k, at in ends.items() if at > before) < WORTH:
        return None
    read = {v for inputs in shape.inputs[end + 1 :] for v in inputs if v <= end}
    # What reads nothing (an iota) is made again where it is read.
    first = tuple(p for p in range(end + 1) if shape.targets[p] or (p in read and shape.inputs[p]))
    return Cut(first) if first else None
