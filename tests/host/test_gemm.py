"""The matrix kernels against the plain triple loop, byte for byte (spec/contractions, spec/numerics)."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.host import gemm, gemm_target, pool_ir
from osprey_py.backends.host.gemm import Blocks, Dimension, Epilogue, Operand, Product
from osprey_py.backends.host.native import Library, machine
from osprey_py.backends.host.pool import Plan, Pool
from osprey_py.backends.protocol import Kind

Array = npt.NDArray[np.float64]
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -2.2e-308, 1.7e308, 1.0, -1.0])
POOLS = {n: Pool(n) for n in (1, 2, 7)}


def plain(a: Array, b: Array, seed: float) -> Array:
    """The contract: one accumulator an output, k ascending, the product rounded, then the sum."""
    return carried(a, b, np.full((a.shape[0], b.shape[1]), seed))


def carried(a: Array, b: Array, acc: Array) -> Array:
    """The same, begun with sums there are."""
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            acc = acc + a[:, k, None] * b[None, k, :]
    return np.where(np.isnan(acc), np.nan, acc)


def store(x: Array, kind: Kind) -> npt.NDArray[np.generic]:
    """The values as a storage kind holds them (rounded; bf16 cut)."""
    with np.errstate(all="ignore"):
        if kind is Kind.BF16:
            return (x.astype("<f4").view("<u4") >> 16).astype("<u2")
        return x.astype(kind.dtype)


def widen(x: npt.NDArray[np.generic], kind: Kind) -> Array:
    with np.errstate(all="ignore"):
        if kind is Kind.BF16:
            return (x.astype("<u4") << 16).view("<f4").astype(np.float64)
        return x.astype(np.float64)


def values(rng: np.random.Generator, shape: tuple[int, ...], special: bool) -> Array:
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, shape)
    if special and x.size:
        place = rng.random(shape) < 0.02
        x[place] = rng.choice(SPECIAL, int(place.sum()))
    return x


def product(
    a: Array,
    b: Array,
    kinds: tuple[Kind, Kind] = (Kind.F64, Kind.F64),
    turned: tuple[bool, bool, bool] = (False, False, False),
    seed: float = 0.0,
    threads: int = 1,
    blocks: Blocks | None = None,
) -> tuple[Array, Array]:
    """(native result, plain result) of a [m, k] x [k, n] product; turned: whether A, B, C lie transposed in memory."""
    (m, k), n = a.shape, b.shape[1]
    sa, sb = store(a, kinds[0]), store(b, kinds[1])
    wanted = plain(widen(sa, kinds[0]), widen(sb, kinds[1]), seed)
    ma = np.ascontiguousarray(sa.T if turned[0] else sa)
    mb = np.ascontiguousarray(sb.T if turned[1] else sb)
    c = np.full((n, m) if turned[2] else (m, n), 7.0)
    p = Product(
        m,
        n,
        k,
        Operand(ma.ctypes.data, kinds[0], *((1, m) if turned[0] else (k, 1))),
        Operand(mb.ctypes.data, kinds[1], *((k, 1) if turned[1] else (1, n))),
        c.ctypes.data,
        *((1, m) if turned[2] else (n, 1)),
        seed,
    )
    run(gemm.launch(p, threads, blocks=blocks), threads)
    return (np.ascontiguousarray(c.T) if turned[2] else c), wanted


def run(step: gemm.Launch, threads: int) -> None:
    plan = Plan()
    plan.add(step.function, step.address, step.units, 1)
    POOLS[threads].run(plan, step.scratch)


def same(pair: tuple[Array, Array]) -> None:
    assert pair[0].tobytes() == pair[1].tobytes()


@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 6, 7, 11, 12, 13, 24, 31])
def test_shapes(m: int) -> None:
    """C2, N14: every tile height and edge, K = 0 included, B as it is and transposed."""
    rng = np.random.default_rng(m)
    for k in (0, 1, 2, 3, 8, 9, 40):
        for n in (0, 1, 4, 7, 8, 15, 16, 17, 33, 70):
            for turned in (False, True):
                same(product(values(rng, (m, k), False), values(rng, (k, n), False), turned=(False, turned, False)))


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.integers(0, 90), st.integers(1, 70)),
    st.tuples(st.sampled_from(gemm.FLOATS), st.sampled_from(gemm.FLOATS)),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("-inf"), 5e-324]),
    st.sampled_from([1, 2, 7]),
    st.integers(0, 2**32),
)
def test_strides_kinds_seeds_and_special_values(
    shape: tuple[int, int, int],
    kinds: tuple[Kind, Kind],
    turned: tuple[bool, bool, bool],
    seed: float,
    threads: int,
    source: int,
) -> None:
    """C2, N14: NaN, infinities, -0.0 and subnormals in any storage kind, any layout, any seed, any number of threads."""
    m, k, n = shape
    rng = np.random.default_rng(source)
    same(product(values(rng, (m, k), True), values(rng, (k, n), True), kinds, turned, seed, threads))


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(1, 60)),
    st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 20)),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(0, 2**32),
)
def test_blocks_never_change_a_byte(
    shape: tuple[int, int, int], blocks: tuple[int, int, int], turned: tuple[bool, bool, bool], source: int
) -> None:
    """C2, N14: cutting rows, columns and k (with the partial sum carried) changes nothing."""
    m, k, n = shape
    rng = np.random.default_rng(source)
    rows = gemm.tile().rows
    kernels = ["tiled"] + ([] if turned[1] else ["across"]) + (["along"] if turned[1] else [])
    for kernel in kernels:
        height = -(-blocks[0] // rows) * rows if kernel == "tiled" else blocks[0]
        how = Blocks(kernel, height, blocks[1], blocks[2])
        same(product(values(rng, (m, k), True), values(rng, (k, n), True), turned=turned, blocks=how))


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16])
def test_every_half_widens_exactly(kind: Kind) -> None:
    """N13: all 65,536 bit patterns of the narrow kinds, through both packers and both row kernels."""
    every = np.arange(1 << 16, dtype="<u2").view(kind.dtype)
    wide = widen(every, kind)
    wanted = plain(np.ones((1, 1)), wide[None, :], 0.0)
    one = np.ones((2, 1))
    for rows in (1, 2):
        for strides in ((1, 1 << 16), (1, 1)):
            c = np.zeros((rows, 1 << 16))
            a = Operand(one.ctypes.data, Kind.F64, 1, 1)
            b = Operand(every.ctypes.data, kind, *strides)
            run(gemm.launch(Product(rows, 1 << 16, 1, a, b, c.ctypes.data, 1 << 16), 1), 1)
            assert c.tobytes() == np.repeat(wanted, rows, 0).tobytes()


def test_the_large_case_uses_every_block() -> None:
    """C2, N14: more rows, columns and depth than one block of each."""
    rng = np.random.default_rng(5)
    a, b = values(rng, (300, 700), False), values(rng, (700, 130), False)
    for threads in (1, 2):
        same(product(a, b, (Kind.F64, Kind.F32), threads=threads))


@pytest.mark.parametrize("threads", [1, 2])
def test_batches(threads: int) -> None:
    """Attention's shape: heads are columns of one [rows, width] matrix, scores lie [heads, rows, columns]."""
    rng = np.random.default_rng(6)
    heads, rows, width = 3, 21, 5
    q, k = rng.standard_normal((rows, heads * width)), rng.standard_normal((rows, heads * width))
    c = np.zeros((2, heads, rows, rows))
    p = Product(
        rows,
        rows,
        width,
        Operand(q.ctypes.data, Kind.F64, heads * width, 1),
        Operand(k.ctypes.data, Kind.F64, heads * width, 1),
        c.ctypes.data,
        rows,
        batch=(Dimension(2, 0, 0, heads * rows * rows), Dimension(heads, width, width, rows * rows)),
    )
    run(gemm.launch(p, threads), threads)
    for h in range(heads):
        cut = slice(h * width, (h + 1) * width)
        wanted = plain(q[:, cut], k[:, cut].T, 0.0)
        assert c[0, h].tobytes() == wanted.tobytes() == c[1, h].tobytes()


