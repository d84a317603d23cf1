"""Reverse accumulation over a kernel, as expressions (spec/gradients, G2, G3, G5, G6).

Comes in: a `Subject`, and which of its folds have at least one step in every element. Goes out: its `Read`s: for every
execution of an active load, whether it contributes to its element, and what. The expressions are nodes over the
kernel's own index and fold indices; a load's `attr` is what it reads: an input's number, a Ref, or `Wanted`, a launch
still to be made (kernel/derive/launches.py).

A value's adjoint is the sum of what its sites contributed, the site evaluated last first. A choice (`select`, `recover`,
`seq`) is no operation: what reads it reads the operand chosen. What is read in a fold that it was not written in is
summed over the fold's steps, from 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from osprey_py.kernel.derive.conditions import NEVER, Condition, Conditions
from osprey_py.kernel.derive.folds import go_back, replaced
from osprey_py.kernel.derive.recipe import Adjoint, Result
from osprey_py.kernel.derive.rows import Along, of_before
from osprey_py.kernel.derive.rules import RULES, Part
from osprey_py.kernel.derive.subject import Path, Subject, bounds, index_of
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Node, const, fold, index, select, var
from osprey_py.kernel.scopes import free
from osprey_py.kernel.substitute import instantiate

Key = tuple[float, int]
"""Where a site stands in the order of evaluation: (when its operation was made, which operand)."""


@dataclass(frozen=True, eq=False, slots=True)
class Contribution:
    """One site's, in each execution of what is written at `path`, when the condition holds there."""

    key: Key
    path: Path
    when: Condition
    value: Node


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """An active load, and what its executions contribute to the element they read."""

    node: Node
    path: Path
    when: Condition
    value: Node


def reads(subject: Subject, positive: frozenset[Node]) -> tuple[Read, ...]:
    """The active loads that can contribute, the one evaluated last first. positive: folds that always have a step."""
    backward = Backward(subject, positive)
    backward.run()
    return tuple(sorted(backward.reads, key=lambda r: r.node.serial, reverse=True))


