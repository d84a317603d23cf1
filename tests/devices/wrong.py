"""OpenCL backends that are wrong on purpose, each in one way: a text changed before it is compiled, or a promise not kept.

`WRONG` has, by name, how to make one and the parts of `osprey conform` that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from osprey_py.backends.c.driver import Driver, Programs
from osprey_py.backends.c.kernels import Text
from osprey_py.backends.c.memory import Block, DeviceStorage, Memory
from osprey_py.backends.c.product import Tile
from osprey_py.backends.opencl import OpenCLBackend
from osprey_py.backends.protocol import Report, Step
from osprey_py.kernel import associative

TILES = (Tile((2, 4), (2, 4), 8),)
"""Work-groups of several items whatever the device."""


class _Changed(Programs):
    """Programs whose text is changed first."""

    def __init__(self, driver: Driver, change: Callable[[str], str]) -> None:
        super().__init__(driver)
        self.change = change
        self.changed = 0

    def function(self, text: Text) -> Any:
        source = self.change(text.source)
        self.changed += source != text.source
        return super().function(replace(text, source=source))


SHARES = 16
"""Items that share a sum, whatever the device."""


def right() -> OpenCLBackend:
    """What is right, cut as the wrong ones are."""
    backend = OpenCLBackend(tiles=TILES)
    backend.device.shares = SHARES
    return backend


def changed(change: Callable[[str], str]) -> OpenCLBackend:
    """A backend that compiles other text than it should."""
    backend = right()
    backend.device.programs = _Changed(backend.driver, change)
    return backend


def _contracted(source: str) -> str:
    return source.replace("FP_CONTRACT OFF", "FP_CONTRACT ON")


def _reassociated(source: str) -> str:
    """Every other term of a product goes to a second sum, added at the end."""
    for r in range(2):
        for c in range(4):
            name = f"sum{r}_{c}"
            source = source.replace(f"f64 {name} = seed;", f"f64 {name} = seed, odd{r}_{c} = 0.0;")
            source = source.replace(
                f"{name} = {name} + (x{r} * y{c});",
                f"if (k & 1) odd{r}_{c} += x{r} * y{c}; else {name} += x{r} * y{c};",
            )
            source = source.replace(f"= canonical({name});", f"= canonical({name} + odd{r}_{c});")
    return source


def _flushed(source: str) -> str:
    return source.replace(
        "f64 canonical(f64 a) { return", "f64 canonical(f64 a) { if (fabs(a) < 0x1p-1022) return 0.0; return"
    )


def _raw_nan(source: str) -> str:
    return source.replace("a != a ? float_of(0x7FF8000000000000) : a; }", "a; }", 1)


def _edge(source: str) -> str:
    """The last row of a tile that is not full is forgotten."""
    return source.replace("row0 + x < m && k0", "row0 + x < m - 1 && k0")


def _no_barrier(source: str) -> str:
    return source.replace("barrier(CLK_LOCAL_MEM_FENCE);", "")


def _narrow_index(source: str) -> str:
    """Places are compared as 32 bits."""
    source = source.replace("return (u64)at < (u64)length ?", "return (uint)at < (uint)length ?")
    return source.replace("slot[at]", "slot[(int)at]").replace("((u64)(", "((uint)(")


class _Library(OpenCLBackend):
    """tanh is the driver's."""

    def __init__(self) -> None:
        super().__init__(tiles=TILES)

    def compile(self, op: Any, kernel: Any, kinds: Any, example: Step) -> Any:
        made = super().compile(op, kernel, kinds, example)
        if kernel is not None and kernel.result.op == "tanh" and made.text is not None:
            source = made.text.source
            at = source.rindex("output[i] = canonical(")
            made.text = replace(made.text, source=source[:at] + "output[i] = canonical(tanh(slot0[i]));\n}\n")
        return made


class _Mirrored(Memory):
    """What has been read of a block is kept, and not forgotten when the block is written again."""

    def read(self, storage: DeviceStorage) -> npt.NDArray[Any]:
        if not hasattr(self, "mirrors"):
            self.mirrors: dict[tuple[Block, int, int], npt.NDArray[Any]] = {}
        key = storage.block, storage.begin, storage.length * storage.kind.itemsize
        if key not in self.mirrors:
            self.mirrors[key] = super().read(storage)
        return self.mirrors[key].view(storage.kind.dtype).copy()


class _Stale(OpenCLBackend):
    """The host reads what a buffer held before."""

    def __init__(self) -> None:
        super().__init__(tiles=TILES)
        self.memory.__class__ = _Mirrored


class _Dropped(OpenCLBackend):
    """Nobody looks at the flags."""

    def __init__(self) -> None:
        super().__init__(tiles=TILES)

    def run(self, steps: Sequence[Step]) -> Report:
        return replace(super().run(steps), fault=None)


def _unproven(source: str) -> str:
    """Sums of ints are shared out whether or not a prefix may overflow."""
    return source.replace("doubt = doubt || size < 0;", "").replace("sizes[part] < 0", "sizes[part] == -1")


class _FloatSums(OpenCLBackend):
    """Sums of floats are shared out as sums of ints are."""

    def __init__(self) -> None:
        super().__init__(tiles=TILES)
        self.device.shares = SHARES

    def compile(self, op: Any, kernel: Any, kinds: Any, example: Step) -> Any:
        associative.IDENTITY["fadd"] = 0.0
        try:
            return super().compile(op, kernel, kinds, example)
        finally:
            del associative.IDENTITY["fadd"]


@dataclass(frozen=True)
class Wrong:
    """make: the backend. args: what of `osprey conform` shows it, quickly. named: what the report then names."""

    make: Callable[[], OpenCLBackend]
    args: tuple[str, ...]
    named: str


def _launches(only: str) -> tuple[str, ...]:
    return ("--part", "launches", "--only", only)


WRONG = {
    "contraction on": Wrong(lambda: changed(_contracted), _launches("multiply and add"), "multiply and add"),
    "reassociated fold": Wrong(lambda: changed(_reassociated), _launches("product 13"), "product 13x64x17"),
    "float sum shared out": Wrong(_FloatSums, _launches("sum of floats"), "fold: sum of floats"),
    "prefix that overflows not seen": Wrong(
        lambda: changed(_unproven), _launches("before its end"), "fold: sum of ints that overflows before its end"
    ),
    "flushed subnormals": Wrong(lambda: changed(_flushed), _launches("fneg of"), "fneg of float"),
    "library tanh": Wrong(_Library, _launches("tanh at"), "tanh at random"),
    "library tanh, many points": Wrong(
        _Library, ("--part", "mathematics", "--points", "3000", "--only", "tanh"), "tanh on 3051 points"
    ),
    "NaN not canonical": Wrong(lambda: changed(_raw_nan), _launches("NaN"), "NaN negated"),
    "off-by-one tile edge": Wrong(lambda: changed(_edge), _launches("product 7"), "product 7x5x9"),
    "missing barrier": Wrong(lambda: changed(_no_barrier), _launches("product 13"), "product 13x64x17"),
    "32-bit index": Wrong(lambda: changed(_narrow_index), _launches("32 bits"), "gather beyond 32 bits"),
    "stale buffer": Wrong(_Stale, ("--part", "generated", "--generated", "12", "--first"), "program "),
    "fault dropped": Wrong(_Dropped, _launches("a fold that overflows"), "a fold that overflows"),
}
