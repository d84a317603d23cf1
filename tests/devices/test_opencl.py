"""The OpenCL backend: the host's bytes from programs, faults and refusals as told on the host, one sentence for what
goes wrong. Needs an OpenCL device; PoCL is one."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from osprey_py.backends.c import memory
from osprey_py.backends.c.dialects import OPENCL
from osprey_py.backends.c.driver import Programs
from osprey_py.backends.c.kernels import Text
from osprey_py.backends.c.launches import Compiled
from osprey_py.backends.c.product import Tile
from osprey_py.backends.host import HostBackend
from osprey_py.backends.opencl import OpenCLBackend, backend
from osprey_py.backends.protocol import DeviceError, Kind, Refused, Step, Storage, Unusable
from osprey_py.cli.main import main
from osprey_py.conformance import suite
from osprey_py.conformance.cases import Case, cases
from osprey_py.conformance.compare import difference, run_case
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import FLOAT, INT, Kernel, Node, const, index, load
from osprey_py.numerics import exact
from tests import snapshots
from tests.graph.support import elementwise, op
from tests.training.support import text as words

ROOT = Path(__file__).parent.parent.parent
TILES = [
    (Tile((1, 1), (1, 1), 1),),
    (Tile((2, 4), (2, 4), 8),),
    (Tile((3, 1), (1, 5), 7), Tile((4, 4), (4, 4), 16)),
]


@pytest.fixture(scope="module")
def host() -> HostBackend:
    return HostBackend(threads=1)


@pytest.fixture(scope="module")
def device() -> OpenCLBackend:
    return OpenCLBackend()


def test_the_conformance_launches(host: HostBackend, device: OpenCLBackend) -> None:
    """D3, N1, N4, N14, S4.1, S4.2."""
    assert {f.name: f.difference for f in suite.launches(host, device) if f.difference} == {}


@pytest.mark.parametrize("tiles", TILES)
def test_tiles_change_no_byte(tiles: tuple[Tile, ...], host: HostBackend) -> None:
    """C2, C3: every way to cut a product gives the same sums."""
    tested = OpenCLBackend(tiles=tiles)
    wanted = [c for c in cases() if "product" in c.name or "triangular" in c.name]
    assert len(wanted) >= 7
    assert {c.name: found for c in wanted if (found := difference(c, host, tested))} == {}


@pytest.mark.parametrize("shares", [1, 2, 7, 1000])
def test_shares_change_no_byte(shares: int, host: HostBackend) -> None:
    """N15: what is exactly associative is shared out, on however many items; what faults, or might, is done in order."""
    tested = OpenCLBackend()
    tested.device.shares = shares
    wanted = [c for c in cases() if c.name.startswith(("fold: ", "scan: "))]
    assert len(wanted) > 40
    assert {c.name: found for c in wanted if (found := difference(c, host, tested))} == {}


@pytest.mark.parametrize(
    ("name", "launches"),
    [("fold: sum of ints", 2), ("fold: largest exp", 2), ("scan: largest float", 3), ("fold: sum of floats", 1)],
)
def test_only_what_is_exact_is_shared_out(name: str, launches: int) -> None:
    """N14, N15."""
    device = OpenCLBackend()
    device.device.shares = 50
    run_case(device, next(c for c in cases() if c.name == name))
    assert device.launched == launches


def test_programs_and_random_ones(host: HostBackend, device: OpenCLBackend) -> None:
    """S1.1, S1.3, S7.1: faults with their elements, buffers that are written again, what is seen of each program."""
    found = [*suite.programs(host, device), *suite.generated(host, device, 12, seed=100)]
    assert [f.difference for f in found if f.difference] == [] and len(found) >= 17


def test_the_examples(
    host: HostBackend, device: OpenCLBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small GPT-2's scores among them, and pictures, which are not left behind."""
    monkeypatch.chdir(tmp_path)
    found = list(suite.examples(host, device))
    assert list(tmp_path.iterdir()) == []
    assert [f.difference for f in found if f.difference] == []
    assert {"gpt2/gpt2.osp", "small/kmeans.osp"} <= {f.name for f in found}


