"""A kernel as extracted becomes a kernel ready for code.

Comes in: a `Kernel` with checked operations. Goes out: a `Lowered` kernel in which faults are values, exp, ln and tanh are
written out, and what may not end is evaluated only where it is chosen.
"""

from __future__ import annotations

from dataclasses import replace

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import KFunction, Node, const, select
from osprey_py.kernel.substitute import Rule, rewrite
from osprey_py.numerics.expand import expand


def prepare(kernel: Lowered) -> Lowered:
    """The passes in their order."""
    if kernel.general:
        kernel = _map(kernel, _guards())
    return _expand(kernel)


def _guards() -> Rule:
    """`band` and `bor` of something that may not end become selects: its evaluation hangs on the other operand."""
    endless: set[Node] = set()

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op in ("loop", "call") or not endless.isdisjoint(node.args):
            endless.add(node)
        if node.op not in ("band", "bor") or node not in endless:
            return None
        a, b = args if node.args[1] in endless else reversed(args)
        return select(a, b, const(False)) if node.op == "band" else select(a, const(True), b)

    return rule


def _map(kernel: Lowered, rule: Rule) -> Lowered:
    """The rule applied to every node of the kernel and its functions."""
    done: dict[Node, Node] = {}
    functions = tuple(
        KFunction(f.name, f.params, tuple(rewrite(r, rule, done) for r in f.results)) for f in kernel.functions
    )
    return replace(
        kernel,
        functions=functions,
        result=rewrite(kernel.result, rule, done),
        init=None if kernel.init is None else rewrite(kernel.init, rule, done),
        fault=None if kernel.fault is None else rewrite(kernel.fault, rule, done),
    )


def _expand(kernel: Lowered) -> Lowered:
    functions = tuple(KFunction(f.name, f.params, expand(f.results)) for f in kernel.functions)
    roots = iter(expand(kernel.roots))
    return replace(
        kernel,
        functions=functions,
        result=next(roots),
        init=None if kernel.init is None else next(roots),
        fault=None if kernel.fault is None else next(roots),
    )
