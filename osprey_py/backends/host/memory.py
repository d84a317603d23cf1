"""Arguments, loads and stores.

A launch's arguments are 64-bit words: where to report a fault, n, the output, a place for a filter's count, then
address and length of each slot, then the uniforms, then the numbers of the launch's shape. Elements are read in
their storage kind, unaligned if need be, and widened exactly; what is stored is canonical."""

from __future__ import annotations

from typing import TYPE_CHECKING

from osprey_py.backends.host import sums
from osprey_py.backends.host.native import machine
from osprey_py.backends.host.operations import canonical, choose
from osprey_py.backends.host.text import Scope, Value, literal, llvm_type, vector
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Node, TableAttr, Ty
from osprey_py.kernel.nest import Number, Sum

if TYPE_CHECKING:
    from osprey_py.backends.host.expression import Expressions

STATUS, COUNT, OUTPUT, KEPT, SLOTS = 0, 1, 2, 3, 4
"""Word numbers: the status word's address, n, the output's address, the address of a filter's count, the first
slot."""

_ELEMENTS = {Kind.F64: "double", Kind.F32: "float", Kind.F16: "i16", Kind.BF16: "i16", Kind.I64: "i64", Kind.BOOL: "i8"}


class Arguments:
    """The argument words as values of a function's entry scope."""

    def __init__(self, entry: Scope, kinds: tuple[Kind, ...], uniforms: tuple[Ty, ...]) -> None:
        self.entry = entry
        self.kinds = kinds
        self.numbers: dict[Number, Value] = {}
        """The numbers of the launch's shape that the code reads, in the order of their words."""
        self.status = self._pointer(STATUS)
        self.n = self._word(COUNT)
        self.output = self._pointer(OUTPUT)
        self.kept = self._pointer(KEPT)
        self.bases = [self._pointer(SLOTS + 2 * k) for k in range(len(kinds))]
        self.lengths = [self._word(SLOTS + 2 * k + 1) for k in range(len(kinds))]
        first = SLOTS + 2 * len(kinds)
        self.uniforms = [self._uniform(first + k, ty) for k, ty in enumerate(uniforms)]
        self._next = first + len(uniforms)

    def number(self, wanted: Number) -> Value:
        """A number of the launch's shape."""
        if wanted not in self.numbers:
            self.numbers[wanted] = self._word(self._next)
            self._next += 1
        return self.numbers[wanted]

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
    return s.raw(f"getelementptr {element}, ptr {base}, {at.llvm} {at}")


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
    if not machine().f16c:
        return _half_by_bits(s, raw, width)
    half = vector("half", width)
    bits = s.raw(f"bitcast {short} {raw} to {half}")
    return s.define(FLOAT, width, f"fpext {half} {bits} to {double}")


def _half_by_bits(s: Scope, raw: str, width: int) -> Value:
    """binary16 without an instruction for it: its exponent and fraction as those of a tiny double, scaled exactly."""
    ty, short = llvm_type(INT, width), vector("i16", width)
    bits = s.define(INT, width, f"zext {short} {raw} to {ty}")
    size = s.define(INT, width, f"and {ty} {bits}, {literal(0x7FFF, width)}")
    place = s.define(INT, width, f"shl {ty} {size}, {literal(42, width)}")
    tiny = s.define(FLOAT, width, f"bitcast {ty} {place} to {llvm_type(FLOAT, width)}")
    scaled = s.define(FLOAT, width, f"fmul {tiny.llvm} {tiny}, {literal(2.0**1008, width)}")
    finite = s.define(INT, width, f"bitcast {scaled.llvm} {scaled} to {ty}")
    special = s.define(INT, width, f"or {ty} {place}, {literal(0x7FF0000000000000, width)}")
    above = s.define(BOOL, width, f"icmp uge {ty} {size}, {literal(0x7C00, width)}")
    value = choose(s, above, special, finite)
    sign = s.define(INT, width, f"and {ty} {bits}, {literal(0x8000, width)}")
    high = s.define(INT, width, f"shl {ty} {sign}, {literal(48, width)}")
    whole = s.define(INT, width, f"or {ty} {value}, {high}")
    return s.define(FLOAT, width, f"bitcast {ty} {whole} to {llvm_type(FLOAT, width)}")


