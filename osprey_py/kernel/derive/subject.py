"""A kernel looked at for its derivative: what depends on the wanted slots, and in which fold each node was written.

Comes in: a kernel as extracted and the slots whose adjoint is wanted. Goes out: a `Subject`. Nothing here depends on
lengths or on values.

Where a node was *written* decides how often it is executed (spec/gradients, G1, G3): what stands in a fold's function
is executed in every step, whether it reads the fold's variables or not. Extraction makes nodes in that order, so a node
belongs to a fold when it was made after the fold's variables and before the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from osprey_py.kernel.derive.rules import RULES
from osprey_py.kernel.faults import Bit, taken_apart
from osprey_py.kernel.ir import BOOL, FLOAT, Bound, FoldAttr, Kernel, Node, const, fold_parts, walk
from osprey_py.kernel.scopes import body, free
from osprey_py.kernel.substitute import rewrite

Path = tuple[Node, ...]
"""The folds around a place, outermost first."""


@dataclass(frozen=True, eq=False)
class Subject:
    """values, bits: every node where nothing faults, and the bit that it faulted. path: the folds that a node was
    written in. folds: all, outer ones first; number: their places there. active: the floats that an active slot
    reaches through operands that have derivatives. loads: the active reads, in order of evaluation."""

    kernel: Kernel
    order: tuple[Node, ...]
    values: dict[Node, Node]
    bits: dict[Node, Bit]
    path: dict[Node, Path]
    folds: tuple[Node, ...]
    active: frozenset[Node]
    loads: tuple[Node, ...]
    number: dict[Node, int] = field(init=False, repr=False)
    fold_of: dict[Bound, Node] = field(init=False, repr=False)
    """By a fold's index or accumulator."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", {f: k for k, f in enumerate(self.folds)})
        object.__setattr__(self, "fold_of", {b: f for f in self.folds for b in bounds(f)})

    def count(self, fold: Node) -> Node:
        """How many steps a fold has."""
        return self.values[fold].args[0]

    def inside(self, fold: Node) -> Path:
        """The path of what is written in a fold."""
        return (*self.path[fold], fold)

    @cached_property
    def questions(self) -> tuple[Node, ...]:
        """Booleans that the integers of a launch may decide."""
        roots = (self.values[self.kernel.result], *(b for b in self.bits.values() if b is not None))
        return tuple(
            n for n in walk(roots) if n.type is BOOL and n.op not in ("const", "var", "uniform", "load", "proj")
        )

    def decided(self, answers: Sequence[bool | None]) -> Subject:
        """The subject where questions have been answered: what they choose between is chosen."""
        known = {q: const(a) for q, a in zip(self.questions, answers, strict=True) if a is not None}
        if not known:
            return self
        done: dict[Node, Node] = dict(known)

        def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
            if node.op in ("select", "rare") and args[0].op == "const":
                return args[1] if args[0].attr else args[2]
            return None

        values = {n: rewrite(v, rule, done) for n, v in self.values.items()}
        bits = {n: None if b is None else rewrite(b, rule, done) for n, b in self.bits.items()}
        return replace(self, values=values, bits={n: None if _is_false(b) else b for n, b in bits.items()})

    @cached_property
    def result(self) -> Node:
        return self.values[self.kernel.result]

    @cached_property
    def accumulators(self) -> dict[Bound, Node]:
        """One `var` for each accumulator that is read, the first made."""
        found: dict[Bound, Node] = {}
        for node in self.order:
            if node.op == "var" and isinstance(node.attr, Bound):
                known = found.get(node.attr)
                if known is None or node.serial < known.serial:
                    found[node.attr] = node
        return found

    @cached_property
    def results(self) -> dict[tuple[Node, int], Node]:
        """One `proj` for each result of a fold that is read."""
        found: dict[tuple[Node, int], Node] = {}
        for node in self.order:
            if node.op == "proj" and isinstance(node.attr, int):
                found.setdefault((node.args[0], node.attr), node)
        return found

    @cached_property
    def within(self) -> dict[Node | None, list[Node]]:
        """The nodes written in each fold (None: in none), the last made first; a node in the innermost one alone."""
        found: dict[Node | None, list[Node]] = {}
        for node in self.order:
            path = self.path[node]
            found.setdefault(path[-1] if path else None, []).append(node)
        for nodes in found.values():
            nodes.sort(key=lambda n: n.serial, reverse=True)
        return found


