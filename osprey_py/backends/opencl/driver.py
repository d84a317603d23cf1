"""OpenCL through pyopencl, as a `Driver`.

Options: the language version, no warnings, and nothing that would loosen a rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from osprey_py.backends.c.dialects import OPENCL
from osprey_py.backends.c.driver import complaint
from osprey_py.backends.c.kernels import ENTRY, Text
from osprey_py.backends.protocol import DeviceError

OPTIONS = ("-cl-std=CL1.2", "-w")

ALIGNED = 128
"""Bytes at whose multiples memory begins: those of the widest vector."""

_NUMPY = {"buffer": None, "int": np.int64, "float": np.float64}


class OpenCLDriver:
    """One device, its context and its queue. Raises DeviceError when the driver gives none."""

    dialect = OPENCL

    def __init__(self, device: Any, options: tuple[str, ...] = OPTIONS) -> None:
        self.device = device.name.strip()
        self.largest = int(device.max_mem_alloc_size)
        self.shared = bool(device.host_unified_memory)
        self.processor = bool(device.type & cl.device_type.CPU)
        self.options = options
        try:
            self.context = cl.Context([device])
            self.queue = cl.CommandQueue(self.context)
        except cl.Error as error:
            raise failed(error) from None

    def buffer(self, size: int) -> Any:
        flags = cl.mem_flags
        try:
            if not self.processor:
                return cl.Buffer(self.context, flags.READ_WRITE, size)
            # A driver for processors may look for memory as late as in a launch, and abort when there is none.
            room = np.empty(size + ALIGNED, np.uint8)
            skip = -room.ctypes.data % ALIGNED
            return cl.Buffer(self.context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=room[skip : skip + size])
        except MemoryError:
            raise DeviceError("out of device memory") from None
        except cl.Error as error:
            raise failed(error) from None

    def bring(self, array: npt.NDArray[Any]) -> Any:
        flags = cl.mem_flags
        how = flags.READ_ONLY | (flags.USE_HOST_PTR if self.shared else flags.COPY_HOST_PTR)
        try:
            return cl.Buffer(self.context, how, hostbuf=array)
        except cl.Error as error:
            raise failed(error) from None

    def write(self, buffer: Any, offset: int, array: npt.NDArray[Any]) -> None:
        try:
            cl.enqueue_copy(self.queue, buffer, array, dst_offset=offset)
        except cl.Error as error:
            raise failed(error) from None

    def read(self, buffer: Any, offset: int, array: npt.NDArray[Any]) -> None:
        try:
            cl.enqueue_copy(self.queue, array, buffer, src_offset=offset)
        except cl.Error as error:
            raise failed(error) from None

    def build(self, text: Text) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kernel = cl.Kernel(cl.Program(self.context, text.source).build(list(self.options)), ENTRY)
        except cl.Error as error:
            raise DeviceError(f"its compiler refuses a kernel: {complaint(str(error))}") from None
        kernel.set_scalar_arg_dtypes([_NUMPY[kind] for kind in text.parameters])
        return kernel

    def launch(
        self, function: Any, groups: tuple[int, int, int], items: tuple[int, int, int], args: Sequence[Any]
    ) -> None:
        size = tuple(g * i for g, i in zip(groups, items, strict=True))
        try:
            function(self.queue, size, items, *args)
        except cl.Error as error:
            raise failed(error) from None

    def flush(self) -> None:
        try:
            self.queue.flush()
        except cl.Error as error:
            raise failed(error) from None

    def wait(self) -> None:
        try:
            self.queue.finish()
        except cl.Error as error:
            raise failed(error) from None


_KNOWN = {
    "MEM_OBJECT_ALLOCATION_FAILURE": "out of device memory",
    "OUT_OF_RESOURCES": "out of the device's resources",
    "OUT_OF_HOST_MEMORY": "the driver is out of memory",
}


def failed(error: cl.Error) -> DeviceError:
    """A driver's error as one sentence."""
    said = str(error).strip().split("\n")[0]
    known = next((text for name, text in _KNOWN.items() if name in said), None)
    return DeviceError(known or f"the driver failed: {said}")
