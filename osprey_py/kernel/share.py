"""Equal nodes become one node.

Comes in: a kernel. Goes out: the same kernel in which no two nodes are alike: same op, attribute, site and operands.
Folds and loops are alike when their bodies are, up to the names of their variables. Runs after gradients
(spec/gradients, G1), which must see two written reads as two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import Bound, Kernel, KFunction, Node, TableAttr, walk
from osprey_py.kernel.scopes import binds, body
from osprey_py.kernel.substitute import moving, rewrite


def share(kernel: Kernel) -> Kernel:
    """O(nodes · depth of nested folds)."""
    done: dict[Node, Node] = {}
    known: dict[object, Node] = {}

    def rule(node: Node, args: tuple[Node, ...]) -> Node:
        made = node if args == node.args else Node(node.op, node.type, args, node.attr, node.site)
        return known.setdefault(_key(made), made)

    def new(root: Node) -> Node:
        return rewrite(root, rule, done)

    functions = tuple(KFunction(f.name, f.params, tuple(map(new, f.results))) for f in kernel.functions)
    init = None if kernel.init is None else new(kernel.init)
    shared = replace(kernel, result=new(kernel.result), functions=functions, init=init)
    if isinstance(shared, Lowered) and shared.fault is not None:
        return replace(shared, fault=new(shared.fault))
    return shared


def _key(node: Node) -> object:
    """Equal for alike nodes, whose operands are shared already."""
    bound = binds(node)
    if bound:
        outside = node.args[: len(node.args) - len(body(node))]
        return node.op, tuple(b.type for b in bound), tuple(map(id, outside)), _outline(body(node), bound)
    return node.op, node.type, _attr(node), node.site, tuple(map(id, node.args))


def _attr(node: Node) -> object:
    if node.op == "const":
        # 0.0 is not -0.0, and a NaN is a NaN.
        return repr(node.attr)
    return id(node.attr) if isinstance(node.attr, TableAttr) else node.attr


def _outline(roots: Sequence[Node], bound: tuple[Bound, ...]) -> tuple[object, ...]:
    """A body as a sequence that does not name its variables: what reads them is written out, by its place in the
    sequence; the rest is named by identity, being shared already."""
    mine = moving(roots, lambda node: node.op == "var" and node.attr in bound)
    order = [node for node in walk(roots) if node in mine]
    names = {b: k for k, b in enumerate((*bound, *(b for node in order for b in binds(node))))}
    places: dict[Node, int] = {}
    lines: list[object] = []
    for node in order:
        attr: object = len(binds(node)) or (names[node.attr] if isinstance(node.attr, Bound) else _attr(node))
        places[node] = len(lines)
        lines.append((node.op, node.type, attr, node.site, tuple(places.get(a, ("node", id(a))) for a in node.args)))
    return (*lines, *(places.get(r, ("node", id(r))) for r in roots))
