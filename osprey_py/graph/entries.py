"""What a tape holds: one entry for each operation that read something computed of parameters, and gave a float or buffer.

Comes in: nothing. Goes out: `Value`, in which an adjoint is gathered, and the entries (graph/tape.py writes them,
graph/backward.py reads them). An entry's `result` is the Value it gave; a source that is None has no adjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from osprey_py.graph.buffer import Buffer
from osprey_py.kernel.ir import Kernel
from osprey_py.source.span import Span

if TYPE_CHECKING:
    from osprey_py.graph.stand_ins import TapeFloat

Int = Any
"""An int, or a symbol of one."""


class Value:
    """A buffer, or a float of the host, computed of parameters. adjoint: what its sites have contributed so far, the
    last first; None while nothing has. exact: no element of it is -0.0."""

    __slots__ = ("__weakref__", "adjoint", "exact")

    def __init__(self) -> None:
        self.adjoint: Buffer | None = None
        self.exact = False

    def take(self) -> tuple[Buffer | None, bool]:
        """The adjoint, which is complete, and whether it is exact; it is not kept."""
        adjoint, self.adjoint = self.adjoint, None
        return adjoint, self.exact


@dataclass(frozen=True, eq=False, slots=True)
class Launched:
    """A launch: inputs and uniforms of the kernel, floats of the tape being inputs of one element. sources: of the
    inputs. A fold is a map of one element."""

    op: Literal["map", "scan"]
    kernel: Kernel
    inputs: tuple[Buffer, ...]
    sources: tuple[Value | None, ...]
    uniforms: tuple[Any, ...]
    made: Buffer
    result: Value
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Operated:
    """A scalar operation of the host: a kernel of one element, whose slots are the operands on the tape."""

    kernel: Kernel
    operands: tuple[Any, ...]
    made: TapeFloat

    @property
    def result(self) -> Value:
        value: Value = self.made.value
        return value


@dataclass(frozen=True, eq=False, slots=True)
class Passed:
    """A float that is another one: what `max` chose."""

    source: Value
    result: Value


@dataclass(frozen=True, eq=False, slots=True)
class Concatenated:
    left: Value | None
    right: Value | None
    left_length: Int
    right_length: Int
    result: Value
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Sliced:
    """`length` elements of a buffer of `of` elements, from `begin` on."""

    source: Value
    of: Int
    begin: Int
    length: Int
    result: Value
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Filtered:
    """The elements of inputs[0] that the kernel keeps."""

    kernel: Kernel
    inputs: tuple[Buffer, ...]
    uniforms: tuple[Any, ...]
    source: Value
    result: Value
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Accumulated:
    """Zeros, with the source's elements added at the indices."""

    indices: Buffer
    source: Value
    length: Int
    result: Value
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Gathered:
    """A buffer made of floats of the host."""

    sources: tuple[Value | None, ...]
    result: Value


@dataclass(frozen=True, eq=False, slots=True)
class Got:
    """Element i of a buffer of `of` elements, as a float of the host."""

    source: Value
    of: Int
    i: Int
    result: Value


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """All elements of a buffer, as floats of the host."""

    source: Value
    results: tuple[Value, ...]


Entry = Launched | Operated | Passed | Concatenated | Sliced | Filtered | Accumulated | Gathered | Got | Read
