"""Which fault it was: the first in strict order, with its operation and element.

Comes in: the launches that may have faulted, pending. Goes out: the one `LaunchFault` that strict evaluation would
have met first: launches in the order the program made them, elements ascending, evaluation order within the element
(spec/language, section Failure). Fast code only says that some step faulted; here the launches run again one by one,
as they were written, until one faults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from osprey_py.backends.oracle import evaluate_element, find_fault
from osprey_py.backends.protocol import KIND_OF, Backend, DeviceError, Scalar, Step, Storage
from osprey_py.graph.buffer import STEP_OF, Node
from osprey_py.graph.kernels import copy_kernel
from osprey_py.graph.plan import CompiledCache
from osprey_py.graph.refusal import refusal
from osprey_py.graph.schedule import collect
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import Kernel, fold_parts, index
from osprey_py.kernel.substitute import instantiate
from osprey_py.source.span import Span

WRONG = "a device that does not do what the oracle does is a mistake of its backend: `osprey conform` finds it"


class LaunchFault(MathFault):
    """A math fault inside a kernel. order: of the launch; regions entered later do not recover it."""

    def __init__(self, message: str, span: Span, element: int, launch: Span, order: int, recoverable: bool) -> None:
        super().__init__(message, span, element, launch, recoverable)
        self.order = order


def first_fault(suspects: Iterable[Node], backend: Backend, compiled: CompiledCache) -> LaunchFault | None:
    """The first fault among the launches and what they depend on; None when there is none."""
    again = _Again(backend, compiled)
    for node in collect(suspects):
        try:
            fault = again.launch(node)
        except DeviceError as error:
            raise refusal(error, backend.name, node.span) from None
        if fault is not None:
            return fault
    return None


class _Again:
    """Runs launches one by one and keeps every result."""

    def __init__(self, backend: Backend, compiled: CompiledCache) -> None:
        self.backend = backend
        self.compiled = compiled
        self.made: dict[Node, Storage] = {}

    def of(self, node: Node) -> Storage:
        return self.made[node] if node.storage is None else node.storage

    def launch(self, node: Node) -> LaunchFault | None:
        inputs = tuple(self.of(x) for x in node.inputs)
        output = self.backend.allocate(KIND_OF[node.type], node.length)
        self.made[node] = output
        if node.op == "concat":
            at = 0
            for x in inputs:
                part = output.part(at, at + x.length)
                self._run(node, copy_kernel(node.type), (x,), (), x.length, part)
                at += x.length
            return None
        if self._run(node, node.kernel, inputs, node.uniforms, node.length, output):
            return None
        return self._find(node, inputs, output)

    def _run(
        self,
        node: Node,
        kernel: Kernel | None,
        inputs: tuple[Storage, ...],
        uniforms: tuple[Scalar, ...],
        n: int,
        output: Storage,
    ) -> bool:
        """True when no element faulted."""
        if n == 0:
            return True
        step = self._step(node, kernel, inputs, uniforms, n, output)
        key = (step.op, kernel, tuple(x.kind for x in inputs))
        if key not in self.compiled:
            self.compiled[key] = self.backend.compile(*key, step)
        return self.backend.run((replace(step, compiled=self.compiled[key]),)).fault is None

    @staticmethod
    def _step(
        node: Node,
        kernel: Kernel | None,
        inputs: tuple[Storage, ...],
        uniforms: tuple[Scalar, ...],
        n: int,
        output: Storage,
    ) -> Step:
        return Step(STEP_OF[node.op], kernel, inputs, uniforms, n, output, None)

    def _find(self, node: Node, inputs: tuple[Storage, ...], output: Storage) -> LaunchFault:
        """Halve the range of prefixes to the shortest that faults; its last element is the one. Of a fold it is the element
        it had come to."""
        kernel = node.kernel
        assert kernel is not None
        if node.op == "fold":
            return self._find_in_fold(node, kernel, inputs, output)
        good, bad = 0, node.length
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._run(node, kernel, inputs, node.uniforms, middle, output):
                good = middle
            else:
                bad = middle
        try:
            evaluate_element(self._step(node, kernel, inputs, node.uniforms, node.length, output), good)
        except MathFault as fault:
            return LaunchFault(fault.message, fault.span, good, node.span, node.order, fault.recoverable)
        raise DeviceError(f"element {good} of `{kernel.name}` faults there, and not on the oracle", WRONG)

    def _find_in_fold(self, node: Node, kernel: Kernel, inputs: tuple[Storage, ...], output: Storage) -> LaunchFault:
        """A fold comes to its elements as a scan does."""
        step = self._step(node, as_scan(kernel), inputs, node.uniforms, inputs[0].length, output)
        fault = find_fault(replace(step, op="scan"))
        if fault is None or fault.element is None:
            raise DeviceError(f"`{kernel.name}` faults there, and not on the oracle", WRONG)
        return LaunchFault(fault.message, fault.span, fault.element, node.span, node.order, fault.recoverable)


def as_scan(kernel: Kernel) -> Kernel:
    """The scan that gives every value of a fold over slot 0."""
    _, (init,), (step,), attr = fold_parts(kernel.result.args[0])
    (element,) = instantiate((step,), {attr.index: index()})
    return replace(kernel, result=element, acc=attr.accs[0], init=init)
