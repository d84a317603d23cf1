"""Packing: a strided operand of any storage kind becomes a dense binary64 panel that the inner kernels stream.

Comes in: (source, lane stride, depth stride, live, lanes, depth, target), strides in elements.
Goes out: target[k * lanes + r] = source[r * lane_stride + k * depth_stride] widened exactly, for r < live; 0.0 in the
lanes live … lanes-1, whose results nobody reads.
Three ways through: lanes contiguous (copied as vectors), depth contiguous (transposed in registers), neither.
"""

from __future__ import annotations

from llvmlite import ir

from osprey_py.backends.host.gemm_ir import F64, I32, PACK_TYPE, Builder, Value, at, each, i64, load_wide, prefetch
from osprey_py.backends.protocol import Kind


def transpose(b: Builder, rows: list[Value]) -> list[Value]:
    """The transpose of n vectors of n lanes, n a power of two, by log2 n stages of block exchanges."""
    n = len(rows)
    rows = list(rows)
    distance = n // 2
    while distance:
        upper = [lane if not lane & distance else lane - distance + n for lane in range(n)]
        lower = [lane + distance if not lane & distance else lane + n for lane in range(n)]
        for i in range(n):
            if not i & distance:
                x, y = rows[i], rows[i + distance]
                rows[i] = b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, n), upper))
                rows[i + distance] = b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, n), lower))
        distance //= 2
    return rows


def emit_pack(module: Value, name: str, kind: Kind, group: int) -> Value:
    """The packer of one kind that moves `group` lanes at once."""
    fn = ir.Function(module, PACK_TYPE, name)
    source, lane_stride, depth_stride, live, lanes, depth, target = fn.args
    size = kind.itemsize
    b = ir.IRBuilder(fn.append_basic_block("entry"))

    def place(lane: Value, k: Value) -> Value:
        return b.add(b.mul(lane, lane_stride), b.mul(k, depth_stride))

    def read(lane: Value, k: Value, count: int) -> Value:
        return load_wide(b, kind, at(b, source, place(lane, k), size), count)

    def write(value: Value, lane: Value, k: Value) -> None:
        b.store(value, at(b, target, b.add(b.mul(k, lanes), lane)), align=8)

    whole = b.sub(live, b.srem(live, i64(group)))
    contiguous = b.icmp_signed("==", lane_stride, i64(1))
    along = b.icmp_signed("==", depth_stride, i64(1))
    grouped = b.select(b.or_(contiguous, along), whole, i64(0))

    with b.if_else(contiguous) as (then, otherwise):
        with then:
            each(b, i64(0), depth, 1, lambda k: each(b, i64(0), whole, group, lambda r: write(read(r, k, group), r, k)))
        with otherwise, b.if_then(along):
            blocks = b.sub(depth, b.srem(depth, i64(group)))

            def block(r: Value, k: Value) -> None:
                rows = [read(b.add(r, i64(t)), k, group) for t in range(group)]
                for t in range(group):
                    prefetch(b, at(b, source, place(b.add(b.add(r, lanes), i64(t)), k), size))
                for t, column in enumerate(transpose(b, rows)):
                    write(column, r, b.add(k, i64(t)))

            def rest(r: Value, k: Value) -> None:
                for t in range(group):
                    write(read(b.add(r, i64(t)), k, 1), b.add(r, i64(t)), k)

            def rows(r: Value) -> None:
                each(b, i64(0), blocks, group, lambda k: block(r, k))
                each(b, blocks, depth, 1, lambda k: rest(r, k))

            each(b, i64(0), whole, group, rows)
    each(b, grouped, live, 1, lambda r: each(b, i64(0), depth, 1, lambda k: write(read(r, k, 1), r, k)))
    zero = ir.Constant(F64, 0.0)
    each(b, live, lanes, 1, lambda r: each(b, i64(0), depth, 1, lambda k: write(zero, r, k)))
    b.ret_void()
    return fn