@pytest.mark.parametrize("rows", [1, 14])
def test_each_batch_may_have_its_own_number_of_terms(rows: int) -> None:
    """C3: causal sums: row r of the batch has r + 2 terms."""
    rng = np.random.default_rng(9)
    a, b, c = rng.standard_normal((9, rows, 12)), rng.standard_normal((12, 40)), np.zeros((9, rows, 40))
    p = Product(
        rows,
        40,
        2,
        Operand(a.ctypes.data, Kind.F64, 12, 1),
        Operand(b.ctypes.data, Kind.F64, 1, 40),
        c.ctypes.data,
        40,
        batch=(Dimension(9, rows * 12, 0, rows * 40, 1),),
    )
    run(gemm.launch(p, 2), 2)
    for r in range(9):
        assert c[r].tobytes() == plain(a[r, :, : r + 2], b[: r + 2], 0.0).tobytes()


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.integers(0, 9), st.integers(1, 40), st.integers(1, 3)),
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.booleans()),
    st.integers(0, 2**32),
)
def test_each_row_may_have_more_terms_than_the_one_before(
    shape: tuple[int, int, int, int], cut: tuple[int, int, bool], source: int
) -> None:
    """C3: causal sums, whole and cut into blocks of any size."""
    m, k, n, slope = shape
    rng = np.random.default_rng(source)
    depth = k + (m - 1) * slope
    a, b, c = values(rng, (m, depth), True), values(rng, (depth, n), True), np.zeros((m, n))
    operands = Operand(a.ctypes.data, Kind.F64, depth, 1), Operand(b.ctypes.data, Kind.F64, 1, n)
    p = Product(m, n, k, *operands, c.ctypes.data, n, row_terms=slope)
    blocks = Blocks("tiled", cut[0] * gemm.tile().rows, 3 * cut[1], cut[1]) if cut[2] else None
    run(gemm.launch(p, 2, blocks), 2)
    for r in range(m):
        terms = k + r * slope
        assert c[r].tobytes() == plain(a[r : r + 1, :terms], b[:terms], 0.0).tobytes()