class Backward:
    def __init__(self, subject: Subject, positive: frozenset[Node]) -> None:
        self.s = subject
        self.positive = positive
        self.conditions = Conditions()
        self.end: Key = subject.kernel.result.serial + 1, 0
        """Where the result is read."""
        self.waiting: dict[Node, list[Contribution]] = {}
        self.reads: list[Read] = []
        self.known: dict[Bound, Node] = {}
        """Accumulators, as expressions that can be told at the present step."""
        self.settled: dict[Node, Node] = {}
        """Choices of which it is known what they chose wherever something contributes."""

    def run(self) -> None:
        """A scan's element is read by whoever reads the buffer, and by the next step, which was there before them."""
        kernel = self.s.kernel
        adjoint = Node("load", FLOAT, (index(),), Adjoint())
        acc = kernel.acc
        along = None if acc is None or acc not in self.s.accumulators else Along(Bound(FLOAT, "after"), adjoint)
        if acc is not None and along is not None:
            self.known[acc] = self.before(acc)
        value = adjoint if along is None else along.read()
        self.contribute(kernel.result, self.end, (), None, value)
        self.within(None)
        if acc is not None and along is not None and (found := self.take(acc, ())) is not None:
            when, x = found
            along.when = None if when is None else of_before(self.s, when, along)
            along.step = of_before(self.s, x, along)

    def before(self, acc: Bound) -> Node:
        """A scan's accumulator: the result of the element before."""
        init = self.s.kernel.init
        assert init is not None
        last = Node("load", acc.type, (Node("wsub", INT, (index(), const(1))),), Result())
        return select(Node("eq", BOOL, (index(), const(0))), init, last)

    def within(self, around: Node | None) -> None:
        """Everything written in a fold, or in none, the last made first."""
        for node in self.s.within.get(around, ()):
            if node.op == "fold":
                self.fold(node)
            elif node in self.waiting:
                self.node(node)

    # --- values ----------------------------------------------------------------------------------

    def add(self, node: Node, found: Contribution) -> None:
        """A contribution to a value. Contributions of one site exclude each other."""
        node = self.canonical(node)
        if node not in self.s.active:
            return
        waiting = self.waiting.setdefault(node, [])
        for k, known in enumerate(waiting):
            if known.key == found.key:
                value = known.value
                if value is not found.value:
                    value = found.value if found.when is None else select(found.when, found.value, value)
                when = self.conditions.any((known.when, found.when))
                waiting[k] = Contribution(found.key, found.path, when, value)
                return
        waiting.append(found)

    def canonical(self, node: Node) -> Node:
        if node.op == "var" and isinstance(node.attr, Bound):
            return self.s.accumulators[node.attr]
        if node.op == "proj" and isinstance(node.attr, int):
            return self.s.results[node.args[0], node.attr]
        return node

    def total(self, node: Node, home: Path) -> tuple[Condition, Node] | None:
        """(when something contributed to a value written at home, its adjoint); None when nothing can."""
        found = [self.outside(c, home) for c in sorted(self.waiting.pop(node, ()), key=lambda c: c.key, reverse=True)]
        if not found:
            return None
        reached = self.conditions.any(when for when, _ in found)
        if reached is NEVER:
            return NEVER, const(0.0)
        found = [(when, x) for when, x in found if when is not NEVER]
        terms = [x if when is reached or when is None else select(when, x, const(0.0)) for when, x in found]
        value = terms[0]
        for x in terms[1:]:
            value = Node("fadd", FLOAT, (value, x))
        return reached, value

    def outside(self, c: Contribution, home: Path) -> tuple[Condition, Node]:
        """A site's subtotal: over the steps of the folds that the value was not written in."""
        steps = c.path[len(home) :]
        if not steps or c.when is NEVER:
            return c.when, c.value
        when = c.when
        if when is not None and self.fixed(when, steps):
            # The same in all steps: a guard of the whole sum.
            value = self.over(steps, lambda acc: Node("fadd", FLOAT, (acc, c.value)), const(0.0))
        else:
            term = c.value if when is None else select(when, c.value, const(0.0))
            value = self.over(steps, lambda acc: Node("fadd", FLOAT, (acc, term)), const(0.0))
        if when is None or self.fixed(when, steps):
            return self.some_step(steps, when), value
        return self.over(steps, lambda acc: select(acc, const(True), when), const(False)), value

    def fixed(self, when: Node, steps: Path) -> bool:
        return free((when,))[when].isdisjoint(b for f in steps for b in bounds(f))

    def some_step(self, steps: Path, when: Condition) -> Condition:
        """There was a step, and the condition, which is the same in all, holds."""
        for k, f in enumerate(steps):
            if f not in self.positive:
                rest = steps[k:]
                if len(rest) == 1:
                    return self.conditions.both(when, Node("lt", BOOL, (const(0), self.count(f))))
                happened = self.over(rest, lambda acc: const(True), const(False))
                return self.conditions.both(when, happened)
        return when

    def over(self, steps: Path, step: Callable[[Node], Node], first: Node) -> Node:
        """The fold of `step` over the steps of folds, outermost first, with one accumulator."""
        if not steps:
            return step(first)
        acc, k = Bound(first.type, "sum"), Bound(INT, "k")
        (inner,) = instantiate((self.over(steps[1:], step, var(acc)),), {index_of(steps[0]): var(k)})
        return fold(self.count(steps[0]), k, (acc,), (first,), (inner,))[0]

    # --- operations ------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        s = self.s
        match node.op:
            case "select" | "rare" | "recover" if node in self.settled:
                self.hand_on(node, self.settled[node])
            case "select" | "rare":
                c, a, b = node.args
                self.chosen(node, a, b, self.value(c))
            case "recover":
                bit = s.bits[node.args[0]]
                if bit is None:
                    self.hand_on(node, node.args[0])
                else:
                    self.chosen(node, node.args[1], node.args[0], self.at(bit, node))
            case "seq":
                self.hand_on(node, node.args[-1])
            case "load":
                found = self.total(node, s.path[node])
                assert found is not None
                self.reads.append(Read(node, s.path[node], *found))
            case "proj" | "var":
                pass  # The fold takes it.
            case op:
                # What is read as the result alone is the result, wherever it contributes.
                chosen_last = [c.key for c in self.waiting[node]] == [self.end]
                found = self.total(node, s.path[node])
                assert found is not None
                when, adjoint = found
                y = self.result() if chosen_last else self.value(node)
                parts = RULES[op](adjoint, tuple(map(self.value, node.args)), y)
                chosen = self.settled.get(node)
                for k, (a, part) in enumerate(zip(node.args, parts, strict=True)):
                    if chosen is not None:
                        part = Part(adjoint) if a is chosen else None
                    if part is not None:
                        here = when if part.when is None else self.conditions.both(when, part.when)
                        self.add(a, Contribution((node.serial, k), s.path[node], here, part.value))

    def hand_on(self, node: Node, to: Node) -> None:
        for c in self.waiting.pop(node):
            self.add(to, c)

    def chosen(self, node: Node, a: Node, b: Node, c: Node) -> None:
        """What reads the choice reads a where c holds, else b."""
        for x in self.waiting.pop(node):
            self.add(a, Contribution(x.key, x.path, self.conditions.both(x.when, c), x.value))
            self.add(b, Contribution(x.key, x.path, self.conditions.both(x.when, c, False), x.value))

    # --- folds -----------------------------------------------------------------------------------

    def fold(self, node: Node) -> None:
        home = self.s.path[node]
        found = [
            self.total(p, home) if (p := self.s.results.get((node, j))) else None for j in range(len(node.args) // 2)
        ]
        if any(found):
            go_back(self, node, found)

    def contribute(self, node: Node, key: Key, path: Path, when: Condition, value: Node) -> None:
        self.add(node, Contribution(key, path, when, value))

    def take(self, acc: Bound, inside: Path) -> tuple[Condition, Node] | None:
        """What a step's reads of an accumulator add up to."""
        read = self.s.accumulators.get(acc)
        return None if read is None else self.total(read, inside)

    def forget(self, acc: Bound) -> None:
        """The fold has been gone through."""
        self.known.pop(acc, None)
        read = self.s.accumulators.get(acc)
        if read is not None:
            self.waiting.pop(read, None)

    def mark(self) -> object:
        return {n: list(x) for n, x in self.waiting.items()}, list(self.reads)

    def back_to(self, mark: object) -> None:
        """Forget what came since the mark, which can be gone back to once."""
        self.waiting, self.reads = mark  # type: ignore[misc]

    def result(self) -> Node:
        return Node("load", self.s.kernel.type, (index(),), Result())

    def count(self, fold: Node) -> Node:
        """How many steps a fold has."""
        return self.at(self.s.count(fold), fold)

    def value(self, node: Node) -> Node:
        """What a node of the kernel is where it was written: accumulators are what is known of them."""
        if node is self.s.kernel.result and self.s.kernel.acc is not None:
            return self.result()
        return self.at(self.s.values[node], node)

    def at(self, value: Node, node: Node) -> Node:
        """An expression of the kernel where a node was written."""
        around = self.s.path[node]
        now = {b: x for b, x in self.known.items() if b is self.s.kernel.acc or self.s.fold_of[b] in around}
        return replaced(value, now) if now else value
