"""What the C backends ask of a driver: memory, built programs, launches in one queue.

A driver turns its own errors into `DeviceError`s of one sentence. Launches, copies and reads happen in the order in
which they are asked for; only `read` and `wait` wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from osprey_py.backends.c.dialect import Dialect
from osprey_py.backends.c.kernels import Text


class Driver(Protocol):
    """device: its name, for people. dialect: of the texts it builds. largest: bytes of one buffer. shared: it uses the
    machine's own memory, so that `bring` copies nothing."""

    device: str
    dialect: Dialect
    largest: int
    shared: bool

    def buffer(self, size: int) -> Any:
        """Uninitialised memory of so many bytes, freed when nobody refers to it and no launch uses it."""
        ...

    def bring(self, array: npt.NDArray[Any]) -> Any:
        """A buffer, only read, with what an array of the host holds; the array does not change while it is used."""
        ...

    def write(self, buffer: Any, offset: int, array: npt.NDArray[Any]) -> None:
        """Copy an array to a place of a buffer, in bytes."""
        ...

    def read(self, buffer: Any, offset: int, array: npt.NDArray[Any]) -> None:
        """Fill an array from a place of a buffer, once all that was asked for before is done."""
        ...

    def build(self, text: Text) -> Any:
        """The entry of a program."""
        ...

    def launch(
        self, function: Any, groups: tuple[int, int, int], items: tuple[int, int, int], args: Sequence[Any]
    ) -> None:
        """So many groups of so many items; buffers, ints and floats as the text's parameters say."""
        ...

    def flush(self) -> None:
        """Let the device begin."""
        ...

    def wait(self) -> None:
        """Until all that was asked for is done."""
        ...


class Programs:
    """The programs of a driver, each text built once."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._built: dict[str, Any] = {}

    def function(self, text: Text) -> Any:
        """The entry of a text. Raises DeviceError when the driver's compiler refuses it."""
        found = self._built.get(text.source)
        if found is None:
            found = self._built[text.source] = self.driver.build(text)
        return found


def complaint(log: str) -> str:
    """The first line of a compiler's log that names an error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no reason given")
