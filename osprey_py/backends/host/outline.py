"""Rare paths as functions of their own: written once however many loops need them, and compiled quickly rather than
well.

Comes in: a `rare` node at a place where its operand is wanted, in scalar code. Goes out: a call of a function of
the operand's free values. The code of an exact phase is several times that of the loop it hardly ever interrupts;
inside the loop it would also be in the way of the loop's registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from osprey_py.backends.host.operations import EMITTERS
from osprey_py.backends.host.text import Function, Scope, Value, llvm_type
from osprey_py.kernel.ir import FoldAttr, Node

if TYPE_CHECKING:
    from osprey_py.backends.host.expression import Expressions

_PURE = frozenset(EMITTERS) | {"select", "rare", "table", "fold", "proj"}


def rare(e: Expressions, node: Node, s: Scope) -> Value:
    """The value of a rare node's first operand (one lane's)."""
    root = node.args[1]
    inputs = _inputs(e, node)
    if inputs is None:
        return e.at_width(root, s, 1)
    if node not in e.outlined:
        e.outlined[node] = _write(e, root, inputs)
    operands = [e.at_width(n, s, 1) for n in inputs]
    texts = ", ".join(f"{v.llvm} {v}" for v in operands)
    return s.define(node.type, 1, f"call {llvm_type(node.type)} {e.outlined[node]}({texts})")


def _inputs(e: Expressions, node: Node) -> list[Node] | None:
    """The nodes that the operand reads from outside; None when it is not a function of values alone."""
    inputs: dict[Node, None] = {}
    seen: set[Node] = set()
    bound: set[object] = set()
    stack = [node.args[1]]
    while stack:
        n = stack.pop()
        if n in seen or n.op == "const":
            continue
        seen.add(n)
        if isinstance(n.attr, FoldAttr):
            bound |= {n.attr.index, *n.attr.accs}
        if n.op == "var" and n.attr in bound:
            continue
        if n.op == "var" or (node, 1) not in e.placement.chain(n):
            inputs[n] = None
        elif n.op in _PURE:
            stack.extend(reversed(n.args))
        else:
            return None
    return list(inputs)


def _write(e: Expressions, root: Node, inputs: list[Node]) -> str:
    """The function's name."""
    module = e.function.module
    function = Function(module)
    body = Scope(function)
    for k, n in enumerate(inputs):
        body.memo[n] = Value(n.type, 1, f"%p{k}")
    value = e.apart(function).at_width(root, body, 1)
    body.write(f"ret {value.llvm} {value}")
    name = module.name("rare")
    params = ", ".join(f"{llvm_type(n.type)} %p{k}" for k, n in enumerate(inputs))
    module.add(function.text(f"define internal {value.llvm} {name}({params}) noinline optnone", body))
    return name
