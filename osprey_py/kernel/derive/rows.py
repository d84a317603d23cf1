"""What is computed step by step and kept for every step: accumulators that were, and their adjoints (spec/gradients,
G6).

A `Rows` is a scan to be made: a row for each element (and step of the folds outside), a place in it for each step of a
fold. Expressions read it by a `load` whose attr it is and whose operands are the steps of the folds around, the fold's
own last. An `Along` is the same along the elements of a scan.
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.kernel.derive.subject import Subject, index_of
from osprey_py.kernel.ir import INT, Bound, Node, Ty, const, fold, index, var, walk
from osprey_py.kernel.substitute import instantiate, rewrite


@dataclass(eq=False)
class Rows:
    """count: of the fold's steps. first: what stands for step 0; step: what follows, from `before` and with the fold's
    index as the step passed. backwards: first is what stands for the last step (and all after it), step goes to the one
    before. Both are set when the fold's body has been gone through."""

    fold: Node
    type: Ty
    count: Node
    backwards: bool
    before: Bound
    first: Node
    step: Node

    def read(self, subject: Subject) -> Node:
        """What stands for the present step."""
        steps = tuple(var(index_of(f)) for f in subject.inside(self.fold))
        return Node("load", self.type, steps, self)


def rows(fold: Node, ty: Ty, count: Node, *, backwards: bool) -> Rows:
    nothing = const(0)
    return Rows(fold, ty, count, backwards, Bound(ty, "before"), nothing, nothing)


@dataclass(eq=False)
class Along:
    """The adjoints of a scan's elements: own, plus what `step` makes, `when` it holds, of the adjoint of the element
    after; the index in them is that element's, its adjoint `before`."""

    before: Bound
    own: Node
    when: Node | None = None
    step: Node | None = None

    def read(self) -> Node:
        return Node("load", self.own.type, (index(),), self)


Kept = Rows | Along


def of_before(subject: Subject, expression: Node, kept: Kept) -> Node:
    """What a step makes of the element before: reads of `kept` become that element. Other rows that are made of `kept`
    cannot be there before it is: they are computed where they are read."""

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        what = node.attr
        if node.op != "load" or not isinstance(what, Rows | Along):
            return None
        if what is kept:
            return var(kept.before)
        if isinstance(what, Rows) and _made_of(what, kept, set()):
            return of_before(subject, _computed(subject, what, args), kept)
        return None

    return rewrite(expression, rule)


def _made_of(rows: Rows, kept: Kept, seen: set[Rows]) -> bool:
    if rows in seen:
        return False
    seen.add(rows)
    reads = [n.attr for n in walk((rows.first, rows.step)) if n.op == "load"]
    return any(r is kept or (isinstance(r, Rows) and _made_of(r, kept, seen)) for r in reads)


def _computed(subject: Subject, rows: Rows, steps: tuple[Node, ...]) -> Node:
    """What rows hold for a step, as a fold from where they begin."""
    mine = index_of(rows.fold)
    around = {index_of(f): at for f, at in zip(subject.path[rows.fold], steps, strict=False)}
    k, acc = Bound(INT, "k"), Bound(rows.type, "row")
    (count,) = instantiate((rows.count,), around)
    if rows.backwards:
        last = Node("wsub", INT, (count, const(1)))
        passed: Node = Node("wsub", INT, (last, var(k)))
        turns = Node("wsub", INT, (last, steps[-1]))
    else:
        passed, turns = var(k), steps[-1]
    (first,) = instantiate((rows.first,), around)
    (step,) = instantiate((rows.step,), {**around, mine: passed, rows.before: var(acc)})
    return fold(turns, k, (acc,), (first,), (step,))[0]
