"""Few rows: B is streamed once at memory speed, straight from its storage kind, with no packing.

Comes in: a `Block` with few rows. Goes out: its sums, in the order of every matrix step. Two kernels:
`across` where B's columns are contiguous ([k, n]): lanes are neighbouring columns, the sums wait in L1;
`along` where its depth is contiguous ([n, k], the tied head): lanes are columns brought side by side by transposing.
Rows go in groups, so that what is read and widened of B serves several.
Scratch: the rows of A widened, one step of k after the other, then the rows of sums.
"""

from __future__ import annotations

from collections.abc import Callable
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
    i32,
    i64,
    load_wide,
    prefetch,
    smin,
    splat,
    vec,
    word,
)
from osprey_py.backends.host.gemm_pack import transpose
from osprey_py.backends.host.gemm_step import Block, Word, emit_step
from osprey_py.backends.host.gemm_target import Tile
from osprey_py.backends.protocol import Kind

DEEP = 4
"""Steps of k that `across` takes on each pass over the sums."""
AHEAD = 768
"""Columns times passes that `across` asks for ahead of its use."""
ALONG = (2, 1)
"""Rows that go together in `along`."""


def scratch_bytes(block_m: int, block_n: int, block_k: int) -> int:
    """What one thread needs beside the epilogue's own scratch."""
    return 8 * block_m * (block_k + block_n)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the kernels work on. x: A's rows, widened, [deep][rows]. acc: the sums, [rows][room]. b0: B's first element;
    stride: B's other stride."""

    b: Builder
    kind: Kind
    x: Value
    acc: Value
    room: Value
    b0: Value
    stride: Value
    rows: Value
    columns: Value
    deep: Value

    def weight(self, k: Value, r: Value) -> Value:
        b = self.b
        return b.load(at(b, self.x, b.add(b.mul(k, self.rows), r)), typ=F64, align=8)

    def sum_at(self, r: Value, j: Value) -> Value:
        b = self.b
        return at(b, self.acc, b.add(b.mul(r, self.room), j))

    def right(self, outer: Value, inner: Value, lanes: int) -> Value:
        """`lanes` elements of B, `inner` along its contiguous direction."""
        b = self.b
        place = b.add(b.mul(outer, self.stride), inner)
        return load_wide(b, self.kind, at(b, self.b0, place, self.kind.itemsize), lanes)

    def ahead(self, outer: Value, inner: Value) -> None:
        """Prefetch an element of B."""
        b = self.b
        place = b.add(b.mul(outer, self.stride), inner)
        prefetch(b, at(b, self.b0, place, self.kind.itemsize))

    def grouped(self, groups: tuple[int, ...], body: Callable[[int, Value], None]) -> None:
        """body(count, first row) for all rows, in groups of so many."""
        b = self.b
        start = i64(0)
        for count in groups:
            stop = b.add(start, b.mul(b.sdiv(b.sub(self.rows, start), i64(count)), i64(count)))
            each(b, start, stop, count, lambda r, count=count: body(count, r), f"rows{count}")  # type: ignore[misc]
            start = stop


