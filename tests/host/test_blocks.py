"""Buffers' memory: aligned, recycled, freed."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from osprey_py.backends import garbage
from osprey_py.backends.host.blocks import ALIGNMENT, IDLE, Blocks, size_class
from osprey_py.backends.protocol import Kind, Storage


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("n", [0, 1, 7, 64, 1000])
def test_storage_is_aligned_and_of_its_kind(kind: Kind, n: int) -> None:
    s = Blocks().allocate(kind, n)
    assert (s.kind, s.length, s.data.dtype) == (kind, n, kind.dtype)
    assert s.address % ALIGNMENT == 0


def test_a_released_block_is_used_again() -> None:
    blocks = Blocks()
    first = blocks.allocate(Kind.F64, 100)
    address = first.address
    blocks.release(first)
    assert blocks.allocate(Kind.I64, 99).address == address


def test_a_block_is_handed_out_once_however_often_it_is_released() -> None:
    blocks = Blocks()
    first = blocks.allocate(Kind.F64, 8)
    blocks.release(first)
    blocks.release(first)
    assert blocks.allocate(Kind.F64, 8).address != blocks.allocate(Kind.F64, 8).address


def test_storage_from_elsewhere_is_not_taken() -> None:
    blocks = Blocks()
    mapped = Storage(Kind.F64, np.zeros(8))
    view = Storage(Kind.F64, np.zeros(16)[8:])
    blocks.release(mapped)
    blocks.release(view)
    assert blocks.allocate(Kind.F64, 8).address not in (mapped.address, view.address)


def test_storage_that_is_dropped_is_freed() -> None:
    blocks = Blocks()
    gone = weakref.ref(blocks.allocate(Kind.F64, 1000).data.base)
    gc.collect()
    assert gone() is None


def test_idle_memory_is_bounded() -> None:
    blocks = Blocks()
    for _ in range(3):
        many = [blocks.allocate(Kind.F64, IDLE // 32) for _ in range(6)]
        for s in many:
            blocks.release(s)
        assert blocks.idle <= IDLE


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 1 << 20, (1 << 20) + 1])
def test_size_classes_hold_what_they_are_asked_for_and_little_more(size: int) -> None:
    found = size_class(size)
    assert found >= size
    assert found % ALIGNMENT == 0
    assert found <= max(size + ALIGNMENT, size * 17 // 16 + 1)


def test_blocks_in_cycles_are_found_when_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts objects; a few of them may hold all of the memory."""
    monkeypatch.setattr(garbage, "BYTES", 1 << 20)
    blocks = Blocks()
    thresholds = gc.get_threshold()
    with garbage.seldom():
        garbage.keep()
        for _ in range(100):
            cycle: list[object] = [blocks.allocate(Kind.F64, 1 << 14)]
            cycle.append(cycle)
        assert len(blocks._used) <= 9
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0