def load(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """The element of a slot. Out of range nothing is read: the place is replaced by the first (an empty slot's base
    is readable, the launcher sees to that), or the lane is masked off."""
    slot = node.attr
    assert isinstance(slot, int)
    kind = e.arguments.kinds[slot]
    base = e.arguments.bases[slot]
    row = sums.neighbours(e, node.args[0]) if width > 1 else None
    if row is not None:
        return _load_row(e, node, s, width, row)
    (at,) = e.operands(node, s, width)
    mask = s.mask
    if not e.proven(node):
        inside = _inside(e, slot, s, at)
        if width == 1:
            at = choose(s, inside, at, literal(0))
        else:
            mask = inside if mask is None else s.define(BOOL, width, f"and {mask.llvm} {mask}, {inside}")
    place = address(s, base, kind, at)
    if width == 1:
        return widen(s, s.raw(f"load {_ELEMENTS[kind]}, ptr {place}, align 1"), kind, 1)
    return widen(s, gather(s, place, _ELEMENTS[kind], width, mask, 1), kind, width)


def _inside(e: Expressions, slot: int, s: Scope, at: Value) -> Value:
    length = e.arguments.entry.widen(e.arguments.lengths[slot], at.width)
    return s.define(BOOL, at.width, f"icmp ult {at.llvm} {at}, {length}")


def _load_row(e: Expressions, node: Node, s: Scope, width: int, row: Sum) -> Value:
    """Lanes side by side in memory: one vector load."""
    slot = node.attr
    assert isinstance(slot, int)
    kind = e.arguments.kinds[slot]
    mask = s.mask
    if not e.proven(node):
        inside = _inside(e, slot, s, e.at_width(node.args[0], s, width))
        mask = inside if mask is None else s.define(BOOL, width, f"and {mask.llvm} {mask}, {inside}")
    place = address(s, e.arguments.bases[slot], kind, sums.first_lane(e, row, s))
    ty = vector(_ELEMENTS[kind], width)
    if mask is None:
        return widen(s, s.raw(f"load {ty}, ptr {place}, align 1"), kind, width)
    return widen(s, masked_load(s, place, kind, width, mask), kind, width)


def masked_load(s: Scope, place: str, kind: Kind, width: int, mask: Value) -> str:
    """Neighbouring elements as stored, from the lanes that count; zeros in the others."""
    ty = vector(_ELEMENTS[kind], width)
    name = f"llvm.masked.load.v{width}{_NAMES[kind]}.p0"
    return s.raw(f"call {ty} @{name}(ptr align 1 {place}, {mask.llvm} {mask}, {ty} zeroinitializer)")


def gather(s: Scope, places: str, element: str, width: int, mask: Value | None, align: int) -> str:
    """An element from a place of its own for every lane that counts; zeros in the others."""
    ty = vector(element, width)
    mask = mask or literal(True, width)
    name = f"llvm.masked.gather.v{width}{_SHORT[element]}.v{width}p0"
    return s.raw(
        f"call {ty} @{name}({vector('ptr', width)} align {align} {places}, {mask.llvm} {mask}, {ty} zeroinitializer)"
    )


def element(e: Expressions, slot: int, kind: Kind, s: Scope, at: Value) -> Value:
    """One element of a slot at a place that is in range."""
    place = address(s, e.arguments.bases[slot], kind, at)
    return widen(s, s.raw(f"load {_ELEMENTS[kind]}, ptr {place}, align 1"), kind, 1)


_SHORT = {"double": "f64", "float": "f32", "i64": "i64", "i16": "i16", "i8": "i8"}
_NAMES = {kind: _SHORT[element] for kind, element in _ELEMENTS.items()}


def table(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """An element of a constant table."""
    assert isinstance(node.attr, TableAttr)
    values = node.attr.values
    if machine().lanes == 8 and width % 8 == 0 and len(values) in (16, 32) and e.proven(node):
        return _permuted(e, node, values, s, width)
    name = e.function.module.table(node.type, values)
    (at,) = e.operands(node, s, width)
    # An unchosen operand may hold any index; the table's length bounds it.
    if not e.proven(node):
        inside = s.define(BOOL, width, f"icmp ult {at.llvm} {at}, {literal(len(values), width)}")
        at = choose(s, inside, at, literal(0, width))
    place = s.raw(f"getelementptr {llvm_type(node.type)}, ptr {name}, {at.llvm} {at}")
    ty = llvm_type(node.type, width)
    if width == 1:
        return s.define(node.type, 1, f"load {ty}, ptr {place}")
    return Value(node.type, width, gather(s, place, llvm_type(node.type), width, s.mask, 8))


def _permuted(e: Expressions, node: Node, values: tuple[int | float, ...], s: Scope, width: int) -> Value:
    """The same on AVX-512, the table in registers: one instruction looks eight lanes up among sixteen values by the low
    four bits of the indices (a gather takes some ten cycles)."""
    (at,) = e.operands(node, s, width)
    ty, name = llvm_type(node.type, 8), "pd" if node.type is FLOAT else "q"

    def part(k: int) -> str:
        items = (f"{llvm_type(node.type)} {literal(v)}" for v in values[8 * k : 8 * k + 8])
        return f"{ty} <{', '.join(items)}>"

    def lookup(index: str, k: int) -> str:
        call = f"call {ty} @llvm.x86.avx512.vpermi2var.{name}.512({part(k)}, <8 x i64> {index}, {part(k + 1)})"
        return s.raw(call)

    def eight(index: str) -> str:
        found = lookup(index, 0)
        if len(values) == 32:
            other = lookup(index, 2)
            bit = s.raw(f"and <8 x i64> {index}, splat (i64 16)")
            high = s.raw(f"icmp ne <8 x i64> {bit}, zeroinitializer")
            found = s.raw(f"select <8 x i1> {high}, {ty} {other}, {ty} {found}")
        return found

    if width == 8:
        return Value(node.type, 8, eight(str(at)))
    parts = []
    for first in range(0, width, 8):
        mask = f"<8 x i32> <{', '.join(f'i32 {first + j}' for j in range(8))}>"
        parts.append(eight(s.raw(f"shufflevector {at.llvm} {at}, {at.llvm} poison, {mask}")))
    count = 8
    while len(parts) > 1:
        half = vector(llvm_type(node.type), count)
        mask = f"<{2 * count} x i32> <{', '.join(f'i32 {j}' for j in range(2 * count))}>"
        parts = [
            s.raw(f"shufflevector {half} {a}, {half} {b}, {mask}") for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        count *= 2
    return Value(node.type, width, parts[0])


def store(s: Scope, base: str, at: Value, value: Value) -> None:
    """Store elements of a computed buffer from place `at` on: canonical floats, bools as 0 or 1."""
    ty, width = value.type, value.width
    kind = Kind.F64 if ty is FLOAT else Kind.I64 if ty is INT else Kind.BOOL
    place = address(s, base, kind, at)
    stored, text = value.llvm, value.name
    if ty is FLOAT:
        text = canonical(s, value).name
    if ty is BOOL:
        stored = vector("i8", width)
        text = s.raw(f"zext {value.llvm} {value} to {stored}")
    align = kind.itemsize
    if width == 1 or s.mask is None:
        s.write(f"store {stored} {text}, ptr {place}, align {align}")
        return
    name = f"llvm.masked.store.v{width}{_NAMES[kind]}.p0"
    s.write(f"call void @{name}({stored} {text}, ptr align {align} {place}, {s.mask.llvm} {s.mask})")
