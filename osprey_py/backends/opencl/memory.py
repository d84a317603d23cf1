"""Memory of a device: buffers that stay there between kernels, and what crosses.

Comes in: kinds and lengths, or data of the host. Goes out: `DeviceStorage`, whose `data` is copied over when somebody of
the host asks for it; and for data of the host (weights in a mapped file, say) the device's copy of the whole of it, made
once and kept as long as the data lives. Where the device shares the machine's memory, data is used where it lies.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from osprey_py.backends.protocol import DeviceError, Kind, Refused, Storage

IDLE = 512 << 20
"""Bytes that may lie unused before released blocks are given back."""


@dataclass(eq=False, slots=True)
class Block:
    """A buffer of the device; free while nobody's."""

    buffer: Any
    size: int
    used: bool = True


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


def size_class(size: int) -> int:
    """The least class that holds so many bytes: sixteenths of a power of two."""
    step = max(64, 1 << max(size.bit_length() - 5, 0))
    return max(64, (size + step - 1) & -step)


class Memory:
    """The memory of one device. moved: bytes that came to the device and went from it."""

    def __init__(self, context: Any, queue: Any, device: Any) -> None:
        self.context = context
        self.queue = queue
        self.largest = int(device.max_mem_alloc_size)
        self.shared = bool(device.host_unified_memory)
        self.name = device.name.strip()
        self.moved = [0, 0]
        self._free: dict[int, list[Block]] = {}
        self._idle = 0
        self._data: weakref.WeakKeyDictionary[Storage, Block] = weakref.WeakKeyDictionary()

    def allocate(self, kind: Kind, n: int) -> DeviceStorage:
        """Uninitialised. Raises Refused for more than one buffer holds, DeviceError when there is no room."""
        return DeviceStorage(self, kind, self.block(n * kind.itemsize), 0, n)

    def block(self, size: int) -> Block:
        size = size_class(size)
        stock = self._free.get(size)
        if stock:
            block = stock.pop()
            self._idle -= size
            block.used = True
            return block
        self._check(size)
        return Block(self._buffer(cl.mem_flags.READ_WRITE, size), size)

    def release(self, storage: Storage) -> None:
        if isinstance(storage, DeviceStorage) and storage.begin == 0:
            self.give_back(storage.block)

    def give_back(self, block: Block) -> None:
        """Its next user comes later in the queue."""
        if not block.used:
            return
        block.used = False
        if self._idle + block.size > IDLE:
            self._free.clear()
            self._idle = 0
        self._free.setdefault(block.size, []).append(block)
        self._idle += block.size

    def place(self, storage: Storage) -> tuple[Any, int]:
        """The buffer that holds a storage, and the element where it begins."""
        if isinstance(storage, DeviceStorage):
            return storage.block.buffer, storage.begin
        whole = storage.whole or storage
        block = self._data.get(whole)
        if block is None:
            block = self._data[whole] = self._bring(whole)
        return block.buffer, storage.begin

    def read(self, storage: DeviceStorage) -> npt.NDArray[Any]:
        array = np.empty(storage.length, storage.kind.dtype)
        if storage.length:
            at = storage.begin * storage.kind.itemsize
            try:
                cl.enqueue_copy(self.queue, array, storage.block.buffer, src_offset=at)
            except cl.Error as error:
                raise failed(error) from None
            self.moved[1] += array.nbytes
        return array

    def write(self, storage: DeviceStorage, array: npt.NDArray[Any]) -> None:
        if len(array):
            at = storage.begin * storage.kind.itemsize
            try:
                cl.enqueue_copy(self.queue, storage.block.buffer, array, dst_offset=at)
            except cl.Error as error:
                raise failed(error) from None
            self.moved[0] += array.nbytes

    def _bring(self, whole: Storage) -> Block:
        size = max(whole.nbytes, 1)
        self._check(size)
        if not whole.length:
            return Block(self._buffer(cl.mem_flags.READ_ONLY, size), size)
        flags = cl.mem_flags
        array = np.require(whole.data, requirements=["C", "A"])
        if self.shared:
            return Block(self._buffer(flags.READ_ONLY | flags.USE_HOST_PTR, size, array), size)
        self.moved[0] += array.nbytes
        return Block(self._buffer(flags.READ_ONLY | flags.COPY_HOST_PTR, size, array), size)

    def _buffer(self, flags: Any, size: int, array: npt.NDArray[Any] | None = None) -> Any:
        try:
            if array is None:
                return cl.Buffer(self.context, flags, size)
            return cl.Buffer(self.context, flags, hostbuf=array)
        except cl.Error as error:
            raise failed(error) from None

    def _check(self, size: int) -> None:
        if size > self.largest:
            raise Refused(f"a buffer of {size} bytes; {self.name} holds at most {self.largest} in one")


_KNOWN = {
    "MEM_OBJECT_ALLOCATION_FAILURE": "out of device memory",
    "OUT_OF_RESOURCES": "out of the device's resources",
    "OUT_OF_HOST_MEMORY": "the driver is out of memory",
}


def failed(error: cl.Error, step: int | None = None) -> DeviceError:
    """A driver's error as one sentence."""
    said = str(error).strip().split("\n")[0]
    known = next((text for name, text in _KNOWN.items() if name in said), None)
    return DeviceError(known or f"the driver failed: {said}", step=step)
