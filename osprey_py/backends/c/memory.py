"""Memory of a device: buffers that stay there between kernels, and what crosses.

Comes in: kinds and lengths, or data of the host. Goes out: `DeviceStorage`, whose `data` is copied over when somebody of
the host asks for it; and for data of the host (weights in a mapped file, say) the device's copy of the whole of it, made
once and kept as long as the data lives. Where the device shares the machine's memory, data is used where it lies. What
nobody refers to any more is kept until no launch in the queue can read or write it.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osprey_py.backends.c.driver import Driver
from osprey_py.backends.garbage import Taken
from osprey_py.backends.protocol import DeviceError, Kind, Refused, Storage

IDLE = 512 << 20
"""Bytes that may lie unused before released blocks are given back."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Block:
    """A buffer of the device; free while nobody's. apart: for what steps need for themselves."""

    buffer: Any
    size: int
    used: bool = True
    apart: bool = False


class DeviceStorage(Storage):
    """Elements begin … begin + length - 1 of a block."""

    __slots__ = ("block", "memory")

    block: Block
    memory: Memory

    def __init__(self, memory: Memory, kind: Kind, block: Block, begin: int, length: int) -> None:
        for name, value in (
            ("memory", memory),
            ("kind", kind),
            ("block", block),
            ("begin", begin),
            ("length", length),
            ("whole", None),
            ("address", 0),
        ):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> npt.NDArray[Any]:
        """A copy, as the elements are once every launch before has run."""
        array = self.memory.read(self)
        array.flags.writeable = False
        return array

    def part(self, begin: int, end: int) -> Storage:
        return DeviceStorage(self.memory, self.kind, self.block, self.begin + begin, end - begin)

    def put(self, values: Any) -> None:
        self.memory.write(self, np.ascontiguousarray(values, self.kind.dtype))


def _drain(driver: Driver, process: int) -> None:
    """Nobody looks at the results any more, but launches may still read what lies in the machine's own memory. A forked
    child has no launches."""
    if process == os.getpid():
        with suppress(DeviceError):
            driver.wait()


def size_class(size: int) -> int:
    """The least class that holds so many bytes: sixteenths of a power of two."""
    step = max(64, 1 << max(size.bit_length() - 5, 0))
    return max(64, (size + step - 1) & -step)


class Memory:
    """The memory of one device. moved: bytes that came to the device and went from it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.moved = [0, 0]
        self._free: dict[int, list[Block]] = {}
        self._apart: dict[int, list[Block]] = {}
        self._idle = 0
        self._taken = Taken()
        self._data: dict[weakref.ref[Storage], Block] = {}
        self._leaving: list[tuple[int, Any]] = []
        weakref.finalize(self, _drain, driver, os.getpid())

    def allocate(self, kind: Kind, n: int) -> DeviceStorage:
        """Uninitialised. Raises Refused for more than one buffer holds, DeviceError when there is no room."""
        return DeviceStorage(self, kind, self.block(n * kind.itemsize), 0, n)

    def temporary(self, kind: Kind, n: int) -> DeviceStorage:
        """The same for what a step needs for itself: never what the graph has given back, for steps of the same run that
        are put into the queue later, or this one, may read that."""
        return DeviceStorage(self, kind, self.block(n * kind.itemsize, apart=True), 0, n)

    def block(self, size: int, *, apart: bool = False) -> Block:
        size = max(size, min(size_class(size), self.driver.largest))
        stock = (self._apart if apart else self._free).get(size)
        if stock:
            block = stock.pop()
            self._idle -= size
            block.used = True
            return block
        self._check(size)
        self._taken.more(size)
        try:
            return self._made(self.driver.buffer(size), size, apart=apart)
        except DeviceError:
            if not self._idle and not self._leaving:
                raise
        # What lies unused makes room.
        self._drop()
        self.wait()
        return self._made(self.driver.buffer(size), size, apart=apart)

    def _made(self, buffer: Any, size: int, *, apart: bool = False) -> Block:
        """A block whose buffer goes when launches that are in the queue by then have run."""
        block = Block(buffer, size, apart=apart)
        weakref.finalize(block, self._leaving.append, (size, buffer)).atexit = False
        return block

    def release(self, storage: Storage) -> None:
        if isinstance(storage, DeviceStorage) and storage.begin == 0:
            self.give_back(storage.block)

    def give_back(self, block: Block) -> None:
        """Its next user comes later in the queue."""
        if not block.used:
            return
        block.used = False
        if self._idle + block.size > IDLE:
            self._drop()
        (self._apart if block.apart else self._free).setdefault(block.size, []).append(block)
        self._idle += block.size

    def _drop(self) -> None:
        """Nobody refers to what lies unused."""
        self._free.clear()
        self._apart.clear()
        self._idle = 0

    def place(self, storage: Storage) -> tuple[Any, int]:
        """The buffer that holds a storage, and the element where it begins."""
        if isinstance(storage, DeviceStorage):
            return storage.block.buffer, storage.begin
        whole = storage.whole or storage
        block = self._data.get(weakref.ref(whole))
        if block is None:
            block = self._bring(whole)
            self._data[weakref.ref(whole, self._data.pop)] = block
        return block.buffer, storage.begin

    def wait(self) -> None:
        """Until every launch before has run, and what was waiting for that is gone."""
        waiting = len(self._leaving)
        self.driver.wait()
        del self._leaving[:waiting]

    def read(self, storage: DeviceStorage) -> npt.NDArray[Any]:
        array = np.empty(storage.length, storage.kind.dtype)
        if storage.length:
            waiting = len(self._leaving)
            self.driver.read(storage.block.buffer, storage.begin * storage.kind.itemsize, array)
            self.moved[1] += array.nbytes
            del self._leaving[:waiting]
        return array

    def write(self, storage: DeviceStorage, array: npt.NDArray[Any]) -> None:
        if len(array):
            self.driver.write(storage.block.buffer, storage.begin * storage.kind.itemsize, array)
            self.moved[0] += array.nbytes

    def _bring(self, whole: Storage) -> Block:
        self._check(whole.nbytes)
        if not whole.length:
            return self._made(self.driver.buffer(1), 1)
        array = np.require(whole.data, requirements=["C", "A"])
        if not self.driver.shared:
            self.moved[0] += array.nbytes
        return self._made(self.driver.bring(array), array.nbytes)

    def _check(self, size: int) -> None:
        """Whether a buffer may be so large; and not too much may wait to go."""
        if sum(left for left, _ in self._leaving) > IDLE:
            self.wait()
        if size > self.driver.largest:
            raise Refused(f"a buffer of {size} bytes; {self.driver.device} holds at most {self.driver.largest} in one")
