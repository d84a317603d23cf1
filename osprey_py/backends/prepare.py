"""A lowered kernel becomes a kernel ready for code.

Comes in: a `Lowered` kernel, or the `Shape` of a launch. Goes out: the same without exp, ln and tanh, equal nodes
shared, and what may not end evaluated only where it is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import KFunction, Node, const, rebuild, select
from osprey_py.kernel.nest import Shape
from osprey_py.kernel.substitute import Rule, rewrite
from osprey_py.numerics.expand import expand


def prepare(kernel: Lowered) -> Lowered:
    """The passes in their order."""
    if kernel.general:
        kernel = _rewritten(kernel, _guards())
    return _rewritten(_expanded(kernel), _sharing())


def prepare_shape(shape: Shape) -> Shape:
    """The same for the kernel of a launch's shape, which is regular."""
    done: dict[Node, Node] = {}
    kernel = _rewritten(_expanded(shape.kernel), _sharing(), done)
    # Expansion leaves a load as it is unless its place depends on what was expanded.
    return replace(shape, kernel=kernel, in_range=frozenset(done[x] for x in shape.in_range if x in done))


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


def _sharing() -> Rule:
    """Nodes with the same operation, operands and attribute become one. What binds variables stays as it is."""
    known: dict[tuple[object, ...], Node] = {}

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op in ("fold", "loop", "call"):
            return None
        attr = node.attr
        if node.op == "const":
            attr = repr(attr)  # -0.0 is not 0.0, nan is nan
        return known.setdefault((node.op, node.type, args, attr), rebuild(node, args))

    return rule


def _rewritten(kernel: Lowered, rule: Rule, done: dict[Node, Node] | None = None) -> Lowered:
    """The rule applied to every node of the kernel and its functions."""
    table: dict[Node, Node] = {} if done is None else done
    return _each(kernel, lambda roots: tuple(rewrite(r, rule, table) for r in roots))


def _expanded(kernel: Lowered) -> Lowered:
    return _each(kernel, expand)


def _each(kernel: Lowered, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Lowered:
    functions = tuple(KFunction(f.name, f.params, change(f.results)) for f in kernel.functions)
    roots = iter(change(kernel.roots))
    return replace(
        kernel,
        functions=functions,
        result=next(roots),
        init=None if kernel.init is None else next(roots),
        fault=None if kernel.fault is None else next(roots),
    )
