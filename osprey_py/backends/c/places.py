"""Where each node of a kernel is computed: regions, which are the blocks of the C text.

Comes in: the roots of a lowered kernel. Goes out: a tree of `Region`s, each with its nodes, operands first. A region is
the whole body, the body of a fold or loop, or one arm of a choice that is worth a branch. A node stands in the
innermost region that all its uses share, moved out of every fold and loop whose variables it does not read; what may
not end (a loop, and whatever reads one) is never moved out of the arm or body that wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from osprey_py.kernel.ir import Bound, Node, fold_parts, loop_parts, walk
from osprey_py.kernel.scopes import Scope, scopes

_HEAVY = frozenset({"fold", "loop", "rare"})


@dataclass(eq=False)
class Region:
    """nodes: what is computed here, operands first. branch: whether it is a block of its own; an arm that is not
    belongs to its parent."""

    parent: Region | None
    depth: int
    scope: Scope
    nodes: list[Node] = field(default_factory=list)
    branch: bool = True

    def inside(self, scope: Scope, *, branch: bool = True) -> Region:
        return Region(self, self.depth + 1, scope, branch=branch)

    @property
    def block(self) -> Region:
        """The region whose block this is text of."""
        region = self
        while not region.branch:
            assert region.parent is not None
            region = region.parent
        return region


@dataclass(frozen=True, eq=False, slots=True)
class Places:
    """top: the whole. of: where each node is computed. bodies: of folds and loops. arms: of selects, true and false."""

    top: Region
    of: dict[Node, Region]
    bodies: dict[Node, Region]
    arms: dict[Node, tuple[Region, Region]]


def places(roots: Sequence[Node], params: tuple[Bound, ...] = ()) -> Places:
    """params: variables bound outside (a scan's accumulator)."""
    tree = scopes(roots, params)
    order = list(walk(roots))
    endless: set[Node] = set()
    for node in order:
        if node.op in ("loop", "call") or not endless.isdisjoint(node.args):
            endless.add(node)
    top = Region(None, 0, tree)
    made = Places(top, {}, {}, {})
    wanted: dict[Node, Region] = dict.fromkeys(roots, top)

    def want(nodes: Sequence[Node], region: Region) -> None:
        for n in nodes:
            wanted[n] = _shared(wanted[n], region) if n in wanted else region

    for node in reversed(order):
        region = wanted[node]
        if node not in endless:
            while region.scope is not tree.of[node]:
                assert region.parent is not None
                region = region.parent
        made.of[node] = region
        if node.op in ("select", "rare"):
            arms = (region.inside(region.scope, branch=False), region.inside(region.scope, branch=False))
            made.arms[node] = arms
            want(node.args[:1], region)
            for arm, value in zip(arms, node.args[1:], strict=True):
                want((value,), arm)
        elif node.op == "fold":
            n, inits, nexts, _ = fold_parts(node)
            body = made.bodies[node] = region.inside(tree.under[node])
            want((n, *inits), region)
            want(nexts, body)
        elif node.op == "loop":
            inits, condition, nexts, _ = loop_parts(node)
            body = made.bodies[node] = region.inside(tree.under[node])
            want(inits, region)
            want((condition, *nexts), body)
        else:
            want(node.args, region)
    _choose_branches(made, order, endless)
    for node in order:
        made.of[node].block.nodes.append(node)
    return made


def _shared(a: Region, b: Region) -> Region:
    """The innermost region that both are in."""
    while a is not b:
        if a.depth < b.depth:
            a, b = b, a
        assert a.parent is not None
        a = a.parent
    return a


def _choose_branches(made: Places, order: Sequence[Node], endless: set[Node]) -> None:
    """A choice becomes a branch when something heavy is computed for one arm alone."""
    heavy: set[Region] = set()
    for node in order:
        if node.op in _HEAVY or node in endless:
            region: Region | None = made.of[node]
            while region is not None and region not in heavy:
                heavy.add(region)
                region = region.parent
    for node, arms in made.arms.items():
        if node.op == "rare" or not endless.isdisjoint(node.args[1:]) or not heavy.isdisjoint(arms):
            for arm in arms:
                arm.branch = True
