"""The tiled matrix product: a block of A packed into L2, a panel of B into L1, C tiles in registers.

Comes in: a `Block` of the output. Goes out: its sums, k in blocks ascending with the partial sums carried in C itself,
which is exact. Tiles at the edge, and outputs whose columns are not contiguous, go through a scratch tile.
Where sums begin or end later from row to row (causal sums), a tile does together what all its rows have; what is before and
behind, some rows at a time (`emit_ragged`). Nothing is packed or computed for terms that no row of a tile has.
Scratch: the packed A block, the packed B panel, one tile, one row of seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    smax,
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
                    span = spans.of(r, high, p0, deep)
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
                    bounds = [spans.begin(r), spans.end(r), p0]

                    def some(start: Value, stop: Value, init: Value, init_stride: Value) -> None:
                        terms = [left_tile, panel, height, start, stop, *bounds, spans.begin_step, spans.end_step]
                        b.call(ragged, [*terms, init, init_stride, out, stride])

                    start, start_stride = b.select(first, seeds, out), b.select(first, i64(0), stride)
                    before = b.icmp_signed("<", span.least, span.low)
                    with b.if_then(before):
                        some(span.least, span.low, start, start_stride)
                    start, start_stride = b.select(before, out, start), b.select(before, stride, start_stride)
                    left_common, panel_common = (
                        at(b, x, b.mul(span.low, n)) for x, n in ((left_tile, height), (panel, i64(tile.columns)))
                    )
                    common = b.sub(span.high, span.low)
                    operands = [left_common, panel_common, common, start, start_stride, out, stride, ahead, line]
                    run_micro(b, height, operands)
                    with b.if_then(b.icmp_signed("<", span.high, span.most)):
                        some(span.high, span.most, out, stride)
                    with b.if_then(b.not_(direct)):
                        copy(b, edge, i64(tile.columns), i64(1), target, c_m, c_n, high, live)

                for_range(b, i64(0), block.rows, tile.rows, [ahead], rows, "tile")

            each(b, i64(0), block.columns, tile.columns, columns, "panel")

        each(b, i64(0), rounds, block_k, round_k, "round")

    return emit_step(module, "gemm_tiled", compute)


def within(b: Builder, n: Value, most: Value) -> Value:
    """n, but 0 at least and `most` at most."""
    return smin(b, b.select(b.icmp_signed("<", n, i64(0)), i64(0), n), most)


@dataclass(frozen=True, slots=True)
class Span:
    """Terms of some rows: one has least … most-1 or less, all have low … high-1. least <= low <= high <= most."""

    least: Value
    low: Value
    high: Value
    most: Value


class Spans:
    """Where the sums of a block's rows begin and end."""

    def __init__(self, b: Builder, block: Block) -> None:
        self._b = b
        self._block = block
        self.begin_step, self.end_step = block.word(b, Word.FIRST_M), block.word(b, Word.K_M)

    def begin(self, r: Value) -> Value:
        return self._b.add(self._block.first, self._b.mul(r, self.begin_step))

    def end(self, r: Value) -> Value:
        """Where MOST does not end it before."""
        return self._b.add(self._block.depth, self._b.mul(r, self.end_step))

    def of(self, r: Value, rows: Value, p0: Value, deep: Value) -> Span:
        """Of rows r … r+rows-1, the terms from p0 on, at most `deep`. A bound is the greatest or least at one of both ends."""
        b = self._b
        last = b.add(r, b.sub(rows, i64(1)))
        begins = [within(b, b.sub(self.begin(x), p0), deep) for x in (r, last)]
        ends = [within(b, b.sub(self.end(x), p0), deep) for x in (r, last)]
        low = smax(b, *begins)
        high = smax(b, smin(b, *ends), low)
        return Span(smin(b, *begins), low, high, smax(b, smax(b, *ends), high))


RAGGED_TYPE = ir.FunctionType(VOID, [PTR, PTR, *[I64] * 8, PTR, I64, PTR, I64])
"""(A tile, B panel, A's stride, from, to, the first row's begin and end, what they are counted from, how far they move with each
row, init, its row stride, out, its row stride)."""

GROUPS = (4, 2, 1)
"""Rows that go together where each has terms of its own: sums enough to hide an addition behind others."""


def emit_ragged(module: Value, tile: Tile) -> Value:
    """out = init and what those of k = from … to-1 bring that are in a row's own range, for all rows of a tile."""
    fn = ir.Function(module, RAGGED_TYPE, "ragged")
    fn.linkage = "internal"
    left, panel, height, start, stop, begin, end, p0, begin_step, end_step, init, init_stride, out, out_stride = fn.args
    b = ir.IRBuilder(fn.append_basic_block("entry"))

    def group(count: int, r: Value) -> None:
        """Rows r … r+count-1. A row takes part in a step k where k - begin < end - begin, both as unsigned."""
        rows = [b.add(r, i64(i)) for i in range(count)]
        begins = [b.sub(b.add(begin, b.mul(row, begin_step)), p0) for row in rows]
        ends = [b.sub(b.add(end, b.mul(row, end_step)), p0) for row in rows]
        low = smax(b, start, smin(b, begins[0], begins[-1]))
        high = smin(b, stop, smax(b, ends[0], ends[-1]))
        counts = [smax(b, b.sub(y, x), i64(0)) for x, y in zip(begins, ends, strict=True)]
        begins, counts = ([splat(b, x, tile.width) for x in xs] for xs in (begins, counts))
        cells = [(i, j) for i in range(count) for j in range(tile.vectors)]

        def place(base: Value, stride: Value, i: int, j: int) -> Value:
            return at(b, base, b.add(b.mul(stride, rows[i]), i64(j * tile.width)))

        def body(k: Value, acc: list[Value]) -> list[Value]:
            here = splat(b, k, tile.width)
            line = at(b, panel, b.mul(k, i64(tile.columns)))
            rights = [b.load(at(b, line, j * tile.width), typ=vec(tile.width), align=8) for j in range(tile.vectors)]
            step = []
            for i, row in enumerate(rows):
                there = b.icmp_unsigned("<", b.sub(here, begins[i]), counts[i])
                w = splat(b, b.load(at(b, left, b.add(b.mul(k, height), row)), typ=F64, align=8), tile.width)
                for j, right in enumerate(rights):
                    old = acc[i * tile.vectors + j]
                    step.append(b.select(there, b.fadd(old, b.fmul(w, right)), old))
            return step

        sums = [b.load(place(init, init_stride, i, j), typ=vec(tile.width), align=8) for i, j in cells]
        sums = for_range(b, low, high, 1, sums, body, "k")
        for (i, j), value in zip(cells, sums, strict=True):
            b.store(canonical(b, value), place(out, out_stride, i, j), align=8)

    first = i64(0)
    for count in GROUPS:
        after = b.add(first, b.mul(b.sdiv(b.sub(height, first), i64(count)), i64(count)))
        each(b, first, after, count, lambda r, count=count: group(count, r), f"rows{count}")  # type: ignore[misc]
        first = after
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