@pytest.mark.parametrize("program", ["fault", "foldfault", "kernelfault", "outerfault", "regions", "surface", "unread"])
def test_faults_are_told_as_on_the_host(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """D4, S1.3, S3.1, S3.2: message, place and element."""
    path = str(ROOT / "tests" / "programs" / f"{program}.osp")
    told = [(main(["run", *options, path]), capsys.readouterr()) for options in ([], ["--device", "opencl"])]
    assert told[0] == told[1]


def test_recursion_is_refused_at_its_launch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """D5, S2.10."""
    program = tmp_path / "x.osp"
    program.write_text("fn f(n) = if n == 0 { 0 } else { 1 + f(n - 1) }\nprint(fromGpu(gpuIota(3) |> gpuMap(f)))\n")
    assert main(["run", "--device", "opencl", str(program)]) == 1
    told = capsys.readouterr().err
    assert (
        "error[E0507]: device `opencl`: a kernel with recursion that is no loop (`f`), which this device does" in told
    )
    assert "x.osp:2:15" in told


def test_too_large_a_buffer_is_refused_at_its_launch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = tmp_path / "x.osp"
    program.write_text("let b = gpuIota(1000000000000) |> gpuMap(fn(i) => i + i % 3)\nprint(gpuGet(b, 5))\n")
    assert main(["run", "--device", "opencl", str(program)]) == 1
    told = capsys.readouterr().err
    assert "error[E0507]: device `opencl`: a buffer of " in told and "x.osp:1:9" in told
    assert "Traceback" not in told


def test_a_driver_that_fails_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "x.osp"
    program.write_text("print(fromGpu(gpuIota(3) |> gpuMap(fn(i) => i * 2)))\n")

    def refuse(self: Programs, text: object) -> object:
        raise DeviceError("its compiler refuses a kernel: line 3: error: it is tired")

    monkeypatch.setattr(Programs, "function", refuse)
    assert main(["run", "--device", "opencl", str(program)]) == 1
    assert "device `opencl`: its compiler refuses a kernel: line 3: error: it is tired" in capsys.readouterr().err

    def fail(self: Programs, text: object) -> object:
        def call(*args: object) -> None:
            raise cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")

        return call

    monkeypatch.setattr(Programs, "function", fail)
    assert main(["run", "--device", "opencl", str(program)]) == 1
    assert "device `opencl`: out of device memory" in capsys.readouterr().err


def test_a_text_that_is_no_c(device: OpenCLBackend) -> None:
    with pytest.raises(DeviceError, match=r"its compiler refuses a kernel: .*error:"):
        device.device.programs.function(Text("__kernel void launch( {", ()))


def test_no_platform_no_pyopencl_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unusable, match="there is no device 7; there are 1") as many:
        OpenCLBackend("7") if len(backend._devices()) == 1 else pytest.fail("more devices than one")
    assert many.value.help == ""
    with pytest.raises(Unusable, match="no OpenCL device has `abacus` in its name"):
        OpenCLBackend("abacus")

    def none() -> list[object]:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", none)
    with pytest.raises(Unusable, match="there is no OpenCL platform") as missing:
        OpenCLBackend()
    assert "pocl-opencl-icd" in missing.value.help
    monkeypatch.setattr(backend, "_missing", "No module named 'pyopencl'")
    with pytest.raises(Unusable, match="pyopencl is not installed") as module:
        OpenCLBackend()
    assert "osprey-py[opencl]" in module.value.help


def test_a_device_without_subnormals_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """D2, N1."""
    monkeypatch.setattr(backend, "_NEEDED", ("DENORM", "SOFT_FLOAT"))
    with pytest.raises(Unusable, match="has no binary64 with subnormals"):
        OpenCLBackend()


