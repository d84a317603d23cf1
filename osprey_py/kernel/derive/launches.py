"""The launches of a backward pass, out of expressions over a kernel's own index and fold indices.

Comes in: expressions as kernel/derive/reverse.py makes them. Goes out: kernels with slots and uniforms of their own,
and what each of those is; numbers that follow from lengths are named here (`Number`) and filled in at each launch
(kernel/derive/addresses.py), so that one kernel serves all lengths.

A fold is always a launch of its own, and so is what a fold's body, or the site of a read inside a fold, needs of the
element around it: what is left are plain reads, and a sum of products of those is a contraction that
kernel/contraction.py finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from osprey_py.kernel.derive.recipe import Given, Input, Made, Ref, Result
from osprey_py.kernel.derive.rows import Along, Rows
from osprey_py.kernel.derive.subject import Path, Subject, index_of
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Kernel, Node, Ty, const, index, rebuild, select, walk
from osprey_py.kernel.scopes import binds, body, free
from osprey_py.kernel.share import share
from osprey_py.kernel.simplify import simplify
from osprey_py.kernel.substitute import rewrite

Number = tuple[str | int, ...]
"""("steps", f): the greatest number of steps of fold f. ("length", k): of slot k. ("site", k, j): a number of the
inverse of the k-th read. ("flat", f …): how many executions there are of what is written in these folds."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A Make whose numbers are named."""

    op: Literal["map", "scan"]
    kernel: Kernel
    inputs: tuple[Ref, ...]
    uniforms: tuple[Given | Number | float, ...]
    length: Number


def number(n: Number) -> Node:
    """A number as an int of a kernel under construction."""
    return Node("uniform", INT, (), n)


def op(name: str, *args: Node) -> Node:
    """An int operation."""
    return Node(name, INT, args)


def read(ref: Ref, ty: Ty, at: Node) -> Node:
    """An element of a Ref, in a kernel under construction."""
    return Node("load", ty, (at,), ref)


