"""The OpenCL backend: which device, and how it is used.

Comes in: a choice of device. Goes out: a `QueueBackend` on it (backends/c/backend.py), or Unusable with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from shutil import which as which_program
from typing import Any

from osprey_py.backends.c.backend import QueueBackend
from osprey_py.backends.c.product import Tile
from osprey_py.backends.protocol import Capabilities, DeviceError, Unusable

try:
    import pyopencl as cl

    from osprey_py.backends.opencl.driver import OpenCLDriver, failed
except ImportError as error:
    _missing = str(error)
else:
    _missing = ""

CPU_TILES = (Tile((1, 2), (1, 16), 64), Tile((2, 2), (4, 16), 64))
GPU_TILES = (Tile((1, 64), (1, 2), 16), Tile((16, 16), (4, 4), 16))
"""A tile for few rows, and one for many."""

_REMEDY = "install the driver of your device, or PoCL, which runs on processors: apt-get install pocl-opencl-icd"
_NEEDED = ("DENORM", "INF_NAN", "ROUND_TO_NEAREST")


class OpenCLBackend(QueueBackend):
    """which: the device, as `choices` names them, or a part of its name; the first that is fit by default, graphics
    processors before others. tiles: of contractions. Raises Unusable."""

    def __init__(self, which: str = "", *, tiles: Sequence[Tile] | None = None) -> None:
        device = _chosen(which)
        cpu = bool(device.type & cl.device_type.CPU)
        if cpu and "Portable Computing" in device.platform.name and which_program("ld") is None:
            # Without it PoCL ends the process when a kernel is launched.
            raise Unusable("PoCL links its kernels with `ld`, which is not there", "apt-get install binutils")
        try:
            driver = OpenCLDriver(device)
        except DeviceError as error:
            raise Unusable(error.text) from None
        super().__init__(
            f"opencl:{which}" if which else "opencl",
            driver,
            capabilities(device),
            tiles or (CPU_TILES if cpu else GPU_TILES),
            int(device.max_compute_units) * (1 if cpu else 64),
        )

    @staticmethod
    def choices() -> list[str]:
        """Every device there is, fit or not."""
        return [str(k) for k in range(len(_devices()))]


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
        bases=True,
    )


def _devices() -> list[Any]:
    """Every device of every platform, graphics processors first. Raises Unusable."""
    if _missing:
        raise Unusable(f"pyopencl is not installed ({_missing})", "pip install 'osprey-py[opencl]'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        none = "PLATFORM_NOT_FOUND" in str(error)
        raise Unusable("there is no OpenCL platform" if none else failed(error).text, _REMEDY) from None
    if not found:
        raise Unusable("no OpenCL platform has a device", _REMEDY)
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
