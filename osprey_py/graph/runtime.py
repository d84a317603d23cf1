"""The runtime that the evaluator's GPU built-ins call: launches are noted down, and run when somebody must know.

Comes in: kernels, buffers, scalars. Goes out: buffers that are pending until they are read, and the faults that
strict evaluation would have met, in its order (docs/graph.md; spec/language, section Failure).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from osprey_py.backends.protocol import KIND_OF, Backend, DeviceError, Kind, Scalar, Storage
from osprey_py.graph.buffer import Buffer, Memory, Node, NodeOp
from osprey_py.graph.cut import Cut, cut
from osprey_py.graph.fuse import Fuser
from osprey_py.graph.kernels import ADD, FROM_ZERO, IOTA, adds, slice_kernel
from osprey_py.graph.locate import WRONG, LaunchFault, first_fault
from osprey_py.graph.plan import Engine, Plan, make_plan
from osprey_py.graph.refusal import refusal
from osprey_py.graph.risk import may_fault, may_fault_here
from osprey_py.graph.roomy import roomy
from osprey_py.graph.schedule import Pending, pending, shape_of
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, INT, Kernel, Ty
from osprey_py.source.span import NO_SPAN, Span

if TYPE_CHECKING:
    from osprey_py.backends.limits import Limits
    from osprey_py.graph.trace import Profile

BACKLOG = 8192
"""Launches that may pile up before the newest is run whether or not somebody reads it: memory stays bounded."""

MOST_PLANS = 256
"""Plans kept; the oldest goes first. A program whose graphs never repeat does not fill the memory."""

PLAIN_CALLS = 32
"""Calls of a function that are evaluated plainly before it is recorded, unless it differentiates. To record GPT-2's 480
launches and to plan them anew takes 40 ms, and a replay saves 0.5 ms; of a gradient's 350, 17 ms and 2.3 ms."""

_NAN = np.uint64(0x7FF8000000000000).view(np.float64)


def _profile() -> Profile:
    """Imported when it is wanted: counting work needs much that running does not."""
    from osprey_py.graph.trace import Profile

    return Profile(perf_counter)


@dataclass(slots=True)
class Stats:
    """What has happened so far. launches: made by the program; forces: times something had to be known; planned:
    forces that had to plan (the others found their plan); steps: what backends were given; gradients: functions that
    were differentiated."""

    launches: int = 0
    forces: int = 0
    planned: int = 0
    steps: int = 0
    replays: int = 0
    gradients: int = 0


