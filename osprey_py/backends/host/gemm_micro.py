"""The innermost kernels: one C tile held in registers over a run of k.

Comes in: a packed tile of A ([depth][height]) and a packed panel of B ([depth][columns]), both binary64.
Goes out: for each output of the tile  out = (((init + a0*b0) + a1*b1) + …)  over k ascending, every product rounded
before it is added, one accumulator an output; NaN stored canonical (spec/contractions, spec/numerics).
Speed comes from height * vectors independent accumulators side by side, never from splitting a sum.
"""

from __future__ import annotations

from llvmlite import ir

from osprey_py.backends.host.gemm_ir import (
    F64,
    I8,
    I64,
    PTR,
    VOID,
    Value,
    at,
    canonical,
    for_range,
    i64,
    prefetch,
    splat,
    vec,
)
from osprey_py.backends.host.gemm_target import Tile

MICRO_TYPE = ir.FunctionType(VOID, [PTR, PTR, I64, PTR, I64, PTR, I64, PTR, I64])
"""(A tile, B panel, depth, init, its row stride, out, its row stride, address to prefetch, its stride). Row strides in
elements (0: one row of seeds serves all), the prefetch stride in bytes: of each step a panel's width of doubles is
prefetched. A wrong address to prefetch is harmless."""


def emit_micro(module: Value, tile: Tile, height: int) -> Value:
    """The function for tiles of `height` rows."""
    fn = ir.Function(module, MICRO_TYPE, f"micro_{height}")
    fn.linkage = "internal"
    a, right, depth, init, init_stride, out, out_stride, ahead, ahead_stride = fn.args
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    vector = vec(tile.width)

    def place(base: Value, stride: Value, i: int, j: int) -> Value:
        return at(b, at(b, base, b.mul(stride, i64(i))), j * tile.width)

    lines = max(1, tile.columns * 8 // 64)
    cells = [(i, j) for i in range(height) for j in range(tile.vectors)]
    first = [b.load(place(init, init_stride, i, j), typ=vector, align=8) for i, j in cells]

    def step(base_a: Value, base_b: Value, acc: list[Value]) -> list[Value]:
        row = [b.load(at(b, base_b, j * tile.width), typ=vector, align=8) for j in range(tile.vectors)]
        left = [splat(b, b.load(at(b, base_a, i), typ=F64, align=8), tile.width) for i in range(height)]
        return [b.fadd(acc[n], b.fmul(left[i], row[j])) for n, (i, j) in enumerate(cells)]

    def run(count: int, start: Value, stop: Value, state: list[Value]) -> list[Value]:
        def body(k: Value, state: list[Value]) -> list[Value]:
            line, acc = state[0], state[1:]
            base_a, base_b = at(b, a, b.mul(k, i64(height))), at(b, right, b.mul(k, i64(tile.columns)))
            for u in range(count):
                for ahead_line in range(lines):
                    prefetch(b, at(b, line, 64 * ahead_line, 1))
                line = b.gep(line, [ahead_stride], source_etype=I8)
                acc = step(at(b, base_a, u * height), at(b, base_b, u * tile.columns), acc)
            return [line, *acc]

        return for_range(b, start, stop, count, state, body, f"k{count}")

    whole = b.sub(depth, b.srem(depth, i64(tile.unroll)))
    state = run(tile.unroll, i64(0), whole, [ahead, *first])
    if tile.unroll > 1:
        state = run(1, whole, depth, state)
    for (i, j), value in zip(cells, state[1:], strict=True):
        b.store(canonical(b, value), place(out, out_stride, i, j), align=8)
    b.ret_void()
    return fn
