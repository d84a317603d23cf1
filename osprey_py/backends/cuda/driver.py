"""NVIDIA's driver library through ctypes, as a `Driver`.

One context and one stream; memory is allocated and freed in the stream's order, so that what a launch still uses is not
given to another.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from osprey_py.backends.c.dialects import CUDA
from osprey_py.backends.c.kernels import ENTRY, Text
from osprey_py.backends.cuda.nvrtc import nvrtc
from osprey_py.backends.protocol import DeviceError, Refused, Unusable

_NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
_OUT_OF_MEMORY = 2
_RELEASE_THRESHOLD = 4
_GRID = (2**31 - 1, 65535, 65535)
_C_TYPES: dict[str, Any] = {"buffer": ctypes.c_uint64, "int": ctypes.c_int64, "float": ctypes.c_double}
_ATTRIBUTES = {"items": 1, "local": 8, "units": 16, "major": 75, "minor": 76}


def library() -> ctypes.CDLL:
    """The driver, initialised. Raises Unusable when there is none."""
    for name in _NAMES:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        code = found.cuInit(0)
        if code:
            raise Unusable(f"NVIDIA's driver does not start: {_name(found, code)}")
        return found
    raise Unusable("NVIDIA's driver is not installed", "the CUDA backend needs an NVIDIA device and its driver")


def _name(driver: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    driver.cuGetErrorName(code, ctypes.byref(text))
    return (text.value or str(code).encode()).decode()


class Memory:
    """Memory of the device, given back when nobody refers to it."""

    __slots__ = ("address", "driver")

    def __init__(self, driver: CudaDriver, address: int) -> None:
        self.driver = driver
        self.address = address

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.driver.free(self.address)


class CudaDriver:
    """The device with this number. Raises Unusable when it is not there."""

    dialect = CUDA
    shared = False

    def __init__(self, number: int) -> None:
        self._library = library()
        takes = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(takes))
        self._compiler = nvrtc(takes.value // 1000)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if number >= count.value:
            raise Unusable(f"there is no device {number}; there are {count.value}, counted from 0")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), number)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._context = context
        self._call("cuCtxSetCurrent", context)
        stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), 1)
        self._stream = stream
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, self._device)
        self.device = name.value.decode()
        total = ctypes.c_size_t()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(total), self._device)
        self.largest = total.value
        self.architecture = 10 * self.attribute("major") + self.attribute("minor")
        self._keep()
        major, minor = self._compiler.version
        self.versions = f"CUDA {takes.value // 1000}.{takes.value % 1000 // 10}, NVRTC {major}.{minor}"

    def _keep(self) -> None:
        """Memory that was given back stays the process's, for the next that is asked for."""
        pool, all_of_it = ctypes.c_void_p(), ctypes.c_uint64(2**64 - 1)
        self._call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), self._device)
        self._call("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, ctypes.byref(all_of_it))

    def attribute(self, what: str) -> int:
        """items or bytes of local memory of a group, units, or the version of the architecture."""
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), _ATTRIBUTES[what], self._device)
        return value.value

    @staticmethod
    def count() -> int:
        """How many devices there are. Raises Unusable when there is no driver."""
        count = ctypes.c_int()
        library().cuDeviceGetCount(ctypes.byref(count))
        return count.value

    def buffer(self, size: int) -> Memory:
        self._enter()
        address = ctypes.c_uint64()
        self._call("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(size), self._stream)
        return Memory(self, address.value)

    def free(self, address: int) -> None:
        self._library.cuCtxSetCurrent(self._context)
        self._library.cuMemFreeAsync(ctypes.c_uint64(address), self._stream)

    def bring(self, array: npt.NDArray[Any]) -> Memory:
        made = self.buffer(max(array.nbytes, 1))
        self.write(made, 0, array)
        return made

    def write(self, buffer: Memory, offset: int, array: npt.NDArray[Any]) -> None:
        self._enter()
        held = np.ascontiguousarray(array)
        to = ctypes.c_uint64(buffer.address + offset)
        self._call("cuMemcpyHtoDAsync_v2", to, ctypes.c_void_p(held.ctypes.data), _size(held), self._stream)
        # The driver may still read the array.
        self._call("cuStreamSynchronize", self._stream)

    def read(self, buffer: Memory, offset: int, array: npt.NDArray[Any]) -> None:
        self._enter()
        origin = ctypes.c_uint64(buffer.address + offset)
        self._call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(array.ctypes.data), origin, _size(array), self._stream)
        self._call("cuStreamSynchronize", self._stream)

    def build(self, text: Text) -> tuple[ctypes.c_void_p, tuple[str, ...]]:
        self._enter()
        binary = self._compiler.loadable(text.source, self.architecture)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), binary)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, ENTRY.encode())
        return function, text.parameters

    def launch(
        self,
        function: tuple[ctypes.c_void_p, tuple[str, ...]],
        groups: tuple[int, int, int],
        items: tuple[int, int, int],
        args: Sequence[Any],
    ) -> None:
        if any(g > most for g, most in zip(groups, _GRID, strict=True)):
            raise Refused(f"a launch of {groups[0]} x {groups[1]} x {groups[2]} work-groups")
        self._enter()
        entry, kinds = function
        values = packed(kinds, args)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values))
        self._call("cuLaunchKernel", entry, *groups, *items, 0, self._stream, pointers, None)

    def flush(self) -> None:
        """The stream begins by itself."""

    def wait(self) -> None:
        self._enter()
        self._call("cuStreamSynchronize", self._stream)

    def _enter(self) -> None:
        """Programs run in a thread of their own; the context follows."""
        self._call("cuCtxSetCurrent", self._context)

    def _call(self, name: str, *args: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise DeviceError(f"the driver is too old: it has no {name}")
        code = function(*args)
        if code == _OUT_OF_MEMORY:
            raise DeviceError("out of device memory")
        if code:
            raise DeviceError(f"the driver failed: {name} says {_name(self._library, code)}")


def packed(kinds: Sequence[str], args: Sequence[Any]) -> list[Any]:
    """The arguments of a launch as the driver takes them."""
    return [
        _C_TYPES[kind](arg.address if kind == "buffer" else int(arg) if kind == "int" else arg)
        for kind, arg in zip(kinds, args, strict=True)
    ]


def _size(array: npt.NDArray[Any]) -> ctypes.c_size_t:
    return ctypes.c_size_t(array.nbytes)
