"""CUDA C becomes PTX or machine code, by NVRTC; it needs no graphics processor.

Comes in: the text of a program and the architecture. Goes out: either, or a `DeviceError` with the compiler's first
complaint. The library is the wheel `nvidia-cuda-nvrtc-cu12`'s, or the system's; of several, the first that is no newer than
the driver. Options: contraction off for the whole text, beside operations that never contract; subnormals kept; division
and sqrt rounded as IEEE says.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from osprey_py.backends.c.driver import complaint
from osprey_py.backends.protocol import DeviceError, Unusable

OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")

_NAMES = ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so", "nvrtc64_120_0.dll")
_TOOLKITS = ("usr/local/cuda*/lib64/libnvrtc.so.*", "usr/local/cuda*/targets/*/lib/libnvrtc.so.*")
"""Where NVIDIA's installers put it, whether or not the loader knows."""


class Nvrtc:
    """The compiler. version: major and minor. architectures: those that it knows, 90 for sm_90; empty when it does not
    say."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        _check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = major.value, minor.value
        self.architectures = self._known()

    def _known(self) -> tuple[int, ...]:
        if not hasattr(self._library, "nvrtcGetSupportedArchs"):
            return ()
        count = ctypes.c_int()
        _check(self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        known = (ctypes.c_int * count.value)()
        _check(self._library.nvrtcGetSupportedArchs(known))
        return tuple(known)

    def loadable(self, source: str, architecture: int) -> bytes:
        """What the driver of a device loads: its machine code, which needs no newer driver than the compiler's major
        version; for a device that is newer than the compiler, PTX that the driver translates."""
        if not self.architectures or architecture in self.architectures:
            return self.binary(source, f"sm_{architecture}")
        return self.ptx(source, f"compute_{max(self.architectures)}").encode() + b"\0"

    def ptx(self, source: str, architecture: str) -> str:
        """PTX for an architecture, `compute_90` say."""
        return self._compiled(source, architecture, "PTX").rstrip(b"\0").decode()

    def binary(self, source: str, architecture: str) -> bytes:
        """The machine code of an architecture, `sm_90` say."""
        return self._compiled(source, architecture, "CUBIN")

    def _compiled(self, source: str, architecture: str, what: str) -> bytes:
        library = self._library
        program = ctypes.c_void_p()
        _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
        try:
            options = [o.encode() for o in (f"--gpu-architecture={architecture}", *OPTIONS)]
            array = (ctypes.c_char_p * len(options))(*options)
            if library.nvrtcCompileProgram(program, len(options), array) != 0:
                log = self._result("ProgramLog", program).decode("utf-8", "replace")
                raise DeviceError(f"its compiler refuses a kernel: {complaint(log)}")
            return self._result(what, program)
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _result(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        _check(self._library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        _check(self._library[f"nvrtcGet{what}"](program, buffer))
        return buffer.raw


@cache
def nvrtc(most: int | None = None) -> Nvrtc:
    """The compiler. most: the newest major version that the driver takes. Raises Unusable when there is none."""
    newer: Nvrtc | None = None
    for path in (*_wheels(), *_NAMES, *_toolkits()):
        try:
            found = Nvrtc(ctypes.CDLL(path))
        except OSError:
            continue
        if most is None or found.version[0] <= most:
            return found
        newer = newer or found
    if newer is None:
        raise Unusable("NVRTC, which compiles CUDA C, is not installed", "pip install 'osprey-py[cuda]'")
    major, minor = newer.version
    raise Unusable(
        f"NVRTC {major}.{minor} is newer than the driver, which takes CUDA {most}",
        f"pip install nvidia-cuda-nvrtc-cu{most}, or a newer driver",
    )


def _wheels() -> list[str]:
    """Where the wheels of NVRTC put it."""
    try:
        spec = find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return [str(p) for folder in folders for p in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"))]


def _toolkits() -> list[str]:
    return [str(p) for place in _TOOLKITS for p in sorted(Path("/").glob(place))]


def _check(code: int) -> None:
    if code != 0:
        raise DeviceError(f"NVRTC failed with code {code}")
