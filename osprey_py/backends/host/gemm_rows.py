"""One row, or very few: B is streamed once at memory speed, straight from its storage kind, with no packing.

Comes in: a `Block` with few rows. Goes out: its sums, in the order of every matrix step. Two kernels:
`across` where B's columns are contiguous ([k, n]): lanes are neighbouring columns, sums wait in an L1 row;
`along` where its depth is contiguous ([n, k], the tied head): lanes are columns brought side by side by transposing.
Scratch: the row of A widened, then the row of sums.
"""

from __future__ import annotations

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
"""Steps of k that `across` takes on each pass over the row of sums."""


def scratch_bytes(block_n: int, block_k: int) -> int:
    return 8 * (block_k + block_n)


def emit_across(module: Value, tile: Tile, kind: Kind) -> Value:
    """`gemm_across`: needs B's column stride to be 1."""
    width = tile.width

    def sums(b: Builder, b0: Value, stride: Value, x: Value, deep: Value, acc: Value, columns: Value) -> None:
        def steps(count: int, k: Value) -> None:
            weights = [b.load(at(b, x, b.add(k, i64(u))), typ=F64, align=8) for u in range(count)]
            rows = [at(b, b0, b.mul(b.mul(b.add(k, i64(u)), stride), i64(kind.itemsize)), 1) for u in range(count)]

            def some(lanes: int, j: Value) -> None:
                place = at(b, acc, j)
                value = b.load(place, typ=vec(lanes), align=8)
                for w, row in zip(weights, rows, strict=True):
                    right = load_wide(b, kind, at(b, row, j, kind.itemsize), lanes)
                    value = b.fadd(value, b.fmul(splat(b, w, lanes), right))
                b.store(value, place, align=8)

            whole = b.sub(columns, b.srem(columns, i64(width)))
            each(b, i64(0), whole, width, lambda j: some(width, j), "lanes")
            each(b, whole, columns, 1, lambda j: some(1, j), "lane")

        blocks = b.sub(deep, b.srem(deep, i64(DEEP)))
        each(b, i64(0), blocks, DEEP, lambda k: steps(DEEP, k), "k")
        each(b, blocks, deep, 1, lambda k: steps(1, k), "k")

    return _emit(module, "gemm_across", Word.B_K, sums, kind)


def emit_along(module: Value, tile: Tile, kind: Kind) -> Value:
    """`gemm_along`: needs B's depth stride to be 1."""
    width = tile.width
    groups = max(1, 16 // width) if width > 2 else 4

    def sums(b: Builder, b0: Value, stride: Value, x: Value, deep: Value, acc: Value, columns: Value) -> None:
        blocks = b.sub(deep, b.srem(deep, i64(width)))

        def element(j: Value, k: Value, lanes: int) -> Value:
            return load_wide(b, kind, at(b, b0, b.add(b.mul(j, stride), k), kind.itemsize), lanes)

        def weight(k: Value, lanes: int) -> Value:
            return splat(b, b.load(at(b, x, k), typ=F64, align=8), lanes)

        def column(j: Value, k: Value) -> Value:
            """One step of k for `width` columns, gathered."""
            if width == 1:
                return element(j, k, 1)
            lanes = ir.Constant(vec(width), ir.Undefined)
            for t in range(width):
                lanes = b.insert_element(lanes, element(b.add(j, i64(t)), k, 1), i32(t))
            return lanes

        def batch(count: int, j: Value) -> None:
            """count groups of `width` columns, side by side."""
            starts = [b.load(at(b, acc, b.add(j, i64(g * width))), typ=vec(width), align=8) for g in range(count)]

            def block(k: Value, state: list[Value]) -> list[Value]:
                turned = [
                    transpose(b, [element(b.add(j, i64(g * width + t)), k, width) for t in range(width)])
                    for g in range(count)
                ]
                for t in range(width):
                    w = weight(b.add(k, i64(t)), width)
                    state = [b.fadd(s, b.fmul(w, turned[g][t])) for g, s in enumerate(state)]
                return state

            def single(k: Value, state: list[Value]) -> list[Value]:
                w = weight(k, width)
                return [b.fadd(s, b.fmul(w, column(b.add(j, i64(g * width)), k))) for g, s in enumerate(state)]

            state = for_range(b, i64(0), blocks, width, starts, block, "block")
            state = for_range(b, blocks, deep, 1, state, single, "tail")
            for g, s in enumerate(state):
                b.store(s, at(b, acc, b.add(j, i64(g * width))), align=8)

        def lone(j: Value) -> None:
            def one(k: Value, state: list[Value]) -> list[Value]:
                return [b.fadd(state[0], b.fmul(weight(k, 1), element(j, k, 1)))]

            start = b.load(at(b, acc, j), typ=F64, align=8)
            b.store(for_range(b, i64(0), deep, 1, [start], one, "lone")[0], at(b, acc, j), align=8)

        many = b.sub(columns, b.srem(columns, i64(groups * width)))
        each(b, i64(0), many, groups * width, lambda j: batch(groups, j), "many")
        few = b.sub(columns, b.srem(columns, i64(width)))
        each(b, many, few, width, lambda j: batch(1, j), "few")
        each(b, few, columns, 1, lone, "rest")

    return _emit(module, "gemm_along", Word.B_N, sums, kind)


def _emit(module: Value, name: str, stride_word: Word, sums: object, kind: Kind) -> Value:
    """The step around a kernel that adds `deep` products to each sum of a row."""

    def compute(b: Builder, block: Block) -> None:
        depth, block_k = block.depth, block.word(b, Word.BLOCK_K)
        a_m, a_k, a_size = block.word(b, Word.A_M), block.word(b, Word.A_K), block.word(b, Word.A_SIZE)
        b_k, stride = block.word(b, Word.B_K), block.word(b, stride_word)
        c_m, c_n = block.word(b, Word.C_M), block.word(b, Word.C_N)
        pack_a = word(b, block.args, Word.PACK_A, Callee(PACK_TYPE))
        seed = word(b, block.args, Word.SEED, F64)
        x = block.scratch
        acc = at(b, x, block_k)

        def row(r: Value) -> None:
            a = at(b, block.a, b.mul(b.mul(r, a_m), a_size), 1)
            c = at(b, block.c, b.mul(r, c_m))
            each(b, i64(0), block.columns, 1, lambda j: _store(b, seed, at(b, acc, j)), "seed")

            def round_k(p0: Value) -> None:
                deep = smin(b, block_k, b.sub(depth, p0))
                source = at(b, a, b.mul(b.mul(p0, a_k), a_size), 1)
                b.call(pack_a, [source, a_m, a_k, i64(1), i64(1), deep, x])
                b0 = at(b, block.b, b.mul(b.mul(p0, b_k), i64(kind.itemsize)), 1)
                sums(b, b0, stride, x, deep, acc, block.columns)  # type: ignore[operator]

            each(b, i64(0), depth, block_k, round_k, "round")

            def finish(j: Value) -> None:
                value = b.load(at(b, acc, j), typ=F64, align=8)
                b.store(canonical(b, value), at(b, c, b.mul(j, c_n)), align=8)

            each(b, i64(0), block.columns, 1, finish, "finish")

        each(b, i64(0), block.rows, 1, row, "row")

    return emit_step(module, name, compute)


def _store(b: Builder, value: Value, place: Value) -> None:
    b.store(value, place, align=8)
