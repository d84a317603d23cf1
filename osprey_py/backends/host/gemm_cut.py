"""How a product is cut into blocks, and which kernel computes them: for speed only, no choice changes a byte.

Comes in: a `Product`, how many threads will share its units, the processor's tile. Goes out: `Blocks`. The choice depends
on the shape alone. Work is counted in multiplications and additions of a core's inner loop, here *turns*.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from osprey_py.backends.host.gemm_target import Tile
from osprey_py.backends.protocol import Kind

if TYPE_CHECKING:
    from osprey_py.backends.host.gemm import Operand, Product


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a product is cut. kernel: `tiled`, `across` or `along`."""

    kernel: str
    m: int
    n: int
    k: int


FEW_ACROSS, FEW_ACROSS_F64, FEW_ALONG = 24, 16, 2
"""Up to so many rows B is streamed instead of packed: where its columns are contiguous, and where its depth is. What is in
binary64 needs no widening, so packing it is paid for earlier."""

STRIPE, STRIPE_ROWS = 384, 16
"""Columns of B that streaming likes to take at once, half as many for more rows than that: fewer make it read in short
pieces, more rows of more sums leave the first cache level."""

PACK, PACK_TURNED, PACK_ROW_TURNED = 3, 8, 16
"""Turns to pack an element of an operand that is contiguous across the tile, of B with contiguous depth, of A with
contiguous depth: nobody has asked for A ahead of its use."""

REVISIT = 13
"""Turns to come back to an output in the next block of k, where a block's outputs are more than the second cache level
holds."""

EPILOGUE_ROW = 8_000
"""Turns to begin the epilogue on a row of a block; on whole rows of the output it begins once."""

HELD_UP = 0.1
"""Of a unit's time, what threads wait for each other at the end: they are held up, by the system or by each other."""

UNIT = 15_000
"""Turns to claim and begin a unit."""

WORTH_A_CLAIM = 100_000
"""Turns that are worth handing to another thread, about two microseconds of them."""

_SPLITS = (1, 2, 3, 4, 5, 6, 8, 12, 16)


def cut(p: Product, threads: int, shape: Tile) -> Blocks:
    """The blocks for a product: big enough that packing is paid for, small enough that every thread has work."""
    batches = prod(d.extent for d in p.batch)
    most_terms = p.longest
    even = p.m <= 1 or not (p.row_terms or p.row_first)
    if even and p.m <= _few(p.b):
        return _stream(p, threads, shape, batches, most_terms)
    few_rows = p.m <= 4 * shape.rows
    deep = 128 if few_rows else 256
    k = _round_up(-(-most_terms // max(1, -(-most_terms // deep))), shape.unroll)
    most = max(shape.rows, shape.l2 // 2 // (8 * max(1, k)) // shape.rows * shape.rows)
    m = p.m if p.m <= most else _round_up(-(-p.m // -(-p.m // most)), shape.rows)
    # Few rows' outputs stay in cache from one block of k to the next.
    n = max(1, min(p.n, 512) if few_rows else p.n)
    if threads > 1:
        m, n = _split(p, threads, shape, batches, k, max(1, m), n)
    return Blocks("tiled", max(1, m), _round_up(n, shape.columns), max(1, k))


def _few(right: Operand) -> int:
    if right.row == 1:
        return FEW_ACROSS_F64 if right.kind is Kind.F64 else FEW_ACROSS
    return FEW_ALONG if right.depth == 1 else 0


def _stream(p: Product, threads: int, shape: Tile, batches: int, terms: int) -> Blocks:
    """Narrow stripes read B at half the speed; still, every thread should have one."""
    share = -(-threads // max(1, batches))
    stripe = STRIPE if p.m <= STRIPE_ROWS else STRIPE // 2
    n = max(-(-p.n // (4 * share)), min(stripe, -(-p.n // share)))
    n = min(2048 if p.m < 8 else stripe, _round_up(max(1, n), 4 * shape.width))
    return Blocks("across" if p.b.row == 1 else "along", max(1, p.m), n, max(1, min(terms, 2048)))


def _split(p: Product, threads: int, shape: Tile, batches: int, k: int, most_m: int, most_n: int) -> tuple[int, int]:
    """(m, n) of the blocks with which the last thread is done first, none above those given. k: of a block. A block packs
    its own rows and columns: what is cut along one side is packed more often along the other."""
    terms = p.mean
    rounds = -(-terms // max(1, k))
    pack_row = PACK if p.a.row == 1 else PACK_ROW_TURNED
    pack_column = PACK if p.b.row == 1 else PACK_TURNED
    best, found = 0.0, (most_m, most_n)
    sizes_m = sorted({min(most_m, _round_up(-(-p.m // s), shape.rows)) for s in _SPLITS}, reverse=True)
    sizes_n = sorted({min(most_n, _round_up(-(-p.n // s), shape.columns)) for s in _SPLITS}, reverse=True)
    for m in sizes_m:
        for n in sizes_n:
            units = batches * -(-p.m // m) * -(-p.n // n)
            unit = terms * (m * _round_up(n, shape.columns) + pack_row * m + pack_column * n) + UNIT
            if 8 * m * n > shape.l2:
                unit += REVISIT * m * n * (rounds - 1)
            if p.epilogue and n < p.n:
                unit += EPILOGUE_ROW * m
            time = (-(-units // threads) + HELD_UP) * unit
            if not best or time < best:
                best, found = time, (m, n)
    return found


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step
