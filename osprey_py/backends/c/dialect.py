"""What differs between the dialects of C, and the functions that all kernels' text may call.

Goes out: a `Dialect`, its operations as templates, and the text of the helper functions a kernel names. Every float
operation rounds once: a dialect either forbids contraction for the whole text or names operations that never contract.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from osprey_py.backends.protocol import Kind


@dataclass(frozen=True, slots=True)
class Dialect:
    """head: begins every text. kernel, function: what a definition of one begins with. memory, constant, local: the
    qualifiers of device memory, constant tables and memory that a work-group shares. item: the index of a work-item
    in a launch, of 64 bits; local_item, group: templates of its place in the group and the group's, along one of the axes.
    barrier: all of a group have come so far. group_size: template of an entry's promise. arithmetic: templates of the float
    operations."""

    name: str
    head: str
    kernel: str
    function: str
    memory: str
    constant: str
    local: str
    item: str
    local_item: str
    group: str
    axes: tuple[str, str, str]
    barrier: str
    group_size: str
    arithmetic: dict[str, str] = field(default_factory=dict)

    def operation(self, op: str) -> str | None:
        """The template of a scalar operation; None when it is none."""
        return self.arithmetic.get(op) or OPERATIONS.get(op)


TYPES = {Kind.F64: "f64", Kind.F32: "u32", Kind.F16: "u16", Kind.BF16: "u16", Kind.I64: "i64", Kind.BOOL: "u8"}
"""How elements are declared. Narrow floats are read as their bits, so that no device flushes a subnormal of theirs."""

OPERATIONS = {
    "wadd": "wadd({0}, {1})",
    "wsub": "wsub({0}, {1})",
    "wmul": "wmul({0}, {1})",
    "uquot": "({0} / {1})",
    "urem": "({0} % {1})",
    "ushl": "ushl({0}, {1})",
    "ushr": "({0} >> {1})",
    "ushru": "ushru({0}, {1})",
    "mulhigh": "mulhigh({0}, {1})",
    "addo": "addo({0}, {1})",
    "subo": "subo({0}, {1})",
    "mulo": "mulo({0}, {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "xor": "({0} ^ {1})",
    "inot": "(~{0})",
    "imin": "imin({0}, {1})",
    "imax": "imax({0}, {1})",
    "fmodi": "fmodi({0}, {1})",
    "fneg": "(-{0})",
    "fabs": "fabs({0})",
    "fmin": "minimum({0}, {1})",
    "fmax": "maximum({0}, {1})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "round": "rint({0})",
    "utoint": "utoint({0})",
    "floatbits": "floatbits({0})",
    "ubits": "bits_of({0})",
    "bitsfloat": "float_of({0})",
    "eq": "({0} == {1})",
    "ne": "({0} != {1})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "band": "({0} && {1})",
    "bor": "({0} || {1})",
    "bnot": "(!{0})",
    "muladd": "({0} * {1} + {2})",
    "residue": "residue({0}, {1}, {2})",
}

_CALLED = re.compile(r"\b([a-z][a-z0-9_]*)\(")

FUNCTIONS = {
    "wadd": "i64 wadd(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }",
    "wsub": "i64 wsub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }",
    "wmul": "i64 wmul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }",
    "ushl": "i64 ushl(i64 a, i64 b) { return (i64)((u64)a << b); }",
    "ushru": "i64 ushru(i64 a, i64 b) { return (i64)((u64)a >> b); }",
    "addo": "bool addo(i64 a, i64 b) { i64 s = wadd(a, b); return ((a ^ s) & (b ^ s)) < 0; }",
    "subo": "bool subo(i64 a, i64 b) { i64 d = wsub(a, b); return ((a ^ b) & (a ^ d)) < 0; }",
    "mulo": "bool mulo(i64 a, i64 b) { return signed_high(a, b) != (wmul(a, b) >> 63); }",
    "imin": "i64 imin(i64 a, i64 b) { return b < a ? b : a; }",
    "imax": "i64 imax(i64 a, i64 b) { return a < b ? b : a; }",
    "canonical": "f64 canonical(f64 a) { return a != a ? float_of(0x7FF8000000000000) : a; }",
    "floatbits": "i64 floatbits(f64 a) { return bits_of(canonical(a)); }",
    "minimum": """\
f64 minimum(f64 a, f64 b) {
    if (a != a || b != b) return float_of(0x7FF8000000000000);
    if (a == b) return float_of(bits_of(a) | bits_of(b)); /* -0.0 is less than 0.0 */
    return a < b ? a : b;
}""",
    "maximum": """\
f64 maximum(f64 a, f64 b) {
    if (a != a || b != b) return float_of(0x7FF8000000000000);
    if (a == b) return float_of(bits_of(a) & bits_of(b));
    return a < b ? b : a;
}""",
    "utoint": """\
