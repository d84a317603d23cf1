"""What a backend is: it runs steps over storage. Nothing here knows about graphs, fusion or the language.

Comes in: `Step`s with kernels as extracted (checked ops, before kernel/faults.py), in an order that respects their
data dependencies. Goes out: bytes in the steps' outputs, equal to the oracle's, or a report that a step faulted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from osprey_py.kernel.ir import BOOL, FLOAT, INT, Kernel, Ty


class Kind(Enum):
    """How elements lie in memory. F32, F16 and BF16 are read as the exact binary64; nothing is written in them."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    BOOL = "bool"

    dtype: np.dtype[Any]
    """The numpy type that holds it (BF16 as its bits in uint16, bool as uint8 0 or 1); little endian."""

    __hash__ = object.__hash__  # Enum's own asks Python, thousands of times in a step

    @property
    def type(self) -> Ty:
        return _TYPES[self]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


Kind.F64.dtype = np.dtype("<f8")
Kind.F32.dtype = np.dtype("<f4")
Kind.F16.dtype = np.dtype("<f2")
Kind.BF16.dtype = np.dtype("<u2")
Kind.I64.dtype = np.dtype("<i8")
Kind.BOOL.dtype = np.dtype("u1")
_TYPES = {Kind.F64: FLOAT, Kind.F32: FLOAT, Kind.F16: FLOAT, Kind.BF16: FLOAT, Kind.I64: INT, Kind.BOOL: BOOL}
KIND_OF: dict[Ty, Kind] = {FLOAT: Kind.F64, INT: Kind.I64, BOOL: Kind.BOOL}
"""The kind in which a computed buffer of a type is stored."""


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Storage:
    """Dense elements in memory. data: 1-D, C-contiguous, of kind.dtype; possibly unaligned and read-only when it is a
    view of a mapped file (the numpy array keeps the map alive). address: of the first element.

    A backend whose memory is elsewhere gives a class of its own, whose `data` is a copy made when it is asked for:
    outside of backends it is read, never written; `part` and `put` are for that. whole: what this is a part of, and
    begin: where in it; None and 0 of what is no part. A device that copies data in once looks there."""

    kind: Kind
    data: npt.NDArray[Any]
    whole: Storage | None = None
    begin: int = 0
    length: int = field(init=False)
    address: int = field(init=False)

    def __post_init__(self) -> None:
        # Asked for many times in a launch, and slow to ask an array for.
        object.__setattr__(self, "length", len(self.data))
        object.__setattr__(self, "address", int(self.data.__array_interface__["data"][0]))

    @property
    def nbytes(self) -> int:
        return self.length * self.kind.itemsize

    def part(self, begin: int, end: int) -> Storage:
        """Elements begin … end-1, in the same memory."""
        return Storage(self.kind, self.data[begin:end], self.whole or self, self.begin + begin)

    def put(self, values: Any) -> None:
        """Write an array of kind.dtype, or what becomes one, from the first element on."""
        self.data[: len(values)] = values


Scalar = int | float | bool
StepOp = Literal["map", "scan", "filter", "accumulate"]


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One launch over storage.

    map: output[i] = kernel(i), i in 0 … n-1. A fold is a map with n = 1.
    scan: acc = init; output[i] = acc = kernel(i, acc), ascending.
    filter: output gets, in order, inputs[0][i] where kernel(i) is true; output has room for n; `run` reports how
    many. accumulate: kernel None; output (n zeros written first)[inputs[0][j]] += inputs[1][j], j ascending; indices
    are in range, or -1: then the value is left out. With a third input, the base, in which no element is -0.0: output[t]
    = base[t] + (0.0 + the values of t, j ascending) for every t that an index names, base[t] elsewhere.
    output never overlaps an input, except that a map without folds may write over an input that it reads at `index`
    only, and an accumulate over its base. compiled: what `Backend.compile` gave for (op, kernel, input kinds).
    """

    op: StepOp
    kernel: Kernel | None
    inputs: tuple[Storage, ...]
    uniforms: tuple[Scalar, ...]
    n: int
    output: Storage
    compiled: Any


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run. fault: the position of a step that faulted, None when none did; steps after it may or may
    not have run. Which fault it was, and where, is found by running again unfused (graph/locate.py).
    counts: for each filter step, by its position, how many elements it kept."""

    fault: int | None
    counts: dict[int, int]


