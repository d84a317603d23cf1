"""One kernel of the host backend: its machine code, and how a launch of it becomes steps of a native plan."""

from __future__ import annotations

from dataclasses import replace

from osprey_py.backends.host import gemm
from osprey_py.backends.host.blocks import Blocks
from osprey_py.backends.host.elementwise import Elementwise
from osprey_py.backends.host.gemm_launch import Contractions, Found, overlaps
from osprey_py.backends.host.packing import Frame
from osprey_py.backends.host.pool import Plan
from osprey_py.backends.protocol import Kind, Step, StepOp, Storage
from osprey_py.kernel.faults import Lowered


class Compiled:
    """apart: it may run without end or deep into the stack, so nothing else may share its plan. most: native steps that a
    launch may become."""

    def __init__(
        self,
        op: StepOp,
        lowered: Lowered | None,
        kinds: tuple[Kind, ...],
        threads: int,
        *,
        nests: bool = True,
        vectors: bool = True,
        contractions: bool = True,
    ) -> None:
        self.op = op
        self.kinds = kinds
        self.apart = lowered is not None and lowered.general
        self._lowered = lowered
        self._contractions = None
        if op == "map" and lowered is not None and contractions:
            self._contractions = Contractions(lowered, kinds, threads)
        # A contraction takes one fold, may begin with a step, and what it leaves may be a contraction.
        self.most = 1 if self._contractions is None else 1 + 2 * len(self._contractions.candidates)
        self._parts: dict[Lowered, Compiled] = {}
        self._onto = op == "accumulate" and len(kinds) == 3
        self._code = Elementwise(op, lowered, (*kinds, Kind.F64) if self._onto else kinds, nests, vectors)
        self._threads = threads
        self._nests = nests
        self._vectors = vectors

    def add(self, plan: Plan, frame: Frame, position: int, step: Step, blocks: Blocks, temporary: list[Storage]) -> int:
        """Append the launch (step.n > 0) to the plan; how many bytes of scratch it needs."""
        if self._contractions is not None:
            found = self._contractions.of(step)
            if frame.notes is not None:
                frame.notes.decide(position, self._contractions.deciding)
            if found is not None:
                return self._contract(found, plan, frame, position, step, blocks, temporary)
        inputs = step.inputs
        if self._onto:
            inputs = (*inputs, frame.zeros(step.n))  # sums by place
        self._code.add(plan, frame, position, step, inputs)
        return 0

    def _contract(
        self,
        found: Found,
        plan: Plan,
        frame: Frame,
        position: int,
        step: Step,
        blocks: Blocks,
        temporary: list[Storage],
    ) -> int:
        """What the sums begin with, if that is computed; the sums by the matrix kernels; then what the kernel does with
        them, which may be contractions again."""
        sums = step.output
        rest: Compiled | None = None
        again = False
        if found.epilogue:
            rest = self._part(found.candidate.epilogue, (*self.kinds, Kind.F64))
            again = rest.contracts(frame, position, step, (*step.inputs, sums))
            if again or sums.kind is not Kind.F64 or overlaps(step):
                sums = blocks.allocate(Kind.F64, step.n)
                temporary.append(sums)
        inputs = (*step.inputs, sums)
        if found.contraction.started:
            assert found.candidate.start is not None
            start = self._part(found.candidate.start, self.kinds)._code
            start.add(plan, frame, position, replace(step, output=sums), step.inputs)
        epilogue: gemm.Epilogue | None = None
        if rest is not None and found.inside and not again:
            function, args, _ = rest._code.bind(frame, position, step, inputs)
            epilogue = gemm.Epilogue(function, args)
        native, address = found.bind(frame, step.inputs, sums, epilogue)
        plan.add(native.function, address, native.units, native.grain)
        if rest is None or epilogue is not None:
            return native.scratch
        return max(native.scratch, rest.add(plan, frame, position, replace(step, inputs=inputs), blocks, temporary))

    def contracts(self, frame: Frame, position: int, step: Step, inputs: tuple[Storage, ...]) -> bool:
        """Whether the step on these inputs goes to the matrix kernels."""
        known = self._contractions
        if known is None or not known.candidates:
            return False
        if frame.notes is not None:
            frame.notes.decide(position, known.deciding)
        return known.of(replace(step, inputs=inputs)) is not None

    def _part(self, kernel: Lowered, kinds: tuple[Kind, ...]) -> Compiled:
        """A kernel that this one falls into."""
        part = self._parts.get(kernel)
        if part is None:
            part = self._parts[kernel] = Compiled(
                "map", kernel, kinds, self._threads, nests=self._nests, vectors=self._vectors
            )
        return part
