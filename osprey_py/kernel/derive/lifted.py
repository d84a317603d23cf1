"""A kernel with its arguments changed, as it was written: nodes keep their place in the order of evaluation.

Comes in: a kernel as extracted. Goes out: the same kernel reading other things. Gradients are taken of these, so what
replaces a node takes over its serial.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from osprey_py.kernel.ir import BOOL, INT, Kernel, Node, Ty, const, length, walk
from osprey_py.kernel.substitute import Rule


def _rewritten(kernel: Kernel, rule: Rule) -> Kernel:
    """The kernel with a rule applied; what keeps its meaning keeps its serial."""
    done: dict[Node, Node] = {}
    for node in walk((kernel.result,)):
        args = tuple(done[a] for a in node.args)
        made = rule(node, args)
        if made is None:
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            made = node if same else Node(node.op, node.type, args, node.attr, node.site, node.serial)
        done[node] = made
    return replace(kernel, result=done[kernel.result])


@lru_cache(maxsize=4096)
def lifted(kernel: Kernel, uniforms: tuple[int, ...]) -> Kernel:
    """The kernel with these float uniforms read from buffers of one element: one more slot for each, in their order; the
    other uniforms close ranks. Each is read once for an element, before all else, the first uniform first (spec/gradients,
    G13). Of a scan whose first accumulator is one of them, element 0 reads it in the accumulator's place."""
    first = min(n.serial for n in walk((kernel.result,)))

    def before(op: str, ty: Ty, args: tuple[Node, ...], attr: object, k: int = -1) -> Node:
        return Node(op, ty, args, attr, None, first - len(kernel.uniforms) + k)

    zero = before("const", INT, (), 0)
    reads: dict[object, Node] = {
        k: before("load", kernel.uniforms[k], (zero,), len(kernel.slots) + j, k) for j, k in enumerate(uniforms)
    }
    kept = [k for k in range(len(kernel.uniforms)) if k not in reads]
    place = {k: j for j, k in enumerate(kept)}
    init = kernel.init
    start = None if init is None or init.op != "uniform" else reads.get(init.attr)

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        k = node.attr
        if node.op == "uniform" and isinstance(k, int):
            return reads.get(k) or Node("uniform", node.type, (), place[k], None, node.serial)
        if start is not None and node.op == "var" and k is kernel.acc:
            begins = before("eq", BOOL, (before("index", INT, (), None), zero), None)
            return Node("select", node.type, (begins, start, node), None, None, node.serial)
        return None

    if init is not None:
        init = const(0.0) if start is not None else rule(init, ()) or init
    return replace(
        _rewritten(kernel, rule),
        slots=(*kernel.slots, *(kernel.uniforms[k] for k in uniforms)),
        uniforms=tuple(kernel.uniforms[k] for k in kept),
        init=init,
    )


@lru_cache(maxsize=4096)
def counted(kernel: Kernel, slots: tuple[int, ...]) -> Kernel:
    """The kernel with slots that hold 0, 1, 2 … not read: an element of theirs is its place."""

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        k = node.attr
        if not isinstance(k, int) or k not in slots:
            return None
        if node.op == "load":
            return args[0]
        if node.op == "inrange":
            low, high = Node("le", BOOL, (const(0), args[0])), Node("lt", BOOL, (args[0], length(k)))
            return Node("band", BOOL, (low, high), None, None, node.serial)
        return None

    return _rewritten(kernel, rule)
