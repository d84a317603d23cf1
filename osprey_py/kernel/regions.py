"""Strict order inside a kernel: what has been evaluated, in which order, and what of it a result would not repeat.

Comes in: nodes that may fault, as symbolic evaluation makes them. Goes out: `seq` nodes, where a result alone would not
evaluate them, or not in this order (an unused `let`, an argument that is ignored, a value used in one branch only).
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.kernel.ir import Node, seq

_MANY = frozenset({"fold", "loop", "call"})


class Region:
    """A stretch of strict evaluation: a kernel, a branch, the inside of a `?:`, the body of a fold.
    effects: the nodes evaluated that may fault, in order (a fold, loop or call as itself, not its `proj`)."""

    def __init__(self) -> None:
        self.effects: list[Node] = []

    def ran(self, node: Node) -> None:
        self.effects.append(node)

    @property
    def may_fault(self) -> bool:
        return bool(self.effects)


def as_value(node: Node) -> Node:
    """What an expression can hold of an effect."""
    return Node("proj", node.type, (node,), 0) if node.op in _MANY else node


def sequenced(effects: Sequence[Node], result: Node) -> Node:
    """The result, evaluated after the effects in their order; each is evaluated where it stands. Only what the result
    does not evaluate by itself, first and in this order, is put in front of it."""
    firsts: list[Node] = []
    end = len(effects)
    last = result
    while end:
        done = set(effects[:end])
        own = strict_order(last, done)
        end = _uncovered(effects[:end], own)
        if end:
            last = effects[end - 1]
            firsts.append(as_value(last))
    return seq(reversed(firsts), result)


def _uncovered(effects: Sequence[Node], own: Sequence[Node]) -> int:
    """The least p such that, after the first p effects, own evaluates the others in their order."""
    place = {node: k for k, node in enumerate(own)}
    p, following = len(effects), len(own)
    while p and place.get(effects[p - 1], following) < following:
        p -= 1
        following = place[effects[p]]
    return p


def strict_order(root: Node, wanted: set[Node]) -> list[Node]:
    """The wanted nodes that evaluating root evaluates for sure, in order of completion."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        if node in wanted:
            stack.append((node, True))
        match node.op:
            case "select" | "rare":
                certain = node.args[:1]
            case "recover":
                certain = ()
            case "fold":
                certain = node.args[: 1 + (len(node.args) - 1) // 2]
            case "loop":
                certain = node.args[: (len(node.args) - 1) // 2]
            case _:
                certain = node.args
        stack.extend((a, False) for a in reversed(certain))
    return order