def test_a_processor_s_driver_without_a_linker_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end the process at the first launch."""
    monkeypatch.setattr(backend, "which_program", lambda name: None)
    if "Portable Computing" in backend._devices()[0].platform.name:
        with pytest.raises(Unusable, match="PoCL links its kernels with `ld`, which is not there"):
            OpenCLBackend()


def test_storage_is_read_and_written_in_parts(device: OpenCLBackend) -> None:
    storage = device.allocate(Kind.I64, 10)
    storage.put(np.arange(10))
    part = storage.part(3, 7)
    assert part.length == 4 and part.data.tolist() == [3, 4, 5, 6]
    part.part(1, 3).put([40, 50])
    assert storage.data.tolist() == [0, 1, 2, 3, 40, 50, 6, 7, 8, 9]
    with pytest.raises(ValueError, match="read-only"):
        storage.data[0] = 1
    with pytest.raises(Refused, match=f"a buffer of {8 * (1 << 50) + 8} bytes; .* holds at most"):
        device.allocate(Kind.F64, (1 << 50) + 1)


def test_a_buffer_may_be_as_large_as_the_device_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding up to a class of sizes makes none too large."""
    device = OpenCLBackend()
    monkeypatch.setattr(device.driver, "largest", 1_000_000)
    assert device.allocate(Kind.BOOL, 1_000_000).block.size == 1_000_000
    with pytest.raises(Refused):
        device.allocate(Kind.BOOL, 1_000_001)


def test_only_what_is_read_crosses(device: OpenCLBackend) -> None:
    """D6: buffers stay on the device between launches; an element that is read is eight bytes."""
    double = Kernel((FLOAT,), (), Node("fadd", FLOAT, (load(0, FLOAT, index()), load(0, FLOAT, index()))))
    runtime = Runtime(device)
    buffer = runtime.from_list([0.5] * 1000, FLOAT)
    before = tuple(device.memory.moved)
    for _ in range(5):
        buffer = runtime.map(double, (buffer,), (), 1000)
        assert runtime.get(buffer, 999) is not None
    to, back = (now - then for now, then in zip(device.memory.moved, before, strict=True))
    assert (to, back) == (0, 5 * 8)


def test_what_a_step_needs_for_itself_lies_apart(device: OpenCLBackend) -> None:
    """The places die in the launch that adds at them; its sums must not lie there."""
    rt = Runtime(device)
    x = rt.from_list([1.0, 2.0, 3.0, 4.0], FLOAT)
    double = elementwise(lambda i: op("mul", i, const(2)), INT, name="double")
    total = elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum")
    for _ in range(3):
        sums = rt.accumulate(4, rt.map(double, (rt.from_list([0, 1, 0, 1], INT),), (), 4), x)
        added = rt.map(total, (x, sums), (), 4)
        assert rt.read(sums) == [4.0, 0.0, 6.0, 0.0]
        assert rt.read(added) == [5.0, 2.0, 9.0, 4.0]


def test_data_of_the_host_is_brought_once(device: OpenCLBackend) -> None:
    whole = Storage(Kind.F64, np.linspace(0.0, 1.0, 1000))
    first, again, part = (device.memory.place(s) for s in (whole, whole, whole.part(10, 20)))
    assert first[0] is again[0] is part[0] and (first[1], part[1]) == (0, 10)


def test_no_memory_is_one_sentence(device: OpenCLBackend) -> None:
    with pytest.raises(DeviceError, match=r"^out of device memory$"):
        device.driver.buffer(1 << 50)


def test_what_lies_unused_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the driver has no more, blocks that were released are given back before it is asked again."""
    device = OpenCLBackend()
    real, held = device.driver.buffer, []

    def limited(size: int) -> object:
        if device.memory._idle or held:
            raise DeviceError("out of device memory")
        return real(size)

    device.release(device.allocate(Kind.F64, 1000))
    monkeypatch.setattr(device.driver, "buffer", limited)
    assert device.allocate(Kind.F64, 5000).length == 5000
    held.append(device)
    with pytest.raises(DeviceError, match="out of device memory"):
        device.allocate(Kind.F64, 9000)


def test_data_of_the_host_stays_until_nothing_reads_it() -> None:
    """What lies in the machine's own memory is read there by launches that have not run yet."""
    device = OpenCLBackend()
    slow = Kernel((FLOAT,), (), Node("tanh", FLOAT, (load(0, FLOAT, index()),)))
    array = np.linspace(-1.0, 1.0, 100_000)
    alive, source = weakref.ref(array), Storage(Kind.F64, array)
    output = device.allocate(Kind.F64, 100_000)
    step = Step("map", slow, (source,), (), 100_000, output, None)
    device.run([replace(step, compiled=device.compile("map", slow, (Kind.F64,), step))])
    del array, source, step
    gc.collect()
    assert device.driver.shared is False or alive() is not None
    assert output.part(0, 1).data.tolist() == [exact.tanh(-1.0)]
    assert alive() is None


