"""Memory for computed buffers: blocks aligned to a cache line, recycled by size class.

A fresh page costs its first touch, so what is released is handed out again. Sizes are rounded up to sixteenths of a
power of two, so that a buffer that grows by an element meets its old block. A storage that is dropped without
`release` frees its block."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from osprey_py.backends.garbage import Taken
from osprey_py.backends.protocol import Kind, Storage

ALIGNMENT = 64
IDLE = 512 << 20
"""Bytes that may lie unused before released blocks are given back."""

Block = npt.NDArray[Any]
"""Raw bytes; the base of every array handed out."""

_Used = tuple["weakref.ref[Block]", int, int]
"""Of a block: itself, where its aligned part begins, and its size class."""


def size_class(size: int) -> int:
    """The least class that holds so many bytes."""
    step = max(ALIGNMENT, 1 << max(size.bit_length() - 5, 0))
    return max(ALIGNMENT, (size + step - 1) & -step)


class Blocks:
    """The allocator of one backend. bound: bytes that may lie unused; 0 hands nothing out again.

    What is free is kept with the storage that lay there last: who asks for the same again, as most do, gets that."""

    def __init__(self, bound: int = IDLE) -> None:
        self.bound = bound
        self._free: dict[int, list[tuple[Block, _Used, Storage]]] = {}
        self.idle = 0
        self._taken = Taken()
        self._used: dict[int, _Used] = {}

    def allocate(self, kind: Kind, n: int) -> Storage:
        dtype = kind.dtype
        size = size_class(n * dtype.itemsize)
        stock = self._free.get(size)
        if stock:
            block, used, storage = stock.pop()
            self.idle -= size
            if storage.length == n and storage.kind is kind and storage.whole is None:
                self._used[id(block)] = used
                return storage
            start = used[1]
        else:
            if size + ALIGNMENT > sys.maxsize:
                raise MemoryError
            self._taken.more(size)
            block = np.empty(size + ALIGNMENT, np.uint8)
            start = -block.__array_interface__["data"][0] % ALIGNMENT
        name = id(block)
        self._used[name] = (weakref.ref(block, lambda _: self._used.pop(name, None)), start, size)
        return Storage(kind, np.ndarray((n,), dtype, block, start))

    def release(self, storage: Storage) -> None:
        block = storage.data.base
        entry = self._used.get(id(block))
        if block is None or entry is None or entry[0]() is not block:
            return
        del self._used[id(block)]
        size = entry[2]
        if not self.bound:
            return
        if self.idle + size > self.bound:
            self._free.clear()
            self.idle = 0
        self._free.setdefault(size, []).append((block, entry, storage))
        self.idle += size
