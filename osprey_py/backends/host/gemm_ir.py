"""Small helpers over llvmlite's builder that the matrix kernels are written with.

Comes in: an `ir.IRBuilder`. Goes out: counted loops in SSA form, address arithmetic, exact widening of storage kinds.
Nothing here sets a fast-math flag, so LLVM keeps every rounding (spec/numerics).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from osprey_py.backends.protocol import Kind

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
PTR = ir.PointerType()
VOID = ir.VoidType()

STEP_TYPE = ir.FunctionType(VOID, [PTR, I64, I64, PTR])
"""Every native kernel: (args, lo, hi, scratch) computes the units lo … hi-1."""

PACK_TYPE = ir.FunctionType(VOID, [PTR, I64, I64, I64, I64, I64, PTR])
"""(source, lane stride, depth stride, live lanes, lanes, depth, target): see gemm_pack.py."""

CANONICAL_NAN = ir.Constant(I64, 0x7FF8000000000000)

Builder = Any
Value = Any


class Callee(ir.PointerType):  # type: ignore[misc]
    """The type of a pointer that is called: opaque to LLVM, its signature known to the builder."""

    def __init__(self, signature: Any) -> None:
        super().__init__()
        self.pointee = signature


def i64(n: int) -> Value:
    return ir.Constant(I64, n)


def i32(n: int) -> Value:
    return ir.Constant(I32, n)


def vec(n: int) -> Value:
    """<n x double>, or double for n = 1."""
    return F64 if n == 1 else ir.VectorType(F64, n)


def at(b: Builder, base: Value, index: Value | int, size: int = 8) -> Value:
    """base + index * size bytes."""
    offset = index if size == 1 else b.mul(i64(index) if isinstance(index, int) else index, i64(size))
    if isinstance(offset, int):
        offset = i64(offset)
    return b.gep(base, [offset], source_etype=I8)


def word(b: Builder, args: Value, k: Value | int, typ: Value = I64) -> Value:
    """The k-th 8-byte word of an argument block."""
    return b.load(at(b, args, k), typ=typ, align=8)


def smin(b: Builder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


def smax(b: Builder, x: Value, y: Value) -> Value:
    return b.select(b.icmp_signed(">", x, y), x, y)


def for_range(
    b: Builder,
    start: Value,
    stop: Value,
    step: int | Value,
    inits: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
    name: str = "loop",
) -> list[Value]:
    """for i in start … stop-1 by step: state = body(i, state); the final state. The builder is left after the loop."""
    head = b.append_basic_block(name)
    inside = b.append_basic_block(name + ".body")
    done = b.append_basic_block(name + ".end")
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(I64, name + ".i")
    i.add_incoming(start, before)
    state = [b.phi(v.type) for v in inits]
    for p, v in zip(state, inits, strict=True):
        p.add_incoming(v, before)
    b.cbranch(b.icmp_signed("<", i, stop), inside, done)
    b.position_at_end(inside)
    after = body(i, list(state))
    latch = b.block
    i.add_incoming(b.add(i, i64(step) if isinstance(step, int) else step), latch)
    for p, v in zip(state, after, strict=True):
        p.add_incoming(v, latch)
    b.branch(head)
    b.position_at_end(done)
    return list(state)


def each(
    b: Builder, start: Value, stop: Value, step: int | Value, body: Callable[[Value], None], name: str = "each"
) -> None:
    """A counted loop that carries nothing."""

    def run(i: Value, _: list[Value]) -> list[Value]:
        body(i)
        return []

    for_range(b, start, stop, step, [], run, name)


def splat(b: Builder, x: Value, lanes: int) -> Value:
    """x in every lane."""
    if lanes == 1:
        return x
    empty = ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined)
    zeros = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
    return b.shuffle_vector(b.insert_element(empty, x, i32(0)), empty, zeros)


def canonical(b: Builder, x: Value) -> Value:
    """x with every NaN made 0x7FF8000000000000."""
    lanes = x.type.count if isinstance(x.type, ir.VectorType) else 1
    nan = splat(b, b.bitcast(CANONICAL_NAN, F64), lanes)
    return b.select(b.fcmp_unordered("uno", x, x), nan, x)


def prefetch(b: Builder, address: Value, near: bool = False) -> None:
    """Ask for a cache line, into L2 or (near) L1. An address that is nowhere is harmless."""
    kind = ir.FunctionType(VOID, [PTR, I32, I32, I32])
    function = b.module.declare_intrinsic("llvm.prefetch", [PTR], kind)
    b.call(function, [address, i32(0), i32(3 if near else 2), i32(1)])


_STORED = {Kind.F64: F64, Kind.F32: F32, Kind.F16: I16, Kind.BF16: I16}


def load_wide(b: Builder, kind: Kind, address: Value, lanes: int) -> Value:
    """`lanes` consecutive elements of a float kind from any address, widened exactly to binary64.

    F16 is widened in integers, so that no target needs a run-time library for it: its exponent and fraction are put
    at the bottom of a binary64's exponent and scaled by 2^1008, which is exact for subnormals too.
    """

    def shaped(t: Value) -> Value:
        return t if lanes == 1 else ir.VectorType(t, lanes)

    raw = b.load(address, typ=shaped(_STORED[kind]), align=1)
    if kind is Kind.F64:
        return raw
    if kind is Kind.F32:
        return b.fpext(raw, shaped(F64))
    if kind is Kind.BF16:
        bits = b.shl(b.zext(raw, shaped(I32)), splat(b, i32(16), lanes))
        return b.fpext(b.bitcast(bits, shaped(F32)), shaped(F64))

    def same(n: int) -> Value:
        return splat(b, i64(n), lanes)

    wide = b.zext(raw, shaped(I64))
    magnitude = b.shl(b.and_(wide, same(0x7FFF)), same(42))
    scale = splat(b, ir.Constant(F64, 2.0**1008), lanes)
    scaled = b.bitcast(b.fmul(b.bitcast(magnitude, shaped(F64)), scale), shaped(I64))
    special = b.or_(magnitude, same(0x7FF0000000000000))
    finite = b.icmp_unsigned("<", magnitude, same(0x7C00 << 42))
    sign = b.shl(b.and_(wide, same(0x8000)), same(48))
    return b.bitcast(b.or_(b.select(finite, scaled, special), sign), shaped(F64))
