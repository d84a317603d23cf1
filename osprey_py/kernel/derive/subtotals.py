"""A read's contributions, added up for every element of the slot (spec/gradients, G3).

Comes in: a `Read`, the inverse of its address. Goes out: launches, and what they are a subtotal of. Where the address
can be turned around, a launch over the slot's elements finds for each the executions that read it; the digits that are
free are summed over by one fold, from 0.0, ascending. Elsewhere two launches over all executions give contributions and
the elements that they belong to.
"""

from __future__ import annotations

from collections.abc import Collection

from osprey_py.kernel.derive.addresses import Digit, Inverse
from osprey_py.kernel.derive.conditions import NEVER, Condition
from osprey_py.kernel.derive.launches import Launches, number, op
from osprey_py.kernel.derive.recipe import Adjoint, Dense, Made, Scattered
from osprey_py.kernel.derive.reverse import Read
from osprey_py.kernel.derive.subject import index_of
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Node, const, fold, index, select, var


def executed(launches: Launches, r: Read, folds: Collection[Node], when: Condition) -> Condition:
    """When an execution in the rectangle of elements and greatest steps is one of these folds' steps, and `when`."""
    for f in reversed(r.path):
        if f in folds:
            there = Node("lt", BOOL, (var(index_of(f)), launches.subject.count(f)))
            when = there if when is None else select(there, when, const(False))
    return when


def subtotal(
    launches: Launches, r: Read, inverse: Inverse | None, which: int, same: frozenset[Node]
) -> Dense | Scattered:
    """which: the read's number, that its numbers are known by."""
    assert isinstance(r.node.attr, int)
    if r.when is NEVER:
        return Dense(launches.emit("map", const(0.0), ("length", r.node.attr)), True)
    varying = frozenset(r.path) - same
    if inverse is None:
        return _scattered(launches, r, executed(launches, r, varying, r.when))
    told = {f for f in varying if launches.subject.number[f] in inverse.told} if inverse.free else set()
    when = executed(launches, r, varying - told, r.when)
    value = launches.outlined(r.value if when is None else select(when, r.value, const(0.0)), whole=True)
    there = executed(launches, r, told, None)
    if inverse.one and when is None:
        ready = _ready(value)
        if ready is not None:
            return Dense(ready, False)
    turned = _Turned(inverse, which)
    at, steps = turned.executions(launches, var(turned.step))
    placed = launches.placed(value, at, steps)
    if there is not None:
        # The same in all executions that met the element: it is asked of the first.
        first = _Turned(inverse, which).executions(launches, const(0))
        turned.guards.append(launches.placed(launches.outlined(there, whole=True), *first))
    if inverse.free:
        acc = Bound(FLOAT, "sum")
        step = Node("fadd", FLOAT, (var(acc), placed))
        (placed,) = fold(turned.number(-2), turned.step, (acc,), (const(0.0),), (step,))
    for guard in reversed(turned.guards):
        placed = select(guard, placed, const(0.0))
    made = launches.emit("map", placed, ("length", r.node.attr))
    return Dense(made, bool(inverse.free))


def _ready(value: Node) -> Adjoint | Made | None:
    """The buffer that a value is an element of, at the launch's own index."""
    if value.op == "load" and isinstance(value.attr, Adjoint | Made) and value.args[0].op == "index":
        return value.attr
    return None


def _scattered(launches: Launches, r: Read, when: Condition) -> Scattered:
    at = launches.subject.values[r.node.args[0]]
    element, steps = launches.unflat(r.path, index())
    size = launches.size(r.path)

    def all_executions(node: Node) -> Node:
        return launches.placed(launches.outlined(node, whole=True), element, steps)

    indices = at if when is None else select(when, at, const(-1))
    places = launches.emit("map", all_executions(indices), size)
    value = launches.outlined(r.value if when is None else select(when, r.value, const(0.0)), whole=True)
    ready = None if r.path else _ready(value)
    return Scattered(places, ready or launches.emit("map", launches.placed(value, element, steps), size))


class _Turned:
    """The inverse of an address as expressions of the element, `index`. step: counts executions of one element."""

    def __init__(self, inverse: Inverse, which: int) -> None:
        self.inverse = inverse
        self.which = which
        self.step = Bound(INT, "k")
        self.guards: list[Node] = []

    def number(self, j: int) -> Node:
        return number(("site", self.which, j))

    def executions(self, launches: Launches, step: Node) -> tuple[Node, dict[Bound, Node]]:
        """The launch index and the fold indices in a step over the executions that met the element."""
        found: dict[int, Node] = {}

        def add(d: Digit, value: Node, unit: Node) -> None:
            part = value if d.whole else op("wmul", value, unit)
            found[d.source] = op("wadd", found[d.source], part) if d.source in found else part

        for k, (d, value) in enumerate(zip(self.inverse.fixed, self._fixed(), strict=True)):
            add(d, value, self.number(5 * k))
        first = 5 * len(self.inverse.fixed)
        for k, d in enumerate(self.inverse.free):
            counted = step
            if k + 1 < len(self.inverse.free):
                counted = op("uquot", counted, self.number(first + 3 * k + 2))
            if k:
                counted = op("urem", counted, self.number(first + 3 * k + 1))
            add(d, counted, self.number(first + 3 * k))
        folds = launches.subject.folds
        steps = {index_of(f): found.get(k, const(0)) for k, f in enumerate(folds)}
        return found.get(-1, const(0)), steps

    def _fixed(self) -> list[Node]:
        """The digits that the element tells; notes the guards."""
        values: list[Node] = []
        rest = index()
        fixed = self.inverse.fixed
        for k, d in enumerate(fixed):
            extent, multiple, within, taken = (self.number(5 * k + j) for j in (1, 2, 3, 4))
            if d.apart:
                rest = op("wsub", rest, taken)
                if d.later and not d.once:
                    self.guards.append(Node("le", BOOL, (const(0), rest)))
            x = rest if d.once else op("uquot", rest, multiple)
            if d.later:
                x = x if d.apart else op("wsub", x, within)
                if d.once or not d.apart:
                    self.guards.append(Node("le", BOOL, (const(0), x)))
            if not d.once and (k + 1 < len(fixed) or self.inverse.holes):
                rest = op("urem", rest, multiple)
            if d.open:
                self.guards.append(Node("lt", BOOL, (x, extent)))
            values.append(op("wsub", op("wsub", extent, const(1)), x) if d.backwards else x)
        if self.inverse.holes:
            self.guards.append(Node("eq", BOOL, (rest, self.number(-1))))
        return values
