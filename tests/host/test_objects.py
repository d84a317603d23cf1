"""The object cache: what is kept comes back, damage and a full folder mean no more than compiling again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from osprey_py.backends.host import HostBackend, objects
from osprey_py.backends.host.native import Machine, machine
from osprey_py.backends.protocol import Kind, Step, Storage
from osprey_py.kernel.faults import lower
from osprey_py.kernel.fingerprint import fingerprint
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, load, uniform, var


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "osprey-py" / "objects"


def doubled() -> Kernel:
    x = load(0, FLOAT, index())
    return Kernel((FLOAT,), (), Node("fadd", FLOAT, (x, x)))


def run(kernel: Kernel) -> list[float]:
    host = HostBackend(threads=1)
    data = Storage(Kind.F64, np.arange(5.0))
    output = host.allocate(Kind.F64, 5)
    plain = Step("map", kernel, (data,), (), 5, output, None)
    step = Step("map", kernel, (data,), (), 5, output, host.compile("map", kernel, (Kind.F64,), plain))
    assert host.run([step]).fault is None
    return [float(x) for x in output.data]


def test_what_is_kept_comes_back(empty_cache: Path) -> None:
    assert objects.fetch("a") is None
    objects.keep("a", b"code")
    assert objects.fetch("a") == b"code"
    assert sorted(p.name for p in empty_cache.iterdir()) == ["a"]


@pytest.mark.parametrize("damage", [b"", b"x", b"osprey-object-1\n" + bytes(40)])
def test_a_damaged_file_is_ignored(empty_cache: Path, damage: bytes) -> None:
    objects.keep("a", b"code")
    (empty_cache / "a").write_bytes(damage)
    assert objects.fetch("a") is None


def test_a_flipped_bit_is_noticed(empty_cache: Path) -> None:
    objects.keep("a", b"code")
    whole = bytearray((empty_cache / "a").read_bytes())
    whole[-1] ^= 1
    (empty_cache / "a").write_bytes(whole)
    assert objects.fetch("a") is None


def test_the_folder_is_bounded(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "BOUND", 1000)
    for k in range(40):
        objects.keep(f"{k}", bytes(100))
    assert sum(p.stat().st_size for p in empty_cache.iterdir()) <= 1000
    assert objects.fetch("39") == bytes(100)


def test_no_folder_means_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    objects.keep("a", b"code")
    assert objects.fetch("a") is None
    assert run(doubled()) == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_a_kernel_is_compiled_once_for_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    compile_ = Machine.object_code
    monkeypatch.setattr(Machine, "object_code", lambda self, text: made.append(text) or compile_(self, text))
    assert run(doubled()) == run(doubled()) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert len(made) == 1


def test_object_code_that_does_not_link_is_compiled_again(empty_cache: Path) -> None:
    expected = run(doubled())
    for path in empty_cache.iterdir():
        path.unlink()
        objects.keep(path.name, b"no object file")
    assert run(doubled()) == expected


def summed(count: Node, first: float) -> Kernel:
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    (total,) = fold(count, k, (acc,), (const(first),), (Node("fadd", FLOAT, (var(acc), load(0, FLOAT, var(k)))),))
    return Kernel((FLOAT,), (INT,), total, name=f"sum{id(k)}")


def test_fingerprints_tell_structure_and_nothing_else() -> None:
    one, same = (fingerprint(lower(summed(uniform(0, INT), 0.0))) for _ in range(2))
    assert one == same
    assert one != fingerprint(lower(summed(uniform(0, INT), -0.0)))
    assert one != fingerprint(lower(summed(const(3), 0.0)))


def test_the_machine_is_made_once() -> None:
    assert machine() is machine()
