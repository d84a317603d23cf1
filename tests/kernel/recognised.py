"""What a kernel is recognised as, and what that says, computed the plain way."""

from __future__ import annotations

import itertools

import numpy as np

from osprey_py.kernel.contraction import Contraction, candidates, match
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import Kernel


def recognise(k: Kernel, lengths: tuple[int, ...], uniforms: tuple[int | float, ...], n: int) -> Contraction | None:
    for c in candidates(lower(k)):
        found = match(c, lengths, uniforms, n)
        if found is not None:
            return found
    return None


def sums(c: Contraction, slots: list[np.ndarray], n: int) -> np.ndarray:
    """What a contraction says, computed the plain way."""
    out = np.full(n, np.nan)
    extents = [range(b.extent) for b in c.batch]
    for place in itertools.product(*extents, range(c.m), range(c.n)):
        *batch, i, j = place
        at_l, at_r, at_o = c.left.offset, c.right.offset, 0
        first, end = c.first + i * c.row_first, c.terms + i * c.row_terms
        for d, b in zip(batch, c.batch, strict=True):
            at_l, at_r, at_o = at_l + d * b.left, at_r + d * b.right, at_o + d * b.output
            first, end = first + d * b.first, end + d * b.terms
        acc = c.seed
        for k in range(max(0, first), end if c.most is None else min(end, c.most)):
            left = slots[c.left.slot][at_l + i * c.left.row + k * c.left.depth]
            right = slots[c.right.slot][at_r + j * c.right.row + k * c.right.depth]
            acc = acc + left * right
        out[at_o + i * c.output_row + j * c.output_column] = acc
    return out
