"""The fixed kernels: what a filter keeps, and sums into places.

Goes out: `Text`s. Where many items share a launch, each owns outputs of its own, and every output sees its terms in the
order of the contract (spec/gpu-surface, S2.4, S2.9).
"""

from __future__ import annotations

from osprey_py.backends.c.dialect import TYPES, Dialect
from osprey_py.backends.c.kernels import ENTRY, Text, program, stored
from osprey_py.backends.protocol import KIND_OF, Kind

CHUNK = 256
"""Elements that one item of a filter looks at."""
GROUP = 64
"""Items that add up what the chunks keep."""


def _text(dialect: Dialect, declared: list[tuple[str, str]], lines: str, group: int | None = None) -> Text:
    """group: how many items its one group has; any number of any size where not given."""
    parameters = ", ".join(text for _, text in declared)
    size = "" if group is None else f" {dialect.group_size.format(group, 1)}"
    body = f"{dialect.kernel.replace(' void', '')}{size} void {ENTRY}({parameters}) {{\n{lines}}}\n"
    return Text(program(dialect, body, {}), tuple(kind for kind, _ in declared))


def _memory(dialect: Dialect) -> str:
    return f"{dialect.memory} " if dialect.memory else ""


def counts(dialect: Dialect) -> Text:
    """How many of each chunk's elements are kept."""
    memory = _memory(dialect)
    declared = [("int", "const i64 n"), ("buffer", f"{memory}const u8 *kept"), ("buffer", f"{memory}i64 *counts")]
    return _text(
        dialect,
        declared,
        f"""\
    const i64 chunk = {dialect.item}, begin = chunk * {CHUNK};
    if (begin >= n) return;
    const i64 end = begin + {CHUNK} < n ? begin + {CHUNK} : n;
    i64 count = 0;
    for (i64 i = begin; i < end; ++i) count += kept[i];
    counts[chunk] = count;
""",
    )


def starts(dialect: Dialect) -> Text:
    """Where each chunk's kept elements go: counts become sums of those before; total[place] is all of them. One group:
    each item adds up a share of the counts, and begins where the items before it end."""
    memory = _memory(dialect)
    declared = [
        ("int", "const i64 chunks"),
        ("buffer", f"{memory}i64 *counts"),
        ("buffer", f"{memory}i64 *total"),
        ("int", "const i64 place"),
    ]
    return _text(
        dialect,
        declared,
        f"""\
    {dialect.local} i64 sums[{GROUP}];
    const i64 item = {dialect.item}, share = (chunks + {GROUP - 1}) / {GROUP};
    const i64 begin = item * share, end = begin + share < chunks ? begin + share : chunks;
    i64 sum = 0;
    for (i64 chunk = begin; chunk < end; ++chunk) sum += counts[chunk];
    sums[item] = sum;
    {dialect.barrier}
    i64 at = 0;
    for (i64 before = 0; before < item; ++before) at += sums[before];
    for (i64 chunk = begin; chunk < end; ++chunk) {{
        const i64 count = counts[chunk];
        counts[chunk] = at;
        at += count;
    }}
    if (item == {GROUP - 1}) total[place] = at;
""",
        group=GROUP,
    )


def compact(dialect: Dialect, kind: Kind) -> Text:
    """The kept elements of a slot of this kind, side by side."""
    memory = _memory(dialect)
    ty = kind.type
    out = TYPES[KIND_OF[ty]]
    element = stored(f"from_{kind.value}(from[begin + i])", ty)
    declared = [
        ("int", "const i64 n"),
        ("buffer", f"{memory}const u8 *kept"),
        ("buffer", f"{memory}const i64 *starts"),
        ("buffer", f"{memory}const {TYPES[kind]} *from"),
        ("int", "const i64 begin"),
        ("buffer", f"{memory}{out} *to"),
        ("int", "const i64 to_begin"),
    ]
    return _text(
        dialect,
        declared,
        f"""\
    const i64 chunk = {dialect.item}, first = chunk * {CHUNK};
    if (first >= n) return;
    const i64 end = first + {CHUNK} < n ? first + {CHUNK} : n;
    i64 at = to_begin + starts[chunk];
    for (i64 i = first; i < end; ++i)
        if (kept[i]) to[at++] = {element};
""",
    )


def accumulate(dialect: Dialect, kind: Kind, base: Kind | None = None) -> Text:
    """Values added at their places, in their order. Each item owns a share of the outputs, looks at every value and adds
    those that are its own. With a base, sums wait apart, and only what was named is added to its element."""
    memory = _memory(dialect)
    add = dialect.arithmetic["fadd"]
    sums = "output" if base is None else "sums"
    declared = [
        ("int", "const i64 n"),
        ("int", "const i64 shares"),
        ("buffer", f"{memory}f64 *to"),
        ("int", "const i64 to_begin"),
        ("int", "const i64 count"),
        ("buffer", f"{memory}const i64 *from0"),
        ("int", "const i64 begin0"),
        ("buffer", f"{memory}const {TYPES[kind]} *from1"),
        ("int", "const i64 begin1"),
    ]
    last, clear, mark = "output[at]", "", ""
    if base is not None:
        declared += [
            ("buffer", f"{memory}const {TYPES[base]} *from2"),
            ("int", "const i64 begin2"),
            ("buffer", f"{memory}f64 *sums"),
            ("buffer", f"{memory}u8 *named"),
        ]
        element = f"from_{base.value}(from2[begin2 + at])"
        last = f"named[at] ? {add.format(element, 'sums[at]')} : {element}"
        clear, mark = "named[at] = 0; ", "named[at] = 1; "
    added = add.format(f"{sums}[at]", f"from_{kind.value}(values[j])")
    return _text(
        dialect,
        declared,
        f"""\
    {memory}f64 *output = to + to_begin;
    {memory}const i64 *places = from0 + begin0;
    {memory}const {TYPES[kind]} *values = from1 + begin1;
    const i64 share = {dialect.item}, size = (n + shares - 1) / shares;
    if (share >= shares) return;
    const i64 low = share * size, high = low + size < n ? low + size : n;
    for (i64 at = low; at < high; ++at) {{ {clear}{sums}[at] = 0.0; }}
    for (i64 j = 0; j < count; ++j) {{
        const i64 at = places[j];
        if (low <= at && at < high) {{ {mark}{sums}[at] = {added}; }}
    }}
    for (i64 at = low; at < high; ++at) output[at] = canonical({last});
""",
    )