@settings(max_examples=80, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 1, 3])),
    st.tuples(st.integers(-30, 45), st.integers(-3, 3), st.integers(-20, 20)),
    st.tuples(st.integers(-30, 60), st.integers(-3, 3), st.integers(-20, 20)),
    st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(1, 40), st.booleans()),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
    st.integers(0, 2**32),
)
def test_each_row_and_batch_may_begin_and_end_at_a_term_of_its_own(
    shape: tuple[int, int, int, int],
    begin: tuple[int, int, int],
    end: tuple[int, int, int],
    cut: tuple[int, int, int, bool],
    layout: tuple[bool, bool],
    seed: float,
    source: int,
) -> None:
    """C3: sums over a part of their terms, earlier or later from row to row and batch to batch, empty ones too: no other
    term is added, not even as a zero (NaN and infinities lie everywhere)."""
    m, n, most, batches = shape
    rng = np.random.default_rng(source)
    a, b = values(rng, (batches, m, most), True), values(rng, (batches, most, n), True)
    a[rng.random(a.shape) < 0.3] = np.inf
    turned, started = layout
    held = values(rng, (batches, m, n), True)
    held[np.isnan(held)] = np.nan
    c = (held.transpose(0, 2, 1) if turned else held).copy()
    p = Product(
        m,
        n,
        end[0],
        Operand(a.ctypes.data, Kind.F64, most, 1),
        Operand(b.ctypes.data, Kind.F64, 1, n),
        c.ctypes.data,
        *((1, m) if turned else (n, 1)),
        seed,
        (Dimension(batches, m * most, most * n, m * n, end[2], begin[2]),),
        end[1],
        started,
        first=begin[0],
        row_first=begin[1],
        most=most,
    )
    blocks = Blocks("tiled", cut[0] * gemm.tile().rows, cut[2], cut[1]) if cut[3] else None
    run(gemm.launch(p, 2, blocks), 2)
    found = c.transpose(0, 2, 1) if turned else c
    for h in range(batches):
        for r in range(m):
            first = max(0, begin[0] + r * begin[1] + h * begin[2])
            stop = max(first, min(most, end[0] + r * end[1] + h * end[2]))
            start = held[h, r : r + 1] if started else np.full((1, n), seed)
            terms = slice(first, stop)
            assert found[h, r].tobytes() == carried(a[h, r : r + 1, terms], b[h, terms], start).tobytes()