class Script(Protocol):
    """Steps that a backend has made ready to run again, on other storage and with other uniforms. Their lengths and
    kinds stay, and so does which step reads and writes which of the storages."""

    def ready(self, uniforms: Sequence[Scalar]) -> bool:
        """A run is near. Whether this serves its uniforms, those of all steps one after the other: some may have decided
        what code runs."""
        ...

    def run(self, storages: Sequence[Storage], uniforms: Sequence[Scalar]) -> Report:
        """As `Backend.run` for the same steps with these uniforms, for which it is ready, on these storages."""
        ...


class Running(Protocol):
    """A run whose steps come one by one; early ones may run while later ones are being made. One of `end` and `abandon` is
    its last act."""

    def add(self, step: Step) -> None:
        """The next step."""
        ...

    def end(self) -> Report:
        """As `Backend.run`, of all steps that came."""
        ...

    def abandon(self) -> None:
        """No step comes any more. When this returns, nothing of the run is going on; its outputs are undefined."""
        ...


class DeviceError(Exception):
    """A device cannot do what it is asked to. text: one sentence; help: a remedy, if there is one. step: which of
    the steps of a run it was about, where that is known. device: its name, where it is not the backend that was asked."""

    def __init__(self, text: str, help: str = "", step: int | None = None, device: str = "") -> None:
        super().__init__(text)
        self.device = device
        self.text = text
        self.help = help
        self.step = step


class Unusable(DeviceError):
    """The device is not there, or not fit for the contract's numbers."""


class Refused(DeviceError):
    """The device works, but this launch is beyond it. It never runs elsewhere instead."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a device is and how much it takes.

    description: for people, one line. float64: IEEE binary64, subnormals included, `+ - * /` and `sqrt` rounded to
    nearest; int64: 64-bit integers; without both there is no contract to keep. memory: bytes in all, and
    largest_buffer: in one buffer; None where only the machine sets the bound. work_group: items that may share local
    memory, local_memory: its bytes, units: work-groups that run side by side. recursion: whether kernels may recurse.
    bases: whether an accumulate may have a base."""

    description: str
    float64: bool = True
    int64: bool = True
    memory: int | None = None
    largest_buffer: int | None = None
    work_group: int = 1
    local_memory: int = 0
    units: int = 1
    recursion: bool = True
    bases: bool = False


class Backend(Protocol):
    """name: what `--device` selects and `gpuDevice()` returns.

    A backend may have two more methods, which pay where making steps ready costs as much as running them:

        def begin(self, count: int) -> Running
        def script(self, steps: Sequence[Step], storages: Sequence[Storage]) -> Script | None

    count: so many steps come at most; no other run begins before this one has ended. storages: whatever the steps name,
    each object once. None: these steps cannot be kept. Every n is above 0.

    `compile`, `allocate` and `run` raise Refused for what the device cannot do, DeviceError when it fails. What made
    the backend raised Unusable if there is no such device (docs/backends.md)."""

    name: str

    @property
    def capabilities(self) -> Capabilities: ...

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Any:
        """Prepare a kernel for slots of these kinds. Lengths, uniforms and n of later steps may differ from the
        example's in every way; the example only helps to choose loop shapes. Called once per (op, kernel, kinds)."""
        ...

    def allocate(self, kind: Kind, n: int) -> Storage:
        """Uninitialised storage; recycled when the caller hands it to `release`."""
        ...

    def release(self, storage: Storage) -> None:
        """The storage is dead: nobody reads it again. Storage that `allocate` did not make is ignored."""
        ...

    def run(self, steps: Sequence[Step]) -> Report:
        """Execute; the result is as if the steps ran one after the other."""
        ...
