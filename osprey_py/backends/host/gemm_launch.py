"""From a map kernel's contractions to steps of the matrix kernels.

Comes in: a lowered map kernel with the kinds of its slots, then its launches. Goes out: for a launch that is a contraction,
a `Found`: the native step, still without addresses, and what is left to do with the sums; `bind` gives it buffers.

What a launch is depends on its integers alone, so it is found once for each set of them; for a new set, what was proven
for others is checked first (kernel/proof.py).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from osprey_py.backends.host import gemm
from osprey_py.backends.host.packing import Frame
from osprey_py.backends.protocol import Kind, Scalar, Step, Storage
from osprey_py.kernel.contraction import Candidate, Contraction, Side, candidates, match
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import FLOAT, fold_parts
from osprey_py.kernel.proof import Proofs

MOST_REMEMBERED = 512
"""Launches that one kernel remembers; when there are more it begins anew."""


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Found:
    """candidate: which fold it is, and the epilogue kernel. launch: the step on buffers at address 0.
    epilogue: whether the epilogue kernel has to run. inside: it can run block by block, as part of the step."""

    candidate: Candidate
    contraction: Contraction
    launch: gemm.Launch

    @property
    def epilogue(self) -> bool:
        return self.contraction.epilogue

    @property
    def inside(self) -> bool:
        return self.contraction.output_column == 1

    def bind(
        self, frame: Frame, inputs: Sequence[Storage], sums: Storage, epilogue: gemm.Epilogue | None = None
    ) -> tuple[gemm.Launch, int]:
        """The step that writes the sums of these inputs, and the address of its argument block in the frame."""
        left, right = inputs[self.contraction.left.slot], inputs[self.contraction.right.slot]
        step = self.launch.at(left.address, right.address, sums.address, epilogue)
        address = frame.put(step.words.raw)
        if frame.notes is not None:
            for k, (storage, offset) in enumerate(zip((left, right, sums), step.places, strict=True)):
                frame.notes.point(address + 8 * k, storage, offset)
        return step, address


class Contractions:
    """What is remembered of one kernel. threads: how many will share a step's units. deciding: which of a launch's uniforms
    decide what it is."""

    def __init__(self, kernel: Lowered, kinds: tuple[Kind, ...], threads: int) -> None:
        self.candidates = candidates(kernel)
        self.kinds = kinds
        self.threads = threads
        # A float decides nothing but the seed.
        seeds = {fold_parts(c.fold)[1][c.acc] for c in self.candidates}
        self._seeds = sorted({n.attr for n in seeds if n.op == "uniform" and isinstance(n.attr, int)})
        self._uniforms = kernel.uniforms
        self._ints = [k for k, ty in enumerate(kernel.uniforms) if ty is not FLOAT]
        self._proofs = Proofs(self._match)
        self.deciding = sorted({*self._ints, *self._seeds}) if self.candidates else []
        self._found: dict[tuple[object, ...], Found | None] = {}

    def find(self, lengths: Sequence[int], uniforms: Sequence[Scalar], n: int) -> Found | None:
        """What a launch of n > 0 elements with these lengths and uniforms is."""
        ints = uniforms if len(self._ints) == len(uniforms) else [uniforms[k] for k in self._ints]
        key: tuple[object, ...] = (n, *lengths, *ints)
        if self._seeds:
            key += tuple(struct.pack("<d", uniforms[k]) for k in self._seeds)
        try:
            return self._found[key]
        except KeyError:
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            found = self._found[key] = self._look(cast(tuple[int, ...], (n, *lengths, *ints)), uniforms)
            return found

    def of(self, step: Step) -> Found | None:
        """What a step is; None too where its sums have no place to go before the epilogue takes them."""
        if not self.candidates:
            return None
        found = self.find([s.length for s in step.inputs], step.uniforms, step.n)
        return found if found is None or found.epilogue or not overlaps(step) else None

    def _look(self, integers: Sequence[int], uniforms: Sequence[Scalar]) -> Found | None:
        which = self._proofs.of(integers)
        if which is None:
            return None
        number, contraction = which
        candidate = self.candidates[number]
        seed = fold_parts(candidate.fold)[1][candidate.acc]
        if seed.op == "uniform" and not contraction.started:
            assert isinstance(seed.attr, int)
            contraction = replace(contraction, seed=float(uniforms[seed.attr]))
        return Found(candidate, contraction, gemm.launch(self._product(contraction), self.threads))

    def _match(self, integers: Sequence[int]) -> tuple[int, Contraction] | None:
        """Which candidate a launch is, and how, but for a seed that is captured; it is found for n, the lengths and the
        captured integers."""
        n, lengths = integers[0], integers[1 : 1 + len(self.kinds)]
        known: list[int | float] = [0.0] * len(self._uniforms)
        for k, u in zip(self._ints, integers[1 + len(self.kinds) :], strict=True):
            known[k] = u
        for number, candidate in enumerate(self.candidates):
            contraction = match(candidate, lengths, known, n)
            if contraction is not None:
                return number, contraction
        return None

    def _product(self, c: Contraction) -> gemm.Product:
        return gemm.Product(
            c.m,
            c.n,
            c.terms,
            self._operand(c.left),
            self._operand(c.right),
            0,
            c.output_row,
            c.output_column,
            c.seed,
            tuple(gemm.Dimension(b.extent, b.left, b.right, b.output, b.terms, b.first) for b in c.batch),
            c.row_terms,
            c.started,
            c.epilogue and c.output_column == 1,
            c.first,
            c.row_first,
            c.most,
        )

    def _operand(self, side: Side) -> gemm.Operand:
        kind = self.kinds[side.slot]
        return gemm.Operand(side.offset * kind.itemsize, kind, side.row, side.depth)


def overlaps(step: Step) -> bool:
    """Whether the output lies on an input: then the sums must wait elsewhere, for the epilogue still reads that input."""
    low = step.output.address
    high = low + step.output.data.nbytes
    for s in step.inputs:
        start = s.address
        if start < high and (start >= low or low < start + s.data.nbytes):
            return True
    return False
