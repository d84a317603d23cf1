"""A tape: a runtime that notes what is computed of parameters, in the order in which it is.

Comes in: a runtime (or a recording of one), parameters, and the run of a function over them, with the `Tape` in the
runtime's place. Goes out: `entries`, which graph/backward.py goes through backwards. Launches are made on the runtime as
they come, and nothing is run: a float of the host that comes from a buffer stays a buffer of one element until the
program decides something by it.

What stands for a parameter, and for what comes of one, has a `Value` (graph/stand_ins.py); all else is what it is without
a tape.
Spec: gradients G1, G2, G9, G13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from osprey_py.backends.protocol import Backend, Storage
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.entries import (
    Accumulated,
    Concatenated,
    Entry,
    Filtered,
    Gathered,
    Got,
    Launched,
    Operated,
    Passed,
    Read,
    Sliced,
    Value,
)
from osprey_py.graph.kernels import operation_kernel
from osprey_py.graph.stand_ins import Number, Operation, TapeBuffer, TapeFloat, number_of
from osprey_py.graph.symbols import Sym, Unrecordable
from osprey_py.kernel.derive.lifted import lifted
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, Kernel, Ty
from osprey_py.source.span import NO_SPAN, Span


class Tape:
    """runtime: where launches are made. entries: what was noted, oldest first."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.entries: list[Entry] = []

    def parameter(self, leaf: Any) -> TapeBuffer | TapeFloat:
        """What stands for a parameter; each is one of its own (D9)."""
        if isinstance(leaf, Buffer):
            return TapeBuffer(leaf, Value())
        return TapeFloat(self, Value(), leaf)

    # --- numbers of the host ------------------------------------------------------------------------------------

    def operation(
        self,
        operation: Operation,
        operands: tuple[Any, ...],
        compute: Callable[..., Number],
        rest: tuple[Any, ...] = (),
    ) -> Any:
        """A function of floats, some of them on the tape. compute: of their numbers and the rest."""
        op = operation.op
        if op == "fmin" or op == "fmax":
            return self._choice(op, operands, compute)
        if operation.faults:
            list(map(number_of, operands))
        return self.operated(op, operands, lambda *numbers: compute(*numbers, *rest))

    def operated(self, op: str, operands: tuple[Any, ...], compute: Callable[..., Number]) -> TapeFloat:
        """The result of a scalar op that has a derivative."""
        kernel = operation_kernel(op, tuple([isinstance(x, TapeFloat) for x in operands]))
        made = TapeFloat(
            self,
            Value() if any(isinstance(x, TapeFloat) and x.value is not None for x in operands) else None,
            whole=lambda: compute(*map(number_of, operands)),
            kernel=kernel,
            operands=operands,
        )
        if all(x.known for x in operands if isinstance(x, TapeFloat)):
            made.number()
        if made.value is not None:
            self.entries.append(Operated(kernel, operands, made))
        return made

    def _choice(self, op: str, operands: tuple[Any, ...], compute: Callable[..., Number]) -> Any:
        """min and max decide by the numbers, as `if` does."""
        a, b = map(number_of, operands)
        second = a < b if op == "fmax" else b < a
        chosen = operands[1 if second else 0]
        number = compute(a, b)
        if not isinstance(chosen, TapeFloat) or chosen.value is None:
            return number
        made = TapeFloat(self, Value(), number)
        self.entries.append(Passed(chosen.value, made.value))
        return made

    def call(self, function: Callable[..., Any], numbers: Sequence[Any]) -> Any:
        """A function that passes no gradient on."""
        return function(*numbers)

    def scalar(self, text: str, value: int | float) -> Sym:
        raise Unrecordable("a float on a tape has no text")

    def guard(self, text: str, outcome: bool) -> None:
        raise Unrecordable("a float on a tape has no text")

    def name(self, value: Any) -> str:
        raise Unrecordable("a float on a tape has no text")

    # --- launches -----------------------------------------------------------------------------------------------

    def map(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Any, ...], n: Any, span: Span = NO_SPAN
    ) -> Buffer:
        return self._launch("map", kernel, inputs, uniforms, n, span)

    def launch_fold(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Any, ...], span: Span = NO_SPAN
    ) -> Buffer:
        return self._launch("fold", kernel, inputs, uniforms, 1, span)

    def scan(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Any, ...], n: Any, span: Span = NO_SPAN
    ) -> Buffer:
        return self._launch("scan", kernel, inputs, uniforms, n, span)

    def _launch(
        self, op: str, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Any, ...], n: Any, span: Span
    ) -> Buffer:
        """A launch reads floats of the tape from buffers of one element (G13)."""
        runtime = self.runtime
        reals = tuple([_real(b) for b in inputs])
        values = tuple([_value(b) for b in inputs])
        taped = tuple([k for k, u in enumerate(uniforms) if isinstance(u, TapeFloat)])
        if taped:
            kernel = lifted(kernel, taped)
            reals += tuple([uniforms[k].buffer() for k in taped])
            values += tuple([uniforms[k].value for k in taped])
            uniforms = tuple([u for k, u in enumerate(uniforms) if k not in taped])
        made: Buffer
        if op == "map":
            made = runtime.map(kernel, reals, uniforms, n, span)
        elif op == "fold":
            made = runtime.launch_fold(kernel, reals, uniforms, span)
        else:
            made = runtime.scan(kernel, reals, uniforms, n, span)
        if kernel.type is not FLOAT or not any(v is not None for v in values):
            return made
        value = Value()
        what: Literal["map", "scan"] = "scan" if op == "scan" else "map"
        self.entries.append(Launched(what, kernel, reals, values, uniforms, made, value, span))
        return TapeBuffer(made, value)

    def iota(self, n: Any, span: Span = NO_SPAN) -> Buffer:
        made: Buffer = self.runtime.iota(n, span)
        return made

    def first(self, buffer: Buffer) -> Any:
        if not isinstance(buffer, TapeBuffer):
            return self.runtime.first(buffer)
        return TapeFloat(self, buffer.value, buffer=buffer.real)

    def filter(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Any, ...], span: Span = NO_SPAN
    ) -> Buffer:
        source = inputs[0]
        reals = tuple([_real(b) for b in inputs])
        numbers = tuple(map(number_of, uniforms))
        made: Buffer = self.runtime.filter(kernel, reals, numbers, span)
        if not isinstance(source, TapeBuffer):
            return made
        value = Value()
        self.entries.append(Filtered(kernel, reals, numbers, source.value, value, span))
        return TapeBuffer(made, value)

    def concat(self, left: Buffer, right: Buffer, span: Span = NO_SPAN) -> Buffer:
        a, b = _real(left), _real(right)
        made: Buffer = self.runtime.concat(a, b, span)
        if not (isinstance(left, TapeBuffer) or isinstance(right, TapeBuffer)):
            return made
        value = Value()
        self.entries.append(Concatenated(_value(left), _value(right), a.length, b.length, value, span))
        return TapeBuffer(made, value)

    def slice(self, buffer: Buffer, begin: Any, end: Any, span: Span = NO_SPAN) -> Buffer:
        made: Buffer = self.runtime.slice(_real(buffer), begin, end, span)
        if not isinstance(buffer, TapeBuffer):
            return made
        value = Value()
        self.entries.append(Sliced(buffer.value, buffer.length, begin, made.length, value, span))
        return TapeBuffer(made, value)

    def accumulate(self, n: Any, indices: Buffer, values: Buffer, span: Span = NO_SPAN) -> Buffer:
        made: Buffer = self.runtime.accumulate(n, indices, _real(values), span)
        if not isinstance(values, TapeBuffer):
            return made
        value = Value()
        self.entries.append(Accumulated(indices, values.value, values.length, value, span))
        return TapeBuffer(made, value)

    def out_of_range(self, indices: Buffer, n: Any) -> int | None:
        found: int | None = self.runtime.out_of_range(indices, n)
        return found

    # --- data -----------------------------------------------------------------------------------------------------

    def from_list(self, values: Sequence[Any], ty: Ty) -> Buffer:
        if not any(isinstance(v, TapeFloat) for v in values):
            made: Buffer = self.runtime.from_list(values, ty)
            return made
        if all(v.known for v in values if isinstance(v, TapeFloat)):
            made = self.runtime.from_list([number_of(v) for v in values], FLOAT)
        else:
            parts = [v.buffer() if isinstance(v, TapeFloat) else self.runtime.from_list([v], FLOAT) for v in values]
            made = parts[0]
            for part in parts[1:]:
                made = self.runtime.concat(made, part)
        sources = tuple([v.value if isinstance(v, TapeFloat) else None for v in values])
        if not any(s is not None for s in sources):
            return made
        value = Value()
        self.entries.append(Gathered(sources, value))
        return TapeBuffer(made, value)

    def get(self, buffer: Buffer, i: Any) -> Any:
        if not isinstance(buffer, TapeBuffer):
            return self.runtime.get(buffer, i)
        if not (i >= 0 and i < buffer.length):
            return None
        runtime, real = self.runtime, buffer.real
        value = Value()
        self.entries.append(Got(buffer.value, buffer.length, i, value))
        return TapeFloat(self, value, buffer=runtime.slice(real, i, i + 1))

    def read(self, buffer: Buffer) -> list[Any]:
        if not isinstance(buffer, TapeBuffer):
            found: list[Any] = self.runtime.read(buffer)
            return found
        made = [TapeFloat(self, Value(), x) for x in self.runtime.read(buffer.real)]
        self.entries.append(Read(buffer.value, tuple([x.value for x in made])))
        return made

    def data(self, storage: Storage) -> Buffer:
        made: Buffer = self.runtime.data(storage)
        return made

    def storage(self, buffer: Buffer) -> Storage:
        found: Storage = self.runtime.storage(_real(buffer))
        return found

    # --- regions --------------------------------------------------------------------------------------------------

    @property
    def backend(self) -> Backend:
        found: Backend = self.runtime.backend
        return found

    def mark(self) -> Any:
        return self.runtime.mark()

    def settle(self, mark: Any) -> None:
        self.runtime.settle(mark)

    def barrier(self) -> None:
        self.runtime.barrier()

    def caught(self, fault: MathFault, mark: Any) -> MathFault:
        found: MathFault = self.runtime.caught(fault, mark)
        return found


def _real(buffer: Buffer) -> Buffer:
    return buffer.real if isinstance(buffer, TapeBuffer) else buffer


def _value(buffer: Buffer) -> Value | None:
    return buffer.value if isinstance(buffer, TapeBuffer) else None
