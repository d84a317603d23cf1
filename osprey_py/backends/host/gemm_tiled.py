"""The tiled matrix product: a block of A packed into L2, a panel of B into L1, C tiles in registers.

Comes in: a `Block` of the output. Goes out: its sums, k in blocks ascending with the partial sums carried in C itself,
which is exact. Tiles at the edge, and outputs whose columns are not contiguous, go through a scratch tile.
Where each row has more terms than the one before (causal sums), a tile does what all its rows have, and each row the rest.
Scratch: the packed A block, the packed B panel, one tile, one row of seeds.
"""

from __future__ import annotations

from llvmlite import ir

from osprey_py.backends.host.gemm_ir import (
    F64,
    I64,
    PACK_TYPE,
    PTR,
    VOID,
    Builder,
    Callee,
    Value,
    at,
    canonical,
    each,
    for_range,
    i64,
    smin,
    splat,
    vec,
    word,
)
from osprey_py.backends.host.gemm_micro import emit_micro
from osprey_py.backends.host.gemm_step import Block, Word, emit_step
from osprey_py.backends.host.gemm_target import Tile


def scratch_bytes(tile: Tile, block_m: int, block_k: int) -> int:
    """What one thread needs beside the epilogue's own scratch. The order: seeds, tile, B panel, A block."""
    tiles = -(-block_m // tile.rows) * tile.rows
    return 8 * (tile.columns + tile.rows * tile.columns + block_k * (tile.columns + tiles))


def emit_tiled(module: Value, tile: Tile) -> Value:
    """`gemm_tiled`, a STEP_TYPE function for every shape, stride and kind."""
    row_rest = emit_row_rest(module, tile)
    micros = {h: emit_micro(module, tile, h) for h in tile.heights}
    ascending = sorted(tile.heights)

    def height_for(b: Builder, rows: Value) -> Value:
        """The least tile height that covers the rows that are left; the greatest when none does."""
        height = i64(ascending[-1])
        for h in reversed(ascending[:-1]):
            height = b.select(b.icmp_signed("<=", rows, i64(h)), i64(h), height)
        return height

    def run_micro(b: Builder, height: Value, operands: list[Value]) -> None:
        after = b.append_basic_block("micro.end")
        other = b.append_basic_block("micro")
        choice = b.switch(height, other)
        for h in tile.heights:
            place = other if h == tile.rows else b.append_basic_block(f"micro.{h}")
            if h != tile.rows:
                choice.add_case(i64(h), place)
            with b.goto_block(place):
                b.call(micros[h], operands)
                b.branch(after)
        b.position_at_end(after)

    def compute(b: Builder, block: Block) -> None:
        depth, block_k = block.depth, block.word(b, Word.BLOCK_K)
        a_m, a_k = block.word(b, Word.A_M), block.word(b, Word.A_K)
        b_k, b_n = block.word(b, Word.B_K), block.word(b, Word.B_N)
        c_m, c_n = block.word(b, Word.C_M), block.word(b, Word.C_N)
        a_size, b_size = block.word(b, Word.A_SIZE), block.word(b, Word.B_SIZE)
        pack_a = word(b, block.args, Word.PACK_A, Callee(PACK_TYPE))
        pack_b = word(b, block.args, Word.PACK_B, Callee(PACK_TYPE))
        seed = word(b, block.args, Word.SEED, F64)
        seeds = block.scratch
        edge = at(b, seeds, tile.columns)
        panel = at(b, edge, tile.rows * tile.columns)
        packed = at(b, panel, b.mul(block_k, i64(tile.columns)))
        for j in range(tile.columns):
            b.store(seed, at(b, seeds, j), align=8)
        line = b.mul(b_k, b_size)
        slope = block.word(b, Word.K_M)
        seeded = b.icmp_signed("==", block.word(b, Word.STARTED), i64(0))
        longest = b.add(depth, b.mul(b.sub(block.rows, i64(1)), slope))
        # K = 0 still takes one round, which writes the seeds.
        rounds = b.select(b.icmp_signed(">", longest, i64(0)), longest, i64(1))

        def round_k(p0: Value) -> None:
            deep = smin(b, block_k, b.sub(longest, p0))
            first = b.and_(b.icmp_signed("==", p0, i64(0)), seeded)
            a0 = at(b, block.a, b.mul(b.mul(p0, a_k), a_size), 1)
            b0 = at(b, block.b, b.mul(b.mul(p0, b_k), b_size), 1)

            def pack_rows(r: Value) -> None:
                left = b.sub(block.rows, r)
                height = height_for(b, left)
                source = at(b, a0, b.mul(b.mul(r, a_m), a_size), 1)
                b.call(pack_a, [source, a_m, a_k, smin(b, height, left), height, deep, at(b, packed, b.mul(r, deep))])

            each(b, i64(0), block.rows, tile.rows, pack_rows, "pack")

            def columns(q: Value) -> None:
                live = smin(b, i64(tile.columns), b.sub(block.columns, q))
                source = at(b, b0, b.mul(b.mul(q, b_n), b_size), 1)
                b.call(pack_b, [source, b_n, b_k, live, i64(tile.columns), deep, panel])
                ahead = at(b, source, b.mul(b.mul(i64(tile.columns), b_n), b_size), 1)
                whole = b.and_(b.icmp_signed("==", live, i64(tile.columns)), b.icmp_signed("==", c_n, i64(1)))

                def more(
                    i: Value, r: Value, height: Value, common: Value, tile_a: Value, out: Value, stride: Value
                ) -> None:
                    end = within(b, b.sub(b.add(depth, b.mul(b.add(r, i), slope)), p0), deep)
                    b.call(row_rest, [at(b, tile_a, i), height, panel, common, end, at(b, out, b.mul(i, stride))])

                def rows(r: Value, state: list[Value]) -> list[Value]:
                    left = b.sub(block.rows, r)
                    height = height_for(b, left)
                    high = smin(b, height, left)
                    direct = b.and_(whole, b.icmp_signed("==", high, height))
                    target = at(b, block.c, b.add(b.mul(r, c_m), b.mul(q, c_n)))
                    out = b.select(direct, target, edge)
                    stride = b.select(direct, c_m, i64(tile.columns))
                    with b.if_then(b.not_(b.or_(direct, first))):
                        copy(b, target, c_m, c_n, edge, i64(tile.columns), i64(1), high, live)
                    start = b.select(first, seeds, out)
                    start_stride = b.select(first, i64(0), stride)
                    left_tile = at(b, packed, b.mul(r, deep))
                    common = within(b, b.sub(b.add(depth, b.mul(r, slope)), p0), deep)
                    run_micro(b, height, [left_tile, panel, common, start, start_stride, out, stride, state[0], line])
                    with b.if_then(b.icmp_signed("!=", slope, i64(0))):
                        each(b, i64(0), high, 1, lambda i: more(i, r, height, common, left_tile, out, stride), "row")
                    with b.if_then(b.not_(direct)):
                        copy(b, edge, i64(tile.columns), i64(1), target, c_m, c_n, high, live)
                    return [at(b, state[0], 64, 1)]

                for_range(b, i64(0), block.rows, tile.rows, [ahead], rows, "tile")

            each(b, i64(0), block.columns, tile.columns, columns, "panel")

        each(b, i64(0), rounds, block_k, round_k, "round")

    return emit_step(module, "gemm_tiled", compute)


def within(b: Builder, n: Value, most: Value) -> Value:
    """n, but 0 at least and `most` at most."""
    return smin(b, b.select(b.icmp_signed("<", n, i64(0)), i64(0), n), most)


def emit_row_rest(module: Value, tile: Tile) -> Value:
    """(A's first element, its stride, B panel, from, to, out): adds to one row of a tile what k = from … to-1 bring."""
    fn = ir.Function(module, ir.FunctionType(VOID, [PTR, I64, PTR, I64, I64, PTR]), "row_rest")
    fn.linkage = "internal"
    left, stride, panel, start, stop, out = fn.args
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    places = [at(b, out, j * tile.width) for j in range(tile.vectors)]

    def body(k: Value, acc: list[Value]) -> list[Value]:
        w = splat(b, b.load(at(b, left, b.mul(k, stride)), typ=F64, align=8), tile.width)
        row = at(b, panel, b.mul(k, i64(tile.columns)))
        rights = [b.load(at(b, row, j * tile.width), typ=vec(tile.width), align=8) for j in range(tile.vectors)]
        return [b.fadd(x, b.fmul(w, right)) for x, right in zip(acc, rights, strict=True)]

    acc = for_range(b, start, stop, 1, [b.load(p, typ=vec(tile.width), align=8) for p in places], body, "k")
    for value, place in zip(acc, places, strict=True):
        b.store(canonical(b, value), place, align=8)
    b.ret_void()
    return fn


def copy(
    b: Builder,
    source: Value,
    s_m: Value,
    s_n: Value,
    target: Value,
    t_m: Value,
    t_n: Value,
    rows: Value,
    columns: Value,
) -> None:
    """target[i, j] = source[i, j] for i < rows, j < columns."""

    def cell(i: Value, j: Value) -> None:
        value = b.load(at(b, source, b.add(b.mul(i, s_m), b.mul(j, s_n))), typ=I64, align=8)
        b.store(value, at(b, target, b.add(b.mul(i, t_m), b.mul(j, t_n))), align=8)

    each(b, i64(0), rows, 1, lambda i: each(b, i64(0), columns, 1, lambda j: cell(i, j), "copy"), "copy")