class Runtime:
    """One program's buffers on one backend. fusion: whether launches may be merged; bytes do not depend on it.
    profile: steps run one by one, timed, for `plan_text` and `profile_text`. replay: whether the evaluator may replay
    functions. plans: whether a plan is kept for the next graph of its shape. in_place: whether a step may write over what
    dies in it. repeats: whether a plan that runs again for the same lengths repeats what it did. plain_calls: in the place
    of PLAIN_CALLS."""

    def __init__(
        self,
        backend: Backend,
        *,
        fusion: bool = True,
        profile: bool = False,
        replay: bool = True,
        plans: bool = True,
        in_place: bool = True,
        repeats: bool = True,
        plain_calls: int | None = None,
    ) -> None:
        self.backend = backend
        self.replaying = replay
        self.plain_calls = PLAIN_CALLS if plain_calls is None else plain_calls
        self.fuser = Fuser(fusion)
        self.profile = _profile() if profile else None
        self.stats = Stats()
        self._order = 0
        self._backlog = BACKLOG
        self._listed: list[Node] = []
        self._onto = fusion and backend.capabilities.bases
        self._keeping = plans
        self._in_place = in_place
        self._plans: dict[Any, Plan | Cut] = {}
        self.engine = Engine(backend, repeats)

    # --- launches ---------------------------------------------------------------------------------------

    def map(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Scalar, ...], n: int, span: Span = NO_SPAN
    ) -> Buffer:
        """kernel(i) for i in 0 … n-1; empty for n <= 0. Sums by place that are only added to something are added there,
        to the elements that have any: the zeros around them are not made."""
        if len(inputs) == 2 and self._onto:
            for sums, other in (inputs, inputs[::-1]):
                node = sums.node
                if node.op == "accumulate" and len(node.inputs) == 2 and node.length == n and adds(kernel):
                    base = self._launch("map", FROM_ZERO, (other,), (), n, FLOAT, span)
                    at, values = (Buffer(x) for x in node.inputs)
                    return self._launch("accumulate", None, (at, values, base), (), n, FLOAT, span)
        return self._launch("map", kernel, inputs, uniforms, n, kernel.type, span)

    def iota(self, n: int, span: Span = NO_SPAN) -> Buffer:
        """0 … n-1; empty for n <= 0."""
        return self._launch("map", IOTA, (), (), n, INT, span)

    def fold(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Scalar, ...], span: Span = NO_SPAN
    ) -> Scalar:
        """The one element of a kernel whose result is a fold over its slots. Raises MathFault."""
        made = self.launch_fold(kernel, inputs, uniforms, span)
        del inputs
        return self.first(made)

    def launch_fold(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Scalar, ...], span: Span = NO_SPAN
    ) -> Buffer:
        """A fold to be read with `first`. Who lets go of the inputs in between lets them be computed in the fold."""
        return self._launch("fold", kernel, inputs, uniforms, 1, kernel.type, span)

    def first(self, buffer: Buffer) -> Scalar:
        """The element of a fold. Raises MathFault."""
        return self._first(self._storage(buffer))

    def scan(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Scalar, ...], n: int, span: Span = NO_SPAN
    ) -> Buffer:
        """A kernel with an accumulator, element by element."""
        return self._launch("scan", kernel, inputs, uniforms, n, kernel.type, span)

    def filter(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Scalar, ...], span: Span = NO_SPAN
    ) -> Buffer:
        """The elements of inputs[0] whose kernel is true, in order. Runs at once, since its length can be seen.
        Raises MathFault."""
        buffer = self._launch("filter", kernel, inputs, uniforms, len(inputs[0]), inputs[0].type, span)
        del inputs
        self.force([buffer.node])
        return buffer

    def concat(self, left: Buffer, right: Buffer, span: Span = NO_SPAN) -> Buffer:
        """left, then right. Takes the time of right alone when left was grown by a concat and has not been since."""
        if not len(right):
            return left
        if not len(left):
            return right
        return self._launch("concat", None, (left, right), (), len(left) + len(right), left.type, span)

    def slice(self, buffer: Buffer, begin: int, end: int, span: Span = NO_SPAN) -> Buffer:
        """Elements begin … end-1, 0 <= begin <= end <= length; shares memory where the elements are there."""
        node = buffer.node
        if begin == 0 and end == node.length:
            return buffer
        if node.storage is not None and node.memory is not None:
            view = Node("data", None, (), (), end - begin, node.type, self._next(), span)
            storage = node.storage.part(begin, end)
            view.attach(storage, node.memory, node.offset + begin)
            return Buffer(view)
        return self._launch("map", slice_kernel(node.type), (buffer,), (begin,), end - begin, node.type, span)

    def accumulate(
        self, n: int, indices: Buffer, values: Buffer, span: Span = NO_SPAN, base: Buffer | None = None
    ) -> Buffer:
        """n zeros, with values[j] added at indices[j], j ascending. The caller has seen to it that the lengths are
        the same and `out_of_range` finds nothing. base: what that is added to, without a -0.0 in it."""
        if base is None:
            return self._launch("accumulate", None, (indices, values), (), n, FLOAT, span)
        if self.backend.capabilities.bases:
            return self._launch("accumulate", None, (indices, values, base), (), n, FLOAT, span)
        sums = self._launch("accumulate", None, (indices, values), (), n, FLOAT, span)
        return self.map(ADD, (base, sums), (), n, span)

    def out_of_range(self, indices: Buffer, n: int) -> int | None:
        """The first place whose index is not in 0 … n-1. Raises MathFault."""
        data = self._storage(indices).data
        bad = np.flatnonzero((data < 0) | (data >= n))
        return int(bad[0]) if len(bad) else None

    # --- data ---------------------------------------------------------------------------------------------

    def data(self, storage: Storage) -> Buffer:
        """A buffer of what lies in memory already, a mapped file's tensor say. Nothing writes there."""
        node = Node("data", None, (), (), storage.length, storage.kind.type, self._next(), NO_SPAN)
        node.attach(storage, Memory(storage, storage.length, None))
        return Buffer(node)

    def from_list(self, values: Sequence[Any], ty: Ty, span: Span = NO_SPAN) -> Buffer:
        """A buffer of the values."""
        kind = KIND_OF[ty]
        try:
            storage = self.backend.allocate(kind, len(values))
        except DeviceError as error:
            raise refusal(error, self.backend.name, span) from None
        array = np.array(values, kind.dtype)
        if ty is FLOAT:
            array[array != array] = _NAN
        storage.put(array)
        node = Node("data", None, (), (), len(values), ty, self._next(), NO_SPAN)
        node.attach(storage, Memory(storage, len(values), self.backend.release))
        return Buffer(node)

    def read(self, buffer: Buffer) -> list[Any]:
        """All elements, as Python scalars. Raises MathFault."""
        return self._values(self._storage(buffer))

    def get(self, buffer: Buffer, i: int) -> Scalar | None:
        """Element i; None out of range. Raises MathFault."""
        if not 0 <= i < len(buffer):
            return None
        storage = self._storage(buffer)
        return self._first(storage.part(i, i + 1))

    def storage(self, buffer: Buffer) -> Storage:
        """Where the elements lie, for readers that write files. Raises MathFault."""
        return self._storage(buffer)

    # --- when launches must have run ------------------------------------------------------------------------

    def mark(self) -> int:
        """A point in the order of launches: what is launched from now on."""
        return self._order

    def settle(self, mark: int) -> None:
        """Before a region that began at the mark is left: whatever was launched in it has run, or is known not to
        fault. Raises the first fault in strict order, which may be of a launch before the region (see `caught`)."""
        listed = self._listed
        if listed and listed[-1].order >= mark:
            self._run_listed(mark)

    def barrier(self) -> None:
        """Before an observable effect: every launch has run, or is known not to fault. Raises MathFault."""
        if self._listed:
            self._run_listed(0)

    def caught(self, fault: MathFault, mark: int) -> MathFault:
        """For a region, begun at the mark, that a fault ends: the fault that strict evaluation would have met first,
        when the region may recover it. Raises it when it was launched before the region or nothing recovers it.
        Launches of the region that strict evaluation would not have reached are forgotten."""
        if not isinstance(fault, LaunchFault):
            try:
                self.barrier()
            except LaunchFault as earlier:
                fault = earlier
        self.forget(mark)
        if not fault.recoverable or (isinstance(fault, LaunchFault) and fault.order < mark):
            raise fault
        return fault

    def forget(self, mark: int) -> None:
        """Launches made since the mark need not run: nobody will ask whether they fault."""
        for node in self._listed:
            if node.order >= mark:
                node.listed = False
        self._listed = [n for n in self._listed if n.order < mark]

    @roomy
    def force(self, targets: list[Node]) -> None:
        """Run what the targets need. Raises the first fault in strict order."""
        self._backlog = BACKLOG
        graph = pending(targets)
        if not graph.nodes:
            return
        plan = self._plans.get(graph.key)
        if plan is None:
            plan = self._plan(graph)
            if len(self._plans) >= MOST_PLANS:
                del self._plans[next(iter(self._plans))]
            if self._keeping:
                self._plans[graph.key] = plan
        if isinstance(plan, Cut):
            first = [graph.nodes[p] for p in plan.first]
            del graph  # its lists count as somebody who holds the nodes
            self.force(first)
            del first
            self.force(targets)
            return
        self.stats.forces += 1
        self.stats.steps += plan.steps
        if not plan.run(graph.nodes, graph.externals, self.engine, self.profile):
            fault = first_fault([*self._listed, *targets], self.backend, self.engine.compiled)
            if fault is None:
                error = DeviceError("a fault is reported that no launch has", WRONG)
                raise refusal(error, self.backend.name, targets[-1].span)
            raise fault
        if self._listed:
            self._prune()

    def plan_text(self) -> str:
        """What was launched; empty unless the runtime was made with `profile`."""
        return "" if self.profile is None else self.profile.text()

    def profile_text(self) -> str:
        """Where the time went, beside what the device can do; empty unless the runtime was made with `profile`."""
        if self.profile is None:
            return ""
        from osprey_py.graph.report import report

        limits: Callable[[], Limits] | None = getattr(self.backend, "limits", None)
        return report(self.profile, None if limits is None else limits())

    # --- inside ----------------------------------------------------------------------------------------------

    def _launch(
        self,
        op: NodeOp,
        kernel: Kernel | None,
        inputs: tuple[Buffer, ...],
        uniforms: tuple[Scalar, ...],
        n: int,
        ty: Ty,
        span: Span,
    ) -> Buffer:
        if n < 0:
            n = 0
        order = self._order
        self._order = order + 1
        risky = n > 0 and kernel is not None and may_fault(kernel)
        node = Node(op, kernel, tuple([b.node for b in inputs]), uniforms, n, ty, order, span, risky)
        if risky:
            node.listed = True
            self._listed.append(node)
        self.stats.launches += 1
        self._backlog -= 1
        if self._backlog < 0:
            self.force([node])
        return Buffer(node)

    def _next(self) -> int:
        order = self._order
        self._order = order + 1
        return order

    def _plan(self, graph: Pending) -> Plan | Cut:
        begun = 0.0 if self.profile is None else self.profile.clock()
        shape = shape_of(graph)
        parts = cut(shape, *[[x.length * x.kind.itemsize for x in of] for of in (graph.externals, graph.nodes)])
        if parts is not None:
            return parts
        self.stats.planned += 1
        plan = make_plan(shape, self.fuser.fuse(shape, graph.nodes), tuple(n.type for n in graph.nodes), self._in_place)
        if self.profile is not None:
            self.profile.planned(plan, graph.nodes, self.profile.clock() - begun)
        return plan

    def _run_listed(self, mark: int) -> None:
        """Run what was launched since the mark and may fault at its sizes; the rest waits for a reader."""
        self.force([n for n in self._listed if n.order >= mark and not n.done and _suspect(n)])
        self._prune()

    def _prune(self) -> None:
        """Take what has run off the list."""
        left = []
        for node in self._listed:
            if node.done or not node.risky:
                node.listed = False
            else:
                left.append(node)
        self._listed = left

    def _storage(self, buffer: Buffer) -> Storage:
        node = buffer.node
        if node.storage is None:
            self.force([node])
        assert node.storage is not None
        return node.storage

    def _first(self, storage: Storage) -> Scalar:
        value: Scalar = self._values(storage)[0]
        return value

    @staticmethod
    def _values(storage: Storage) -> list[Any]:
        data = storage.data
        if storage.kind is Kind.BF16:
            data = (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
        elif storage.kind is Kind.BOOL:
            data = data.astype(np.bool_)
        values: list[Any] = data.tolist()
        return values


def _suspect(node: Node) -> bool:
    node.risky = may_fault_here(node)
    return node.risky
