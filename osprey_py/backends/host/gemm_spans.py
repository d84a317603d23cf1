"""Sums that begin and end at terms of their own, row by row: where, and what rows of a tile do not have in common.

Comes in: a `Block`. Goes out: for some of its rows the `Span` of their terms; and `ragged`, which adds to the rows of a
tile what each has of a run of k, before or behind what all of them have. A term that a row does not have is not added as a
zero: the row's sum stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from osprey_py.backends.host.gemm_ir import (
    F64,
    I64,
    PTR,
    VOID,
    Builder,
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
)
from osprey_py.backends.host.gemm_step import Block, Word
from osprey_py.backends.host.gemm_target import Tile


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
    """Where the sums of a block's rows begin and end. level: whether all do so at the same terms."""

    def __init__(self, b: Builder, block: Block) -> None:
        self._b = b
        self._block = block
        self.begin_step, self.end_step = block.word(b, Word.FIRST_M), block.word(b, Word.K_M)
        self.level = b.icmp_signed("==", b.or_(self.begin_step, self.end_step), i64(0))

    def begin(self, r: Value) -> Value:
        return self._b.add(self._block.first, self._b.mul(r, self.begin_step))

    def end(self, r: Value) -> Value:
        """Where MOST does not end it before."""
        return self._b.add(self._block.depth, self._b.mul(r, self.end_step))

    def of(self, r: Value, rows: Value, p0: Value, deep: Value) -> Span:
        """Of rows r … r+rows-1, the terms from p0 on, at most `deep`. Bounds are greatest and least in the outer rows."""
        b = self._b
        last = b.add(r, b.sub(rows, i64(1)))
        begins = [within(b, b.sub(self.begin(x), p0), deep) for x in (r, last)]
        ends = [within(b, b.sub(self.end(x), p0), deep) for x in (r, last)]
        low = smax(b, *begins)
        high = smax(b, smin(b, *ends), low)
        return Span(smin(b, *begins), low, high, smax(b, smax(b, *ends), high))


RAGGED_TYPE = ir.FunctionType(VOID, [PTR, PTR, *[I64] * 8, PTR, I64, PTR, I64])
"""(A tile, B panel, A's stride, from, to, the first row's begin and end, what they are counted from, how far they move with
each row, init, its row stride, out, its row stride)."""

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
