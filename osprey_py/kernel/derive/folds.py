"""What kind of fold it is: how the adjoint of its accumulator goes back through the steps (spec/gradients, G6).

Comes in: a fold of a `Subject`. Goes out: whether it *adds*: each step's accumulator reads the one before just once, as
an operand of + (or the left one of -) or as what an `if` chooses, so that the adjoint of the result is that of every
accumulator and no accumulator has to be known.
"""

from __future__ import annotations

from osprey_py.kernel.derive.subject import Subject
from osprey_py.kernel.ir import Bound, Node, fold_parts
from osprey_py.kernel.scopes import free


def adds(subject: Subject, fold: Node) -> bool:
    """Whether every accumulator that has a gradient is only added to, and nothing it is made of reads another one."""
    _, _, nexts, attr = fold_parts(fold)
    reads = free(nexts)
    accs = set(attr.accs)
    for acc, following in zip(attr.accs, nexts, strict=True):
        if following in subject.active:
            others = reads[following] & accs - {acc}
            if others or not _adds(following, acc, reads, subject):
                return False
    return True


def _adds(node: Node, acc: Bound, reads: dict[Node, frozenset[Bound]], subject: Subject) -> bool:
    """Whether the node is acc, plus what does not read acc."""
    match node.op:
        case "var":
            return node.attr is acc
        case "seq":
            firsts = node.args[:-1]
            return not any(acc in reads[a] for a in firsts) and _adds(node.args[-1], acc, reads, subject)
        case "fadd" | "fsub":
            a, b = node.args
            if acc in reads[a]:
                return acc not in reads[b] and _adds(a, acc, reads, subject)
            return node.op == "fadd" and acc in reads[b] and _adds(b, acc, reads, subject)
        case "select" | "rare":
            c, a, b = node.args
            return acc not in reads[c] and _adds(a, acc, reads, subject) and _adds(b, acc, reads, subject)
        case "recover":
            e, d = node.args
            bit = subject.bits[e]
            if bit is not None and acc in free((bit,))[bit]:
                return False
            return _adds(e, acc, reads, subject) and _adds(d, acc, reads, subject)
    return False
