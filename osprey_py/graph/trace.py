"""What was launched, for `--plan`: a record per step of a plan, and the table made of them.

Comes in: every step that ran, with its time. Goes out: `Record`s, summed over the runs of a plan, and their text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from osprey_py.backends.protocol import Step
from osprey_py.graph.buffer import Node
from osprey_py.graph.frame import Recipe
from osprey_py.graph.plan import Plan
from osprey_py.source.span import NO_SPAN, Span


@dataclass(slots=True)
class Record:
    """The steps that run one kernel for launches written at the same places. kernel: its name, with the names of all
    launches in it; elements, bytes and seconds: summed over its runs; bytes: of the buffers read and written;
    first: seconds of the first run, in which code is made or loaded."""

    kernel: str
    places: tuple[Span, ...]
    runs: int = 0
    elements: int = 0
    bytes: int = 0
    seconds: float = 0.0
    first: float = 0.0


@dataclass(frozen=True, slots=True)
class Stored:
    """A result that nobody asked for and that is stored all the same."""

    kernel: str
    place: Span
    reason: str


class Profile:
    """Watches a runtime. clock: seconds, from an arbitrary start."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.records: list[Record] = []
        self.stored: list[Stored] = []
        self._by_recipe: dict[int, tuple[Recipe, Record]] = {}
        self._by_kernel: dict[tuple[str, tuple[Span, ...]], Record] = {}

    def planned(self, plan: Plan, nodes: list[Node]) -> None:
        """A plan was made for these nodes."""
        for p, reason in plan.reasons.items():
            self.stored.append(Stored(_name(nodes[p]), nodes[p].span, reason))

    def ran(self, recipe: Recipe, step: Step, nodes: list[Node], seconds: float) -> None:
        """One step took so long."""
        known = self._by_recipe.get(id(recipe))
        if known is None:
            known = self._by_recipe[id(recipe)] = (recipe, self._record(recipe, step, nodes))
        record = known[1]
        if not record.runs:
            record.first = seconds
        record.runs += 1
        record.elements += step.n
        record.bytes += step.output.nbytes + sum(s.nbytes for s in step.inputs)
        record.seconds += seconds

    def _record(self, recipe: Recipe, step: Step, nodes: list[Node]) -> Record:
        group = recipe.group
        spans = dict.fromkeys(nodes[p].span for p in sorted({*group.members, group.value}))
        name = step.op if step.kernel is None else step.kernel.name
        places = tuple(s for s in spans if s is not NO_SPAN)
        record = self._by_kernel.get((name, places))
        if record is None:
            record = self._by_kernel[name, places] = Record(name, places)
            self.records.append(record)
        return record

    def text(self) -> str:
        """The steps, costliest first, and what was not fused, each reason once for a place."""
        rows: list[tuple[str, ...]] = [("ms", "first", "runs", "elements", "MB", "GB/s", "kernel", "from")]
        for r in sorted(self.records, key=lambda r: -r.seconds):
            rate = r.bytes / r.seconds / 1e9 if r.seconds else 0.0
            where = ", ".join(dict.fromkeys(map(_place, r.places)))
            times = f"{r.seconds * 1e3:.3f}", f"{r.first * 1e3:.3f}"
            numbers = *times, str(r.runs), str(r.elements), f"{r.bytes / 1e6:.2f}", f"{rate:.2f}"
            rows.append((*numbers, r.kernel, where))
        total = sum(r.seconds for r in self.records)
        lines = _table(rows)
        lines.append(f"{sum(r.runs for r in self.records)} launches, {total * 1e3:.3f} ms in kernels")
        for s in dict.fromkeys(self.stored):
            lines.append(f"stored: {s.kernel} ({_place(s.place)}): {s.reason}")
        return "\n".join(lines)


def _name(node: Node) -> str:
    return node.op if node.kernel is None else node.kernel.name


def _place(span: Span) -> str:
    """path:line"""
    return span.place.rsplit(":", 1)[0]


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Numbers to the right, the last two columns to the left."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(w) for cell, w in zip(row[:-2], widths, strict=False)]
        lines.append("  ".join([*cells, row[-2].ljust(widths[-2]), row[-1]]).rstrip())
    return lines
