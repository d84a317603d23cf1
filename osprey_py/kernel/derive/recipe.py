"""What the backward pass of one launch is made of: the launches to make, and which of them are subtotals of which slot.

A recipe is data. kernel/derive makes it for a kernel at given lengths, once; graph/backward.py carries it out at every
step. Kernels in it are made once for each structure, so that lengths and scalars differ without a new plan
(spec/gradients G1-G7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from osprey_py.kernel.ir import Kernel


@dataclass(frozen=True, slots=True)
class Input:
    """The launch's own input k."""

    k: int


@dataclass(frozen=True, slots=True)
class Result:
    """What the launch computed."""


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The adjoint of the launch's result, as long as it."""


@dataclass(frozen=True, slots=True)
class Made:
    """What the recipe's launch j computed."""

    j: int


Ref = Input | Result | Adjoint | Made


@dataclass(frozen=True, slots=True)
class Given:
    """The launch's own uniform k."""

    k: int


@dataclass(frozen=True, slots=True)
class Make:
    """One launch. uniforms: the launch's own ones, and numbers that follow from lengths. length: of the result; a
    fold's is 1."""

    op: Literal["map", "scan"]
    kernel: Kernel
    inputs: tuple[Ref, ...]
    uniforms: tuple[Given | int | float | bool, ...]
    length: int


@dataclass(frozen=True, slots=True)
class Dense:
    """A subtotal for every element of the slot. exact: it starts from 0.0, so that -0.0 is not in it."""

    values: Ref
    exact: bool


@dataclass(frozen=True, slots=True)
class Scattered:
    """Contributions in order of execution, each with the element it belongs to; -1: it was not executed."""

    indices: Ref
    values: Ref


@dataclass(frozen=True, slots=True)
class Recipe:
    """makes: in order. subtotals: (slot, subtotal) of every site of an active slot that can contribute, in the order in
    which they are added: the site evaluated last first."""

    makes: tuple[Make, ...]
    subtotals: tuple[tuple[int, Dense | Scattered], ...]
