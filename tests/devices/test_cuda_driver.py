"""The CUDA driver's calls, against a library that is not NVIDIA's: memory is this machine's, and launches do nothing."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from osprey_py.backends.cuda import CudaBackend, driver
from osprey_py.backends.protocol import DeviceError, Kind, Unusable
from osprey_py.cli.main import main

NAMES = {2: b"CUDA_ERROR_OUT_OF_MEMORY", 100: b"CUDA_ERROR_NO_DEVICE", 719: b"CUDA_ERROR_LAUNCH_FAILED"}
ATTRIBUTES = {1: 1024, 8: 49152, 16: 132, 75: 9, 76: 0}


class Library:
    """fails: what each function returns instead of 0, by name. missing: functions that it lacks."""

    def __init__(self, fails: dict[str, int] | None = None, missing: str = "") -> None:
        self.fails = fails or {}
        self.missing = missing
        self.memory: dict[int, Any] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.modules: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        if name == self.missing or not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args: Any) -> int:
            if name in self.fails:
                return self.fails[name]
            act = getattr(type(self), f"_{name}", None)
            if act is not None:
                act(self, *args)
            return 0

        return call

    def _cuGetErrorName(self, code: int, text: Any) -> None:
        text._obj.value = NAMES[code]

    def _cuDriverGetVersion(self, to: Any) -> None:
        to._obj.value = 12080

    def _cuDeviceGetCount(self, to: Any) -> None:
        to._obj.value = 1

    def _cuDeviceGetName(self, to: Any, size: int, device: Any) -> None:
        to.value = b"NVIDIA Paper"

    def _cuDeviceTotalMem_v2(self, to: Any, device: Any) -> None:
        to._obj.value = 1 << 30

    def _cuDeviceGetAttribute(self, to: Any, which: int, device: Any) -> None:
        to._obj.value = ATTRIBUTES[which]

    def _cuMemAllocAsync(self, to: Any, size: Any, stream: Any) -> None:
        block = ctypes.create_string_buffer(size.value)
        self.memory[ctypes.addressof(block)] = block
        to._obj.value = ctypes.addressof(block)

    def _cuMemFreeAsync(self, address: Any, stream: Any) -> None:
        del self.memory[address.value]

    def _cuMemcpyHtoDAsync_v2(self, to: Any, origin: Any, size: Any, stream: Any) -> None:
        ctypes.memmove(to.value, origin.value, size.value)

    def _cuMemcpyDtoHAsync_v2(self, to: Any, origin: Any, size: Any, stream: Any) -> None:
        ctypes.memmove(to.value, origin.value, size.value)

    def _cuModuleLoadData(self, to: Any, binary: bytes) -> None:
        self.modules.append(binary)

    def _cuLaunchKernel(self, entry: Any, *args: Any) -> None:
        *sizes, shared, _stream, pointers, extra = args
        self.launches.append((tuple(sizes), shared, extra, len(pointers)))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    return put(Library(), monkeypatch)


def put(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    real = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda name, *more: library if name in driver._NAMES else real(name, *more))
    return library


def test_what_it_says_of_itself(library: Library) -> None:
    c = CudaBackend().capabilities
    assert c.description.startswith("NVIDIA Paper (sm_90, CUDA 12.8, NVRTC 12.")
    assert (c.memory, c.work_group, c.local_memory, c.units, c.recursion) == (1 << 30, 1024, 49152, 132, False)
    assert CudaBackend.choices() == ["0"]
    with pytest.raises(Unusable, match="there is no device 1; there are 1, counted from 0"):
        CudaBackend("1")


def test_memory_is_written_read_and_given_back(library: Library) -> None:
    backend = CudaBackend()
    storage = backend.allocate(Kind.I64, 100)
    storage.put(np.arange(100))
    assert storage.part(40, 43).data.tolist() == [40, 41, 42] and len(library.memory) == 1
    del storage, backend
    assert library.memory == {}


def test_a_program_s_kernels_are_loaded_and_launched(library: Library, tmp_path: Path) -> None:
    program = tmp_path / "x.osp"
    program.write_text("print(fromGpu(gpuIota(1000) |> gpuMap(fn(i) => toFloat(i) * 0.5)))\n")
    assert main(["run", "--device", "cuda", str(program)]) == 0
    assert [m[:4] for m in library.modules] == [b"\x7fELF"]
    # n, the output and where it begins, the flags and which; 16 groups of 64.
    assert library.launches == [((16, 1, 1, 64, 1, 1), 0, None, 5)]


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("cuMemAllocAsync", 2, "out of device memory"),
        ("cuLaunchKernel", 719, "the driver failed: cuLaunchKernel says CUDA_ERROR_LAUNCH_FAILED"),
        ("cuMemcpyDtoHAsync_v2", 719, "the driver failed: cuMemcpyDtoHAsync_v2 says CUDA_ERROR_LAUNCH_FAILED"),
    ],
)
def test_a_driver_that_fails_is_one_sentence(
    name: str, code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(Library({name: code}), monkeypatch)
    program = tmp_path / "x.osp"
    program.write_text("print(1)\nprint(fromGpu(gpuIota(3) |> gpuMap(fn(i) => i * 2)))\n")
    assert main(["run", "--device", "cuda", str(program)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "1\n" and "Traceback" not in shown.err
    assert f"error[E0507]: device `cuda`: {told}\n" in shown.err and "x.osp:2:" in shown.err


@pytest.mark.parametrize(
    ("library", "told"),
    [
        (Library({"cuInit": 100}), "NVIDIA's driver does not start: CUDA_ERROR_NO_DEVICE"),
        (Library(missing="cuDeviceGetDefaultMemPool"), "the driver is too old: it has no cuDeviceGetDefaultMemPool"),
        (Library({"cuStreamCreate": 2}), "out of device memory"),
    ],
)
def test_a_driver_that_does_not_start_is_a_reason(
    library: Library, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(library, monkeypatch)
    assert main(["devices"]) == 0
    assert f"cuda: cannot be used: {told}\n" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        main(["conform", "--device", "cuda"])
    assert left.value.code == 1
    assert capsys.readouterr().err.startswith(f"osprey: device `cuda` cannot be used: {told}")


def test_too_many_groups_are_refused(library: Library) -> None:
    with pytest.raises(DeviceError, match="a launch of 1 x 70000 x 1 work-groups"):
        CudaBackend().driver.launch((None, ()), (1, 70000, 1), (1, 1, 1), [])
