"""Kernels as array programs have them, drawn at random: index arithmetic over the digits of a grid, rows that are
summed, strided and shifted reads, guards that hold and guards that do not. Sizes are large enough for whole
vectors, rests and several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from osprey_py.backends.protocol import Kind, Scalar, Storage
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    Bound,
    Kernel,
    Node,
    Site,
    Ty,
    const,
    fold,
    index,
    inrange,
    load,
    select,
    uniform,
    var,
)
from osprey_py.source.span import Source, Span
from tests.fuzz.kernels import Launch

_SITE = Site(Span(Source("arrays.osp", "x" * 16), 0, 1))
EXTENTS = (1, 2, 3, 5, 8, 9, 13, 16, 21, 40, 67)
KINDS = (Kind.F64, Kind.F32, Kind.F16, Kind.BF16)


def op(name: str, ty: Ty, *args: Node) -> Node:
    return Node(name, ty, args, None, _SITE if OPS[name].checked else None)


def guarded(slot: int, at: Node, ty: Ty = FLOAT, default: Node | None = None) -> Node:
    """`gpuGet(slot, at) ?: default`."""
    return select(inrange(slot, at), load(slot, ty, at), const(-1.5) if default is None else default)


class _Array:
    """Draws one kernel. numbers: the values of the uniforms so far, which are the extents of the grid and strides."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.numbers: list[Scalar] = []
        self.extents = [self.pick(*EXTENTS) for _ in range(self.pick(1, 2, 2, 3))]
        self.terms = self.pick(0, 1, 3, 8, 18, 21)
        self.turns: list[Node] = []
        """Indices of the folds around, outermost first."""
        self.n = int(np.prod(self.extents))
        if self.n > 4000:
            self.extents = self.extents[:2]
            self.n = int(np.prod(self.extents))

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, value: int) -> Node:
        """An extent or a stride: a constant, or a captured scalar."""
        if self.pick(True, False):
            return const(value)
        self.numbers.append(value)
        return uniform(len(self.numbers) - 1, INT)

    def digit(self, k: int) -> Node:
        """The k-th coordinate of the grid, the last one fastest, written one way or another."""
        unit = int(np.prod(self.extents[k + 1 :]))
        at = index()
        if unit > 1 and len(self.extents) > k + 2 and self.pick(True, False):
            for extent in reversed(self.extents[k + 1 :]):
                at = op("quot", INT, at, self.number(extent))
        elif unit > 1:
            at = op("quot", INT, at, self.number(unit))
        return at if k == 0 else op("rem", INT, at, self.number(self.extents[k]))

    def place(self, k: Node | None) -> Node:
        """Some place to read: digits times strides, a fold's index among them, sometimes shifted or out of range."""
        parts = [(self.digit(d), e) for d, e in enumerate(self.extents)]
        if k is not None and self.terms in (8, 18) and self.pick(True, False):
            unit = self.pick(2, self.terms // 2)
            parts.append((op("rem", INT, k, self.number(unit)), unit))
            parts.append((op("quot", INT, k, self.number(unit)), self.terms // unit))
        elif k is not None:
            parts.append((k, self.terms))
        parts += [(outer, self.terms) for outer in self.turns[:-1]]
        self.draw(st.randoms(use_true_random=False)).shuffle(parts)
        parts = parts[: self.pick(1, 2, 3, 4)]
        at: Node | None = None
        stride = 1
        for part, extent in parts:
            scaled = part if stride == 1 else op("mul", INT, part, self.number(stride))
            at = scaled if at is None else op("add", INT, at, scaled)
            stride *= max(1, extent)
        assert at is not None
        shift = self.pick(0, 0, 0, 1, -1, 7)
        return op("add", INT, at, const(shift)) if shift else at

    def term(self, k: Node | None, depth: int) -> Node:
        """A float."""
        if depth == 0:
            if k is not None and self.pick(True, False):
                return self.row(k)
            return self.pick(
                lambda: guarded(0, self.place(k)),
                lambda: guarded(1, self.place(k)),
                lambda: load(2, FLOAT, index()),
                lambda: op("tofloat", FLOAT, self.place(k)),
            )()
        name = self.pick("fadd", "fmul", "fsub", "fmax", "fdivi", "fdiv", "unary", "mask", "fold", "fold", "token")
        if name == "unary":
            return op(self.pick("exp", "tanh", "fneg", "sqrt", "ln"), FLOAT, self.term(k, depth - 1))
        if name == "mask":
            c = op(self.pick("lt", "le", "eq"), BOOL, self.place(k), self.place(k))
            return select(c, self.term(k, depth - 1), self.term(k, depth - 1))
        if name == "token":
            return guarded(0, op("add", INT, guarded(3, self.place(k), INT, const(-1)), self.place(None)))
        if name == "fold":
            return self.fold(depth - 1)
        return op(name, FLOAT, self.term(k, depth - 1), self.term(k, depth - 1))

    def row(self, k: Node) -> Node:
        """Element k of the row that the grid's last digits name: what sums of rows read."""
        digits = [self.digit(d) for d in range(self.pick(0, 0, len(self.extents) - 1), len(self.extents))]
        at = digits[0]
        for d, extent in zip(digits[1:], self.extents[1 - len(digits) + len(self.extents) :], strict=True):
            at = op("add", INT, op("mul", INT, at, self.number(extent)), d)
        return guarded(self.pick(0, 1), op("add", INT, op("mul", INT, at, self.number(self.terms)), k))

    def fold(self, depth: int) -> Node:
        j, acc = Bound(INT, "j"), Bound(FLOAT, "acc")
        count = self.pick(
            self.number(self.terms), self.number(self.terms), op("imin", INT, self.digit(0), const(self.terms))
        )
        self.turns.append(var(j))
        term = self.row(var(j)) if self.pick(True, False) else self.term(var(j), depth)
        following = op(self.pick("fadd", "fmax", "fmin", "fadd"), FLOAT, var(acc), term)
        self.turns.pop()
        return fold(count, j, (acc,), (const(self.pick(0.0, -0.0, 1.5)),), (following,))[0]


@st.composite
def arrays(draw: Callable[..., Any]) -> Launch:
    """A map over a grid, or now and then a scan."""
    maker = _Array(draw)
    result = maker.term(None, draw(st.integers(1, 3)))
    acc, init = None, None
    if draw(st.sampled_from([False, False, False, True])):
        acc, init = Bound(FLOAT, "acc"), const(0.5)
        result = op("fadd", FLOAT, var(acc), result)
    size = max(1, maker.n)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    whole = size * max(1, maker.terms)
    lengths = [draw(st.sampled_from([whole, whole, whole, size, size // 2, 0])) for _ in range(2)]
    floats = [_floats(draw(st.sampled_from(KINDS)), rng, n) for n in (*lengths, size)]
    tokens = Storage(Kind.I64, rng.integers(-1, size + 1, size))
    kernel = Kernel((FLOAT, FLOAT, FLOAT, INT), (INT,) * len(maker.numbers), result, (), acc, init, "array")
    return Launch("map" if acc is None else "scan", kernel, (*floats, tokens), tuple(maker.numbers), maker.n)


def _floats(kind: Kind, rng: np.random.Generator, n: int) -> Storage:
    values = rng.standard_normal(n) * 3
    values[rng.random(n) < 0.02] = np.nan
    values[rng.random(n) < 0.05] = 0.0
    values[rng.random(n) < 0.05] = -0.0
    if kind is Kind.BF16:
        return Storage(kind, (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    if kind is Kind.F64:
        values.view(np.uint64)[rng.random(n) < 0.02] = 0xFFF4_0000_DEAD_BEEF
    return Storage(kind, values.astype(kind.dtype))
