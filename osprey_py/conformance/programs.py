"""Random programs over buffers: the graph's counterpart of conformance/generated.py.

`actions` draws a list of actions: launches over buffers made before (random kernels, and plain elementwise ones that
fuse), folds, scans, filters, concats, slices, accumulates, reads, barriers, regions that recover, and handles that die.
`observe` runs one on a runtime and gives everything the program could see, the fault that ended it included.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from osprey_py.backends.protocol import Scalar, Storage
from osprey_py.conformance.by_hand import elementwise, gather, op, running, total
from osprey_py.conformance.generated import Choices, Launch, launch, storage
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.locate import LaunchFault
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Kernel, Ty, const, index, load
from osprey_py.source.span import Source, Span

PROGRAM = Source("program.osp", "x" * 4096)

SIMPLE = [
    elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double"),
    elementwise(lambda a: op("fdiv", const(1.0), a, line=3), FLOAT, name="inverse"),
    elementwise(lambda a: op("exp", a), FLOAT, name="exp"),
    elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum"),
    elementwise(lambda a, b: op("fdiv", a, b, line=9), FLOAT, FLOAT, name="ratio"),
    elementwise(lambda a, b: op("mul", a, b, line=4), INT, INT, name="product"),
    elementwise(lambda a: op("tofloat", a), INT, name="tofloat"),
    elementwise(lambda a: op("lt", a, const(0.0)), FLOAT, name="negative"),
    elementwise(lambda a: op("toint", a, line=6), FLOAT, name="toint"),
    Kernel((INT, FLOAT), (), gather(1, op("wsub", const(3), load(0, INT, index())), const(7.0)), name="reversed"),
    Kernel((INT, FLOAT), (), gather(1, load(0, INT, index()), const(-1.0)), name="at"),
]
WRAP = elementwise(lambda i: op("and", i, const(3)), INT, name="wrap")


@dataclass(frozen=True)
class Action:
    """what: see `_Run`. picks: numbers that choose buffers, whatever there is by then."""

    what: str
    picks: tuple[int, ...]
    launch: Launch | None = None
    kernel: Kernel | None = None


_WHATS = (
    *["simple"] * 8,
    *["launch"] * 3,
    *["drop"] * 3,
    *"iota fold scan concat slice accumulate filter read get barrier region data".split(),
)


def actions(choices: Choices, size: int = 14) -> list[Action]:
    """A program of three actions or more."""
    drawn = []
    for _ in range(choices.number(3, size)):
        what = choices.pick(_WHATS)
        picks = tuple(choices.number(0, 40) for _ in range(4))
        random_launch = launch(choices, depth=3) if what == "launch" else None
        kernel = choices.pick(SIMPLE) if what == "simple" else None
        drawn.append(Action(what, picks, random_launch, kernel))
    return drawn


def data(choices: Choices) -> list[Storage]:
    """What a program begins with."""
    return [storage(choices, ty, choices.pick((4, 4, 4, 0, 1, 6))) for ty in (FLOAT, FLOAT, INT, BOOL)]


def bits(value: Scalar) -> object:
    return struct.pack("<d", value) if isinstance(value, float) else value


def observe(rt: Runtime, initial: list[Any], actions: list[Action]) -> list[object]:
    """What the program lets the world see, in order; at its end, all buffers that are left, or the fault. What it learns
    is shown at the next barrier, for learning something is no effect: a fault that comes first leaves no trace of it."""
    run = _Run(rt, [rt.data(s) for s in initial])
    try:
        for at, action in enumerate(actions):
            run.act(action, Span(PROGRAM, at, at + 1))
        rt.barrier()
        for b in run.pool:
            run.seen.append([bits(v) for v in rt.read(b)])
    except MathFault as fault:
        del run.seen[run.shown :]
        run.seen.append((fault.message, fault.element, fault.span, fault.launch))
    return run.seen


class _Run:
    def __init__(self, rt: Runtime, pool: list[Buffer]) -> None:
        self.rt = rt
        self.pool = pool
        self.seen: list[object] = []
        self.shown = 0

    def pick(self, k: int, ty: Ty | None, fits: Callable[[Buffer], bool] = lambda b: True) -> Buffer:
        """The k-th newest of a type, or a fresh one."""
        known = [b for b in reversed(self.pool) if (ty is None or b.type is ty) and fits(b)]
        if known:
            return known[k % len(known)]
        values: dict[Ty | None, list[Any]] = {FLOAT: [1.0, -2.5, 0.0, 4.0], INT: [3, 0, -1, 2], BOOL: [True] * 4}
        return self.rt.from_list(values[ty if ty is not None else FLOAT], ty or FLOAT)

    def act(self, action: Action, span: Span) -> None:
        rt, (a, b, c, _) = self.rt, action.picks
        match action.what:
            case "simple":
                assert action.kernel is not None
                inputs = tuple(self.pick(k, t) for k, t in zip((a, b), action.kernel.slots, strict=False))
                aligned = inputs[:1] if action.kernel.name in ("reversed", "at") else inputs
                n = min(len(x) for x in aligned)
                self.pool.append(rt.map(action.kernel, inputs, (), n, span))
            case "launch":
                self.launch(action, span)
            case "drop":
                if self.pool:
                    del self.pool[a % len(self.pool)]
            case "iota":
                self.pool.append(rt.iota(4 if a % 3 else b % 9 - 1, span))
            case "data":
                self.pool.append(rt.from_list([float(a), 0.5, -1.0, 0.0], FLOAT))
            case "fold":
                ty = FLOAT if b % 2 else INT
                self.seen.append(bits(rt.fold(total(ty), (self.pick(a, ty),), (), span)))
            case "scan":
                ty = FLOAT if b % 2 else INT
                over = self.pick(a, ty)
                self.pool.append(rt.scan(running(ty), (over,), (), len(over), span))
            case "filter":
                kept = rt.filter(SIMPLE[7], (self.pick(a, FLOAT),), (), span)
                self.seen.append(len(kept))
                self.pool.append(kept)
            case "concat":
                left = self.pick(a, None)
                self.pool.append(rt.concat(left, self.pick(b, left.type, lambda x: len(x) < 40), span))
            case "slice":
                of = self.pick(a, None)
                begin = b % (len(of) + 1)
                self.pool.append(rt.slice(of, begin, begin + c % (len(of) - begin + 1), span))
            case "accumulate":
                values = self.pick(a, FLOAT)
                places = self.pick(b, INT, lambda x: len(x) == len(values))
                if len(places) == len(values):
                    wrapped = rt.map(WRAP, (places,), (), len(places), span)
                    self.pool.append(rt.accumulate(4, wrapped, values, span))
            case "read":
                self.seen.append([bits(v) for v in rt.read(self.pick(a, None))])
            case "get":
                value = rt.get(self.pick(a, None), b % 5)
                self.seen.append(None if value is None else bits(value))
            case "barrier":
                rt.barrier()
                self.shown = len(self.seen)
            case "region":
                self.region(action, span)

    def launch(self, action: Action, span: Span) -> None:
        launch = action.launch
        assert launch is not None
        inputs = []
        for slot, given in enumerate(launch.inputs):

            def fits(b: Buffer, size: int = given.length, first: bool = slot == 0) -> bool:
                if launch.op == "filter" and first:
                    return len(b) == launch.n
                return len(b) >= launch.n or size < launch.n

            pick = action.picks[slot % 4]
            known = [b for b in self.pool if b.type is given.kind.type and fits(b)]
            inputs.append(known[pick % len(known)] if known and pick % 4 else self.rt.data(given))
        made = tuple(inputs)
        if launch.op == "filter":
            self.pool.append(self.rt.filter(launch.kernel, made, launch.uniforms, span))
        elif launch.op == "scan":
            self.pool.append(self.rt.scan(launch.kernel, made, launch.uniforms, launch.n, span))
        else:
            self.pool.append(self.rt.map(launch.kernel, made, launch.uniforms, launch.n, span))

    def region(self, action: Action, span: Span) -> None:
        """`{ ratio; inverse of it; fold } ?: nothing`."""
        a, b, c, _ = action.picks
        mark = self.rt.mark()
        before, known = list(self.pool), len(self.seen)
        try:
            self.act(Action("simple", (a, b, 0, 0), kernel=SIMPLE[4]), span)
            self.act(Action("simple", (0, 0, 0, 0), kernel=SIMPLE[1]), span)
            if c % 3 == 0:
                self.act(Action("fold", (0, 1, 0, 0)), span)
            self.rt.settle(mark)
        except MathFault as fault:
            found = self.rt.caught(fault, mark)
            del self.seen[known:]
            self.seen.append((found.message, found.element, isinstance(found, LaunchFault)))
            self.pool = before
