"""Matrix products in the contract's order, for any strides and storage kinds.

Comes in: a `Product`: addresses, extents, strides, kinds, seed, batch dimensions. Goes out: a `Launch`: the native
function, its argument block, how many units it has and how much scratch a thread needs; the pool runs it as one step.

Each output is (((seed + a0*b0) + a1*b1) + …) over k ascending, each product rounded before it is added, one accumulator an
output; the tests compare its bytes with the plain triple loop. The native code is compiled once per storage kind, not per
shape. Which kernel runs and how the output is cut into units depends on the shape alone and never changes a byte.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite
from llvmlite import ir

from osprey_py.backends.host import gemm_rows, gemm_tiled
from osprey_py.backends.host.gemm_cut import WORTH_A_CLAIM, Blocks, cut
from osprey_py.backends.host.gemm_pack import emit_pack
from osprey_py.backends.host.gemm_step import Word
from osprey_py.backends.host.gemm_target import Tile, choose
from osprey_py.backends.host.native import Library, machine
from osprey_py.backends.protocol import Kind

FLOATS = (Kind.F64, Kind.F32, Kind.F16, Kind.BF16)


@dataclass(frozen=True, slots=True)
class Dimension:
    """One batch dimension: its extent, how far a step of it moves in A, B and C, and by how many terms it moves the sums'
    end and their beginning."""

    extent: int
    a: int
    b: int
    c: int
    terms: int = 0
    first: int = 0


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand's first element (its address, or its place in bytes in a buffer that `Launch.at` gets) and its strides in
    elements: `row` along m (A) or n (B), `depth` along k."""

    address: int
    kind: Kind
    row: int
    depth: int


@dataclass(frozen=True, slots=True)
class Product:
    """C[.., i, j] = sum over k of A[.., i, k] * B[.., j, k], beginning at seed. C is binary64 at address c with strides
    c_m and c_n. batch: outermost first. Row i sums over k' = first + i * row_first … k + i * row_terms - 1, as far as
    these are in 0 … most-1 (most None: the greatest end). epilogue: whether one will run on each block."""

    m: int
    n: int
    k: int
    a: Operand
    b: Operand
    c: int
    c_m: int
    c_n: int = 1
    seed: float = 0.0
    batch: tuple[Dimension, ...] = ()
    row_terms: int = 0
    started: bool = False
    epilogue: bool = False
    first: int = 0
    row_first: int = 0
    most: int | None = None

    @property
    def longest(self) -> int:
        """How many terms a sum has at most."""
        ends = (
            self.k + max(0, (self.m - 1) * self.row_terms) + sum(max(0, (d.extent - 1) * d.terms) for d in self.batch)
        )
        return max(0, ends if self.most is None else min(ends, self.most))

    @property
    def mean(self) -> int:
        """How many terms a sum has about, at least one: those in the middle of every dimension."""
        end, start = self.k + self.m * self.row_terms // 2, self.first + self.m * self.row_first // 2
        for d in self.batch:
            end, start = end + d.extent * d.terms // 2, start + d.extent * d.first // 2
        return max(1, min(end, self.longest) - max(start, 0))


@dataclass(frozen=True, slots=True)
class Launch:
    """One step of a plan. words: its argument block. places: where A, B and C begin in it.
    scratch: bytes a thread needs; an epilogue's own lies behind."""

    function: int
    words: ctypes.Array[ctypes.c_char]
    places: tuple[int, int, int]
    units: int
    grain: int
    scratch: int

    @property
    def address(self) -> int:
        """Of the argument block, which lives as long as `words`."""
        return ctypes.addressof(self.words)

    def at(self, a: int, b: int, c: int, epilogue: Epilogue | None = None) -> Launch:
        """The same step on buffers at these addresses, where the product was given places in them."""
        words = type(self.words).from_buffer_copy(self.words)
        a0, b0, c0 = self.places
        _OPERANDS.pack_into(words, 0, a0 + a, b0 + b, c0 + c)
        scratch = self.scratch
        if epilogue is not None:
            _EPILOGUE.pack_into(words, 8 * Word.EPILOGUE, epilogue.function, epilogue.args)
            scratch += epilogue.scratch
        return Launch(self.function, words, self.places, self.units, self.grain, scratch)


_OPERANDS, _EPILOGUE = struct.Struct("<3q"), struct.Struct("<2q")
assert (Word.A, Word.B, Word.C, Word.EPILOGUE_ARGS) == (0, 1, 2, Word.EPILOGUE + 1)


