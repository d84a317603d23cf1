"""What was launched: a record for each kernel and place, for `--plan` and `--profile`.

Comes in: every step that ran, with its time. Goes out: `Record`s, summed over the runs of a plan; the table of `--plan`.
That of `--profile` is graph/report.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from osprey_py.backends.protocol import Step
from osprey_py.graph.buffer import Node
from osprey_py.graph.frame import Recipe
from osprey_py.graph.plan import Plan
from osprey_py.graph.work import Work, Works
from osprey_py.source.span import NO_SPAN, Span


@dataclass(slots=True)
class Record:
    """The steps that run one kernel for launches written at the same places. kernel: its name, with the names of all
    launches in it. Summed over its runs: elements; bytes read and written and operations on floats (graph/work.py); seconds
    that they took, and those that making or loading their code took. shares: what each place has of its work, in parts
    of 1."""

    kernel: str
    places: tuple[Span, ...]
    runs: int = 0
    elements: int = 0
    bytes: int = 0
    operations: int = 0
    seconds: float = 0.0
    making: float = 0.0
    shares: dict[Span, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """A result that nobody asked for and that is stored all the same."""

    kernel: str
    place: Span
    reason: str


class Profile:
    """Watches a runtime. clock: seconds, from an arbitrary start. planning: seconds spent making plans."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.begun = clock()
        self.planning = 0.0
        self.records: list[Record] = []
        self.stored: list[Stored] = []
        self._works = Works()
        self._by_recipe: dict[int, tuple[Recipe, Record]] = {}
        self._by_kernel: dict[tuple[str, tuple[Span, ...]], Record] = {}

    def planned(self, plan: Plan, nodes: list[Node], seconds: float) -> None:
        """A plan was made for these nodes; it took so long."""
        self.planning += seconds
        for p, reason in plan.reasons.items():
            self.stored.append(Stored(_name(nodes[p]), _place(nodes[p]), reason))

    def ran(self, recipe: Recipe, step: Step, nodes: list[Node], seconds: float, making: float) -> None:
        """One step took so long, and its code, made before, so long."""
        known = self._by_recipe.get(id(recipe))
        if known is None:
            known = self._by_recipe[id(recipe)] = (recipe, self._record(recipe, step, nodes))
        record = known[1]
        work = self._work(step)
        record.runs += 1
        record.elements += step.n
        record.bytes += work.bytes
        record.operations += work.operations
        record.seconds += seconds
        record.making += making

    def text(self) -> str:
        """The steps, the most elements first, and what was not fused, each reason once for a place."""
        rows: list[tuple[str, ...]] = [("runs", "elements", "MB", "kernel", "from")]
        for r in sorted(self.records, key=lambda r: -r.elements):
            numbers = str(r.runs), str(r.elements), f"{r.bytes / 1e6:.2f}"
            rows.append((*numbers, r.kernel, where(r.places)))
        lines = table(rows)
        lines.append(f"{sum(r.runs for r in self.records)} launches of {len(self.records)} kernels")
        for s in dict.fromkeys(self.stored):
            lines.append(f"stored: {s.kernel} ({where((s.place,))}): {s.reason}")
        return "\n".join(lines)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _record(self, recipe: Recipe, step: Step, nodes: list[Node]) -> Record:
        group = recipe.group
        members = [nodes[p] for p in sorted({*group.members, group.value})]
        name = step.op if step.kernel is None else step.kernel.name
        places = tuple(s for s in dict.fromkeys(s for n in members for s in _places(n)) if s is not NO_SPAN)
        record = self._by_kernel.get((name, places))
        if record is None:
            record = self._by_kernel[name, places] = Record(name, places)
            record.shares = self._shares(members)
            self.records.append(record)
        return record

    def _work(self, step: Step) -> Work:
        """Of one step. What is moved lies in the storage's own types."""
        out = step.n * step.output.kind.itemsize
        lengths = [s.length for s in step.inputs]
        sizes = [s.kind.itemsize for s in step.inputs]
        if step.kernel is None:
            return Work(lengths[-1], out + sum(n * size for n, size in zip(lengths, sizes, strict=True)))
        found = self._works.of(step.kernel, lengths, sizes, step.uniforms, step.n)
        return Work(found.operations, found.bytes + out)

    def _shares(self, members: Sequence[Node]) -> dict[Span, float]:
        """How a step's work divides among the launches that became one: by operations, and an element at least."""
        parts: dict[Span, float] = {}
        for node in members:
            work = float(node.length)
            if node.kernel is not None:
                lengths = [x.length for x in node.inputs]
                work += self._works.of(node.kernel, lengths, [8] * len(lengths), node.uniforms, node.length).operations
            place = _place(node)
            parts[place] = parts.get(place, 0.0) + work
        whole = sum(parts.values())
        return {span: part / whole for span, part in parts.items()} if whole else {}


def _name(node: Node) -> str:
    return node.op if node.kernel is None else node.kernel.name


def _places(node: Node) -> tuple[Span, ...]:
    """Where a launch is written, and the functions that its kernel was given: a library's launch is told by these."""
    return (node.span,) if node.kernel is None else (node.span, *node.kernel.sources[1:])


def _place(node: Node) -> Span:
    """The one place that tells a launch from others: where it is written, or the function that was given to it there."""
    places = _places(node)
    return places[1] if len(places) > 1 else places[0]


def where(places: Sequence[Span]) -> str:
    """path:line of each place."""
    return ", ".join(dict.fromkeys(span.place.rsplit(":", 1)[0] for span in places))


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Numbers to the right, the last two columns to the left."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(w) for cell, w in zip(row[:-2], widths, strict=False)]
        lines.append("  ".join([*cells, row[-2].ljust(widths[-2]), row[-1]]).rstrip())
    return lines
