"""How many elements of a row go side by side in vectors: part of a shape, decided before any code is written."""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import FLOAT, walk

LIGHT = 60
"""Floating point operations that are worth writing twice: in whole vectors and in masked ones."""


_EXPANDED = frozenset({"exp", "ln", "tanh"})

FEW = 2
"""Calls of these that are still worth writing twice. Each is a long chain of operations that wait for one another; a
processor that looks a hundred operations ahead is busy only when several vectors of them run together."""


@dataclass(frozen=True, slots=True)
class Widths:
    """Lanes of whole vectors (None: all vectors are masked) and of masked ones; with one lane there are no vectors."""

    whole: int | None
    masked: int


SCALAR = Widths(None, 1)


def widths(kernel: Lowered, lanes: int, extent: int) -> Widths:
    """How many elements of a row of `extent` go side by side. A fold's chain of additions waits for itself, so
    several vectors of them run together, and so do a few of exp, ln and tanh; light bodies too, to have work between the
    loop's own instructions. Heavy bodies have work enough, and are written once."""
    nodes = list(walk(kernel.roots))
    folds = any(n.op == "fold" for n in nodes)
    expanded = sum(n.op in _EXPANDED for n in nodes)
    if expanded > (0 if folds else FEW) or sum(n.type is FLOAT for n in nodes) > LIGHT:
        return Widths(None, lanes)
    whole = lanes * (4 if folds or expanded else 2)
    return Widths(whole if extent >= whole else None, lanes)
