"""Texts become functions of the device.

Comes in: a `Text`. Goes out: a pyopencl kernel that takes plain numbers, built once for each text. Options: the language
version, no warnings, and nothing that would loosen a rounding.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl

from osprey_py.backends.c.kernels import ENTRY, Text
from osprey_py.backends.protocol import DeviceError

OPTIONS = ("-cl-std=CL1.2", "-w")

_NUMPY = {"buffer": None, "int": np.int64, "float": np.float64}


class Programs:
    """What has been built for one device."""

    def __init__(self, context: Any, options: tuple[str, ...] = OPTIONS) -> None:
        self.context = context
        self.options = options
        self._built: dict[str, Any] = {}

    def kernel(self, text: Text) -> Any:
        """The entry of a text. Raises DeviceError when the driver's compiler refuses it."""
        found = self._built.get(text.source)
        if found is None:
            found = self._built[text.source] = self._build(text)
        return found

    def _build(self, text: Text) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = cl.Program(self.context, text.source).build(list(self.options))
                kernel = cl.Kernel(program, ENTRY)
        except cl.Error as error:
            raise DeviceError(f"its compiler refuses a kernel: {_complaint(str(error))}") from None
        kernel.set_scalar_arg_dtypes([_NUMPY[kind] for kind in text.parameters])
        return kernel


def _complaint(log: str) -> str:
    """The first line of a build log that names an error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line.lower()), lines[0] if lines else "no reason given")
