"""CUDA C, without a graphics processor: every text that the examples would launch is compiled by NVRTC, and its PTX holds
no operation that rounds otherwise than the contract says (N1)."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from osprey_py.backends import discovery
from osprey_py.backends.c.backend import QueueBackend
from osprey_py.backends.c.dialect import FUNCTIONS
from osprey_py.backends.c.dialects import CUDA, OPENCL
from osprey_py.backends.c.kernels import Text
from osprey_py.backends.cuda import CudaBackend, driver
from osprey_py.backends.cuda import nvrtc as compiler
from osprey_py.backends.cuda.backend import TILES
from osprey_py.backends.cuda.nvrtc import nvrtc
from osprey_py.backends.cuda.ptx import broken
from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Capabilities, DeviceError, Kind, Report, Step, StepOp, Unusable
from osprey_py.check import load_program
from osprey_py.cli.main import main
from osprey_py.conformance.cases import cases
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import OPS, Kernel
from tests.training.support import text as words

ROOT = Path(__file__).parent.parent.parent
SMALL = ROOT / "examples" / "gpt2" / "small"
GPT2 = ("--prompt", "The capital of France is", "--weights", str(SMALL))
EXAMPLES = [
    ("gpt2/gpt2.osp", (*GPT2, "--tokens", "2")),
    ("gpt2/train.osp", GPT2),
    *(("gpt2/descend.osp", (*GPT2, "--steps", "1", "--by", way)) for way in ("hand", "language")),
    *((f"small/{p.name}", ()) for p in sorted((ROOT / "examples" / "small").glob("*.osp")) if ".test." not in p.name),
    ("tour/vectors.osp", ()),
]


@cache
def _ptx(source: str) -> str:
    return nvrtc().ptx(source, "compute_90")


class Place:
    """Memory that is not there."""

    address = 0x7F00_0000_1000


class Paper:
    """A driver that compiles and launches nothing. sources: what it was given, with its PTX."""

    device, dialect, largest, shared = "paper", CUDA, 1 << 40, False

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}

    def buffer(self, size: int) -> Place:
        return Place()

    def bring(self, array: npt.NDArray[Any]) -> Place:
        return Place()

    def write(self, buffer: object, offset: int, array: npt.NDArray[Any]) -> None:
        assert offset >= 0

    def read(self, buffer: object, offset: int, array: npt.NDArray[Any]) -> None:
        array[:] = 0

    def build(self, text: Text) -> Text:
        self.sources[text.source] = _ptx(text.source)
        return text

    def launch(self, function: Text, groups: Any, items: Any, args: Sequence[Any]) -> None:
        assert len(args) == len(function.parameters)
        for kind, arg, value in zip(function.parameters, args, driver.packed(function.parameters, args), strict=True):
            assert isinstance(arg, {"int": (int, np.integer), "float": float, "buffer": Place}[kind])
            assert ctypes.sizeof(value) == 8 and value.value == (arg.address if kind == "buffer" else arg)

    def flush(self) -> None:
        pass

    wait = flush


class Beside(HostBackend):
    """The host, which has every launch written for CUDA too."""

    begin = None  # type: ignore[assignment]  # steps come to `run`, all together

    def __init__(self, paper: Paper) -> None:
        super().__init__(threads=1)
        limits = Capabilities("paper", work_group=1024, local_memory=48 << 10, recursion=False)
        self.paper = QueueBackend("paper", paper, limits, TILES, 64)
        self.written: dict[tuple[Any, ...], Any] = {}

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Any:
        made = super().compile(op, kernel, kinds, example)
        self.written[(id(made),)] = made, self.paper.compile(op, kernel, kinds, example)
        return made

    def run(self, steps: Sequence[Step]) -> Report:
        from dataclasses import replace

        self.paper.run([replace(s, compiled=self.written[(id(s.compiled),)][1]) for s in steps])
        return super().run(steps)


def _bad(paper: Paper) -> dict[str, list[str]]:
    return {source[-400:]: found for source, ptx in paper.sources.items() if (found := broken(ptx))}


@pytest.mark.parametrize(("program", "args"), EXAMPLES, ids=[f"{p} {' '.join(a[6:])}".strip() for p, a in EXAMPLES])
def test_every_kernel_of_the_examples(
    program: str, args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N1: no fma touches an operation of the contract. Some of the examples write a picture."""
    monkeypatch.chdir(tmp_path)
    path = ROOT / "examples" / program
    checked, _ = load_program(path)
    assert checked is not None
    paper = Paper()
    out = io.StringIO()
    backend = Beside(paper)
    assert run_program(checked, args=args, runtime=Runtime(backend), stdout=out, folder=str(path.parent)) == 0
    assert len(paper.sources) >= 1 and _bad(paper) == {}
    if program.startswith("gpt2"):
        assert len(paper.sources) > 12 and any("__shared__" in s for s in paper.sources)


TRAINED = [
    ("shakespeare/gpt.osp", "--batch 2 --context 16 --width 16 --heads 2 --layers 1 --characters 3".split()),
    (
        "gpt2/small.osp",
        "--batch 2 --context 16 --width 8 --heads 2 --layers 1 --merges 3 --written 2 --warmup 1".split(),
    ),
]


