"""Elements in every storage kind are read exactly, aligned or not, whole or in part (N13); NaN is one (S4.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host.native import machine
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import KIND_OF, Backend, Kind, Step, Storage
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Kernel, Node, Ty, const, index, load, select

NAN = 0x7FF8000000000000
HOSTS = [HostBackend(threads=1), HostBackend(threads=1, nests=False), HostBackend(threads=2)]


def copied(backend: Backend, source: Storage, ty: Ty = FLOAT) -> npt.NDArray[np.uint8]:
    """The elements as a map stores them."""
    kernel = Kernel((ty,), (), load(0, ty, index()))
    n = source.length
    output = backend.allocate(KIND_OF[ty], n)
    plain = Step("map", kernel, (source,), (), n, output, None)
    compiled = backend.compile("map", kernel, (source.kind,), plain)
    assert backend.run([Step("map", kernel, (source,), (), n, output, compiled)]).fault is None
    return output.data.view(np.uint8).copy()


def every(kind: Kind) -> Storage:
    """All bit patterns of a 16-bit kind; of wider ones many, special ones among them."""
    if kind.itemsize == 2:
        return Storage(kind, np.arange(1 << 16, dtype=np.uint16).view(kind.dtype))
    bits = np.random.default_rng(0).integers(0, 1 << 8 * kind.itemsize, 999, dtype=f"u{kind.itemsize}")
    exponent = {4: 0x7F800000, 8: 0x7FF0000000000000}[kind.itemsize]
    sign = 1 << (8 * kind.itemsize - 1)
    special = [0, 1, sign, sign | 1, exponent, exponent | 1, exponent | sign, exponent - 1, exponent | sign | 5]
    return Storage(kind, np.concatenate([bits, np.array(special, bits.dtype)]).view(kind.dtype))


@pytest.mark.parametrize("kind", [Kind.F64, Kind.F32, Kind.F16, Kind.BF16])
@pytest.mark.parametrize("host", range(len(HOSTS)))
def test_every_float_widens_exactly(kind: Kind, host: int) -> None:
    source = every(kind)
    assert copied(HOSTS[host], source).tobytes() == copied(OracleBackend(), source).tobytes()


@pytest.mark.parametrize("nests", [True, False])
def test_half_precision_without_an_instruction(nests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine(), "f16c", False)
    source = every(Kind.F16)
    assert copied(HostBackend(1, nests=nests), source).tobytes() == copied(OracleBackend(), source).tobytes()


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("offset", [1, 3])
def test_mapped_elements_need_no_alignment(kind: Kind, offset: int, tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 2, 37 * kind.itemsize, dtype=np.uint8)
    path = tmp_path / "mapped"
    path.write_bytes(bytes(offset) + values.tobytes())
    mapped = np.memmap(path, np.uint8, "r")[offset:].view(kind.dtype)
    ty = kind.type
    assert mapped.ctypes.data % max(2, kind.itemsize) or kind is Kind.BOOL
    expected = copied(OracleBackend(), Storage(kind, values.view(kind.dtype)), ty)
    for host in HOSTS:
        assert copied(host, Storage(kind, mapped), ty).tobytes() == expected.tobytes()


def test_what_is_stored_is_the_canonical_nan() -> None:
    bits = np.array([0xFFF8000000000000, 0x7FF0000000000001, NAN, 0xFFFFFFFFFFFFFFFF] * 5, np.uint64)
    for host in HOSTS:
        assert set(copied(host, Storage(Kind.F64, bits.view(np.float64))).view(np.uint64)) == {NAN}


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 32, 33, 100])
def test_a_map_writes_its_elements_and_no_others(n: int) -> None:
    """The vectors at the end of a buffer are masked; the oracle's storage around it stays as it was."""
    x = load(0, INT, index())
    kernel = Kernel((INT,), (), select(Node("lt", BOOL, (x, const(50))), x, const(-1)))
    source = Storage(Kind.I64, np.arange(n))
    for host in HOSTS:
        whole = np.full(n + 40, 77, np.int64)
        output = Storage(Kind.I64, whole[20 : 20 + n])
        plain = Step("map", kernel, (source,), (), n, output, None)
        compiled = host.compile("map", kernel, (Kind.I64,), plain)
        host.run([Step("map", kernel, (source,), (), n, output, compiled)])
        assert list(whole) == [77] * 20 + [i if i < 50 else -1 for i in range(n)] + [77] * 20


def test_a_map_may_write_over_what_it_reads() -> None:
    kernel = Kernel((FLOAT,), (), Node("fadd", FLOAT, (load(0, FLOAT, index()), const(1.0))))
    for host in HOSTS:
        data = np.arange(1001.0)
        place = Storage(Kind.F64, data)
        plain = Step("map", kernel, (place,), (), 1001, place, None)
        host.run([Step("map", kernel, (place,), (), 1001, place, host.compile("map", kernel, (Kind.F64,), plain))])
        assert list(data) == [i + 1.0 for i in range(1001)]
