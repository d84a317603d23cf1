"""Random kernels and launches of them, well typed.

`launch(choices)` draws a `Launch`: a kernel as extracted, data for its slots and values for its uniforms. They hold what
real kernels hold, and its edges: checked arithmetic that overflows, divisors that are zero, gathers in and out of
range, `?:`, lazy choices, strict sequences, nested folds with several accumulators, NaN with payloads, infinities,
-0.0, subnormals, every storage kind. With `general=True` loops and recursive functions too.

Who chooses is a parameter: a seed (`osprey conform --generated`), or hypothesis in the tests (tests/fuzz/kernels.py).
`outcome(backend, launch)` runs one on a backend: its bytes, or FAULT.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from osprey_py.backends.oracle import find_fault
from osprey_py.backends.protocol import KIND_OF, Backend, Kind, Scalar, Step, StepOp, Storage
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    Bound,
    Kernel,
    KFunction,
    Node,
    Site,
    Ty,
    call,
    const,
    fold,
    index,
    inrange,
    length,
    load,
    loop,
    select,
    seq,
    uniform,
    var,
)
from osprey_py.kernel.show import show
from osprey_py.source.span import Source, Span

SOURCE = Source("fuzz.osp", "x" * 4096)
FAULT = "fault"

INTS = (0, 1, -1, 2, 3, 5, 7, 10, 31, 63, 64, -7, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.1, 1.5, 2.5, -2.5, 3.0, 1e-5, 700.0, 1e19, -1e19, 5e-324, -2.2e-308, 1.7e308,
    math.inf, -math.inf, math.nan, 9007199254740993.0, 0.9999999999999999,
)  # fmt: skip

INT_OPS = {
    INT: "add sub mul quot rem shl shr shru wadd wsub wmul mulhigh and or xor imin imax".split(),
    FLOAT: "fadd fsub fmul fdiv fmod fdivi fmodi fmin fmax".split(),
    BOOL: "band bor".split(),
}
UNARY = {
    INT: [("neg", INT), ("iabs", INT), ("inot", INT), ("toint", FLOAT), ("floatbits", FLOAT)],
    FLOAT: [
        *((op, FLOAT) for op in "fneg fabs floor ceil round sqrt exp ln tanh stop".split()),
        ("tofloat", INT),
        ("bitsfloat", INT),
    ],
    BOOL: [("bnot", BOOL)],
}

T = TypeVar("T")


class Choices(Protocol):
    """Who chooses what is drawn."""

    def pick(self, options: Sequence[T]) -> T: ...

    def number(self, low: int, high: int) -> int:
        """low … high."""
        ...

    def real(self, low: float, high: float) -> float: ...

    def raw(self, size: int) -> bytes: ...


class Seeded:
    """Choices that a seed makes, the same on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def real(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def raw(self, size: int) -> bytes:
        return self._random.randbytes(size)


@dataclass(frozen=True, slots=True, repr=False)
class Launch:
    """One launch: `inputs` by slot, `uniforms` by number."""

    op: StepOp
    kernel: Kernel
    inputs: tuple[Storage, ...]
    uniforms: tuple[Scalar, ...]
    n: int

    def __repr__(self) -> str:
        data = [f"s{k}: {s.kind.name} {s.data!r}" for k, s in enumerate(self.inputs)]
        return "\n".join([f"{self.op} n={self.n} uniforms={self.uniforms}", *data, show(self.kernel)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def step(self, backend: Backend) -> Step:
        kind = KIND_OF[self.inputs[0].kind.type if self.op == "filter" else self.kernel.type]
        output = backend.allocate(kind, self.n)
        plain = Step(self.op, self.kernel, self.inputs, self.uniforms, self.n, output, None)
        compiled = backend.compile(self.op, self.kernel, tuple(s.kind for s in self.inputs), plain)
        return Step(self.op, self.kernel, self.inputs, self.uniforms, self.n, output, compiled)


def outcome(backend: Backend, launch: Launch, *, places: bool = False) -> bytes | str:
    """The bytes of the output (of a filter, of what was kept), or FAULT; with places, the oracle's first fault."""
    step = launch.step(backend)
    report = backend.run([step])
    if report.fault is not None:
        fault = find_fault(step) if places else None
        return FAULT if fault is None else f"{FAULT} at {fault.element}: {fault.message}, {fault.span.start}"
    kept = report.counts[0] if launch.op == "filter" else launch.n
    return bytes(step.output.data[:kept].tobytes())


# --- data ---------------------------------------------------------------------------------------------------------

_EVEN = (False, True)
_KINDS: dict[Ty, list[Kind]] = {
    INT: [Kind.I64],
    BOOL: [Kind.BOOL],
    FLOAT: [Kind.F64, Kind.F64, Kind.F32, Kind.F16, Kind.BF16],
}


def storage(choices: Choices, ty: Ty, n: int) -> Storage:
    """n elements of a kind that holds the type."""
    kind = choices.pick(_KINDS[ty])
    if ty is INT:
        ints = [choices.pick(INTS) if choices.pick(_EVEN) else choices.number(-20, 20) for _ in range(n)]
        return Storage(kind, np.array(ints, dtype=kind.dtype))
    if ty is BOOL:
        return Storage(kind, np.array([choices.pick(_EVEN) for _ in range(n)], dtype=kind.dtype))
    if kind is Kind.F64:
        floats = [choices.pick(FLOATS) if choices.pick(_EVEN) else choices.real(-100, 100) for _ in range(n)]
        data = np.array(floats, dtype=kind.dtype)
        if n and choices.pick(_EVEN):
            data.view(np.uint64)[0] = 0xFFF4_0000_DEAD_BEEF  # a NaN with a sign and a payload
        return Storage(kind, data)
    return Storage(kind, np.frombuffer(choices.raw(n * kind.itemsize), dtype=kind.dtype))


def scalar(choices: Choices, ty: Ty) -> Scalar:
    if ty is INT:
        return choices.number(0, 8) if choices.pick(_EVEN) else choices.pick(INTS)
    if ty is BOOL:
        return choices.pick(_EVEN)
    return choices.pick(FLOATS) if choices.pick(_EVEN) else choices.real(-10, 10)


# --- kernels -------------------------------------------------------------------------------------------------------


class _Maker:
    """Draws expressions. scopes: what may be read at this place, innermost last: nodes made before, and variables."""

    def __init__(self, choices: Choices, slots: tuple[Ty, ...], uniforms: tuple[Ty, ...], aligned: set[int]) -> None:
        self.choices = choices
        self.slots = slots
        self.uniforms = uniforms
        self.aligned = aligned
        self.scopes: list[list[Node]] = [[index()]]
        self.sites = 0
        self.general = False
        self.functions: list[KFunction] = []

    def pick(self, *options: Any) -> Any:
        return self.choices.pick(options)

    def _node(self, nodes: Sequence[Node]) -> Node:
        return self.choices.pick(nodes)

    def op(self, op: str, ty: Ty, *args: Node, attr: object = None) -> Node:
        site = None
        if OPS[op].checked:
            self.sites += 1
            site = Site(Span(SOURCE, self.sites, self.sites + 1))
        return Node(op, ty, args, attr, site)

    def leaf(self, ty: Ty) -> Node:
        known = [n for scope in self.scopes for n in scope if n.type is ty]
        readable = [k for k, t in enumerate(self.uniforms) if t is ty]
        loads = [k for k in self.aligned if self.slots[k] is ty and self.scopes[0]]
        choices = (
            ["const"] + ["known"] * (3 if known else 0) + ["uniform"] * bool(readable) + ["load"] * (2 * bool(loads))
        )
        if ty is INT and self.slots:
            choices.append("length")
        match self.pick(*choices):
            case "known":
                return self._node(known)
            case "uniform":
                return uniform(self.pick(*readable), ty)
            case "load":
                return load(self.pick(*loads), ty, index())
            case "length":
                return length(self.pick(*range(len(self.slots))))
        return const(self.pick(*{INT: INTS, FLOAT: FLOATS, BOOL: (True, False)}[ty]))

    def expression(self, ty: Ty, depth: int) -> Node:
        node = self.leaf(ty) if depth <= 0 else self.operation(ty, depth - 1)
        self.scopes[-1].append(node)
        return node

    def apart(self, ty: Ty, depth: int) -> Node:
        """An expression that is not always evaluated; later ones may share it all the same."""
        return self.expression(ty, depth)

    def operation(self, ty: Ty, depth: int) -> Node:
        rare = ["fold", "fold", "gather", "gather", "recover", "seq"] + ["loop", "call"] * self.general
        match self.pick("leaf", "binary", "binary", "binary", "unary", "select", "compare", *rare):
            case "leaf":
                return self.leaf(ty)
            case "unary":
                op, of = self.pick(*UNARY[ty])
                return self.op(op, ty, self.expression(of, depth))
            case "select":
                c = self.expression(BOOL, depth)
                return select(c, self.apart(ty, depth), self.apart(ty, depth))
            case "recover":
                return Node("recover", ty, (self.expression(ty, depth), self.apart(ty, depth)))
            case "seq":
                return seq([self.expression(self.pick(INT, FLOAT), depth)], self.expression(ty, depth))
            case "gather" if any(t is ty for t in self.slots):
                return self.gather(ty, depth)
            case "fold":
                return self.fold(ty, depth)
            case "loop":
                return self.loop(ty, depth)
            case "call":
                return self.call(ty, depth)
        if ty is BOOL and self.pick(True, True, False):
            of = self.pick(INT, FLOAT)
            return self.op(
                self.pick("eq", "ne", "lt", "le"), BOOL, self.expression(of, depth), self.expression(of, depth)
            )
        return self.op(self.pick(*INT_OPS[ty]), ty, self.expression(ty, depth), self.expression(ty, depth))

    def gather(self, ty: Ty, depth: int) -> Node:
        """`gpuGet(slot, place) ?: default`."""
        slot = self.pick(*(k for k, t in enumerate(self.slots) if t is ty))
        place = self.expression(INT, depth)
        if self.pick(True, False):
            place = self.op("rem", INT, place, length(slot))
        sound = Node("recover", BOOL, (inrange(slot, place), const(False)))
        return select(sound, load(slot, ty, place), self.apart(ty, depth - 1))

    def inside(self, bounds: tuple[Bound, ...], make: Callable[[], Any]) -> Any:
        self.scopes.append([var(b) for b in bounds])
        made = make()
        self.scopes.pop()
        return made

    def small(self, depth: int) -> Node:
        """A count of at most seven."""
        known = [length(k) for k in range(len(self.slots))] + [const(k) for k in (0, 1, 2, 4, -3)]
        if self.pick(True, False):
            return self._node(known)
        return Node("and", INT, (self.expression(INT, depth), const(7)))

    def fold(self, ty: Ty, depth: int) -> Node:
        accs = tuple(Bound(t) for t in (ty, *self.pick((), (), (INT,), (FLOAT, BOOL))))
        k = Bound(INT)
        n = self.small(depth - 1)
        inits = tuple(self.expression(a.type, depth - 1) for a in accs)
        nexts = self.inside((k, *accs), lambda: tuple(self.expression(a.type, depth) for a in accs))
        return fold(n, k, accs, inits, nexts)[0]

    def loop(self, ty: Ty, depth: int) -> Node:
        state = (Bound(ty), Bound(INT))
        steps = self.small(depth - 1)
        inits = (self.expression(ty, depth - 1), const(0))

        def body() -> tuple[Node, tuple[Node, ...]]:
            going = self.op("lt", BOOL, var(state[1]), steps)
            if self.pick(True, False):
                going = select(going, self.expression(BOOL, depth - 1), const(False))
            return going, (self.expression(ty, depth), self.op("add", INT, var(state[1]), const(1)))

        condition, nexts = self.inside(state, body)
        return loop(state, inits, condition, nexts)[0]

    def call(self, ty: Ty, depth: int) -> Node:
        known = [k for k, f in enumerate(self.functions) if f.results[0].type is ty]
        k = self.pick(*known) if known else self.function(ty, depth)
        size = self.small(depth - 1)
        self.sites += 1
        arguments = (size, self.expression(ty, depth - 1))
        return call(k, arguments, (ty,), Site(Span(SOURCE, self.sites, self.sites + 1)))[0]

    def function(self, ty: Ty, depth: int) -> int:
        """f(n, x) = if n <= 0 { … } else { … f(n - 1, …) … }."""
        n, x = Bound(INT), Bound(ty)
        outside, self.scopes = self.scopes, [[]]
        general, self.general = self.general, False
        aligned, self.aligned = self.aligned, set()

        def body() -> Node:
            base = self.expression(ty, depth - 1)
            down = self.op("sub", INT, var(n), const(1))
            self.sites += 1
            again = call(k, (down, self.expression(ty, depth - 1)), (ty,), Site(Span(SOURCE, self.sites, self.sites)))[
                0
            ]
            self.scopes[-1].append(again)
            return select(self.op("le", BOOL, var(n), const(0)), base, self.expression(ty, depth))

        k = len(self.functions)
        self.functions.append(KFunction(f"f{k}", (n, x), (const(0),)))
        made = self.inside((n, x), body)
        self.functions[k] = KFunction(f"f{k}", (n, x), (made,))
        self.scopes, self.general, self.aligned = outside, general, aligned
        return k


def launch(
    choices: Choices,
    *,
    general: bool = False,
    ops: tuple[StepOp, ...] = ("map", "map", "scan", "filter"),
    depth: int = 4,
) -> Launch:
    """A launch of a random kernel. general: loops and recursive functions too (a few frames deep)."""
    op = choices.pick(ops)
    n = choices.number(0, 7)
    count = choices.number(1 if op == "filter" else 0, 3)
    slots = tuple(choices.pick((FLOAT, FLOAT, INT, BOOL)) for _ in range(count))
    sizes = [n if choices.pick(_EVEN) else choices.number(0, 7) for _ in slots]
    if op == "filter":
        sizes[0] = n
    uniforms = tuple(choices.pick((INT, INT, FLOAT, BOOL)) for _ in range(choices.number(0, 3)))
    maker = _Maker(choices, slots, uniforms, {k for k, size in enumerate(sizes) if size >= n})
    maker.general = general
    ty = BOOL if op == "filter" else choices.pick((FLOAT, FLOAT, INT, BOOL))
    acc, init = None, None
    if op == "scan":
        acc = Bound(ty, "acc")
        init = const(choices.pick({INT: INTS, FLOAT: FLOATS, BOOL: _EVEN}[ty]))
        maker.scopes[0].append(var(acc))
    result = maker.expression(ty, depth)
    kernel = Kernel(slots, uniforms, result, tuple(maker.functions), acc, init, "generated")
    inputs = tuple(storage(choices, t, size) for t, size in zip(slots, sizes, strict=True))
    return Launch(op, kernel, inputs, tuple(scalar(choices, t) for t in uniforms), n)