@pytest.mark.parametrize("kernel", ["tiled", "across", "along"])
def test_each_batch_may_begin_and_end_at_a_term_of_its_own(kernel: str) -> None:
    """C3: in every kernel, where all rows of a batch have the same terms."""
    rng = np.random.default_rng(11)
    batches, m, n, k = 9, 3, 37, 12
    a, b, c = values(rng, (m, k), True), values(rng, (k, n), True), np.zeros((batches, m, n))
    mb = np.ascontiguousarray(b.T) if kernel == "along" else b
    p = Product(
        m,
        n,
        6,
        Operand(a.ctypes.data, Kind.F64, k, 1),
        Operand(mb.ctypes.data, Kind.F64, *((k, 1) if kernel == "along" else (1, n))),
        c.ctypes.data,
        n,
        1,
        1.5,
        (Dimension(batches, 0, 0, m * n, 1, 2),),
        first=-3,
        most=k,
    )
    run(gemm.launch(p, 2, Blocks(kernel, gemm.tile().rows, 20, 5)), 2)
    for h in range(batches):
        terms = slice(max(0, 2 * h - 3), max(0, 2 * h - 3, min(k, 6 + h)))
        assert c[h].tobytes() == plain(a[:, terms], b[terms], 1.5).tobytes()


@pytest.mark.parametrize("kernel", ["tiled", "across", "along"])
@pytest.mark.parametrize("turned", [False, True])
def test_sums_may_begin_with_what_the_output_holds(kernel: str, turned: bool) -> None:
    """C2: a partial sum is carried on, whichever kernel made it and however the output lies."""
    rng = np.random.default_rng(10)
    m, k, n = 3, 23, 37
    a, b = values(rng, (m, k), True), values(rng, (k, n), True)
    c = np.zeros((n, m)) if turned else np.zeros((m, n))
    mb = np.ascontiguousarray(b.T) if kernel == "along" else b
    for start, stop in ((0, 9), (9, 10), (10, k)):
        depth, row = (1, k) if kernel == "along" else (n, 1)
        p = Product(
            m,
            n,
            stop - start,
            Operand(a.ctypes.data + 8 * start, Kind.F64, k, 1),
            Operand(mb.ctypes.data + 8 * start * depth, Kind.F64, row, depth),
            c.ctypes.data,
            *((1, m) if turned else (n, 1)),
            1.5,
            started=start > 0,
        )
        run(gemm.launch(p, 1, Blocks(kernel, gemm.tile().rows, 20, 5)), 1)
    assert (c.T if turned else c).tobytes() == plain(a, b, 1.5).tobytes()


