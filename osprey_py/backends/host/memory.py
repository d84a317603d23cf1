"""Arguments, loads and stores.

A launch's arguments are 64-bit words (`Layout`): where to report a fault, n, the output, a place for a filter's count, then
address and length of each slot, then the uniforms. Elements are read in their storage kind, unaligned if need be, and widened
exactly; what is stored is canonical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from osprey_py.backends.host.operations import canonical, choose
from osprey_py.backends.host.text import Scope, Value, literal, llvm_type, vector
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Node, TableAttr, Ty

if TYPE_CHECKING:
    from osprey_py.backends.host.expression import Expressions

STATUS, COUNT, OUTPUT, KEPT, SLOTS = 0, 1, 2, 3, 4
"""Word numbers: the status word's address, n, the output's address, the address of a filter's count, the first slot."""

_ELEMENTS = {Kind.F64: "double", Kind.F32: "float", Kind.F16: "i16", Kind.BF16: "i16", Kind.I64: "i64", Kind.BOOL: "i8"}


class Arguments:
    """The argument words as values of a function's entry scope."""

    def __init__(self, entry: Scope, kinds: tuple[Kind, ...], uniforms: tuple[Ty, ...]) -> None:
        self.entry = entry
        self.kinds = kinds
        self.status = self._pointer(STATUS)
        self.n = self._word(COUNT)
        self.output = self._pointer(OUTPUT)
        self.kept = self._pointer(KEPT)
        self.bases = [self._pointer(SLOTS + 2 * k) for k in range(len(kinds))]
        self.lengths = [self._word(SLOTS + 2 * k + 1) for k in range(len(kinds))]
        first = SLOTS + 2 * len(kinds)
        self.uniforms = [self._uniform(first + k, ty) for k, ty in enumerate(uniforms)]

    def _place(self, word: int) -> str:
        return self.entry.raw(f"getelementptr i64, ptr %args, i64 {word}")

    def _pointer(self, word: int) -> str:
        return self.entry.raw(f"load ptr, ptr {self._place(word)}")

    def _word(self, word: int) -> Value:
        return self.entry.define(INT, 1, f"load i64, ptr {self._place(word)}")

    def _uniform(self, word: int, ty: Ty) -> Value:
        if ty is BOOL:
            return self.entry.define(BOOL, 1, f"trunc i64 {self._word(word)} to i1")
        return self.entry.define(ty, 1, f"load {llvm_type(ty)}, ptr {self._place(word)}")


def address(s: Scope, base: str, kind: Kind, at: Value) -> str:
    """The address of one element, or of one in every lane."""
    element = _ELEMENTS[kind]
    pointer = vector("ptr", at.width)
    name = s.function.fresh()
    s.write(f"{name} = getelementptr {element}, ptr {base}, {at.llvm} {at}")
    assert pointer
    return name


def widen(s: Scope, raw: str, kind: Kind, width: int) -> Value:
    """Storage bits as the kernel's type, exactly."""
    if kind is Kind.F64:
        return Value(FLOAT, width, raw)
    if kind is Kind.I64:
        return Value(INT, width, raw)
    if kind is Kind.BOOL:
        return s.define(BOOL, width, f"icmp ne {vector('i8', width)} {raw}, zeroinitializer")
    double = vector("double", width)
    single = vector("float", width)
    if kind is Kind.F32:
        return s.define(FLOAT, width, f"fpext {single} {raw} to {double}")
    short = vector("i16", width)
    if kind is Kind.BF16:
        word = vector("i32", width)
        wide = s.raw(f"zext {short} {raw} to {word}")
        sixteen = "16" if width == 1 else "splat (i32 16)"
        high = s.raw(f"shl {word} {wide}, {sixteen}")
        bits = s.raw(f"bitcast {word} {high} to {single}")
        return s.define(FLOAT, width, f"fpext {single} {bits} to {double}")
    half = vector("half", width)
    bits = s.raw(f"bitcast {short} {raw} to {half}")
    return s.define(FLOAT, width, f"fpext {half} {bits} to {double}")


def load(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """The element of a slot. Out of range nothing is read: the place is replaced by the first (an empty slot's base is
    readable, the launcher sees to that)."""
    slot = node.attr
    assert isinstance(slot, int)
    kind = e.arguments.kinds[slot]
    base = e.arguments.bases[slot]
    (at,) = e.operands(node, s, width)
    if not e.proven(node):
        length = e.arguments.entry.widen(e.arguments.lengths[slot], width)
        inside = s.define(BOOL, width, f"icmp ult {at.llvm} {at}, {length}")
        at = choose(s, inside, at, literal(0, width))
    place = address(s, base, kind, at)
    ty = vector(_ELEMENTS[kind], width)
    if width == 1:
        return widen(s, s.raw(f"load {ty}, ptr {place}, align 1"), kind, 1)
    mask = s.mask or literal(True, width)
    suffix = f"v{width}{_NAMES[kind]}.v{width}p0"
    raw = s.raw(
        f"call {ty} @llvm.masked.gather.{suffix}({vector('ptr', width)} align 1 {place}, {mask.llvm} {mask}, {ty} zeroinitializer)"
    )
    return widen(s, raw, kind, width)


def element(e: Expressions, slot: int, kind: Kind, s: Scope, at: Value) -> Value:
    """One element of a slot at a place that is in range."""
    place = address(s, e.arguments.bases[slot], kind, at)
    return widen(s, s.raw(f"load {_ELEMENTS[kind]}, ptr {place}, align 1"), kind, 1)


_NAMES = {Kind.F64: "f64", Kind.F32: "f32", Kind.F16: "i16", Kind.BF16: "i16", Kind.I64: "i64", Kind.BOOL: "i8"}


def table(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """An element of a constant table."""
    assert isinstance(node.attr, TableAttr)
    name = e.function.module.table(node.type, node.attr.values)
    (at,) = e.operands(node, s, width)
    # An unchosen operand may hold any index; the table's length bounds it.
    if not e.proven(node):
        inside = s.define(BOOL, width, f"icmp ult {at.llvm} {at}, {literal(len(node.attr.values), width)}")
        at = choose(s, inside, at, literal(0, width))
    place = s.raw(f"getelementptr {llvm_type(node.type)}, ptr {name}, {at.llvm} {at}")
    ty = llvm_type(node.type, width)
    if width == 1:
        return s.define(node.type, 1, f"load {ty}, ptr {place}")
    mask = s.mask or literal(True, width)
    element = "f64" if node.type is FLOAT else "i64"
    return s.define(
        node.type,
        width,
        f"call {ty} @llvm.masked.gather.v{width}{element}.v{width}p0({vector('ptr', width)} align 8 {place}, "
        f"{mask.llvm} {mask}, {ty} zeroinitializer)",
    )


def store(s: Scope, base: str, at: Value, value: Value) -> None:
    """Store one element of a computed buffer: canonical floats, bools as 0 or 1."""
    ty = value.type
    kind = Kind.F64 if ty is FLOAT else Kind.I64 if ty is INT else Kind.BOOL
    place = address(s, base, kind, at)
    if ty is FLOAT:
        value = canonical(s, value)
    if ty is BOOL:
        byte = s.raw(f"zext {value.llvm} {value} to {vector('i8', value.width)}")
        s.write(f"store {vector('i8', value.width)} {byte}, ptr {place}, align 1")
        return
    s.write(f"store {value.llvm} {value}, ptr {place}, align 8")
