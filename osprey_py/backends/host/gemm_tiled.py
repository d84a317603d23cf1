"""The tiled matrix product: a block of A packed into L2, a panel of B into L1, C tiles in registers.

Comes in: a `Block` of the output. Goes out: its sums, k in blocks ascending with the partial sums carried in C itself,
which is exact. Tiles at the edge, and outputs whose columns are not contiguous, go through a scratch tile.
Where sums begin or end later from row to row (causal sums), a tile does together what all its rows have; what is before and
behind, some rows at a time (`emit_ragged`). Nothing is packed or computed for terms that no row of a tile has.
Scratch: the packed A block with the `Span` of each of its tiles, the packed B panel, one tile, one row of seeds.
"""

from __future__ import annotations

from osprey_py.backends.host.gemm_ir import (
    F64,
    I64,
    PACK_TYPE,
    Builder,
    Callee,
    Value,
    at,
    each,
    for_range,
    i64,
    smax,
    smin,
    word,
)
from osprey_py.backends.host.gemm_micro import emit_micro
from osprey_py.backends.host.gemm_spans import Span, Spans, emit_ragged, within
from osprey_py.backends.host.gemm_step import Block, Word, emit_step
from osprey_py.backends.host.gemm_target import Tile


def scratch_bytes(tile: Tile, block_m: int, block_k: int) -> int:
    """What one thread needs beside the epilogue's own scratch. The order: seeds, tile, B panel, A block, spans."""
    tiles = -(-block_m // tile.rows)
    return 8 * (tile.columns + tile.rows * tile.columns + block_k * (tile.columns + tiles * tile.rows) + 4 * tiles)


def emit_tiled(module: Value, tile: Tile) -> Value:
    """`gemm_tiled`, a STEP_TYPE function for every shape, stride and kind."""
    ragged = emit_ragged(module, tile)
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
        block_k = block.word(b, Word.BLOCK_K)
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
        tiles = b.sdiv(b.add(block.word(b, Word.BLOCK_M), i64(tile.rows - 1)), i64(tile.rows))
        kept = at(b, packed, b.mul(block_k, b.mul(tiles, i64(tile.rows))))

        def span_at(r: Value) -> Value:
            return at(b, kept, b.mul(b.sdiv(r, i64(tile.rows)), i64(4)))

        for j in range(tile.columns):
            b.store(seed, at(b, seeds, j), align=8)
        line = b.mul(b_k, b_size)
        spans = Spans(b, block)
        seeded = b.icmp_signed("==", block.word(b, Word.STARTED), i64(0))
        longest = within(b, smax(b, spans.end(i64(0)), spans.end(b.sub(block.rows, i64(1)))), block.most)
        # No terms still take one round, which writes the seeds.
        rounds = b.select(b.icmp_signed(">", longest, i64(0)), longest, i64(1))

        def round_k(p0: Value) -> None:
            deep = smin(b, block_k, b.sub(longest, p0))
            opening = b.icmp_signed("==", p0, i64(0))
            first = b.and_(opening, seeded)
            a0 = at(b, block.a, b.mul(b.mul(p0, a_k), a_size), 1)
            b0 = at(b, block.b, b.mul(b.mul(p0, b_k), b_size), 1)

            def pack_rows(r: Value) -> None:
                left = b.sub(block.rows, r)
                height = height_for(b, left)
                live = smin(b, height, left)
                span = spans.of(r, live, p0, deep)
                for j, x in enumerate((span.least, span.low, span.high, span.most)):
                    b.store(x, at(b, span_at(r), j), align=8)
                source = at(b, a0, b.mul(b.add(b.mul(r, a_m), b.mul(span.least, a_k)), a_size), 1)
                target = at(b, packed, b.add(b.mul(r, deep), b.mul(span.least, height)))
                b.call(pack_a, [source, a_m, a_k, live, height, b.sub(span.most, span.least), target])

            each(b, i64(0), block.rows, tile.rows, pack_rows, "pack")

            def columns(q: Value) -> None:
                live = smin(b, i64(tile.columns), b.sub(block.columns, q))
                source = at(b, b0, b.mul(b.mul(q, b_n), b_size), 1)
                b.call(pack_b, [source, b_n, b_k, live, i64(tile.columns), deep, panel])
                ahead = at(b, source, b.mul(b.mul(i64(tile.columns), b_n), b_size), 1)
                whole = b.and_(b.icmp_signed("==", live, i64(tile.columns)), b.icmp_signed("==", c_n, i64(1)))

                def rows(r: Value, state: list[Value]) -> list[Value]:
                    left = b.sub(block.rows, r)
                    height = height_for(b, left)
                    high = smin(b, height, left)
                    span = Span(*(word(b, span_at(r), j) for j in range(4)))
                    with b.if_then(b.or_(opening, b.icmp_signed("<", span.least, span.most))):
                        tile_of(r, height, high, span, state[0])
                    return [at(b, state[0], 64, 1)]

                def tile_of(r: Value, height: Value, high: Value, span: Span, ahead: Value) -> None:
                    direct = b.and_(whole, b.icmp_signed("==", high, height))
                    target = at(b, block.c, b.add(b.mul(r, c_m), b.mul(q, c_n)))
                    out = b.select(direct, target, edge)
                    stride = b.select(direct, c_m, i64(tile.columns))
                    with b.if_then(b.not_(b.or_(direct, first))):
                        copy(b, target, c_m, c_n, edge, i64(tile.columns), i64(1), high, live)
                    left_tile = at(b, packed, b.mul(r, deep))
                    start, start_stride = b.select(first, seeds, out), b.select(first, i64(0), stride)
                    operands = [left_tile, panel, deep, start, start_stride, out, stride, ahead, line]
                    with b.if_else(spans.level) as (alike, apart):
                        with alike:
                            run_micro(b, height, operands)
                        with apart:
                            uneven(r, height, span, operands)
                    with b.if_then(b.not_(direct)):
                        copy(b, edge, i64(tile.columns), i64(1), target, c_m, c_n, high, live)

                def uneven(r: Value, height: Value, span: Span, operands: list[Value]) -> None:
                    left_tile, _, _, start, start_stride, out, stride, ahead, line = operands

                    def some(low: Value, high: Value, init: Value, init_stride: Value) -> None:
                        bounds = [spans.begin(r), spans.end(r), p0, spans.begin_step, spans.end_step]
                        b.call(ragged, [left_tile, panel, height, low, high, *bounds, init, init_stride, out, stride])

                    before = b.icmp_signed("<", span.least, span.low)
                    with b.if_then(before):
                        some(span.least, span.low, start, start_stride)
                    start, start_stride = b.select(before, out, start), b.select(before, stride, start_stride)
                    left = at(b, left_tile, b.mul(span.low, height))
                    right = at(b, panel, b.mul(span.low, i64(tile.columns)))
                    common = b.sub(span.high, span.low)
                    run_micro(b, height, [left, right, common, start, start_stride, out, stride, ahead, line])
                    with b.if_then(b.icmp_signed("<", span.high, span.most)):
                        some(span.high, span.most, out, stride)

                for_range(b, i64(0), block.rows, tile.rows, [ahead], rows, "tile")

            each(b, i64(0), block.columns, tile.columns, columns, "panel")

        each(b, i64(0), rounds, block_k, round_k, "round")

    return emit_step(module, "gemm_tiled", compute)


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
