"""Which binder's body each node of a kernel belongs to.

Comes in: the roots of a kernel or kernel function. Goes out: a tree of scopes. A node belongs to the innermost `fold`
or `loop` whose variable it reads, directly or through its operands; what reads none belongs to the outermost scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from osprey_py.kernel.ir import Bound, FoldAttr, LoopAttr, Node, walk

NONE: frozenset[Bound] = frozenset()


def binds(node: Node) -> tuple[Bound, ...]:
    """The variables that a fold or loop binds in its body; of other nodes none."""
    attr = node.attr
    if isinstance(attr, FoldAttr):
        return (attr.index, *attr.accs)
    if isinstance(attr, LoopAttr):
        return attr.vars
    return ()


def body(node: Node) -> tuple[Node, ...]:
    """The operands of a fold or loop that are evaluated in its scope."""
    attr = node.attr
    if isinstance(attr, FoldAttr):
        return node.args[1 + len(attr.accs) :]
    if isinstance(attr, LoopAttr):
        return node.args[len(attr.vars) :]
    return ()


def free(roots: Sequence[Node]) -> dict[Node, frozenset[Bound]]:
    """For every node under the roots, the bound variables it reads from outside itself."""
    table: dict[Node, frozenset[Bound]] = {}
    for node in walk(roots):
        if node.op == "var":
            assert isinstance(node.attr, Bound)
            table[node] = frozenset((node.attr,))
            continue
        bound = binds(node)
        inside = body(node)
        outside = node.args[: len(node.args) - len(inside)]
        reads = NONE.union(*(table[a] for a in outside))
        table[node] = reads | (NONE.union(*(table[a] for a in inside)) - set(bound)) if inside else reads
    return table


@dataclass(eq=False)
class Scope:
    """nodes: those that belong here, operands first. of: every node's scope; under: the scope inside each fold and
    loop; both are shared by the whole tree."""

    depth: int
    of: dict[Node, Scope]
    under: dict[Node, Scope]
    nodes: list[Node] = field(default_factory=list)


def scopes(roots: Sequence[Node], params: Sequence[Bound] = ()) -> Scope:
    """The outermost scope. params: variables bound there (a scan's accumulator, a function's parameters)."""
    reads = free(roots)
    top = Scope(0, {}, {})
    home: dict[Bound, Scope] = dict.fromkeys(params, top)
    order = list(walk(roots))
    # Binders from the outside in: an enclosing one is always met before those inside it in reverse order.
    for node in reversed(order):
        bound = binds(node)
        if bound:
            outer = max((home[b] for b in reads[node]), key=lambda s: s.depth, default=top)
            inner = top.under[node] = Scope(outer.depth + 1, top.of, top.under)
            home.update(dict.fromkeys(bound, inner))
    for node in order:
        scope = max((home[b] for b in reads[node]), key=lambda s: s.depth, default=top)
        top.of[node] = scope
        scope.nodes.append(node)
    return top