def test_what_nobody_refers_to_stays_until_nothing_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches that are in the queue may still write it. Where nothing is ever read, it does not pile up."""
    device = OpenCLBackend()
    storage = device.allocate(Kind.F64, 1000)
    size = storage.block.size
    del storage
    assert [left for left, _ in device.memory._leaving] == [size]
    device.memory.wait()
    assert device.memory._leaving == []
    monkeypatch.setattr(memory, "IDLE", 3 * size)
    for _ in range(20):
        device.allocate(Kind.F64, 1000)
        assert len(device.memory._leaving) <= 4


def test_programs_are_the_same_text_each_time(device: OpenCLBackend) -> None:
    """So that a driver finds in its cache what it compiled in an earlier process."""
    texts = [[c.text.source for c in _compiled(device) if c.text is not None] for _ in range(2)]
    assert texts[0] == texts[1] and len(texts[0]) > 50


def _compiled(device: OpenCLBackend) -> list[Compiled]:
    return [_compile(device, c) for c in cases() if c.kernel is not None and not c.kernel.functions]


def _compile(device: OpenCLBackend, case: Case) -> Compiled:
    step = Step(case.op, case.kernel, case.inputs, case.uniforms, case.n, Storage(Kind.F64, np.empty(0)), None)
    return device.compile(case.op, case.kernel, tuple(s.kind for s in case.inputs), step)


def test_verify_device(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D7: the first launch whose bytes differ, its line, the element, both values."""
    program = tmp_path / "x.osp"
    program.write_text(
        "let a = gpuIota(9) |> gpuMap(fn(i) => toFloat(i) / 3.0)\n"
        "let b = gpuMap(a, fn(x) => tanh(x) * 2.0)\n"
        "print(gpuFold(gpuScan(b, 0.0, fn(s, x) => s + x), 0.0, fn(s, x) => max(s, x)))\n"
    )
    assert main(["run", "--verify-device", "opencl", str(program)]) == 0
    told = capsys.readouterr()
    assert "opencl gave host's bytes in each" in told.err
    function = Programs.function

    def wrong(self: Programs, text: object) -> object:
        assert isinstance(text, Text)
        return function(self, replace(text, source=text.source.replace("canonical(acc", "canonical(1e-15 + acc")))

    monkeypatch.setattr(Programs, "function", wrong)
    assert main(["run", "--verify-device", "opencl", str(program)]) == 1
    told = capsys.readouterr()
    assert "error[E0507]: device `opencl`: scan `" in told.err and "differs: element 0: host 0x" in told.err
    assert "x.osp:3:15" in told.err


def test_a_training_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """D3: every loss of a small GPT's first steps, to the last bit, and the checkpoint, as files."""
    text = tmp_path / "text.txt"
    text.write_text(words(3000), encoding="utf-8")
    sizes = "--steps 4 --batch 2 --context 16 --width 16 --heads 2 --layers 1 --characters 5 --windows 2".split()
    logs = []
    for device in ("host", "opencl"):
        log = tmp_path / device
        command = ["train", str(ROOT / "examples/shakespeare/gpt.osp"), "--data", str(text), *sizes]
        kept = tmp_path / f"{device}-checkpoint"
        assert main([*command, "--device", device, "--log", str(log), "--checkpoint", str(kept)]) == 0
        logs.append((log.read_bytes(), (kept / "checkpoint.safetensors").read_bytes()))
    assert logs[0] == logs[1] and logs[0][0].count(b"trainHex") == 4


SOURCES = {
    "product": "product 13x64x17",
    "collatz": "a loop",
    "scan": "a scan that overflows",
    "fibonacci": "a fold that overflows, recovered",
    "gather": "gather beyond the ends, 5",
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_text_of_a_kernel(name: str, device: OpenCLBackend) -> None:
    """What a person reads who asks what the device was given."""
    case = next(c for c in cases() if c.name == SOURCES[name])
    text = _compile(device, case).text
    assert text is not None
    snapshots.check(text.source[len(OPENCL.head) :], Path(__file__).parent / "texts" / f"{name}.cl")


def test_devices_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert "opencl: " in shown and "float64, int64; " in shown and "in one buffer" in shown
