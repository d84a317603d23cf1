"""One kernel of the host backend: its machine code, and how a launch of it becomes steps of a native plan."""

from __future__ import annotations

from osprey_py.backends.host import gemm
from osprey_py.backends.host.blocks import Blocks
from osprey_py.backends.host.elementwise import Elementwise
from osprey_py.backends.host.gemm_launch import Contractions, Found, overlaps
from osprey_py.backends.host.packing import Frame
from osprey_py.backends.host.pool import Plan
from osprey_py.backends.protocol import Kind, Step, StepOp, Storage
from osprey_py.kernel.faults import Lowered, lower
from osprey_py.kernel.ir import Kernel


class Compiled:
    """apart: it may run without end or deep into the stack, so nothing else may share its plan."""

    def __init__(
        self,
        op: StepOp,
        kernel: Kernel | None,
        kinds: tuple[Kind, ...],
        threads: int,
        *,
        nests: bool = True,
        contractions: bool = True,
    ) -> None:
        self.op = op
        self.kinds = kinds
        lowered = None if kernel is None else lower(kernel)
        self.apart = lowered is not None and lowered.general
        self._lowered = lowered
        self._contractions = None
        if op == "map" and lowered is not None and contractions:
            self._contractions = Contractions(lowered, kinds, threads)
        self._epilogues: dict[Lowered, Elementwise] = {}
        self._code = Elementwise(op, lowered, kinds, nests)
        self._nests = nests

    def add(self, plan: Plan, frame: Frame, position: int, step: Step, blocks: Blocks, temporary: list[Storage]) -> int:
        """Append the launch (step.n > 0) to the plan; how many bytes of scratch it needs."""
        if self._contractions is not None:
            found = self._contractions.of(step)
            if found is not None:
                return self._contract(found, plan, frame, position, step, blocks, temporary)
        self._code.add(plan, frame, position, step, step.inputs)
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
        """The sums by the matrix kernels, then what the kernel does with them."""
        sums = step.output
        if found.epilogue and (overlaps(step) or sums.kind is not Kind.F64):
            sums = blocks.allocate(Kind.F64, step.n)
            temporary.append(sums)
        code: Elementwise | None = None
        if found.epilogue:
            kernel = found.candidate.epilogue
            code = self._epilogues.get(kernel)
            if code is None:
                code = self._epilogues[kernel] = Elementwise("map", kernel, (*self.kinds, Kind.F64), self._nests)
        inputs = (*step.inputs, sums)
        inside = code is not None and found.inside
        epilogue = None
        if code is not None and inside:
            function, args, _ = code.bind(frame, position, step, inputs)
            epilogue = gemm.Epilogue(function, args)
        native = found.bind(step.inputs, sums, epilogue)
        frame.keep(native)
        plan.add(native.function, native.address, native.units, native.grain)
        if code is not None and not inside:
            code.add(plan, frame, position, step, inputs)
        return native.scratch
