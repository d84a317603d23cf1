"""A lowered kernel as the C text of its launches: map, scan, and the predicate of a filter.

Comes in: a kernel ready for code (backends/prepare.py), the kinds of its slots and a dialect. Goes out: a `Text`:
the program and what its one function takes. The arguments, in order: n, the output and where it begins, the flag of faults
and its place, then for each slot its memory, beginning and length, then the uniforms. Every index has 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.backends.c.dialect import TYPES, Dialect, functions
from osprey_py.backends.c.expression import C_TYPE, Names, Writer, indented, literal
from osprey_py.backends.c.places import places
from osprey_py.backends.protocol import KIND_OF, Kind
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import FLOAT, Ty

ENTRY = "launch"
"""The name of the function that is launched."""

Tables = dict[tuple[Ty, tuple[int | float, ...]], str]


@dataclass(frozen=True, slots=True)
class Text:
    """source: the program. parameters: what the entry takes, each "buffer", "int" or "float"."""

    source: str
    parameters: tuple[str, ...]


def program(dialect: Dialect, body: str, tables: Tables) -> str:
    """The whole text: the dialect's head, the helpers that are called, the tables, the body."""
    shown = [
        f"{dialect.constant} {C_TYPE[ty]} {name}[{len(values)}] = {{\n"
        + "".join(f"    {literal(v, ty)},\n" for v in values)
        + "};\n"
        for (ty, values), name in tables.items()
    ]
    parts = [dialect.head, functions(dialect, body), *shown, body]
    return "\n".join(part for part in parts if part)


def elementwise(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...]) -> Text:
    """One item an element: output[i] = the result at i."""
    tables: Tables = {}
    lines = [
        *slots(dialect, kernel, kinds),
        f"const i64 i = {dialect.item};",
        "if (i >= n) return;",
        *element(dialect, kernel, kinds, tables),
    ]
    return text(dialect, kernel, kinds, lines, tables)


def element(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...], tables: Tables) -> list[str]:
    """The element at i, written, and the flag of its fault."""
    roots = tuple(n for n in (kernel.result, kernel.fault) if n is not None)
    made = places(roots)
    writer = Writer(dialect, made, roots, kinds, Names(), tables)
    lines = [*writer.block(made.top), f"output[i] = {stored(writer.expression[kernel.result], kernel.type)};"]
    if kernel.fault is not None:
        lines.append(f"if ({writer.expression[kernel.fault]}) flags[position] = 1;")
    return lines


def scan(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...]) -> Text:
    """One item for the whole: the order is the contract's."""
    tables: Tables = {}
    lines = [
        *slots(dialect, kernel, kinds),
        f"if ({dialect.item} != 0) return;",
        *running(dialect, kernel, kinds, tables),
    ]
    return text(dialect, kernel, kinds, lines, tables)


def running(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...], tables: Tables) -> list[str]:
    """A scan's elements one after the other, written, and the flag of a fault. What may not end stops at the first."""
    assert kernel.acc is not None and kernel.init is not None
    names = Names()
    before = places((kernel.init,))
    start = Writer(dialect, before, (kernel.init,), kinds, names, tables)
    first = start.block(before.top)
    roots = tuple(n for n in (kernel.result, kernel.fault) if n is not None)
    made = places(roots, (kernel.acc,))
    writer = Writer(dialect, made, roots, kinds, names, tables)
    acc = writer.bound[kernel.acc] = names.fresh(kernel.acc.name or "acc")
    body = writer.block(made.top)
    if kernel.fault is not None:
        leave = " break;" if kernel.general else ""
        body.append(f"if ({writer.expression[kernel.fault]}) {{ flags[position] = 1;{leave} }}")
    body.append(f"{acc} = {writer.expression[kernel.result]};")
    body.append(f"output[i] = {stored(acc, kernel.type)};")
    return [
        *first,
        f"{C_TYPE[kernel.acc.type]} {acc} = {start.expression[kernel.init]};",
        "for (i64 i = 0; i < n; ++i) {",
        *indented(body),
        "}",
    ]


def stored(value: str, ty: Ty) -> str:
    """What is written of a value: a NaN is the one NaN."""
    return f"canonical({value})" if ty is FLOAT else value


def slots(dialect: Dialect, kernel: Lowered, kinds: tuple[Kind, ...]) -> list[str]:
    """The output and the slots, from where they begin."""
    memory = f"{dialect.memory} " if dialect.memory else ""
    lines = [f"{memory}{TYPES[KIND_OF[kernel.type]]} *output = to + to_begin;"]
    lines += [f"{memory}const {TYPES[kind]} *slot{k} = from{k} + begin{k};" for k, kind in enumerate(kinds)]
    return lines


def text(
    dialect: Dialect,
    kernel: Lowered,
    kinds: tuple[Kind, ...],
    lines: list[str],
    tables: Tables,
    more: tuple[tuple[str, str], ...] = (),
) -> Text:
    """The program of one function. more: parameters of its own, before those of the slots."""
    memory = f"{dialect.memory} " if dialect.memory else ""
    out = TYPES[KIND_OF[kernel.type]]
    declared = [("int", "const i64 n"), ("buffer", f"{memory}{out} *to"), ("int", "const i64 to_begin")]
    declared += [("buffer", f"{memory}int *flags"), ("int", "const i64 position"), *more]
    for k, kind in enumerate(kinds):
        declared += [
            ("buffer", f"{memory}const {TYPES[kind]} *from{k}"),
            ("int", f"const i64 begin{k}"),
            ("int", f"const i64 length{k}"),
        ]
    for k, ty in enumerate(kernel.uniforms):
        declared.append(("float", f"const f64 u{k}") if ty is FLOAT else ("int", f"const i64 u{k}"))
    parameters = ",\n    ".join(told for _, told in declared)
    about = "".join(f"// {span.place}\n" for span in kernel.sources)
    body = f"{about}{dialect.kernel} {ENTRY}(\n    {parameters}\n) {{\n" + "\n".join(indented(lines)) + "\n}\n"
    return Text(program(dialect, body, tables), tuple(kind for kind, _ in declared))
