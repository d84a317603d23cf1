"""Folds and scans whose operation is exactly associative, by many items: their texts.

Comes in: what kernel/associative.py found, and the kernel that runs in order. Goes out: `Text`s. Each item combines a share
of the terms; one item combines the shares, and a scan's items go over their shares again. Sums of ints carry the sum of the
terms' sizes along: while that is an int, no prefix overflows. Where it is none, or where a term faults, there is doubt,
and the one item does everything again in order, so that faults are those of the order.
"""

from __future__ import annotations

from osprey_py.backends.c.dialect import TYPES, Dialect
from osprey_py.backends.c.expression import C_TYPE, Names, Writer, indented, literal
from osprey_py.backends.c.kernels import Tables, Text, element, running, slots, stored, text
from osprey_py.backends.c.places import places
from osprey_py.backends.protocol import KIND_OF, Kind
from osprey_py.kernel.associative import IDENTITY, Reduction
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import BOOL, Ty

LEAST = 4096
"""Terms from which on it is worth more launches than one."""
SHARE = 64
"""Terms that an item takes at least."""


def partial(dialect: Dialect, term: Lowered, kinds: tuple[Kind, ...], operation: str) -> Text:
    """output[item] = the item's terms combined; sizes[item] = the sum of their sizes, or -1 where there is doubt. Of n
    terms an item takes `span`, or up to the last, from item * along on, every stride-th."""
    tables: Tables = {}
    summed = operation == "add"
    value, lines, fault = _term(dialect, term, kinds, tables)
    lines = [*lines, f"const {C_TYPE[term.type]} term = {value};"]
    if fault is not None:
        lines.append(f"if ({fault}) doubt = true;")
    if summed:
        lines += _sized("term")
    lines.append(f"acc = {_combined(dialect, operation, 'acc', 'term')};")
    lines = [
        *slots(dialect, term, kinds),
        f"const i64 item = {dialect.item};",
        "if (item >= parts) return;",
        "const i64 first = item * along, end = span < n - first ? first + span : n;",
        f"{C_TYPE[term.type]} acc = {literal(IDENTITY[operation], term.type)};",
        "i64 size = 0;",
        "bool doubt = false;",
        "for (i64 i = first; i < end; i += stride) {",
        *indented(lines),
        "}",
        f"output[item] = {stored('acc', term.type)};",
        "sizes[item] = doubt ? -1 : size;",
    ]
    memory = _memory(dialect)
    more = [("int", f"const i64 {name}") for name in ("parts", "along", "span", "stride")]
    return text(dialect, term, kinds, lines, tables, (*more, ("buffer", f"{memory}i64 *sizes")))


def fold(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...], found: Reduction) -> Text:
    """One item: the shares combined; where there is doubt, the fold in order."""
    tables: Tables = {}
    lines = [
        *_ready(dialect, kernel, kinds, found),
        "for (i64 part = 0; part < parts; ++part)",
        f"    acc = {_combined(dialect, found.operation, 'acc', _part(kernel.type))};",
        "const i64 i = 0;",
        f"if (!doubt) {{ output[i] = {stored('acc', kernel.type)}; return; }}",
        *element(dialect, kernel, kinds, tables),
    ]
    return text(dialect, kernel, kinds, lines, tables, _shares(dialect, kernel))


def starts(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...], found: Reduction) -> Text:
    """One item: shares become what each begins with; where there is doubt, the scan in order, and sizes[0] = -1."""
    tables: Tables = {}
    lines = [
        *_ready(dialect, kernel, kinds, found),
        "if (doubt) {",
        *indented(running(dialect, kernel, kinds, tables)),
        "    sizes[0] = -1;",
        "    return;",
        "}",
        "for (i64 part = 0; part < parts; ++part) {",
        f"    const {C_TYPE[kernel.type]} share = {_part(kernel.type)};",
        "    partials[part] = acc;",
        f"    acc = {_combined(dialect, found.operation, 'acc', 'share')};",
        "}",
    ]
    return text(dialect, kernel, kinds, lines, tables, _shares(dialect, kernel))


def spread(dialect: Dialect, term: Lowered, kinds: tuple[Kind, ...], operation: str) -> Text:
    """A scan's elements, each item's share from where it begins, unless they are there already."""
    tables: Tables = {}
    value, lines, _ = _term(dialect, term, kinds, tables)
    lines = [
        *slots(dialect, term, kinds),
        f"const i64 part = {dialect.item};",
        "if (part >= parts || sizes[0] < 0) return;",
        "const i64 first = part * span, end = span < n - first ? first + span : n;",
        f"{C_TYPE[term.type]} acc = {_part(term.type)};",
        "for (i64 i = first; i < end; ++i) {",
        *indented(lines),
        f"    acc = {_combined(dialect, operation, 'acc', value)};",
        f"    output[i] = {stored('acc', term.type)};",
        "}",
    ]
    return text(dialect, term, kinds, lines, tables, (*_shares(dialect, term), ("int", "const i64 span")))


def _term(
    dialect: Dialect, term: Lowered, kinds: tuple[Kind, ...], tables: Tables
) -> tuple[str, list[str], str | None]:
    """(the term at i, the statements before it, whether it faults)."""
    roots = tuple(n for n in (term.result, term.fault) if n is not None)
    made = places(roots)
    writer = Writer(dialect, made, roots, kinds, Names(), tables)
    lines = writer.block(made.top)
    return writer.expression[term.result], lines, None if term.fault is None else writer.expression[term.fault]


def _ready(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...], found: Reduction) -> list[str]:
    """acc, what it begins with; doubt, whether there is any in that and in all the shares."""
    summed = found.operation == "add"
    value = literal(found.init.attr, kernel.type) if found.init.op == "const" else f"u{found.init.attr}"
    if found.init.type is BOOL:
        value = f"{value} != 0"
    lines = [
        *slots(dialect, kernel, kinds),
        f"if ({dialect.item} != 0) return;",
        f"{C_TYPE[kernel.type]} acc = {value};",
        "i64 size = 0;",
        "bool doubt = false;",
        *(_sized("acc") if summed else ()),
        "for (i64 part = 0; part < parts; ++part) {",
        "    doubt = doubt || sizes[part] < 0;",
    ]
    if summed:
        lines += ["    size = wadd(size, sizes[part]);", "    doubt = doubt || size < 0;"]
    return [*lines, "}"]


def _sized(name: str) -> list[str]:
    """Its size added to `size`, which is negative when that is no int; nor is the least int's size one."""
    return [f"size = wadd(size, {name} < 0 ? wsub(0, {name}) : {name});", "doubt = doubt || size < 0;"]


def _combined(dialect: Dialect, operation: str, a: str, b: str) -> str:
    template = dialect.operation("wadd" if operation == "add" else operation)
    assert template is not None
    return template.format(a, b)


def _part(ty: Ty) -> str:
    return f"from_{KIND_OF[ty].value}(partials[part])"


def _shares(dialect: Dialect, kernel: Lowered) -> tuple[tuple[str, str], ...]:
    memory = _memory(dialect)
    kept = ("buffer", f"{memory}{TYPES[KIND_OF[kernel.type]]} *partials")
    return kept, ("buffer", f"{memory}i64 *sizes"), ("int", "const i64 parts")


def _memory(dialect: Dialect) -> str:
    return f"{dialect.memory} " if dialect.memory else ""
