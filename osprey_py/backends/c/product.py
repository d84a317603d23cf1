"""The text of a contraction: a tile of outputs in each work-group, their operands brought through local memory.

Comes in: the kinds of both operands, how many dimensions are batches, a `Tile`. Goes out: `Text`. One accumulator an
output, terms in the order of k, each product rounded before it is added (spec/contractions, C2): tiles only decide what
runs beside what. Sums of different lengths (C3) stop at their own end.
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.backends.c.dialect import TYPES, Dialect
from osprey_py.backends.c.kernels import ENTRY, Text, program
from osprey_py.backends.protocol import Kind


@dataclass(frozen=True, slots=True)
class Tile:
    """items: of a work-group, down and across. each: outputs of an item, down and across; across is its vector.
    depth: terms that are brought at a time."""

    items: tuple[int, int]
    each: tuple[int, int]
    depth: int

    @property
    def rows(self) -> int:
        return self.items[0] * self.each[0]

    @property
    def columns(self) -> int:
        return self.items[1] * self.each[1]

    @property
    def local_bytes(self) -> int:
        return 8 * self.depth * (self.rows + self.columns)


@dataclass(frozen=True, slots=True)
class Variant:
    """What the text depends on. along: whether the left's, the right's neighbouring terms lie side by side, so that
    neighbouring items bring those. growing: sums differ in length. started: the output holds what sums begin with."""

    kinds: tuple[Kind, Kind]
    batches: int
    along: tuple[bool, bool]
    growing: bool
    started: bool


NUMBERS = "m n terms row_terms left_begin left_row left_depth right_begin right_column right_depth".split()
NUMBERS += "to_begin output_row output_column".split()
BATCH = "extent left right output terms".split()


def product(dialect: Dialect, variant: Variant, tile: Tile) -> Text:
    """One work-group a tile and batch: group 0 counts tiles across, 1 down, 2 batches."""
    memory = f"{dialect.memory} " if dialect.memory else ""
    left, right = (TYPES[kind] for kind in variant.kinds)
    declared = [
        ("buffer", f"{memory}const {left} *left"),
        ("buffer", f"{memory}const {right} *right"),
        ("buffer", f"{memory}f64 *to"),
        *(("int", f"const i64 {name}") for name in NUMBERS),
        ("float", "const f64 seed"),
        *(("int", f"const i64 batch{d}_{name}") for d in range(variant.batches) for name in BATCH),
    ]
    parameters = ",\n    ".join(text for _, text in declared)
    size = dialect.group_size.format(tile.items[1], tile.items[0])
    head = f"{dialect.kernel.replace(' void', '')} {size} void {ENTRY}(\n    {parameters}\n) {{\n"
    body = head + "".join(f"    {line}\n" if line else "\n" for line in _lines(dialect, variant, tile)) + "}\n"
    return Text(program(dialect, body, {}), tuple(kind for kind, _ in declared))


def _lines(dialect: Dialect, v: Variant, tile: Tile) -> list[str]:
    rows, columns, depth = tile.rows, tile.columns, tile.depth
    down, across = tile.each
    horizontal, vertical, batch_axis = dialect.axes
    local = dialect.local
    lines = [
        f"{local} f64 a[{depth}][{rows}], b[{depth}][{columns}];",
        f"const int across = {dialect.local_item.format(horizontal)}, down = {dialect.local_item.format(vertical)};",
        f"const int item = down * {tile.items[1]} + across;",
        f"const i64 row0 = {dialect.group.format(vertical)} * {rows};",
        f"const i64 column0 = {dialect.group.format(horizontal)} * {columns};",
        f"i64 batch = {dialect.group.format(batch_axis)};",
        "i64 left_at = left_begin, right_at = right_begin, to_at = to_begin, length = terms;",
    ]
    for d in range(v.batches):
        lines += [
            f"const i64 digit{d} = batch % batch{d}_extent;",
            f"batch /= batch{d}_extent;",
            f"left_at += digit{d} * batch{d}_left;",
            f"right_at += digit{d} * batch{d}_right;",
            f"to_at += digit{d} * batch{d}_output;",
            f"length += digit{d} * batch{d}_terms;",
        ]
    lines.append(f"const i64 last_row = row0 + {rows} < m ? row0 + {rows} - 1 : m - 1;")
    lines.append("const i64 longest = length + row_terms * last_row;" if v.growing else "const i64 longest = length;")
    row = [f"(row0 + down * {down} + {r})" for r in range(down)]
    column = [f"(column0 + across * {across} + {c})" for c in range(across)]
    place = "to_at + {} * output_row + {} * output_column"
    for r in range(down):
        for c in range(across):
            inside = f"{row[r]} < m && {column[c]} < n"
            start = f"{inside} ? to[{place.format(row[r], column[c])}] : 0.0" if v.started else "seed"
            lines.append(f"f64 sum{r}_{c} = {start};")
        if v.growing:
            lines.append(f"const i64 length{r} = length + row_terms * {row[r]};")
    lines.append(f"for (i64 k0 = 0; k0 < longest; k0 += {depth}) {{")
    lines += [f"    {line}" for line in (*_bring(v, tile, 0), *_bring(v, tile, 1))]
    lines += [
        f"    {dialect.barrier}",
        f"    const int end = longest - k0 < {depth} ? (int)(longest - k0) : {depth};",
        "    for (int k = 0; k < end; ++k) {",
        *(f"        const f64 x{r} = a[k][down * {down} + {r}];" for r in range(down)),
        *(f"        const f64 y{c} = b[k][across * {across} + {c}];" for c in range(across)),
    ]
    add, multiply = dialect.arithmetic["fadd"], dialect.arithmetic["fmul"]
    for r in range(down):
        grown = f"if (k0 + k < length{r}) " if v.growing else ""
        updates = [
            f"sum{r}_{c} = {_open(add.format(f'sum{r}_{c}', multiply.format(f'x{r}', f'y{c}')))};"
            for c in range(across)
        ]
        if v.growing:
            lines += [f"        {grown}{{", *(f"            {u}" for u in updates), "        }"]
        else:
            lines += [f"        {u}" for u in updates]
    lines += ["    }", f"    {dialect.barrier}", "}"]
    for r in range(down):
        for c in range(across):
            stored = f"to[{place.format(row[r], column[c])}] = canonical(sum{r}_{c});"
            lines.append(f"if ({row[r]} < m && {column[c]} < n) {stored}")
    return lines


def _open(text: str) -> str:
    return text[1:-1] if text.startswith("(") else text


def _bring(v: Variant, tile: Tile, side: int) -> list[str]:
    """The group's items bring terms k0 … of the left (side 0) or the right into local memory, widened."""
    name, local = ("left", "a") if side == 0 else ("right", "b")
    lines_of = tile.rows if side == 0 else tile.columns
    first, bound, stride = ("row0", "m", "left_row") if side == 0 else ("column0", "n", "right_column")
    kind = v.kinds[side]
    size, items = lines_of * tile.depth, tile.items[0] * tile.items[1]
    along = v.along[side]
    k, x = (f"t % {tile.depth}", f"t / {tile.depth}") if along else (f"t / {lines_of}", f"t % {lines_of}")
    longest = f"length + row_terms * ({first} + x)" if v.growing and side == 0 else "longest"
    read = f"from_{kind.value}({name}[{name}_at + ({first} + x) * {stride} + (k0 + k) * {name}_depth])"
    return [
        f"for (int t = item; t < {size}; t += {items}) {{",
        f"    const int k = {k}, x = {x};",
        f"    const bool there = {first} + x < {bound} && k0 + k < {longest};",
        f"    {local}[k][x] = there ? {read} : 0.0;",
        "}",
    ]
