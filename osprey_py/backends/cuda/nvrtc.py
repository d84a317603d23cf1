"""CUDA C becomes PTX or machine code, by NVRTC; it needs no graphics processor.

Comes in: the text of a program and the architecture. Goes out: either, or a `DeviceError` with the compiler's first
complaint. The library is the wheel `nvidia-cuda-nvrtc-cu12`'s, or the system's. Options: contraction off for the whole
text, beside operations that never contract; subnormals kept; division and sqrt rounded as IEEE says.
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


def compile_ptx(source: str, architecture: str) -> str:
    """PTX for an architecture, `compute_90` say."""
    return _compiled(source, architecture, "PTX").rstrip(b"\0").decode()


def compile_binary(source: str, architecture: str) -> bytes:
    """The machine code of an architecture, `sm_90` say: a driver older than this compiler takes it, and not its PTX."""
    return _compiled(source, architecture, "CUBIN")


def _compiled(source: str, architecture: str, what: str) -> bytes:
    library = nvrtc()
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        options = [o.encode() for o in (f"--gpu-architecture={architecture}", *OPTIONS)]
        array = (ctypes.c_char_p * len(options))(*options)
        if library.nvrtcCompileProgram(program, len(options), array) != 0:
            log = _result(library, "ProgramLog", program).decode("utf-8", "replace")
            raise DeviceError(f"its compiler refuses a kernel: {complaint(log)}")
        return _result(library, what, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@cache
def nvrtc() -> ctypes.CDLL:
    """The library. Raises Unusable when there is none."""
    for path in (*_wheels(), *_NAMES):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Unusable("NVRTC, which compiles CUDA C, is not installed", "pip install 'osprey-py[cuda]'")


def _wheels() -> list[str]:
    """Where the wheels of NVRTC put it."""
    try:
        spec = find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    return [str(p) for folder in folders for p in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"))]


def _check(code: int) -> None:
    if code != 0:
        raise DeviceError(f"NVRTC failed with code {code}")


def _result(library: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library[f"nvrtcGet{what}"](program, buffer))
    return buffer.raw
