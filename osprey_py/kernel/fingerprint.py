"""The structure of a kernel as text: what code generated from it can depend on, and nothing else.

Comes in: a lowered kernel. Goes out: a string, equal for kernels of one structure in any process (names, spans and
the identity of variables do not enter). Caches that outlive a process are keyed by it.
"""

from __future__ import annotations

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import Bound, FoldAttr, LoopAttr, Node, TableAttr, walk


def fingerprint(kernel: Lowered) -> str:
    """O(nodes)."""
    places: dict[Node, int] = {}
    bounds: dict[Bound, int] = {}
    lines: list[str] = []

    def bound(b: Bound) -> str:
        return f"{b.type.value}{bounds.setdefault(b, len(bounds))}"

    def attribute(node: Node) -> str:
        match node.attr:
            case Bound() as b:
                return bound(b)
            case FoldAttr(index, accs):
                return " ".join(map(bound, (index, *accs)))
            case LoopAttr(variables):
                return " ".join(map(bound, variables))
            case TableAttr(values):
                return repr(values)
            case float() as x:
                return x.hex()
            case other:
                return repr(other)

    def add(roots: tuple[Node, ...]) -> str:
        for node in walk(roots):
            if node not in places:
                operands = " ".join(str(places[a]) for a in node.args)
                lines.append(f"{node.op} {node.type.value} {attribute(node)} ({operands})")
                places[node] = len(places)
        return " ".join(str(places[r]) for r in roots)

    heads = [
        f"slots {[t.value for t in kernel.slots]} uniforms {[t.value for t in kernel.uniforms]}",
        f"scan {'' if kernel.acc is None else bound(kernel.acc)}",
    ]
    for f in kernel.functions:
        heads.append(f"function {' '.join(map(bound, f.params))} -> {add(f.results)}")
    roots = (kernel.result, kernel.init, kernel.fault)
    heads.append(f"roots {' '.join('-' if r is None else add((r,)) for r in roots)}")
    return "\n".join((*heads, *lines))
