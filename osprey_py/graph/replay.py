"""Trace once, replay: the launches of a function of the host as straight-line code.

Comes in: a runtime, and a run of the function on symbols (graph/symbols.py) and traced buffers, with a `Recording` in
the runtime's place. Goes out: `Recording.finish`, a `Trace`: code that makes the same launches for other numbers and
other buffers, or says that it does not apply.

The recording computes along: every launch is made for real, on the numbers at hand. What is written down is

    s5 = s1 * s2                          arithmetic of the host on numbers that came in
    if not (s5 <= 9223372036854775807): raise Miss      a guard: what the function decided, it would decide again
    b7 = map(K3, (b1, b6), (s1, 0.5), s5, S3)           a launch, of any length
    s8 = fold(K4, (b7,), (), S4)          a number that comes from a buffer; what depends on it follows

so lengths, uniforms and buffers differ from call to call, and so may everything that the plan cache can tell apart. A
guard that fails, or a fault, means that the function is evaluated plainly from the start: it has no effects, so what
was launched until then is forgotten (`Runtime.forget`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from osprey_py.backends.protocol import Backend, Storage
from osprey_py.graph.buffer import Buffer, Node
from osprey_py.graph.risk import may_fault
from osprey_py.graph.roomy import roomy
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.symbols import Sym, SymFloat, SymInt, Unrecordable, bits, concrete, seen
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, INT, Kernel, Ty
from osprey_py.source.span import NO_SPAN, Span

Int = Any
"""An int or a SymInt."""
Number = Any
"""A scalar or a Sym."""

MOST_LINES = 20_000
"""Of a recording; a function that does more is evaluated plainly."""


class Miss(Exception):
    """A guard failed: the trace does not apply."""


class TracedBuffer(Buffer):
    """A buffer that the recording has a name for. size: its length; None: to be asked for when somebody wants it."""

    __slots__ = ("name", "recording", "size")

    def __init__(self, node: Node, recording: Recording, name: str, size: Int | None = None) -> None:
        super().__init__(node)
        self.recording = recording
        self.name = name
        self.size = size

    def __len__(self) -> int:
        length: int = concrete(self.length)
        return length

    @property
    def length(self) -> Any:
        if self.size is None:
            self.size = self.recording.scalar(f"len({self.name})", self.node.length)
        return self.size


class Mark(int):
    """A point in the order of launches, and what the recording calls it."""

    name: str
    line: int


Trace = Callable[[Sequence[Any]], Any]
"""What was recorded: the function's result for these numbers and buffers; raises Miss or MathFault, in the middle of it
perhaps."""


class Recording:
    """A runtime that records. It takes traced and plain buffers, symbols and plain numbers; a plain one is a constant
    of the trace. Raises Unrecordable."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._lines: list[str] = []
        self._guards: set[str] = set()
        self._scalars: dict[str, Sym] = {}
        self._iotas: dict[str, TracedBuffer] = {}
        self._constants: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._risky: list[int] = []
        self._count = 0
        self._leaves: list[str] = []

    @property
    def backend(self) -> Backend:
        raise Unrecordable("the device is asked for")

    # --- the ledger ---------------------------------------------------------------------------------------------

    def leaf(self, value: Any) -> Any:
        """What stands for an argument: a symbol for an int or float, a traced buffer for a buffer."""
        if isinstance(value, Buffer):
            name = self._fresh("b")
            self._leaves.append(name)
            return TracedBuffer(value.node, self, name)
        name = self._fresh("s")
        self._leaves.append(name)
        return SymInt(self, name, value) if isinstance(value, int) else SymFloat(self, name, value)

    def scalar(self, text: str, value: int | float) -> Sym:
        """The symbol of a pure expression; one for each text, as names are given once."""
        known = self._scalars.get(text)
        if known is None:
            known = self._scalars[text] = self._symbol(text, value)
        return known

    def _symbol(self, text: str, value: int | float) -> Sym:
        name = self._fresh("s")
        self.write(f"{name} = {text}")
        return SymInt(self, name, value) if isinstance(value, int) else SymFloat(self, name, value)

    def guard(self, text: str, outcome: bool) -> None:
        if text not in self._guards:
            self._guards.add(text)
            self.write(f"if {'not ' if outcome else ''}({text}): raise _Miss")

    def name(self, value: Any) -> str:
        if isinstance(value, Sym | TracedBuffer):
            return value.name
        if type(value) is int or type(value) is bool:
            return repr(value)
        return self.constant(value)

    def constant(self, value: Any) -> str:
        """The name of an object of the trace's own; one for each object."""
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = f"K{len(self._constants)}"
            self._constants[known] = value
        return known

    def call(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The result of a pure function of numbers, a symbol unless it is a bool."""
        value = function(*map(seen, args))
        text = f"{self.constant(function)}({', '.join(map(self.name, args))})"
        if isinstance(value, bool):
            self.guard(text, value)
            return value
        if not isinstance(value, int | float):
            raise Unrecordable("a function of numbers gives no number")
        return self.scalar(text, value)

    def write(self, line: str) -> None:
        if len(self._lines) >= MOST_LINES:
            raise Unrecordable("it is too long")
        self._lines.append(line)

    def finish(self, result: str) -> Trace:
        """The trace, whose result is this text over the recorded names."""
        body = _letting_go([*self._lines, f"return {result}"])
        head = f"{', '.join(self._leaves)}, = _leaves" if self._leaves else "pass"
        text = "\n".join(["def replay(_leaves):", *(f"    {line}" for line in (head, "_leaves = None", *body))])
        rt = self.runtime
        namespace: dict[str, Any] = {
            **self._constants,
            "_Miss": Miss,
            "_bits": bits,
            **{
                f"_{w}": getattr(rt, w)
                for w in ("map", "launch_fold", "first", "scan", "concat", "slice", "accumulate")
            },
            **{f"_{w}": getattr(rt, w) for w in ("filter", "iota", "from_list", "out_of_range", "get")},
            **{f"_{w}": getattr(rt, w) for w in ("mark", "settle")},
        }
        exec(compile(text, "<trace>", "exec"), namespace)
        replay: Trace = roomy(namespace["replay"])
        return replay

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    # --- what the built-ins call ----------------------------------------------------------------------------------

    def map(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Number, ...], n: Int, span: Span = NO_SPAN
    ) -> TracedBuffer:
        return self._launch("map", kernel, inputs, uniforms, n, span)

    def scan(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Number, ...], n: Int, span: Span = NO_SPAN
    ) -> TracedBuffer:
        return self._launch("scan", kernel, inputs, uniforms, n, span)

    def iota(self, n: Int, span: Span = NO_SPAN) -> TracedBuffer:
        """Those of one length are one buffer: it can neither fault nor be told from another."""
        known = self._iotas.get(self.name(n))
        if known is None:
            made = self.runtime.iota(seen(n), span)
            text = f"_iota({self.name(n)}, {self.constant(span)})"
            known = self._iotas[self.name(n)] = self._made(made, text, n if n >= 0 else 0)
        return known

    def launch_fold(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Number, ...], span: Span = NO_SPAN
    ) -> TracedBuffer:
        made = self.runtime.launch_fold(kernel, inputs, tuple(map(seen, uniforms)), span)
        self._note_risk(kernel)
        return self._made(made, self._call_text("launch_fold", kernel, inputs, uniforms, None, span), 1)

    def first(self, buffer: Buffer) -> Any:
        return self._read(f"_first({self.name(buffer)})", self.runtime.first(buffer))

    def filter(
        self, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Number, ...], span: Span = NO_SPAN
    ) -> TracedBuffer:
        made = self.runtime.filter(kernel, tuple(map(_plain, inputs)), tuple(map(seen, uniforms)), span)
        return self._made(made, self._call_text("filter", kernel, inputs, uniforms, None, span), None)

    def concat(self, left: Buffer, right: Buffer, span: Span = NO_SPAN) -> Buffer:
        a, b = left.length, right.length
        if b == 0:
            return left
        if a == 0:
            return right
        made = self.runtime.concat(_plain(left), _plain(right), span)
        return self._made(made, f"_concat({self.name(left)}, {self.name(right)}, {self.constant(span)})", a + b)

    def slice(self, buffer: Buffer, begin: Int, end: Int, span: Span = NO_SPAN) -> Buffer:
        made = self.runtime.slice(_plain(buffer), seen(begin), seen(end), span)
        args = ", ".join(map(self.name, (buffer, begin, end)))
        return self._made(made, f"_slice({args}, {self.constant(span)})", end - begin)

    def accumulate(
        self, n: Int, indices: Buffer, values: Buffer, span: Span = NO_SPAN, base: Buffer | None = None
    ) -> TracedBuffer:
        made = self.runtime.accumulate(seen(n), indices, values, span, base)
        args = ", ".join(map(self.name, (n, indices, values)))
        onto = "" if base is None else f", {self.name(base)}"
        return self._made(made, f"_accumulate({args}, {self.constant(span)}{onto})", n)

    def out_of_range(self, indices: Buffer, n: Int) -> int | None:
        found = self.runtime.out_of_range(indices, seen(n))
        if found is not None:
            raise Unrecordable("an index is out of range")
        self.write(f"if _out_of_range({self.name(indices)}, {self.name(n)}) is not None: raise _Miss")
        return None

    def from_list(self, values: Sequence[Any], ty: Ty) -> Buffer:
        if not any(isinstance(v, Sym) for v in values):
            return self.runtime.from_list(values, ty)
        ty = INT if isinstance(next(v for v in values if isinstance(v, Sym)), SymInt) else FLOAT
        made = self.runtime.from_list([seen(v) for v in values], ty)
        return self._made(made, f"_from_list([{', '.join(map(self.name, values))}], {self.constant(ty)})", len(values))

    def get(self, buffer: Buffer, i: Int) -> Any:
        value = self.runtime.get(_plain(buffer), seen(i))
        inside = i >= 0 and i < buffer.length
        return self._read(f"_get({self.name(buffer)}, {self.name(i)})", value) if inside else None

    def data(self, storage: Storage) -> Buffer:
        raise Unrecordable("a file is read")

    def read(self, buffer: Buffer) -> list[Any]:
        raise Unrecordable("all of a buffer is read")

    def storage(self, buffer: Buffer) -> Storage:
        raise Unrecordable("all of a buffer is read")

    def mark(self) -> Mark:
        made = Mark(self.runtime.mark())
        made.name, made.line = self._fresh("m"), len(self._lines)
        self.write(f"{made.name} = _mark()")
        return made

    def settle(self, mark: Mark) -> None:
        self.runtime.settle(mark)
        if self._risky and self._risky[-1] >= mark.line:
            self.write(f"_settle({mark.name})")

    def barrier(self) -> None:
        raise Unrecordable("an effect, handled or not")

    def caught(self, fault: MathFault, mark: int) -> MathFault:
        raise Unrecordable("a fault is recovered")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _launch(
        self, op: str, kernel: Kernel, inputs: tuple[Buffer, ...], uniforms: tuple[Number, ...], n: Int, span: Span
    ) -> TracedBuffer:
        launch = self.runtime.map if op == "map" else self.runtime.scan
        made = launch(kernel, inputs, tuple(map(seen, uniforms)), seen(n), span)
        self._note_risk(kernel)
        return self._made(made, self._call_text(op, kernel, inputs, uniforms, n, span), n)

    def _note_risk(self, kernel: Kernel) -> None:
        if may_fault(kernel):
            self._risky.append(len(self._lines))

    def _call_text(
        self,
        word: str,
        kernel: Kernel,
        inputs: tuple[Buffer, ...],
        uniforms: tuple[Number, ...],
        n: Int | None,
        span: Span,
    ) -> str:
        size = "" if n is None else f"{self.name(n)}, "
        return (
            f"_{word}({self.constant(kernel)}, {_tuple(map(self.name, inputs))}, "
            f"{_tuple(map(self.name, uniforms))}, {size}{self.constant(span)})"
        )

    def _made(self, made: Buffer, text: str, size: Int | None) -> TracedBuffer:
        """A buffer that the text makes."""
        name = self._fresh("b")
        self.write(f"{name} = {text}")
        return TracedBuffer(made.node, self, name, size)

    def _read(self, text: str, value: Any) -> Any:
        """A number that comes from a buffer."""
        symbol = self._symbol(text, value)
        if isinstance(value, bool):
            self.guard(f"{symbol.name} is True", value)
            return value
        return symbol


def _plain(buffer: Buffer) -> Buffer:
    return Buffer(buffer.node) if isinstance(buffer, TracedBuffer) else buffer


def _tuple(texts: Any) -> str:
    items = list(texts)
    return f"({', '.join(items)},)" if items else "()"


_BUFFER = re.compile(r"\bb\d+\b")


def _letting_go(lines: list[str]) -> list[str]:
    """The lines, each buffer's name cleared after its last use: handles die as early as they can."""
    last: dict[str, int] = {}
    for at, line in enumerate(lines):
        for name in _BUFFER.findall(line):
            last[name] = at
    done: dict[int, list[str]] = {}
    for name, at in last.items():
        done.setdefault(at, []).append(name)
    out = []
    for at, line in enumerate(lines):
        out.append(line)
        if at in done and not line.startswith("return"):
            out.append(f"{' = '.join(done[at])} = None")
    return out