_DOUBLE = """
define void @double(ptr %args, i64 %lo, i64 %hi, ptr %scratch) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %j, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %p = getelementptr double, ptr %args, i64 %i
  %x = load double, ptr %p
  %y = fadd double %x, %x
  store double %y, ptr %p
  store double %y, ptr %scratch
  %j = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""


@pytest.mark.parametrize("threads", [1, 7])
@pytest.mark.parametrize("m", [1, 30])
def test_the_epilogue_sees_each_output_once(threads: int, m: int) -> None:
    """An epilogue runs once over every output index, after its sum is whole, whatever the blocks."""
    library = machine().load(_DOUBLE, ("double",))
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((m, 50)), rng.standard_normal((50, 100))
    wanted = plain(a, b, 0.0)
    for blocks in (None, Blocks("tiled", gemm.tile().rows, 17, 9), Blocks("across", 3, 100, 9)):
        c = np.zeros((m, 100))
        p = Product(m, 100, 50, Operand(0, Kind.F64, 50, 1), Operand(0, Kind.F64, 1, 100), 0, 100)
        epilogue = Epilogue(library.addresses["double"], c.ctypes.data, 64)
        step = gemm.launch(p, threads, blocks).at(a.ctypes.data, b.ctypes.data, c.ctypes.data, epilogue)
        run(step, threads)
        assert c.tobytes() == (wanted + wanted).tobytes()


@pytest.mark.parametrize(
    ("shape", "triple", "cpu"),
    [
        (gemm_target.AVX512, "x86_64-unknown-linux-gnu", "skylake-avx512"),
        (gemm_target.AVX2, "x86_64-unknown-linux-gnu", "znver3"),
        (gemm_target.SSE2, "x86_64-unknown-linux-gnu", "x86-64"),
        (gemm_target.NEON, "arm64-apple-darwin22", "apple-m1"),
        (gemm_target.NEON, "aarch64-unknown-linux-gnu", "neoverse-n1"),
    ],
)
def test_code_for_other_processors(
    shape: gemm_target.Tile, triple: str, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N1: the kernels compile for what this project supports, fuse nothing, and no tile spills a register."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    monkeypatch.setattr(gemm, "tile", lambda: shape)
    target = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    tiled, *others = (
        str(target.emit_assembly(llvm.parse_assembly(text)))
        for text in (gemm.tiled_text(), gemm.packs_text(Kind.F32), gemm.rows_text(Kind.F16), pool_ir.text(triple))
    )
    inner = [code for name, code in _functions(tiled) if name.startswith("micro_")]
    assert len(inner) == len(shape.heights)
    for code in inner:
        assert re.search(r"mm\d|\.2d", code)
        # In a loop it would be several for each step.
        assert len(re.findall(r"mm\d+.*\(%rsp\)|\(%rsp\).*mm\d+|\bq\d+.*\[sp", code)) <= 4
    for text in (tiled, *others):
        assert not any(word in text for word in ("fmadd", "fmla", "fmsub", "fmls"))


def _functions(assembly: str) -> list[tuple[str, str]]:
    """(name, code) of each function."""
    return re.findall(r"\n_?(\w+):[^\n]*\n(.*?)(?=\n\s*\.cfi_endproc)", assembly, re.DOTALL)


def test_no_contraction_in_the_machine_code() -> None:
    """N1: no fused multiply-add is ever emitted."""
    for text in (gemm.tiled_text(), gemm.rows_text(Kind.F32)):
        code = machine().assembly(text)
        assert "mul" in code
        assert not any(word in code for word in ("fmadd", "fnmadd", "fmla", "fmsub"))


@pytest.mark.parametrize("shape", [gemm_target.PLAIN, gemm_target.SSE2, gemm_target.NEON, gemm_target.AVX2])
def test_every_tile_computes_the_same(shape: gemm_target.Tile, monkeypatch: pytest.MonkeyPatch) -> None:
    """C2, N14: the kernels of other processors, as far as this one runs them, give the same bytes."""
    for cached in (gemm._tiled, gemm._rows, gemm._packs):
        monkeypatch.setattr(gemm, cached.__name__, cached.__wrapped__)
    kept: list[Library] = []
    load = machine().load_made

    def keep(*made: Any) -> Library:
        kept.append(load(*made))
        return kept[-1]

    monkeypatch.setattr(machine(), "load_made", keep)
    monkeypatch.setattr(gemm, "tile", lambda: shape)
    rng = np.random.default_rng(8)
    for m, k, n in ((1, 13, 37), (7, 11, 29), (14, 20, 16)):
        for turned in ((False, False, False), (True, True, False)):
            same(product(values(rng, (m, k), True), values(rng, (k, n), True), turned=turned))


def test_the_tile_follows_the_processor() -> None:
    """The widest vectors that there are, by LLVM's features; scalars where nothing is known."""
    assert gemm_target.choose("x86_64-unknown-linux-gnu", "+avx2,-avx512f") is gemm_target.AVX2
    assert gemm_target.choose("x86_64-unknown-linux-gnu", "+avx512f,+avx512dq,+avx512vl") is gemm_target.AVX512
    assert gemm_target.choose("x86_64-apple-darwin", "") is gemm_target.SSE2
    assert gemm_target.choose("arm64-apple-darwin22", "") is gemm_target.NEON
    assert gemm_target.choose("riscv64-linux", "") is gemm_target.PLAIN
