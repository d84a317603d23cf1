"""The OpenCL backend: kernels become OpenCL C, steps become launches in one queue.

Comes in: `Step`s (backends/protocol.py). Goes out: bytes equal to the oracle's, or a report of a step that faulted, or the
reason why the device cannot run one. The queue keeps the order of the steps; the host waits only where it must know
something: whether a step faulted, what a filter kept, an element. A kernel that may run without end waits until it is known
that nothing before it faulted.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from osprey_py.backends.c.dialects import OPENCL
from osprey_py.backends.c.product import Tile
from osprey_py.backends.protocol import Capabilities, Kind, Refused, Report, Step, StepOp, Storage, Unusable
from osprey_py.kernel.ir import Kernel
from osprey_py.kernel.passes import prepared

try:
    import pyopencl as cl

    from osprey_py.backends.opencl.launches import Compiled, Device, Run, Tiles
    from osprey_py.backends.opencl.memory import Memory, failed
except ImportError as error:
    _missing = str(error)
else:
    _missing = ""

CPU_TILES = (Tile((1, 2), (1, 16), 64), Tile((2, 2), (4, 16), 64))
GPU_TILES = (Tile((1, 64), (1, 2), 16), Tile((16, 16), (4, 4), 16))
"""A tile for few rows, and one for many."""

_NEEDED = ("DENORM", "INF_NAN", "ROUND_TO_NEAREST")


class OpenCLBackend:
    """which: the device, as `choices` names them, or a part of its name; the first that is fit by default, graphics
    processors before others. tiles: of contractions; bytes do not depend on them. Raises Unusable."""

    name = "opencl"

    def __init__(self, which: str = "", *, tiles: Sequence[Tile] | None = None) -> None:
        device = _chosen(which)
        if which:
            self.name = f"opencl:{which}"
        cpu = bool(device.type & cl.device_type.CPU)
        self.capabilities = capabilities(device)
        try:
            context = cl.Context([device])
            queue = cl.CommandQueue(context)
        except cl.Error as error:
            raise Unusable(failed(error).text) from None
        self.memory = Memory(context, queue, device)
        fitting = [t for t in tiles or (CPU_TILES if cpu else GPU_TILES) if _fits(t, device)]
        shares = int(device.max_compute_units) * (1 if cpu else 64)
        self.device = Device(context, queue, self.memory, OPENCL, Tiles(fitting or [Tile((1, 1), (1, 1), 16)]), shares)
        self._flags: Any = None
        self._room = 0

    @staticmethod
    def choices() -> list[str]:
        """Every device there is, fit or not."""
        return [str(k) for k in range(len(_devices()))]

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Compiled:
        if kernel is not None and kernel.functions:
            raise Refused(
                f"a kernel with recursion that is no loop (`{kernel.functions[0].name}`), which OpenCL does not have",
                "a call that is the last thing its function does is a loop, which every device runs",
            )
        return Compiled(self.device, op, None if kernel is None else prepared(kernel), kinds)

    def allocate(self, kind: Kind, n: int) -> Storage:
        return self.memory.allocate(kind, n)

    def release(self, storage: Storage) -> None:
        self.memory.release(storage)

    def run(self, steps: Sequence[Step]) -> Report:
        asked = any(s.compiled.faults or s.op == "filter" for s in steps)
        run = self._begin(len(steps))
        pending = False
        position = 0
        try:
            for position, step in enumerate(steps):
                if step.n <= 0:
                    continue
                compiled: Compiled = step.compiled
                if pending and compiled.apart and self._answers(run, len(steps))[0] is not None:
                    break
                compiled.enqueue(step, run, position)
                pending = pending or compiled.faults
            fault, totals = self._answers(run, len(steps)) if asked else (None, [])
            self.device.queue.flush()
        except cl.Error as error:
            raise failed(error, position) from None
        for block in run.temporary:
            self.memory.give_back(block)
        return Report(fault, {p: totals[p] if s.n > 0 else 0 for p, s in enumerate(steps) if s.op == "filter"})

    def _begin(self, count: int) -> Run:
        """Flags that are down and totals of zero for so many steps."""
        if count > self._room:
            self._room = max(64, 2 * count)
            self._flags = self.memory.block(4 * self._room), self.memory.block(8 * self._room)
            self._zeros = np.zeros(self._room, np.int64)
        flags, totals = (block.buffer for block in self._flags)
        try:
            cl.enqueue_copy(self.device.queue, flags, self._zeros[:count].view(np.int32)[:count], is_blocking=False)
        except cl.Error as error:
            raise failed(error) from None
        return Run(flags, totals)

    def _answers(self, run: Run, count: int) -> tuple[int | None, list[int]]:
        """(the first step whose flag is up, the totals of filters)."""
        flags, totals = np.empty(count, np.int32), np.empty(count, np.int64)
        cl.enqueue_copy(self.device.queue, flags, run.flags, is_blocking=False)
        cl.enqueue_copy(self.device.queue, totals, run.totals)
        raised = np.flatnonzero(flags)
        return (int(raised[0]) if len(raised) else None), [int(t) for t in totals]


def capabilities(device: Any) -> Capabilities:
    """What the driver says of a device."""
    config = int(device.double_fp_config)
    fit = all(config & int(getattr(cl.device_fp_config, name)) for name in _NEEDED)
    return Capabilities(
        f"{device.name.strip()} ({device.platform.name.strip()}, {device.version.strip()})",
        float64=fit,
        int64=True,
        memory=int(device.global_mem_size),
        largest_buffer=int(device.max_mem_alloc_size),
        work_group=int(device.max_work_group_size),
        local_memory=int(device.local_mem_size),
        units=int(device.max_compute_units),
        recursion=False,
    )


def _fits(tile: Tile, device: Any) -> bool:
    items = tile.items[0] * tile.items[1]
    return items <= int(device.max_work_group_size) and tile.local_bytes <= int(device.local_mem_size)


def _devices() -> list[Any]:
    """Every device of every platform, graphics processors first. Raises Unusable."""
    if _missing:
        raise Unusable(f"pyopencl is not installed ({_missing})", "pip install 'osprey-py[opencl]'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise Unusable(
            f"there is no OpenCL platform ({failed(error).text})",
            "install the driver of your device, or PoCL, which runs on processors: apt-get install pocl-opencl-icd",
        ) from None
    if not found:
        raise Unusable(
            "no OpenCL platform has a device",
            "install the driver of your device, or PoCL, which runs on processors: apt-get install pocl-opencl-icd",
        )
    return sorted(found, key=lambda d: not d.type & cl.device_type.GPU)


def _chosen(which: str) -> Any:
    devices = _devices()
    if which.isdecimal():
        if int(which) >= len(devices):
            raise Unusable(f"there is no device {which}; there are {len(devices)}, counted from 0")
        devices = [devices[int(which)]]
    elif which:
        devices = [d for d in devices if which.lower() in d.name.lower()]
        if not devices:
            raise Unusable(f"no OpenCL device has `{which}` in its name")
    for device in devices:
        if capabilities(device).float64:
            return device
    raise Unusable(
        f"{devices[0].name.strip()} has no binary64 with subnormals, infinities and rounding to nearest",
        "the contract's numbers need it; another device, or the host",
    )
