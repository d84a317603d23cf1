"""Values, constants and scopes: the little that writing LLVM text needs.

A `Value` is a scalar (width 1) or a vector of `width` lanes. A `Scope` is a run of code that is executed as one piece
(the function's entry, a loop's body, the arm of a branch); it holds lines of text and the values computed in it. An
enclosing scope may still receive lines while an inner one is being written: the inner text is appended when it is
done. Mutable variables are stack slots (`Function.slot`) which SROA turns into registers."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Node, Ty

_SCALARS = {INT: "i64", FLOAT: "double", BOOL: "i1"}
_SUFFIX = {INT: "i64", FLOAT: "f64", BOOL: "i1"}


def vector(element: str, width: int) -> str:
    """The LLVM type of `width` lanes of an element type; the element itself for one."""
    return element if width == 1 else f"<{width} x {element}>"


def llvm_type(ty: Ty, width: int = 1) -> str:
    return vector(_SCALARS[ty], width)


def suffix(ty: Ty, width: int) -> str:
    """What overloaded intrinsics end in."""
    return _SUFFIX[ty] if width == 1 else f"v{width}{_SUFFIX[ty]}"


def float_literal(x: float) -> str:
    """A double as LLVM reads it exactly; NaN canonical."""
    bits = 0x7FF8000000000000 if x != x else struct.unpack("<Q", struct.pack("<d", x))[0]
    return f"0x{bits:016X}"


@dataclass(frozen=True, slots=True)
class Value:
    """name: a register or literal, as text."""

    type: Ty
    width: int
    name: str

    @property
    def llvm(self) -> str:
        return llvm_type(self.type, self.width)

    def __str__(self) -> str:
        return self.name


def literal(value: int | float | bool, width: int = 1) -> Value:
    """A constant, in every lane."""
    if isinstance(value, bool):
        ty, text = BOOL, "true" if value else "false"
    elif isinstance(value, int):
        ty, text = INT, str(value)
    else:
        ty, text = FLOAT, float_literal(value)
    return Value(ty, width, text if width == 1 else f"splat ({_SCALARS[ty]} {text})")


def lanes(values: Iterable[int]) -> Value:
    """A constant vector of ints."""
    items = tuple(values)
    return Value(INT, len(items), "<" + ", ".join(f"i64 {v}" for v in items) + ">")


@dataclass(eq=False, slots=True)
class Scope:
    """function: whose code it is. parent: the scope it is inside. opening: lines that come before `lines`.
    binds: the variables that change from one execution of it to the next, as bits; variables: their values.
    arm: the (node, operand) whose lazy branch it is.
    width: lanes of what varies in it. mask: the lanes that count, where not all do, and live: how
    many those are. index: the launch index, where
    this scope sets it. first: the lane digit in the first lane. lane: the lane at hand, in code that goes lane by
    lane. memo: values of nodes computed here; results: of those that have several; wide: scalars spread over lanes;
    sums: parts of addresses; once: what is computed at its first use only (control.once)."""

    function: Function
    parent: Scope | None = None
    binds: int = 0
    arm: tuple[Node, int] | None = None
    width: int = 1
    mask: Value | None = None
    live: Value | None = None
    index: Value | None = None
    first: Value | None = None
    lane: Value | None = None
    opening: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    once: dict[Node, tuple[Slot, list[Slot]]] = field(default_factory=dict)
    memo: dict[Node, Value] = field(default_factory=dict)
    results: dict[Node, tuple[Value, ...]] = field(default_factory=dict)
    variables: dict[Bound, Value] = field(default_factory=dict)
    wide: dict[tuple[str, int], Value] = field(default_factory=dict)
    sums: dict[object, Value] = field(default_factory=dict)

    def write(self, line: str) -> None:
        self.lines.append(line)

    def define(self, ty: Ty, width: int, text: str) -> Value:
        """`%new = text`."""
        name = self.function.fresh()
        self.lines.append(f"{name} = {text}")
        return Value(ty, width, name)

    def raw(self, text: str) -> str:
        """`%new = text` for types that are no kernel value (pointers, narrow storage)."""
        name = self.function.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def open(self, name: str) -> None:
        """The scope's own first block."""
        self.opening.insert(0, f"{name}:")

    def label(self, name: str) -> None:
        """Begin a block (the one before must have ended)."""
        self.lines.append(f"{name}:")

    def jump(self, name: str) -> None:
        self.lines.append(f"br label %{name}")

    def branch(self, condition: Value | str, yes: str, no: str) -> None:
        self.lines.append(f"br i1 {condition}, label %{yes}, label %{no}")

    def absorb(self, inner: Scope) -> None:
        """The inner scope's text comes here."""
        self.lines.extend(inner.opening)
        self.lines.extend(inner.lines)

    def widen(self, value: Value, width: int) -> Value:
        """The scalar in every lane."""
        if value.width == width:
            return value
        if not value.name.startswith("%"):
            return Value(value.type, width, f"splat ({value.llvm} {value.name})")
        known = self.wide.get((value.name, width))
        if known is None:
            ty = vector(value.llvm, width)
            one = self.raw(f"insertelement {ty} poison, {value.llvm} {value}, i64 0")
            known = self.define(
                value.type, width, f"shufflevector {ty} {one}, {ty} poison, <{width} x i32> zeroinitializer"
            )
            self.wide[value.name, width] = known
        return known


@dataclass(frozen=True, slots=True)
class Slot:
    """A mutable variable on the stack."""

    type: Ty
    width: int
    name: str

    def clear(self, s: Scope) -> None:
        """False, before anything else in the scope."""
        s.opening.append(f"store {llvm_type(self.type, self.width)} zeroinitializer, ptr {self.name}")

    def read(self, s: Scope) -> Value:
        return s.define(self.type, self.width, f"load {llvm_type(self.type, self.width)}, ptr {self.name}")

    def write(self, s: Scope, value: Value) -> None:
        s.write(f"store {value.llvm} {value}, ptr {self.name}")


class Function:
    """The text of one LLVM function under construction."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._count = 0
        self._slots: list[str] = []

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def block(self, stem: str) -> str:
        """A new block name."""
        self._count += 1
        return f"{stem}{self._count}"

    def slot(self, ty: Ty, width: int = 1) -> Slot:
        name = self.fresh()
        self._slots.append(f"{name} = alloca {llvm_type(ty, width)}")
        return Slot(ty, width, name)

    def array(self, n: int, element: str) -> str:
        """The address of n elements on the stack."""
        name = self.fresh()
        self._slots.append(f"{name} = alloca [{n} x {element}]")
        return name

    def text(self, head: str, body: Scope) -> str:
        lines = "\n".join((*self._slots, *body.opening, *body.lines))
        return f"{head} {{\nentry:\n{lines}\n}}\n"


class Module:
    """The text of one LLVM module: functions and constant tables."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._tables: dict[tuple[str, str], str] = {}
        self._names = 0

    def add(self, text: str) -> None:
        self._parts.append(text)

    def name(self, stem: str) -> str:
        """A new global name."""
        self._names += 1
        return f"@{stem}{self._names}"

    def table(self, ty: Ty, values: tuple[int | float, ...]) -> str:
        """The name of a constant array."""
        element = _SCALARS[ty]
        items = ", ".join(f"{element} {literal(v)}" for v in values)
        known = self._tables.get((element, items))
        if known is None:
            known = f"@table{len(self._tables)}"
            self._tables[element, items] = known
            self._parts.append(
                f"{known} = private unnamed_addr constant [{len(values)} x {element}] [{items}], align 64\n"
            )
        return known

    def text(self) -> str:
        return "".join(self._parts)
