"""The random kernels of osprey_py/conformance/generated.py, chosen by hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from osprey_py.backends.protocol import StepOp, Storage
from osprey_py.conformance.generated import FAULT, Launch, launch, outcome, storage
from osprey_py.kernel.ir import Ty

T = TypeVar("T")

__all__ = ["FAULT", "Drawn", "Launch", "launches", "outcome", "storages"]


class Drawn:
    """Choices that hypothesis makes, and can make smaller."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw

    def pick(self, options: Sequence[T]) -> T:
        chosen: T = self.draw(st.sampled_from(options))
        return chosen

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def real(self, low: float, high: float) -> float:
        return float(self.draw(st.floats(low, high)))

    def raw(self, size: int) -> bytes:
        return bytes(self.draw(st.binary(min_size=size, max_size=size)))


@st.composite
def storages(draw: Callable[..., Any], ty: Ty, n: int) -> Storage:
    return storage(Drawn(draw), ty, n)


@st.composite
def launches(
    draw: Callable[..., Any],
    *,
    general: bool = False,
    ops: tuple[StepOp, ...] = ("map", "map", "scan", "filter"),
    depth: int = 4,
) -> Launch:
    """A launch of a random kernel. general: loops and recursive functions too (a few frames deep)."""
    return launch(Drawn(draw), general=general, ops=ops, depth=depth)
