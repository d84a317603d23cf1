"""What stands for buffers and floats on a tape (graph/tape.py).

Comes in: a buffer, a number, or an operation on floats. Goes out: `TapeBuffer` and `TapeFloat`, with the `Value` in which
their adjoint is gathered. Neither can pass for the buffer or number it stands for: code that does not know them fails.
A float is whatever is there of it (a number, a buffer of one element, an operation) and becomes the rest when it is asked,
so that nothing runs before the program decides something by it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osprey_py.graph.buffer import Buffer
from osprey_py.graph.entries import Value
from osprey_py.graph.symbols import SymFloat, concrete
from osprey_py.kernel.ir import FLOAT, Kernel

if TYPE_CHECKING:
    from osprey_py.graph.tape import Tape

Number = Any
"""A float, or a symbol of one."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of the host that has a derivative: the op of the kernel IR that it is, and how many floats it takes.
    faults: it may, so the numbers are looked at where it stands."""

    op: str
    operands: int
    faults: bool = False


OPERATIONS = {
    "sqrt": Operation("sqrt", 1),
    "exp": Operation("exp", 1),
    "ln": Operation("ln", 1),
    "tanh": Operation("tanh", 1),
    "abs": Operation("fabs", 1),
    "ieeeDiv": Operation("fdivi", 2),
    "min": Operation("fmin", 2),
    "max": Operation("fmax", 2),
    "_float_remainder": Operation("fmodi", 2, faults=True),
    "_modulo": Operation("fmodi", 2, faults=True),
    "_add": Operation("fadd", 2),
    "_subtract": Operation("fsub", 2),
    "_multiply": Operation("fmul", 2),
    "_divide": Operation("fdivi", 2, faults=True),
    "_negate": Operation("fneg", 1),
}
"""By the names of the evaluator. Where it knows that they are floats, `+ - * /` are operators of TapeFloat."""


class TapeBuffer(Buffer):
    """A buffer computed of parameters. real: the buffer it stands for; value: what its adjoint is gathered in."""

    __slots__ = ("real", "value")

    def __init__(self, real: Buffer, value: Value) -> None:
        self.real = real
        self.value = value
        self.type = FLOAT

    def __len__(self) -> int:
        return len(self.real)

    @property
    def length(self) -> Any:
        return self.real.length


class TapeFloat(SymFloat):
    """A float of the host, on a tape. value: what its adjoint is gathered in; None when it has none (stopGradient).
    It is made of a number, of a buffer of one element, or of a function of other floats; the rest comes when asked."""

    __slots__ = ("_buffer", "_kernel", "_number", "_operands", "_whole", "tape")

    def __init__(
        self,
        tape: Tape,
        value: Value | None,
        number: Number | None = None,
        buffer: Buffer | None = None,
        whole: Callable[[], Number] | None = None,
        kernel: Kernel | None = None,
        operands: tuple[Any, ...] = (),
    ) -> None:
        self.tape = tape
        self.ledger = tape
        self.value = value
        self._number = number
        self._buffer = buffer
        self._whole = whole
        self._kernel = kernel
        self._operands = operands

    def number(self) -> Number:
        """The number; computed now if it was not asked for before. Raises MathFault."""
        if self._number is None:
            self._number = self.tape.runtime.first(self._buffer) if self._whole is None else self._whole()
        return self._number

    def buffer(self) -> Buffer:
        """A buffer of the one element."""
        if self._buffer is None:
            runtime = self.tape.runtime
            if self._kernel is None or self._number is not None:
                self._buffer = runtime.from_list([self.number()], FLOAT)
            else:
                inputs, uniforms = split(self._operands)
                self._buffer = runtime.map(self._kernel, tuple([x.buffer() for x in inputs]), uniforms, 1)
        return self._buffer

    @property
    def known(self) -> bool:
        return self._number is not None

    def concrete(self) -> float:
        found: float = concrete(self.number())
        return found

    def __float__(self) -> float:
        raise TypeError("a float on a tape is no float")

    def stopped(self) -> TapeFloat:
        """The same number, which passes no gradient on."""
        return TapeFloat(self.tape, None, self._number, self._buffer, self._whole, self._kernel, self._operands)


def number_of(value: Any) -> Any:
    """The number of a float on a tape; anything else as it is."""
    return value.number() if isinstance(value, TapeFloat) else value


def split(operands: Sequence[Any]) -> tuple[tuple[TapeFloat, ...], tuple[Number, ...]]:
    """Operands on a tape, and the others: the slots and the uniforms of an `operation_kernel`."""
    return (
        tuple([x for x in operands if isinstance(x, TapeFloat)]),
        tuple([x for x in operands if not isinstance(x, TapeFloat)]),
    )


def _equip() -> None:
    """Arithmetic of floats on a tape goes onto the tape; comparisons look at the numbers."""
    table: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
        ("add", "fadd", operator.add),
        ("sub", "fsub", operator.sub),
        ("mul", "fmul", operator.mul),
        ("truediv", "fdivi", operator.truediv),
    ]
    for word, op, compute in table:
        setattr(TapeFloat, f"__{word}__", _forward(op, compute))
        setattr(TapeFloat, f"__r{word}__", _reflected(op, compute))
    setattr(TapeFloat, "__neg__", lambda a: a.tape.operated("fneg", (a,), operator.neg))  # noqa: B010
    for word in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(TapeFloat, f"__{word}__", _compared(getattr(operator, word)))


def _forward(op: str, compute: Callable[[Any, Any], Any]) -> Callable[[TapeFloat, Any], Any]:
    return lambda a, b: a.tape.operated(op, (a, b), compute)


def _reflected(op: str, compute: Callable[[Any, Any], Any]) -> Callable[[TapeFloat, Any], Any]:
    return lambda a, b: a.tape.operated(op, (b, a), compute)


def _compared(compare: Callable[[Any, Any], Any]) -> Callable[[TapeFloat, Any], Any]:
    return lambda a, b: compare(a.number(), number_of(b))


_equip()