@dataclass(eq=False)
class Launches:
    """launches: so far, in order. exact: those whose results hold no -0.0."""

    subject: Subject
    launches: list[Launch] = field(default_factory=list)
    made: dict[Node, Node] = field(default_factory=dict)
    scans: dict[Rows | Along, Made] = field(default_factory=dict)
    forward: dict[Bound, Node] = field(init=False)
    """The forward kernel's folds, by their index."""

    def __post_init__(self) -> None:
        self.forward = {index_of(f): f for f in self.subject.folds}

    # --- places ----------------------------------------------------------------------------------

    def flat(self, path: Path) -> Node:
        """Which execution it is of what is written at a path: a rectangle of elements and steps."""
        at = index()
        for f in path:
            at = op("wadd", op("wmul", at, self.steps(f)), Node("var", INT, (), index_of(f)))
        return at

    def unflat(self, path: Path, at: Node) -> tuple[Node, dict[Bound, Node]]:
        """The element and the steps of an execution."""
        steps: dict[Bound, Node] = {}
        for f in reversed(path):
            steps[index_of(f)] = op("urem", at, self.steps(f))
            at = op("uquot", at, self.steps(f))
        return at, steps

    def steps(self, f: Node) -> Node:
        return number(("steps", self.subject.number[f]))

    def size(self, path: Path) -> Number:
        return ("flat", *(self.subject.number[f] for f in path))

    def level(self, loose: frozenset[Bound]) -> Path:
        """Where something that reads these fold indices is the same in all executions."""
        paths = [self.subject.inside(self.forward[b]) for b in loose]
        return max(paths, key=len, default=())

    # --- launches of their own -------------------------------------------------------------------

    def value(self, node: Node) -> Node:
        """A read of what a launch of its own makes of an expression."""
        found = self.made.get(node)
        if found is None:
            path = self.level(free((node,))[node])
            found = self.made[node] = self.launch(node, path)
        return found

    def launch(self, node: Node, path: Path) -> Node:
        """A read, at a path, of an expression that is computed for each execution of what is written there."""
        at, steps = self.unflat(path, index())
        result = guarded(self.placed(self.outlined(node), at, steps))
        return read(self.emit("map", result, self.size(path)), node.type, self.flat(path))

    def emit(
        self,
        kind: Literal["map", "scan"],
        result: Node,
        size: Number,
        acc: Bound | None = None,
        init: Node | None = None,
    ) -> Made:
        """One more launch, of an expression over its own index."""
        self.launches.append(self._closed(kind, result, size, acc, init))
        return Made(len(self.launches) - 1)

    def placed(self, node: Node, element: Node, steps: Mapping[Bound, Node]) -> Node:
        """An expression at another element, in certain steps."""

        def rule(old: Node, args: tuple[Node, ...]) -> Node | None:
            if old.op == "index":
                return element
            return steps.get(old.attr) if old.op == "var" and isinstance(old.attr, Bound) else None

        return rewrite(node, rule)

    # --- what is taken out -----------------------------------------------------------------------

    def outlined(self, root: Node, *, whole: bool = False) -> Node:
        """An expression in which folds, and what does not change where it is used, are reads of launches of their own.
        whole: the root too, where it is a fold."""
        loose = free((root,))
        known = frozenset(self.forward)
        done: dict[Node, Node] = {}
        seen: set[Node] = set()
        stack: list[tuple[Node, frozenset[Bound]]] = [(root, loose[root])]
        while stack:
            node, around = stack.pop()
            taken = self._taken(node, loose[node], around, known, node is root and not whole)
            if taken is not None:
                done[node] = taken
            elif node not in seen:
                seen.add(node)
                inner = frozenset(binds(node))
                inside = frozenset(body(node))
                for a in node.args:
                    stack.append((a, loose[node] | inner if a in inside else loose[node]))
        return rewrite(root, self._kept, done)

    def _taken(
        self, node: Node, loose: frozenset[Bound], around: frozenset[Bound], known: frozenset[Bound], root: bool
    ) -> Node | None:
        """What a node is read as when it is taken out of an expression that depends on `around`."""
        if node is self.subject.result and not cheap(node):
            return read(Result(), node.type, index())
        if root or not loose <= known:
            return None
        if node.op == "proj" or (node.type is FLOAT and loose < around and not cheap(node)):
            return self.value(node)
        return None

    # --- what is kept for every step -------------------------------------------------------------

    def _kept(self, node: Node, args: tuple[Node, ...]) -> Node | None:
        """A read of what a scan of its own makes."""
        what = node.attr
        if node.op == "load" and isinstance(what, Rows):
            ref = self.scans.get(what) or self._rows(what)
            at = index()
            for f, step in zip(self.subject.inside(what.fold), args, strict=True):
                if f is what.fold and what.backwards:
                    step = op("wsub", op("wsub", self.steps(f), const(1)), step)
                at = op("wadd", op("wmul", at, self.steps(f)), step)
            return read(ref, node.type, at)
        if node.op == "load" and isinstance(what, Along):
            ref = self.scans.get(what) or self._along(what)
            return read(ref, node.type, self.opposite(args[0]))
        return None

    def opposite(self, at: Node) -> Node:
        """The element as far from the end."""
        return op("wsub", op("wsub", number(("flat",)), const(1)), at)

    def _along(self, along: Along) -> Made:
        element = self.opposite(index())
        result = own = self.placed(self.outlined(along.own), element, {})
        if along.step is not None:
            after = op("wadd", element, const(1))
            goes_on = Node("lt", BOOL, (after, number(("flat",))))
            if along.when is not None:
                when = self.placed(self.outlined(along.when, whole=True), after, {})
                goes_on = select(goes_on, when, const(False))
            step = self.placed(self.outlined(along.step, whole=True), after, {})
            result = select(goes_on, Node("fadd", FLOAT, (own, step)), own)
        made = self.emit("scan", result, self.size(()), along.before, const(0.0))
        self.scans[along] = made
        return made

    def _rows(self, rows: Rows) -> Made:
        fold = rows.fold
        inside = self.subject.inside(fold)
        element, steps = self.unflat(inside, index())
        place = steps[index_of(fold)]
        if rows.backwards:
            last = op("wsub", op("wsub", self.steps(fold), const(1)), place)
            count = self.placed(self.outlined(rows.count, whole=True), element, steps)
            begins = Node("le", BOOL, (count, op("wadd", last, const(1))))
            passed = op("wadd", last, const(1))
        else:
            begins = Node("eq", BOOL, (place, const(0)))
            passed = op("wsub", place, const(1))
        first = self.placed(self.outlined(rows.first, whole=True), element, steps)
        step = self.placed(self.outlined(rows.step, whole=True), element, {**steps, index_of(fold): passed})
        zero = {INT: 0, FLOAT: 0.0, BOOL: False}[rows.type]
        made = self.emit("scan", guarded(select(begins, first, step)), self.size(inside), rows.before, const(zero))
        self.scans[rows] = made
        return made

    # --- kernels ---------------------------------------------------------------------------------

    def _closed(
        self, kind: Literal["map", "scan"], result: Node, size: Number, acc: Bound | None, init: Node | None
    ) -> Launch:
        """A kernel with its slots and uniforms numbered, and what they are."""
        forward = self.subject.kernel
        loaded = {n.attr for n in walk((result,)) if n.op == "load"}
        slots: dict[object, Ty] = {}
        uniforms: dict[object, Ty] = {}

        def slot(what: object, ty: Ty) -> int:
            slots.setdefault(what, ty)
            return list(slots).index(what)

        def uniform(what: object, ty: Ty) -> Node:
            uniforms.setdefault(what, ty)
            return Node("uniform", ty, (), list(uniforms).index(what))

        def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
            what = node.attr
            match node.op:
                case "uniform":
                    return uniform(what, node.type)
                case "load":
                    return Node("load", node.type, args, slot(what, node.type))
                case "length" | "inrange" if isinstance(what, int):
                    # A slot that is not read need not be there.
                    if what in loaded:
                        return Node(node.op, node.type, args, slot(what, forward.slots[what]))
                    length = uniform(("length", what), INT)
                    return length if node.op == "length" else inside(args[0], length)
            return None

        result = rewrite(result, rule)
        kernel = Kernel(
            tuple(slots.values()),
            tuple(uniforms.values()),
            result,
            acc=acc,
            init=None if init is None else rewrite(init, rule),
            name=f"gradient of {forward.name}",
            sources=forward.sources,
        )
        kernel = share(simplify(kernel))
        refs = tuple(Input(x) if isinstance(x, int) else x for x in slots)
        given = tuple(Given(x) if isinstance(x, int) else x for x in uniforms)
        return Launch(kind, kernel, refs, given, size)  # type: ignore[arg-type]


def guarded(root: Node) -> Node:
    """An expression that is computed also where the program did not: reads of inputs look whether they are in range."""

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op == "load" and isinstance(node.attr, int):
            there = Node("inrange", BOOL, args, node.attr)
            return select(there, rebuild(node, args), const({INT: 0, FLOAT: 0.0, BOOL: False}[node.type]))
        if node.op == "select":
            c, a, _ = node.args
            if c.op == "inrange" and a.op == "load" and c.attr == a.attr and c.args == a.args:
                return select(args[0], args[1].args[1], args[2])
        return None

    return rewrite(root, rule)


def inside(at: Node, length: Node) -> Node:
    """0 <= at < length"""
    return Node("band", BOOL, (Node("le", BOOL, (const(0), at)), Node("lt", BOOL, (at, length))))


def cheap(node: Node) -> bool:
    """Not worth a launch of its own: a leaf, a read, a guarded read."""
    if node.op in ("select", "rare"):
        return all(map(cheap, node.args[1:]))
    return node.op in ("const", "uniform", "var", "index", "load", "tofloat")
