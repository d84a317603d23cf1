"""The shape of the matrix kernels on this processor: vector width, tile, cache budget.

Comes in: LLVM's name and features of the host. Goes out: one `Tile`. A tile that needs more registers than there are
halves the speed, so rows * vectors accumulators plus the operands must fit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    """width: doubles in a vector. rows x (vectors * width): the accumulators. heights: the tile heights that have a
    kernel, descending, the first is `rows`. unroll: steps of k in the inner loop. group: lanes that packing A
    transposes at once. l2: bytes of cache to plan for. held: vectors that stay in registers beside four to work with."""

    width: int
    rows: int
    vectors: int
    heights: tuple[int, ...]
    unroll: int
    group: int
    l2: int
    held: int

    @property
    def columns(self) -> int:
        return self.vectors * self.width


AVX512 = Tile(width=8, rows=12, vectors=2, heights=(12, 8, 6, 4, 2, 1), unroll=2, group=4, l2=1 << 20, held=24)
AVX2 = Tile(width=4, rows=6, vectors=2, heights=(6, 4, 2, 1), unroll=4, group=4, l2=512 << 10, held=8)
SSE2 = Tile(width=2, rows=4, vectors=2, heights=(4, 2, 1), unroll=4, group=2, l2=256 << 10, held=8)
NEON = Tile(width=2, rows=6, vectors=4, heights=(6, 4, 2, 1), unroll=2, group=2, l2=512 << 10, held=24)
PLAIN = Tile(width=1, rows=4, vectors=4, heights=(4, 2, 1), unroll=1, group=1, l2=256 << 10, held=8)
"""Any other processor: scalars, which LLVM maps to what there is."""


def choose(triple: str, features: str) -> Tile:
    """The tile for a target, from LLVM's triple and its comma-separated features (`+avx2,-avx512f,…`)."""
    have = {f[1:] for f in features.split(",") if f.startswith("+")}
    if "avx512f" in have and "avx512dq" in have and "avx512vl" in have:
        return AVX512
    if "avx2" in have:
        return AVX2
    machine = triple.split("-", 1)[0]
    if machine in ("x86_64", "amd64"):
        return SSE2
    if machine in ("aarch64", "arm64"):
        return NEON
    return PLAIN