@pytest.mark.parametrize(("program", "sizes"), TRAINED, ids=[p for p, _ in TRAINED])
def test_every_kernel_of_a_training_step(
    program: str, sizes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N1: gradients and AdamW as the language derives them, validation, the sample at the end."""
    text = tmp_path / "text.txt"
    text.write_text(words(3000), encoding="utf-8")
    paper = Paper()
    backend = Beside(paper)
    monkeypatch.setattr(discovery, "factory", lambda name: lambda: backend)
    command = ["train", str(ROOT / "examples" / program), "--data", str(text), "--steps", "2", "--windows", "2", *sizes]
    assert main([*command, "--device", "paper"]) == 0
    assert len(paper.sources) > 40 and _bad(paper) == {}
    assert any("__shared__" in s for s in paper.sources)


def test_every_operation() -> None:
    """N1: the conformance launches, exp, ln and tanh with their exact phases among them."""
    paper = Paper()
    backend = Beside(paper)
    for case in cases():
        if case.kernel is not None and case.kernel.functions:
            continue
        result = (
            Kind.F64
            if case.kernel is None
            else {"int": Kind.I64, "float": Kind.F64, "bool": Kind.BOOL}[case.kernel.type.value]
        )
        kind = (
            {"int": Kind.I64, "float": Kind.F64, "bool": Kind.BOOL}[case.inputs[0].kind.type.value]
            if (case.op == "filter")
            else result
        )
        output = backend.allocate(kind, case.n)
        step = Step(case.op, case.kernel, case.inputs, case.uniforms, case.n, output, None)
        made = backend.paper.compile(case.op, case.kernel, tuple(s.kind for s in case.inputs), step)
        step = Step(case.op, case.kernel, case.inputs, case.uniforms, case.n, output, made)
        backend.paper.run([step])
    assert len(paper.sources) > 100 and _bad(paper) == {}
    assert any("rem.s64" in ptx for ptx in paper.sources.values())


@pytest.mark.parametrize(
    "body",
    ["o[0] = o[1] * o[2] + o[3];", "o[0] = fma(o[1], o[2], o[3]);", "o[0] = (float)o[1] * (float)o[2];"],
)
def test_what_is_forbidden_is_seen(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of PTX can fail: contraction on, a library's fma, binary32."""
    source = f'extern "C" __global__ void launch(double *o) {{ {body} }}'
    assert broken(nvrtc().ptx(source, "compute_90")) == [] or "fma(" in body or "float" in body
    monkeypatch.setattr(compiler, "OPTIONS", ("--std=c++17", "--fmad=true"))
    assert broken(nvrtc().ptx(source, "compute_90"))


def test_each_operation_has_a_template_in_both_dialects() -> None:
    """Of what the passes leave: exp, ln and tanh are written out, a table is named, a `stop` is its operand."""
    written = {"exp", "ln", "tanh", "table", "stop"}
    for op, info in OPS.items():
        if info.scalar and not info.checked and op not in written:
            assert OPENCL.operation(op) and CUDA.operation(op), op


def test_helpers_are_defined_before_they_are_called() -> None:
    from osprey_py.backends.c.dialect import functions

    text = functions(OPENCL, " ".join(f"{name}(" for name in FUNCTIONS))
    for name in FUNCTIONS:
        assert text.index(f"{name}(") < len(text) and text.count(f" {name}(") >= 1


def test_a_text_that_is_no_c_is_one_sentence() -> None:
    with pytest.raises(DeviceError, match=r"its compiler refuses a kernel: .*error"):
        nvrtc().ptx("void launch( {", "compute_90")


SMALLEST = 'extern "C" __global__ void launch(double *o) { o[0] = __dmul_rn(o[1], o[2]); }'


def test_machine_code_is_what_a_device_is_given() -> None:
    """An ELF file for the architecture, which needs no newer driver than the compiler's major version."""
    assert 90 in nvrtc().architectures and nvrtc().version[0] >= 12
    assert nvrtc().loadable(SMALLEST, 90).startswith(b"\x7fELF")


def test_a_device_newer_than_the_compiler_is_given_ptx() -> None:
    """Of the newest architecture that the compiler knows; the driver translates it."""
    given = nvrtc().loadable(SMALLEST, 999)
    assert f".target sm_{max(nvrtc().architectures)}".encode() in given and given.endswith(b"\0")


def test_a_compiler_newer_than_the_driver_is_left_alone() -> None:
    with pytest.raises(Unusable, match=r"NVRTC 1\d\.\d+ is newer than the driver, which takes CUDA 11") as left:
        nvrtc(11)
    assert left.value.help == "pip install nvidia-cuda-nvrtc-cu11, or a newer driver"


def test_without_a_driver_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_NAMES", ("libno-such-driver.so",))
    with pytest.raises(Unusable, match="NVIDIA's driver is not installed"):
        CudaBackend()
    with pytest.raises(Unusable, match="`first` is not a device's number"):
        CudaBackend("first")
