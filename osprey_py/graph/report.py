"""The text of `--profile`: where a program's time went, by kernel and by source line, beside what the machine can do.

Comes in: a `Profile` and, where the device knows them, its `Limits`. Goes out: text.
"""

from __future__ import annotations

from collections.abc import Iterable

from osprey_py.backends.limits import Limits
from osprey_py.graph.trace import Profile, Record, table, where
from osprey_py.source.span import NO_SPAN, Span

MOST = 40
"""Rows of a table; the rest is summed in one."""
WIDTH = 72
"""Characters of a source line that are shown."""


def report(profile: Profile, limits: Limits | None) -> str:
    """Totals, kernels, lines; each table costliest first."""
    records = sorted(profile.records, key=lambda r: -r.seconds)
    whole = profile.clock() - profile.begun
    inside, making = sum(r.seconds for r in records), sum(r.making for r in records)
    lines = [
        f"{whole:.3f} s: {inside:.3f} s in {sum(r.runs for r in records)} launches of {len(records)} kernels, "
        f"{making:.3f} s making their code, {profile.planning:.3f} s planning, "
        f"{max(0.0, whole - inside - making - profile.planning):.3f} s elsewhere",
        "launches run one by one here, so that each can be timed",
    ]
    if limits is not None:
        rates = ", ".join(f"{rate / 1e9:.0f} to {_size(size)}" for size, rate in limits.rates[:-1])
        lines += [
            f"at most {limits.operations / 1e9:.1f} GFLOP/s, every product rounded before it is added, and "
            f"{limits.rates[-1][1] / 1e9:.1f} GB/s read from memory ({rates} of data, from caches):",
            f"{limits.described}; limit: the share of what bounds the kernel, A arithmetic, M memory, C cache",
        ]
    lines += ["", *_kernels(records, limits), "", *_lines(records)]
    return "\n".join(lines)


def _kernels(records: list[Record], limits: Limits | None) -> list[str]:
    head = ("ms", "%", "runs", "µs a run", "GFLOP/s", "GB/s", "limit", "code ms", "kernel", "from")
    whole = sum(r.seconds for r in records) or 1.0
    rows: list[tuple[str, ...]] = [head]
    for r in records[:MOST]:
        rows.append(
            (
                f"{r.seconds * 1e3:.3f}",
                f"{100 * r.seconds / whole:.1f}",
                str(r.runs),
                f"{r.seconds / r.runs * 1e6:.1f}",
                _rate(r.operations, r.seconds),
                _rate(r.bytes, r.seconds),
                "" if limits is None else share(r, limits),
                f"{r.making * 1e3:.1f}",
                r.kernel,
                where(r.places),
            )
        )
    return [*table(rows), *_rest(records[MOST:], whole, "kernels")]


def _lines(records: list[Record]) -> list[str]:
    """Of a kernel made of several launches, each line has its part of the work."""
    seconds: dict[tuple[str, int], float] = {}
    spans: dict[tuple[str, int], Span] = {}
    for r in records:
        for span, part in r.shares.items():
            if span is NO_SPAN:
                continue
            at = (span.source.path, span.source.position(span.start)[0])
            spans.setdefault(at, span)
            seconds[at] = seconds.get(at, 0.0) + part * r.seconds
    whole = sum(r.seconds for r in records) or 1.0
    order = sorted(seconds, key=lambda at: -seconds[at])
    rows: list[tuple[str, ...]] = [("ms", "%", "line", "")]
    for at in order[:MOST]:
        text = spans[at].source.line(at[1]).strip()
        shown = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
        rows.append((f"{seconds[at] * 1e3:.3f}", f"{100 * seconds[at] / whole:.1f}", f"{at[0]}:{at[1]}", shown))
    rest = sum(seconds[at] for at in order[MOST:])
    more = [f"{rest * 1e3:.3f} ms in {len(order) - MOST} more lines"] if len(order) > MOST else []
    return [*table(rows), *more]


def _rest(records: Iterable[Record], whole: float, what: str) -> list[str]:
    left = list(records)
    seconds = sum(r.seconds for r in left)
    return [f"{seconds * 1e3:.3f} ms ({100 * seconds / whole:.1f} %) in {len(left)} more {what}"] if left else []


def share(record: Record, limits: Limits) -> str:
    """How much of its time a kernel would need at the limit that it meets, and which that is."""
    if not record.runs or not record.seconds:
        return ""
    size = record.bytes // record.runs
    arithmetic = limits.arithmetic(record.operations)
    traffic = record.runs * limits.traffic(size)
    name = "A" if arithmetic >= traffic else "M" if limits.rate(size) == limits.rates[-1][1] else "C"
    return f"{100 * max(arithmetic, traffic) / record.seconds:.0f}% {name}"


def _rate(amount: int, seconds: float) -> str:
    return f"{amount / seconds / 1e9:.2f}" if seconds else ""


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"
