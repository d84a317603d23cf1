"""Whether a pending graph is better run as two plans, so that memory that dies in the first is used again at once.

Comes in: the `Shape` of a graph, and how large its results are and the data that it reads. Goes out: a `Cut`, or None.

A plan lets go of data from outside, and writes over it, only behind its last launch that may fault: what comes before must
be repeatable (graph/locate.py). In a training loop the plan holds an optimiser's update, in which the old parameters and
the gradient die, and then the next step's forward pass, which may fault (a layer norm divides). As one plan it needs the
old parameters to its end, so twice the memory, touched afresh in every step. Cut behind the last launch that reads the old
parameters, the first plan updates them in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osprey_py.graph.kernels import reads_only_at_index
from osprey_py.graph.schedule import Shape

LARGE = 1 << 16
"""Bytes of a buffer whose end is worth looking at."""
WORTH = 1 << 20
"""Bytes that have to die early for a second plan to be worth its cost, some tens of microseconds."""


@dataclass(frozen=True, slots=True)
class Cut:
    """first: the nodes whose results the rest reads or somebody waits for, to be run before the rest."""

    first: tuple[int, ...]


def cut(shape: Shape, sizes: Sequence[int], made: Sequence[int]) -> Cut | None:
    """Where to cut, if anywhere. sizes: bytes of the externals; made: of the nodes' results."""
    risky = [p for p, r in enumerate(shape.risky) if r]
    if not risky or not any(shape.dying):
        return None
    last = [-1] * len(shape.dying)
    readers: list[list[int]] = [[] for _ in shape.ops]
    for p, inputs in enumerate(shape.inputs):
        for v in inputs:
            if v >= shape.count:
                last[v - shape.count] = p
            else:
                readers[v].append(p)
    ending = [0] * risky[-1]
    for at, size, dies in zip(last, sizes, shape.dying, strict=True):
        if dies and size >= LARGE and 0 <= at < risky[-1]:
            ending[at] += size
    crossing = _crossing(shape, readers, made)
    end, most, freed, stored = -1, WORTH - 1, 0, 0
    for p, size in enumerate(ending):
        freed = 0 if shape.risky[p] else freed + size
        stored += crossing[p]
        if freed - stored > most:
            end, most = p, freed - stored
    if end < 0:
        return None
    # What reads nothing (an iota) is made again where it is read.
    first = tuple(
        p for p in range(end + 1) if shape.targets[p] or (shape.inputs[p] and readers[p] and readers[p][-1] > end)
    )
    return Cut(first) if first else None


def _crossing(shape: Shape, readers: Sequence[Sequence[int]], made: Sequence[int]) -> list[int]:
    """By position, how many bytes more a cut behind it stores than one before it: results that their only reader would
    have computed where it reads them."""
    found = [0] * (shape.count + 1)
    for p, by in enumerate(readers):
        if shape.needed[p] or len(by) != 1:
            continue
        kernel, inputs = shape.kernels[by[0]], shape.inputs[by[0]]
        slot = inputs.index(p)
        if kernel is not None and shape.same[by[0]][slot] and slot in reads_only_at_index(kernel):
            found[p] += made[p]
            found[by[0]] -= made[p]
    return found
