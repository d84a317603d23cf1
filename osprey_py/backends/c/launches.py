"""One kernel of a C backend: its functions, and how a step becomes launches in the queue.

Comes in: an operation with its lowered kernel, then steps. Goes out: launches, in the queue's order. A map that is, at its
integers, a sum of products becomes what the sums begin with, the contraction, and what the kernel does with the sums.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from osprey_py.backends.c import library, reduction
from osprey_py.backends.c.driver import Driver, Programs
from osprey_py.backends.c.kernels import Text, elementwise, scan
from osprey_py.backends.c.memory import Block, DeviceStorage, Memory
from osprey_py.backends.c.product import Tile, Variant, product
from osprey_py.backends.prepare import prepare
from osprey_py.backends.protocol import KIND_OF, Kind, Scalar, Step, StepOp, Storage
from osprey_py.kernel.associative import Reduction, count
from osprey_py.kernel.contraction import Candidate, Contraction, candidates, match
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import FLOAT
from osprey_py.kernel.passes import prepared

GROUP = 64
"""Items of a work-group where nothing is shared."""
MOST_REMEMBERED = 512
"""Launches whose integers one kernel remembers; when there are more it begins anew."""


class Device:
    """What launches need of a backend: the driver, memory, built programs, tiles. shares: how many items an accumulation
    gets, and at most a reduction."""

    def __init__(self, driver: Driver, memory: Memory, tiles: Tiles, shares: int) -> None:
        self.driver = driver
        self.memory = memory
        self.programs = Programs(driver)
        self.dialect = driver.dialect
        self.tiles = tiles
        self.shares = shares
        self.launched = 0

    def launch(self, text: Text, items: int, args: Sequence[Any]) -> None:
        """So many items, in groups of GROUP."""
        group = GROUP if items > 1 else 1
        self.launch_groups(text, (-(-items // group), 1, 1), (group, 1, 1), args)

    def launch_groups(
        self, text: Text, groups: tuple[int, int, int], items: tuple[int, int, int], args: Sequence[Any]
    ) -> None:
        self.launched += 1
        self.driver.launch(self.programs.function(text), groups, items, args)


class Tiles:
    """Which tile a contraction gets: by its rows."""

    def __init__(self, tiles: Sequence[Tile]) -> None:
        self.tiles = sorted(tiles, key=lambda t: t.rows)

    def of(self, m: int) -> Tile:
        return next((t for t in self.tiles if t.rows >= m), self.tiles[-1])


class Run:
    """One run of steps: where faults and counts go, and what is given back when all is in the queue."""

    def __init__(self, flags: Any, totals: Any) -> None:
        self.flags = flags
        self.totals = totals
        self.temporary: list[Block] = []


class Compiled:
    """faults: it may raise its flag. apart: it may run without end, so that nothing before it may have faulted."""

    def __init__(
        self,
        device: Device,
        op: StepOp,
        lowered: Lowered | None,
        kinds: tuple[Kind, ...],
        found: Reduction | None = None,
    ) -> None:
        self.device = device
        self.op = op
        self.kinds = kinds
        self.lowered = lowered
        self.faults = lowered is not None and lowered.fault is not None
        self.apart = lowered is not None and lowered.general
        self.text: Text | None = None
        self._candidates: tuple[Candidate, ...] = ()
        self._found: dict[tuple[object, ...], tuple[Candidate, Contraction] | None] = {}
        self._parts: dict[Lowered, Compiled] = {}
        self._shared: Shared | None = None
        if lowered is not None:
            ready = prepare(lowered)
            self.text = (
                scan(device.dialect, ready, kinds) if op == "scan" else elementwise(device.dialect, ready, kinds)
            )
            if op == "map":
                self._candidates = candidates(lowered)
            if found is not None and not lowered.general:
                self._shared = Shared(device, op, ready, kinds, found)

    def enqueue(self, step: Step, run: Run, position: int) -> None:
        """Put the launches of a step (n > 0) into the queue."""
        if self._shared is not None and self._shared.enqueue(step, run, position):
            return
        if self.op == "accumulate":
            self._accumulate(step, run)
        elif self.op == "filter":
            self._filter(step, run, position)
        elif self.op == "scan":
            self._plain(step, step.inputs, step.output, run, position, items=1)
        else:
            self._map(step, step.inputs, step.output, run, position)

    # --- maps -------------------------------------------------------------------------------------------

    def _map(self, step: Step, inputs: Sequence[Storage], output: Storage, run: Run, position: int) -> None:
        found = self._contraction(inputs, step.uniforms, step.n)
        if found is None:
            self._plain(step, inputs, output, run, position, items=step.n)
            return
        candidate, contraction = found
        sums = output
        if contraction.epilogue and (output.kind is not Kind.F64 or overlaps(inputs, output)):
            sums = self._temporary(step.n, run)
        elif overlaps(inputs, output):
            self._plain(step, inputs, output, run, position, items=step.n)
            return
        rest = self._part(candidate.epilogue, (*self.kinds, Kind.F64)) if contraction.epilogue else None
        if rest is not None and rest.contracts((*inputs, sums), step) and sums is output:
            sums = self._temporary(step.n, run)
        if contraction.started:
            assert candidate.start is not None
            self._part(candidate.start, self.kinds)._plain(step, inputs, sums, run, position, items=step.n)
        self._contract(contraction, inputs, sums)
        if rest is not None:
            rest._map(step, (*inputs, sums), output, run, position)

    def contracts(self, inputs: Sequence[Storage], step: Step) -> bool:
        return self._contraction(inputs, step.uniforms, step.n) is not None

    def _temporary(self, n: int, run: Run) -> Storage:
        storage = self.device.memory.temporary(Kind.F64, n)
        run.temporary.append(storage.block)
        return storage

    def _part(self, lowered: Lowered, kinds: tuple[Kind, ...]) -> Compiled:
        part = self._parts.get(lowered)
        if part is None:
            part = self._parts[lowered] = Compiled(self.device, "map", lowered, kinds)
        return part

    def _contraction(
        self, inputs: Sequence[Storage], uniforms: Sequence[Scalar], n: int
    ) -> tuple[Candidate, Contraction] | None:
        if not self._candidates:
            return None
        lengths = [s.length for s in inputs]
        # A float decides nothing but what sums begin with: by its bits, for -0.0 is not 0.0.
        key = (n, *lengths, *(struct.pack("<d", u) if isinstance(u, float) else u for u in uniforms))
        if key not in self._found:
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            matches = ((c, match(c, lengths, uniforms, n)) for c in self._candidates)
            # The text of a contraction knows no sums that begin behind their first term: they run as they are written.
            self._found[key] = next(((c, m) for c, m in matches if m is not None and not m.cut_short), None)
        return self._found[key]

    def _plain(
        self, step: Step, inputs: Sequence[Storage], output: Storage, run: Run, position: int, *, items: int
    ) -> None:
        assert self.text is not None and self.lowered is not None
        place = self.device.memory.place
        args = [step.n, *place(output), run.flags, position]
        self.device.launch(self.text, items, args + given(self.device, self.lowered, inputs, step.uniforms))

    # --- contractions -----------------------------------------------------------------------------------

    def _contract(self, c: Contraction, inputs: Sequence[Storage], sums: Storage) -> None:
        device = self.device
        place = device.memory.place
        variant = Variant(
            (self.kinds[c.left.slot], self.kinds[c.right.slot]),
            len(c.batch),
            (c.left.depth == 1, c.right.depth == 1),
            c.row_terms > 0,
            c.started,
        )
        tile = device.tiles.of(c.m)
        text = product(device.dialect, variant, tile)
        (left, left_at), (right, right_at), (to, to_at) = (
            place(inputs[c.left.slot]),
            place(inputs[c.right.slot]),
            place(sums),
        )
        numbers = [c.m, c.n, c.terms, c.row_terms, left_at + c.left.offset, c.left.row, c.left.depth]
        numbers += [right_at + c.right.offset, c.right.row, c.right.depth, to_at, c.output_row, c.output_column]
        batches = 1
        digits: list[int] = []
        for b in c.batch:
            batches *= b.extent
            digits += [b.extent, b.left, b.right, b.output, b.terms]
        groups = -(-c.n // tile.columns), -(-c.m // tile.rows), batches
        down, across = tile.items
        device.launch_groups(text, groups, (across, down, 1), [left, right, to, *numbers, c.seed, *digits])

    # --- filter, accumulate -----------------------------------------------------------------------------

    def _filter(self, step: Step, run: Run, position: int) -> None:
        device = self.device
        kept = device.memory.temporary(Kind.BOOL, step.n)
        chunks = -(-step.n // library.CHUNK)
        counts = device.memory.temporary(Kind.I64, chunks)
        run.temporary += [kept.block, counts.block]
        self._plain(step, step.inputs, kept, run, position, items=step.n)
        source = step.inputs[0]
        mask, starts = kept.block.buffer, counts.block.buffer
        device.launch(library.counts(device.dialect), chunks, [step.n, mask, starts])
        group = library.GROUP, 1, 1
        device.launch_groups(library.starts(device.dialect), (1, 1, 1), group, [chunks, starts, run.totals, position])
        args = [step.n, mask, starts, *device.memory.place(source), *device.memory.place(step.output)]
        device.launch(library.compact(device.dialect, source.kind), chunks, args)

    def _accumulate(self, step: Step, run: Run) -> None:
        device = self.device
        indices, values, *base = step.inputs
        shares = min(step.n, device.shares)
        args = [step.n, shares, *device.memory.place(step.output), indices.length]
        args += [*device.memory.place(indices), *device.memory.place(values)]
        kind = None
        if base:
            kind = base[0].kind
            apart = [device.memory.temporary(kind, step.n).block for kind in (Kind.F64, Kind.BOOL)]
            run.temporary += apart
            args += [*device.memory.place(base[0]), *(block.buffer for block in apart)]
        device.launch(library.accumulate(device.dialect, values.kind, kind), shares, args)


def given(device: Device, kernel: Lowered, inputs: Sequence[Storage], uniforms: Sequence[Scalar]) -> list[Any]:
    """The arguments that are the slots and the uniforms."""
    args: list[Any] = []
    for s in inputs:
        args += (*device.memory.place(s), s.length)
    return args + [u if ty is FLOAT else int(u) for u, ty in zip(uniforms, kernel.uniforms, strict=True)]


class Shared:
    """A fold or scan whose terms many items share (backends/c/reduction.py). kernel: what runs in order, ready for code."""

    def __init__(self, device: Device, op: StepOp, kernel: Lowered, kinds: tuple[Kind, ...], found: Reduction) -> None:
        self.device = device
        self.kernel = kernel
        self.found = found
        term = prepare(prepared(found.term))
        operation = found.operation
        self.partial = reduction.partial(device.dialect, term, kinds, operation)
        if op == "scan":
            self.last = reduction.starts(device.dialect, kernel, kinds, found)
            self.spread = reduction.spread(device.dialect, term, kinds, operation)
        else:
            self.last = reduction.fold(device.dialect, kernel, kinds, found)

    def enqueue(self, step: Step, run: Run, position: int) -> bool:
        """Put the launches of a step into the queue, if it is long enough to be shared."""
        device, whole = self.device, self.found.terms is not None
        if whole and step.n != 1:
            return False
        n = count(self.found.terms, [s.length for s in step.inputs], step.uniforms) if self.found.terms else step.n
        parts = min(device.shares, n // reduction.SHARE)
        if n < reduction.LEAST or parts < 2:
            return False
        span = -(-n // parts)
        shares, sizes = (
            device.memory.temporary(KIND_OF[self.kernel.type], parts),
            device.memory.temporary(Kind.I64, parts),
        )
        run.temporary += [shares.block, sizes.block]
        partials, doubts = shares.block.buffer, sizes.block.buffer
        rest = given(device, self.kernel, step.inputs, step.uniforms)
        answers = [run.flags, position]
        # In a fold, neighbouring items take neighbouring terms.
        how = [parts, 1, n, parts] if whole else [parts, span, span, 1]
        device.launch(self.partial, parts, [n, partials, 0, *answers, *how, doubts, *rest])
        to = device.memory.place(step.output)
        device.launch(self.last, 1, [step.n, *to, *answers, partials, doubts, parts, *rest])
        if not whole:
            device.launch(self.spread, parts, [n, *to, *answers, partials, doubts, parts, span, *rest])
        return True


def overlaps(inputs: Sequence[Storage], output: Storage) -> bool:
    """Whether the output lies on an input: then sums must wait elsewhere, for what follows still reads that input."""
    if not isinstance(output, DeviceStorage):
        return False
    low, high = output.begin * output.kind.itemsize, (output.begin + output.length) * output.kind.itemsize
    for s in inputs:
        if isinstance(s, DeviceStorage) and s.block is output.block:
            start, end = s.begin * s.kind.itemsize, (s.begin + s.length) * s.kind.itemsize
            if start < high and low < end:
                return True
    return False
