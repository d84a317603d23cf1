"""The CUDA backend: which device, and how it is used.

Comes in: a device's number. Goes out: a `QueueBackend` on it (backends/c/backend.py), or Unusable with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.backends.c.backend import QueueBackend
from osprey_py.backends.c.product import Tile
from osprey_py.backends.cuda.driver import CudaDriver
from osprey_py.backends.protocol import Capabilities, DeviceError, Unusable

TILES = (Tile((1, 64), (1, 2), 16), Tile((16, 16), (4, 4), 16))
"""A tile for few rows, and one for many: 64 x 64 outputs, 16 to an item."""


class CudaBackend(QueueBackend):
    """which: the device's number, 0 by default. tiles: of contractions. Raises Unusable."""

    def __init__(self, which: str = "0", *, tiles: Sequence[Tile] = TILES) -> None:
        if not which.isdecimal():
            raise Unusable(f"`{which}` is not a device's number")
        try:
            driver = CudaDriver(int(which))
            units = driver.attribute("units")
            capabilities = Capabilities(
                f"{driver.device} (sm_{driver.architecture}, {driver.versions})",
                memory=driver.largest,
                largest_buffer=driver.largest,
                work_group=driver.attribute("items"),
                local_memory=driver.attribute("local"),
                units=units,
                recursion=False,
                bases=True,
            )
        except Unusable:
            raise
        except DeviceError as error:
            raise Unusable(error.text) from None
        super().__init__("cuda" if which == "0" else f"cuda:{which}", driver, capabilities, tiles, units * 64)

    @staticmethod
    def choices() -> list[str]:
        """Every device there is."""
        return [str(k) for k in range(CudaDriver.count())]
