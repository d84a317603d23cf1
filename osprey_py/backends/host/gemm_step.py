"""What every matrix step shares: its argument block and the walk over blocks of the output.

Comes in: an argument block of 8-byte words (`Word`). Goes out: a function of STEP_TYPE whose units are the blocks of C,
column blocks fastest, then row blocks, then batches; each unit is computed whole by the emitter that is handed in, and
then the epilogue runs on it while it is in cache. Blocks never split k, so threads cannot change a byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from llvmlite import ir

from osprey_py.backends.host.gemm_ir import (
    PTR,
    STEP_TYPE,
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


class Word(IntEnum):
    """Where things lie in a step's argument block. Strides are in elements. FIRST, K: the first row's terms are FIRST …
    K-1 of 0 … MOST-1; FIRST_M, K_M: how far both move with each further row. STARTED: 1 when C holds what the sums begin
    with, in the seed's place. The epilogue is a STEP_TYPE function over output elements, 0 for none. From BATCH on: six
    words for each batch dimension, outermost first: extent, A's, B's and C's stride, and how far K and FIRST move."""

    A = 0
    B = 1
    C = 2
    M = 3
    N = 4
    K = 5
    A_M = 6
    A_K = 7
    B_K = 8
    B_N = 9
    C_M = 10
    C_N = 11
    SEED = 12
    BLOCK_M = 13
    BLOCK_N = 14
    BLOCK_K = 15
    BLOCKS_M = 16
    BLOCKS_N = 17
    PACK_A = 18
    PACK_B = 19
    A_SIZE = 20
    B_SIZE = 21
    EPILOGUE = 22
    EPILOGUE_ARGS = 23
    EPILOGUE_SCRATCH = 24
    K_M = 25
    STARTED = 26
    FIRST = 27
    FIRST_M = 28
    MOST = 29
    DIMENSIONS = 30
    BATCH = 31


BATCH_WORDS = 6


@dataclass(frozen=True, slots=True)
class Block:
    """One unit: `rows` x `columns` outputs. a, b, c: where operands and output begin, at the least term that any row has.
    From there its first row's terms are first … depth-1 of 0 … most-1; in further rows both may move."""

    args: Value
    scratch: Value
    a: Value
    b: Value
    c: Value
    rows: Value
    columns: Value
    first: Value
    depth: Value
    most: Value

    def word(self, b: Builder, k: Word) -> Value:
        return word(b, self.args, k)


def emit_step(module: Value, name: str, compute: Callable[[Builder, Block], None]) -> Value:
    """The step function that runs `compute`'s code on each of its blocks."""
    fn = ir.Function(module, STEP_TYPE, name)
    args, lo, hi, scratch = fn.args
    b = ir.IRBuilder(fn.append_basic_block("entry"))

    def get(k: Word) -> Value:
        return word(b, args, k)

    def unit(u: Value) -> None:
        blocks_n, blocks_m = get(Word.BLOCKS_N), get(Word.BLOCKS_M)
        rest = b.sdiv(u, blocks_n)
        i0 = b.mul(b.srem(rest, blocks_m), get(Word.BLOCK_M))
        j0 = b.mul(b.srem(u, blocks_n), get(Word.BLOCK_N))
        dims = get(Word.DIMENSIONS)

        def digit(d: Value, state: list[Value]) -> list[Value]:
            batch, at_a, at_b, at_c, depth, first = state
            last = b.sub(b.sub(dims, d), i64(1))
            row = at(b, args, b.add(i64(Word.BATCH), b.mul(last, i64(BATCH_WORDS))))
            place = b.srem(batch, word(b, row, 0))
            return [
                b.sdiv(batch, word(b, row, 0)),
                b.add(at_a, b.mul(place, word(b, row, 1))),
                b.add(at_b, b.mul(place, word(b, row, 2))),
                b.add(at_c, b.mul(place, word(b, row, 3))),
                b.add(depth, b.mul(place, word(b, row, 4))),
                b.add(first, b.mul(place, word(b, row, 5))),
            ]

        starts = [
            b.sdiv(rest, blocks_m),
            b.mul(i0, get(Word.A_M)),
            b.mul(j0, get(Word.B_N)),
            b.add(b.mul(i0, get(Word.C_M)), b.mul(j0, get(Word.C_N))),
            b.add(get(Word.K), b.mul(i0, get(Word.K_M))),
            b.add(get(Word.FIRST), b.mul(i0, get(Word.FIRST_M))),
        ]
        _, at_a, at_b, at_c, depth, first = for_range(b, i64(0), dims, 1, starts, digit, "batch")
        rows = smin(b, get(Word.BLOCK_M), b.sub(get(Word.M), i0))
        columns = smin(b, get(Word.BLOCK_N), b.sub(get(Word.N), j0))
        last = b.sub(rows, i64(1))
        passed = smax(b, smin(b, first, b.add(first, b.mul(last, get(Word.FIRST_M)))), i64(0))
        at_a = b.add(at_a, b.mul(passed, get(Word.A_K)))
        at_b = b.add(at_b, b.mul(passed, get(Word.B_K)))
        # What is clamped no longer moves in equal steps.
        level = b.icmp_signed("==", b.mul(last, get(Word.K_M)), i64(0))
        depth = b.select(level, smin(b, depth, get(Word.MOST)), depth)
        block = Block(
            args,
            scratch,
            at(b, word(b, args, Word.A, PTR), b.mul(at_a, get(Word.A_SIZE)), 1),
            at(b, word(b, args, Word.B, PTR), b.mul(at_b, get(Word.B_SIZE)), 1),
            at(b, word(b, args, Word.C, PTR), at_c),
            rows,
            columns,
            b.sub(first, passed),
            b.sub(depth, passed),
            b.sub(get(Word.MOST), passed),
        )
        compute(b, block)
        with b.if_then(b.icmp_signed("!=", get(Word.EPILOGUE), i64(0))):
            epilogue(at_c, rows, columns)

    def epilogue(start: Value, rows: Value, columns: Value) -> None:
        """The elementwise rest of the kernel, over the output indices of this block (its columns are contiguous)."""
        function, own = word(b, args, Word.EPILOGUE, Callee(STEP_TYPE)), word(b, args, Word.EPILOGUE_ARGS, PTR)
        space = at(b, scratch, get(Word.EPILOGUE_SCRATCH), 1)
        stride = get(Word.C_M)
        dense = b.icmp_signed("==", stride, columns)
        calls, length = b.select(dense, i64(1), rows), b.select(dense, b.mul(rows, columns), columns)

        def call(r: Value) -> None:
            lo = b.add(start, b.mul(r, stride))
            b.call(function, [own, lo, b.add(lo, length), space])

        each(b, i64(0), calls, 1, call, "epilogue")

    each(b, lo, hi, 1, unit, "unit")
    b.ret_void()
    return fn
