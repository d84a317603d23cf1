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
    PACK_TYPE,
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
ACROSS, ALONG = (4, 2, 1), (2, 1)
"""Rows that go together."""


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
    width = tile.width

    def sums(o: _Rows) -> None:
        b = o.b

        # As many steps of k ahead as are some thousand elements.
        far = b.mul(b.add(b.sdiv(i64(AHEAD), o.columns), i64(1)), i64(DEEP))

        def steps(depth: int, k: Value, count: int, r: Value) -> None:
            ks = [b.add(k, i64(u)) for u in range(depth)]
            weights = [[o.weight(k, b.add(r, i64(i))) for k in ks] for i in range(count)]

            def some(lanes: int, j: Value) -> None:
                if lanes > 1:
                    for k in ks:
                        o.ahead(b.add(k, far), j)
                rights = [o.right(k, j, lanes) for k in ks]
                for i in range(count):
                    place = o.sum_at(b.add(r, i64(i)), j)
                    value = b.load(place, typ=vec(lanes), align=8)
                    for w, right in zip(weights[i], rights, strict=True):
                        value = b.fadd(value, b.fmul(splat(b, w, lanes), right))
                    b.store(value, place, align=8)

            whole = b.sub(o.columns, b.srem(o.columns, i64(width)))
            each(b, i64(0), whole, width, lambda j: some(width, j), "lanes")
            each(b, whole, o.columns, 1, lambda j: some(1, j), "lane")

        blocks = b.sub(o.deep, b.srem(o.deep, i64(DEEP)))
        each(b, i64(0), blocks, DEEP, lambda k: o.grouped(ACROSS, lambda n, r: steps(DEEP, k, n, r)), "k")
        each(b, blocks, o.deep, 1, lambda k: o.grouped(ACROSS, lambda n, r: steps(1, k, n, r)), "k")

    return _emit(module, "gemm_across", Word.B_K, sums, kind)


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

    return _emit(module, "gemm_along", Word.B_N, sums, kind)


def _emit(module: Value, name: str, stride_word: Word, sums: Callable[[_Rows], None], kind: Kind) -> Value:
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

        def cells(body: Callable[[Value, Value, Value], None], name: str) -> None:
            """body(sum's place, row, column) for every output."""

            def row(r: Value) -> None:
                start = at(b, acc, b.mul(r, room))
                each(b, i64(0), block.columns, 1, lambda j: body(at(b, start, j), r, j), name)

            each(b, i64(0), block.rows, 1, row, name)

        def output(r: Value, j: Value) -> Value:
            return at(b, block.c, b.add(b.mul(r, c_m), b.mul(j, c_n)))

        def go_on(place: Value, r: Value, j: Value) -> None:
            _store(b, b.load(output(r, j), typ=F64, align=8), place)

        def finish(place: Value, r: Value, j: Value) -> None:
            _store(b, canonical(b, b.load(place, typ=F64, align=8)), output(r, j))

        def round_k(p0: Value) -> None:
            deep = smin(b, block_k, b.sub(block.depth, p0))
            source = at(b, block.a, b.mul(b.mul(p0, a_k), a_size), 1)
            b.call(pack_a, [source, a_m, a_k, block.rows, block.rows, deep, x])
            b0 = at(b, block.b, b.mul(b.mul(p0, b_k), i64(kind.itemsize)), 1)
            sums(_Rows(b, kind, x, acc, room, b0, stride, block.rows, block.columns, deep))

        with b.if_else(b.icmp_signed("==", block.word(b, Word.STARTED), i64(0))) as (seeded, started):
            with seeded:
                cells(lambda place, r, j: _store(b, seed, place), "seed")
            with started:
                cells(go_on, "start")
        each(b, i64(0), block.depth, block_k, round_k, "round")
        cells(finish, "finish")

    return emit_step(module, name, compute)


def _store(b: Builder, value: Value, place: Value) -> None:
    b.store(value, place, align=8)
