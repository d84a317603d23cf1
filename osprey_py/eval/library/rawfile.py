"""A file of little-endian binary64 as storage, where it is mapped."""

from __future__ import annotations

import mmap
import os

import numpy as np

from osprey_py.backends.protocol import Kind, Storage


def map_floats(path: str) -> Storage | str:
    """The file's elements, or why there are none."""
    try:
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if size % 8:
                return f"gpuLoad: {path}: {size} bytes are not a whole number of 8-byte floats"
            if size == 0:
                return Storage(Kind.F64, np.empty(0, Kind.F64.dtype))
            data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) and e.strerror else "not a file name"
        return f"gpuLoad: {path}: {reason.lower()}"
    return Storage(Kind.F64, np.frombuffer(data, Kind.F64.dtype, size // 8))