i64 utoint(f64 a) {
    return -9223372036854775808.0 <= a && a < 9223372036854775808.0 ? (i64)a : 0;
}""",
    "fmodi": """\
/* C's fmod, by long division of the significands: exact. */
f64 fmodi(f64 a, f64 b) {
    const i64 magnitude = 0x7FFFFFFFFFFFFFFF, infinity = 0x7FF0000000000000, hidden = (i64)1 << 52;
    i64 x = bits_of(a) & magnitude, y = bits_of(b) & magnitude;
    if (y == 0 || x >= infinity || y > infinity) return float_of(0x7FF8000000000000);
    if (x < y) return a;
    i64 ex = x >> 52, ey = y >> 52;
    x = ex ? (x & (hidden - 1)) | hidden : x;
    y = ey ? (y & (hidden - 1)) | hidden : y;
    ex = ex ? ex : 1;
    ey = ey ? ey : 1;
    x %= y;
    for (; ex > ey; --ex) {
        x <<= 1;
        x = x >= y ? x - y : x;
    }
    while (x != 0 && x < hidden && ex > 1) {
        x <<= 1;
        --ex;
    }
    x = x < hidden ? x : (x - hidden) | (ex << 52);
    return float_of(x | (bits_of(a) & ~magnitude));
}""",
    "residue": """\
/* a * b + c where c is near -a * b: the product's error by products that are exact (Dekker). */
f64 residue(f64 a, f64 b, f64 c) {
    const f64 p = a * b, ah = head(a), al = a - ah, bh = head(b), bl = b - bh;
    return (p + c) + (((ah * bh - p + ah * bl) + al * bh) + al * bl);
}""",
    "head": "f64 head(f64 a) { return float_of(bits_of(a) & ~(((i64)1 << 27) - 1)); }",
    "from_f64": "f64 from_f64(f64 a) { return a; }",
    "from_i64": "i64 from_i64(i64 a) { return a; }",
    "from_bool": "bool from_bool(u8 a) { return a != 0; }",
    "from_f32": """\
/* The binary64 that 32 bits of binary32 are, in integers. */
f64 from_f32(u32 a) {
    const i64 sign = (i64)(a >> 31) << 63, exponent = (a >> 23) & 255, fraction = (i64)(a & 0x7FFFFF) << 29;
    if (exponent == 0) return float_of(sign | bits_of((f64)(a & 0x7FFFFF) * 0x1p-149));
    return float_of(sign | (exponent == 255 ? 2047 : exponent + 896) << 52 | fraction);
}""",
    "from_f16": """\
f64 from_f16(u16 a) {
    const i64 sign = (i64)(a >> 15) << 63, exponent = (a >> 10) & 31, fraction = (i64)(a & 1023) << 42;
    if (exponent == 0) return float_of(sign | bits_of((f64)(a & 1023) * 0x1p-24));
    return float_of(sign | (exponent == 31 ? 2047 : exponent + 1008) << 52 | fraction);
}""",
    "from_bf16": "f64 from_bf16(u16 a) { return from_f32((u32)a << 16); }",
}
"""The helper functions, each with what it calls among themselves found by its text."""

for _kind, _type in TYPES.items():
    _result = _kind.type.value.replace("float", "f64").replace("int", "i64")
    FUNCTIONS[f"read_{_kind.value}"] = (
        f"{_result} read_{_kind.value}(MEMORY const {_type} *slot, i64 length, i64 at) {{\n"
        f"    return (u64)at < (u64)length ? from_{_kind.value}(slot[at]) : 0;\n}}"
    )
"""Reads that are not known to be in range: out of it, any value will do, but the read must not happen."""


def functions(dialect: Dialect, text: str) -> str:
    """The definitions of the helpers that the text calls, and of those that they call, in a fixed order."""
    wanted: dict[str, None] = {}
    _collect(text, wanted)
    ordered = [name for name in FUNCTIONS if name in wanted]
    # A helper is defined after those it calls.
    ordered.sort(key=_rank)
    memory = f"{dialect.memory} " if dialect.memory else ""
    return "".join(f"{dialect.function} {FUNCTIONS[name].replace('MEMORY ', memory)}\n" for name in ordered)


def _collect(text: str, wanted: dict[str, None]) -> None:
    for name in _called(text):
        if name not in wanted:
            wanted[name] = None
            _collect(FUNCTIONS[name], wanted)


def _called(text: str) -> Iterable[str]:
    return (name for name in dict.fromkeys(_CALLED.findall(text)) if name in FUNCTIONS)


def _rank(name: str) -> int:
    return 1 + max((_rank(other) for other in _called(FUNCTIONS[name]) if other != name), default=0)