def _is_false(bit: Bit) -> bool:
    return bit is not None and bit.op == "const" and bit.attr is False


def index_of(fold: Node) -> Bound:
    attr = fold.attr
    assert isinstance(attr, FoldAttr)
    return attr.index


def bounds(fold: Node) -> tuple[Bound, ...]:
    attr = fold.attr
    assert isinstance(attr, FoldAttr)
    return (attr.index, *attr.accs)


def look(kernel: Kernel, slots: Sequence[int]) -> Subject:
    """The kernel has no loops and no functions. O(nodes)."""
    roots = (kernel.result,)
    order = tuple(walk(roots))
    values, bits = taken_apart(kernel)
    path = _paths(roots, order)
    active = _active(order, frozenset(slots), kernel.acc)
    folds = sorted((n for n in order if n.op == "fold"), key=lambda n: (len(path[n]), n.serial))
    loads = sorted((n for n in order if n.op == "load" and n in active), key=lambda n: n.serial)
    return Subject(kernel, order, values, bits, path, tuple(folds), active, tuple(loads))


def _paths(roots: Sequence[Node], order: Sequence[Node]) -> dict[Node, Path]:
    """A node is written in the folds that all its users are written in, from the innermost one that it was made in, or
    whose variables it reads."""
    reads = free(roots)
    path: dict[Node, Path] = {}
    shared: dict[Node, Path] = dict.fromkeys(roots, ())
    for node in reversed(order):
        around = shared[node]
        while around and not _written_in(node, around[-1], reads[node]):
            around = around[:-1]
        path[node] = around
        inside = set(body(node))
        for a in node.args:
            place = (*around, node) if a in inside else around
            known = shared.get(a)
            shared[a] = place if known is None else _common(known, place)
    return path


def _written_in(node: Node, fold: Node, reads: frozenset[Bound]) -> bool:
    return index_of(fold).uid < node.serial or not reads.isdisjoint(bounds(fold))


def _common(a: Path, b: Path) -> Path:
    k = 0
    while k < min(len(a), len(b)) and a[k] is b[k]:
        k += 1
    return a[:k]


def _active(order: Sequence[Node], slots: frozenset[int], acc: Bound | None) -> frozenset[Node]:
    """The floats that a slot reaches. An accumulator is reached through its first value or its steps."""
    reached: set[Bound] = set()
    while True:
        active: set[Node] = set()
        before = len(reached)
        for node in order:
            if node.op == "fold":
                _, inits, nexts, attr = fold_parts(node)
                for b, first, following in zip(attr.accs, inits, nexts, strict=True):
                    if b.type is FLOAT and (first in active or following in active):
                        reached.add(b)
            elif node.type is FLOAT and _reaches(node, active, slots, reached):
                active.add(node)
        if acc is not None and order[-1] in active:
            reached.add(acc)
        if len(reached) == before:
            return frozenset(active)


def _reaches(node: Node, active: set[Node], slots: frozenset[int], reached: set[Bound]) -> bool:
    match node.op:
        case "load":
            return node.attr in slots
        case "var":
            return node.attr in reached
        case "proj":
            attr = node.args[0].attr
            return isinstance(attr, FoldAttr) and isinstance(node.attr, int) and attr.accs[node.attr] in reached
        case "select" | "rare":
            return not active.isdisjoint(node.args[1:])
        case "recover":
            return not active.isdisjoint(node.args)
        case "seq":
            return node.args[-1] in active
    return node.op in RULES and not active.isdisjoint(node.args)