@dataclass(frozen=True, slots=True)
class Epilogue:
    """A STEP_TYPE function over output elements (in place on C, which counts from its own start), its arguments, and the
    scratch it needs. Only for products whose c_n is 1."""

    function: int
    args: int
    scratch: int = 0


@cache
def tile() -> Tile:
    """The tile of this processor."""
    host = machine()
    return choose(host.triple, host.features)


def tiled_text() -> str:
    """The module of the tiled kernel."""
    module = ir.Module("gemm")
    gemm_tiled.emit_tiled(module, tile())
    return str(module)


def rows_text(kind: Kind) -> str:
    """The module of the kernels for one row over a kind."""
    module = ir.Module(f"gemm_rows_{kind.value}")
    gemm_rows.emit_across(module, tile(), kind)
    gemm_rows.emit_along(module, tile(), kind)
    return str(module)


def packs_text(kind: Kind) -> str:
    """The module of the packers of a kind."""
    module = ir.Module(f"gemm_pack_{kind.value}")
    emit_pack(module, "pack_rows", kind, tile().group)
    emit_pack(module, "pack_columns", kind, tile().width)
    return str(module)


@cache
def _sources() -> str:
    """A digest of what the modules' text is made from; making the text takes longer than loading the machine code."""
    digest = hashlib.sha256(llvmlite.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("gemm*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _load(name: str, make: Callable[[], str], exports: tuple[str, ...]) -> Library:
    return machine().load_made(f"{name} {tile()} {_sources()}", make, exports)


@cache
def _tiled() -> Library:
    return _load("tiled", tiled_text, ("gemm_tiled",))


@cache
def _packs(kind: Kind) -> Library:
    return _load(f"pack {kind.value}", lambda: packs_text(kind), ("pack_rows", "pack_columns"))


@cache
def _rows(kind: Kind) -> Library:
    return _load(f"rows {kind.value}", lambda: rows_text(kind), ("gemm_across", "gemm_along"))


def launch(p: Product, threads: int, blocks: Blocks | None = None) -> Launch:
    """The step that computes a product. Its units may run in any order on any threads."""
    how = cut(p, threads, tile()) if blocks is None else blocks
    if how.kernel == "tiled":
        function = _tiled().addresses["gemm_tiled"]
        scratch = gemm_tiled.scratch_bytes(tile(), how.m, how.k)
    else:
        function = _rows(p.b.kind).addresses["gemm_" + how.kernel]
        scratch = gemm_rows.scratch_bytes(how.m, how.n, how.k)
    scratch = -(-scratch // 64) * 64
    blocks_m, blocks_n = -(-p.m // how.m), -(-p.n // how.n)
    units = blocks_m * blocks_n
    values: dict[Word, int] = {
        Word.A: p.a.address,
        Word.B: p.b.address,
        Word.C: p.c,
        Word.M: p.m,
        Word.N: p.n,
        Word.K: p.k,
        Word.A_M: p.a.row,
        Word.A_K: p.a.depth,
        Word.B_K: p.b.depth,
        Word.B_N: p.b.row,
        Word.C_M: p.c_m,
        Word.C_N: p.c_n,
        Word.SEED: struct.unpack("<q", struct.pack("<d", p.seed))[0],
        Word.BLOCK_M: how.m,
        Word.BLOCK_N: how.n,
        Word.BLOCK_K: how.k,
        Word.BLOCKS_M: max(1, blocks_m),
        Word.BLOCKS_N: max(1, blocks_n),
        Word.PACK_A: _packs(p.a.kind).addresses["pack_rows"],
        Word.PACK_B: _packs(p.b.kind).addresses["pack_columns"],
        Word.A_SIZE: p.a.kind.itemsize,
        Word.B_SIZE: p.b.kind.itemsize,
        Word.EPILOGUE_SCRATCH: scratch,
        Word.K_M: p.row_terms,
        Word.STARTED: int(p.started),
        Word.FIRST: p.first,
        Word.FIRST_M: p.row_first,
        Word.MOST: p.longest,
        Word.DIMENSIONS: len(p.batch),
    }
    batch: list[int] = []
    for d in p.batch:
        units *= d.extent
        batch += (d.extent, d.a, d.b, d.c, d.terms, d.first)
    words = [values.get(place, 0) for place in Word if place < Word.BATCH] + batch
    work = 2 * max(1, min(how.m, p.m) * min(how.n, p.n)) * p.mean
    packed = struct.pack(f"<{len(words)}q", *words)
    block = (ctypes.c_char * len(packed)).from_buffer_copy(packed)
    places = (p.a.address, p.b.address, p.c)
    return Launch(function, block, places, units, max(1, WORTH_A_CLAIM // work), scratch)