def emit_across(module: Value, tile: Tile, kind: Kind) -> Value:
    """`gemm_across`: needs B's column stride to be 1."""
    most = max(1, tile.held // DEEP)
    passes = {(n, depth): _emit_pass(module, tile, kind, n, depth) for n in range(1, most + 1) for depth in (DEEP, 1)}

    def sums(o: _Rows) -> None:
        b = o.b
        line = b.mul(o.stride, i64(kind.itemsize))
        groups = _pieces(b, o.rows, most)
        # As many steps of k ahead as are some thousand elements.
        far = b.mul(b.mul(b.add(b.sdiv(i64(AHEAD), o.columns), i64(1)), i64(DEEP)), line)

        def steps(depth: int, k: Value) -> None:
            """Adds what `depth` steps of k bring to all sums, a group of rows at a time. The first group's pass fetches."""
            source = at(b, o.b0, b.mul(k, line), 1)

            def group(g: Value, r: Value, count: Value) -> None:
                ahead = b.select(b.icmp_signed("==", g, i64(0)), far, i64(0))
                weights = at(b, o.x, b.add(b.mul(k, o.rows), r))
                operands = [weights, o.rows, o.sum_at(r, i64(0)), o.room, source, line, ahead, o.columns]
                after = b.append_basic_block("pass.end")
                other = b.append_basic_block("pass")
                choice = b.switch(count, other)
                for n in range(1, most + 1):
                    place = other if n == most else b.append_basic_block(f"pass.{n}")
                    if place is not other:
                        choice.add_case(i64(n), place)
                    with b.goto_block(place):
                        b.call(passes[n, depth], operands)
                        b.branch(after)
                b.position_at_end(after)

            groups.each(b, group)

        blocks = b.sub(o.deep, b.srem(o.deep, i64(DEEP)))
        each(b, i64(0), blocks, DEEP, lambda k: steps(DEEP, k), "k")
        each(b, blocks, o.deep, 1, lambda k: steps(1, k), "k")

    return _emit(module, "gemm_across", Word.B_K, sums, kind, tile.width)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Rows in pieces of nearly the same size. number: of pieces; the first `larger` have one row more than `least`."""

    number: Value
    least: Value
    larger: Value

    def each(self, b: Builder, body: Callable[[Value, Value, Value], None]) -> None:
        """body(piece, its first row, its rows) for each."""

        def one(piece: Value, state: list[Value]) -> list[Value]:
            count = b.add(self.least, b.zext(b.icmp_signed("<", piece, self.larger), I64))
            body(piece, state[0], count)
            return [b.add(state[0], count)]

        for_range(b, i64(0), self.number, 1, [i64(0)], one, "piece")


def _pieces(b: Builder, rows: Value, most: int) -> _Pieces:
    """The fewest pieces of at most `most` rows."""
    number = b.sdiv(b.add(rows, i64(most - 1)), i64(most))
    return _Pieces(number, b.sdiv(rows, number), b.srem(rows, number))


_PASS_TYPE = ir.FunctionType(VOID, [PTR, I64, PTR, I64, PTR, I64, I64, I64])
"""(weights, their stride, sums, their stride, B, its stride in bytes, how many bytes ahead to fetch, columns)."""


def _emit_pass(module: Value, tile: Tile, kind: Kind, count: int, depth: int) -> Value:
    """One pass over the sums of `count` rows, adding `depth` products to each. The weights stay in registers."""
    fn = ir.Function(module, _PASS_TYPE, f"across_{count}x{depth}")
    fn.linkage = "internal"
    x, x_stride, sums, sums_stride, right, stride, far, columns = fn.args
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    width, size = tile.width, kind.itemsize
    lines = [at(b, right, b.mul(stride, i64(u)), 1) for u in range(depth)]
    rows = [at(b, sums, b.mul(sums_stride, i64(i))) for i in range(count)]
    weights = [
        [b.load(at(b, at(b, x, b.mul(x_stride, i64(u))), i), typ=F64, align=8) for u in range(depth)]
        for i in range(count)
    ]
    wide = [[splat(b, w, width) for w in row] for row in weights]
    # One vector after the other to the end of a cache line of B, which is fetched once.
    together = max(1, 64 // size // width)

    def some(lanes: int, j: Value, left: list[list[Value]]) -> None:
        rights = [load_wide(b, kind, at(b, line, j, size), lanes) for line in lines]
        for row, ws in zip(rows, left, strict=True):
            place = at(b, row, j)
            value = b.load(place, typ=vec(lanes), align=8)
            for w, r in zip(ws, rights, strict=True):
                value = b.fadd(value, b.fmul(w, r))
            b.store(value, place, align=8)

    def stretch(j: Value) -> None:
        for line in lines:
            prefetch(b, at(b, at(b, line, j, size), far, 1))
        for v in range(together):
            some(width, b.add(j, i64(v * width)), wide)

    longest = b.sub(columns, b.srem(columns, i64(together * width)))
    whole = b.sub(columns, b.srem(columns, i64(width)))
    each(b, i64(0), longest, together * width, stretch, "stretch")
    each(b, longest, whole, width, lambda j: some(width, j, wide), "lanes")
    each(b, whole, columns, 1, lambda j: some(1, j, weights), "lane")
    b.ret_void()
    return fn


def emit_along(module: Value, tile: Tile, kind: Kind) -> Value:
    """`gemm_along`: needs B's depth stride to be 1."""
    width = tile.width
    many = max(1, 16 // width) if width > 2 else 4

    def sums(o: _Rows) -> None:
        b = o.b
        blocks = b.sub(o.deep, b.srem(o.deep, i64(width)))

        def column(j: Value, k: Value) -> Value:
            """One step of k for `width` columns, gathered."""
            if width == 1:
                return o.right(j, k, 1)
            lanes = ir.Constant(vec(width), ir.Undefined)
            for t in range(width):
                lanes = b.insert_element(lanes, o.right(b.add(j, i64(t)), k, 1), i32(t))
            return lanes

        def batch(groups: int, j: Value, count: int, r: Value) -> None:
            """`groups` times `width` columns of `count` rows, side by side. The state is ordered by group, then row."""
            rows = [b.add(r, i64(i)) for i in range(count)]
            firsts = [b.add(j, i64(g * width)) for g in range(groups)]
            places = [o.sum_at(row, first) for first in firsts for row in rows]

            def add_column(state: list[Value], g: int, k: Value, right: Value) -> None:
                for i, row in enumerate(rows):
                    w = splat(b, o.weight(k, row), width)
                    state[g * count + i] = b.fadd(state[g * count + i], b.fmul(w, right))

            def block(k: Value, state: list[Value]) -> list[Value]:
                for g, first in enumerate(firsts):
                    for t in range(width):
                        o.ahead(b.add(first, i64(t + groups * width)), k)
                    turned = transpose(b, [o.right(b.add(first, i64(t)), k, width) for t in range(width)])
                    for t, right in enumerate(turned):
                        add_column(state, g, b.add(k, i64(t)), right)
                return state

            def single(k: Value, state: list[Value]) -> list[Value]:
                for g, first in enumerate(firsts):
                    add_column(state, g, k, column(first, k))
                return state

            state = [b.load(place, typ=vec(width), align=8) for place in places]
            state = for_range(b, i64(0), blocks, width, state, block, "block")
            state = for_range(b, blocks, o.deep, 1, state, single, "tail")
            for value, place in zip(state, places, strict=True):
                b.store(value, place, align=8)

        def lone(j: Value, r: Value) -> None:
            def one(k: Value, state: list[Value]) -> list[Value]:
                return [b.fadd(state[0], b.fmul(o.weight(k, r), o.right(j, k, 1)))]

            place = o.sum_at(r, j)
            start = b.load(place, typ=F64, align=8)
            b.store(for_range(b, i64(0), o.deep, 1, [start], one, "lone")[0], place, align=8)

        wide = b.sub(o.columns, b.srem(o.columns, i64(many * width)))
        narrow = b.sub(o.columns, b.srem(o.columns, i64(width)))
        each(b, i64(0), wide, many * width, lambda j: o.grouped(ALONG, lambda n, r: batch(many, j, n, r)), "many")
        each(b, wide, narrow, width, lambda j: o.grouped(ALONG, lambda n, r: batch(1, j, n, r)), "few")
        each(b, narrow, o.columns, 1, lambda j: each(b, i64(0), o.rows, 1, lambda r: lone(j, r)), "rest")

    return _emit(module, "gemm_along", Word.B_N, sums, kind, width)


def _emit(module: Value, name: str, stride_word: Word, sums: Callable[[_Rows], None], kind: Kind, width: int) -> Value:
    """The step around a kernel that adds `deep` products to each sum."""

    def compute(b: Builder, block: Block) -> None:
        block_k, room = block.word(b, Word.BLOCK_K), block.word(b, Word.BLOCK_N)
        a_m, a_k, a_size = block.word(b, Word.A_M), block.word(b, Word.A_K), block.word(b, Word.A_SIZE)
        b_k, stride = block.word(b, Word.B_K), block.word(b, stride_word)
        c_m, c_n = block.word(b, Word.C_M), block.word(b, Word.C_N)
        pack_a = word(b, block.args, Word.PACK_A, Callee(PACK_TYPE))
        seed = word(b, block.args, Word.SEED, F64)
        x = block.scratch
        acc = at(b, x, b.mul(block_k, block.word(b, Word.BLOCK_M)))

        # Outputs side by side are moved as vectors.
        dense = b.icmp_signed("==", c_n, i64(1))
        whole = b.select(dense, b.sub(block.columns, b.srem(block.columns, i64(width))), i64(0))

        def cells(body: Callable[[int, Value, Value], None], name: str) -> None:
            """body(lanes, sums' place, outputs' place) for all outputs."""

            def row(r: Value) -> None:
                start, out = at(b, acc, b.mul(r, room)), at(b, block.c, b.mul(r, c_m))
                each(b, i64(0), whole, width, lambda j: body(width, at(b, start, j), at(b, out, j)), name)
                each(b, whole, block.columns, 1, lambda j: body(1, at(b, start, j), at(b, out, b.mul(j, c_n))), name)

            each(b, i64(0), block.rows, 1, row, name)

        def begin(lanes: int, place: Value, _: Value) -> None:
            b.store(splat(b, seed, lanes), place, align=8)

        def go_on(lanes: int, place: Value, output: Value) -> None:
            b.store(b.load(output, typ=vec(lanes), align=8), place, align=8)

        def finish(lanes: int, place: Value, output: Value) -> None:
            b.store(canonical(b, b.load(place, typ=vec(lanes), align=8)), output, align=8)

        def round_k(p0: Value) -> None:
            deep = smin(b, block_k, b.sub(block.depth, p0))
            source = at(b, block.a, b.mul(b.mul(p0, a_k), a_size), 1)
            b.call(pack_a, [source, a_m, a_k, block.rows, block.rows, deep, x])
            b0 = at(b, block.b, b.mul(b.mul(p0, b_k), i64(kind.itemsize)), 1)
            sums(_Rows(b, kind, x, acc, room, b0, stride, block.rows, block.columns, deep))

        with b.if_else(b.icmp_signed("==", block.word(b, Word.STARTED), i64(0))) as (seeded, started):
            with seeded:
                cells(begin, "seed")
            with started:
                cells(go_on, "start")
        each(b, i64(0), block.depth, block_k, round_k, "round")
        cells(finish, "finish")

    return emit_step(module, name, compute)
