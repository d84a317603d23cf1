"""Where each node of a kernel may be computed: what it depends on, and which lazy branch it belongs to.

Comes in: the roots of one function's expressions (after kernel/faults.py). Goes out: `Placement`, read while code
is written.

- A node depends on a set of variables (bits): the launch index and the bound variables of folds, loops and
  functions that
  occur free in it. It is computed at the outermost scope that changes none of them.
- `rare`, and a `select` that chooses about folds, loops or calls, are branches. What only an arm uses is computed
  inside it,
  unless it can be hoisted out of a whole loop. A node belongs to the arm that dominates it (every path from the
  roots to it goes through that arm), found by the usual walk over immediate dominators, which in a DAG needs one
  pass.
"""

from __future__ import annotations

from collections.abc import Iterable

from osprey_py.kernel.ir import Bound, FoldAttr, LoopAttr, Node, walk
from osprey_py.kernel.nest import Sum

INDEX = 1
"""The bit of the launch index."""

Arm = tuple[Node, int]
"""A branching node and the operand that is its arm."""

_BINDERS = ("fold", "loop", "call")


class Placement:
    """The facts for one set of roots. Bits are shared by all functions of a kernel through `bits`."""

    def __init__(self, roots: Iterable[Node], bits: dict[Bound, int]) -> None:
        self.bits = bits
        self.roots = tuple(roots)
        order = list(walk(self.roots))
        self.depends: dict[Node, int] = {}
        self.unbounded: set[Node] = set()
        """Nodes that contain a loop or a call: evaluated where nobody chose them, they may not end."""
        for node in order:
            self.depends[node] = self._depends(node)
            if node.op in ("loop", "call") or any(a in self.unbounded for a in node.args):
                self.unbounded.add(node)
        candidates = {n for n in order if n.op == "rare"}
        binder: dict[Node, bool] = {}
        for node in order:
            binder[node] = node.op in _BINDERS or node.op == "rare" or any(binder[a] for a in node.args)
        candidates |= {n for n in order if n.op == "select" and any(binder[a] for a in n.args[1:])}
        self._order = order
        self.arm = self._dominating_arms(candidates)
        useful = {a for n in order if n.op in _BINDERS or n.op == "rare" for a in self.chain(n)}
        self.lazy = {
            n
            for n in candidates
            if n.op == "rare" or any((n, i) in useful or n.args[i] in self.unbounded for i in (1, 2))
        }
        if self.lazy != candidates:
            self.arm = self._dominating_arms(self.lazy)

    def bit(self, bound: Bound) -> int:
        return self.bits.setdefault(bound, 2 << len(self.bits))

    def chain(self, node: Node) -> Iterable[Arm]:
        """The arms that dominate a node, innermost first."""
        arm = self.arm[node]
        while arm is not None:
            yield arm
            arm = self.arm[arm[0]]

    def bound_bits(self, bounds: Iterable[Bound]) -> int:
        bits = 0
        for b in bounds:
            bits |= self.bit(b)
        return bits

    def _depends(self, node: Node) -> int:
        if node.op == "index":
            return INDEX
        if node.op == "var":
            assert isinstance(node.attr, Bound)
            return self.bit(node.attr)
        if isinstance(node.attr, Sum):
            return self.bound_bits(t.digit for t in node.attr.terms)
        bits = 0
        if node.op == "fold":
            assert isinstance(node.attr, FoldAttr)
            k = len(node.attr.accs)
            for a in node.args[1 + k :]:
                bits |= self.depends[a]
            bits &= ~self.bound_bits((node.attr.index, *node.attr.accs))
            free = node.args[: 1 + k]
        elif node.op == "loop":
            assert isinstance(node.attr, LoopAttr)
            k = len(node.attr.vars)
            for a in node.args[k:]:
                bits |= self.depends[a]
            bits &= ~self.bound_bits(node.attr.vars)
            free = node.args[:k]
        else:
            free = node.args
        for a in free:
            bits |= self.depends[a]
        return bits

    def _dominating_arms(self, branching: set[Node]) -> dict[Node, Arm | None]:
        """The innermost arm that dominates each node."""
        idom: dict[Node | Arm, Node | Arm | None] = {}
        depth: dict[Node | Arm | None, int] = {None: 0}

        def meet(a: Node | Arm | None, b: Node | Arm | None) -> Node | Arm | None:
            while a is not b and a != b:
                if depth[a] < depth[b]:
                    a, b = b, a
                assert a is not None
                a = idom[a]
            return a

        pending: dict[Node, Node | Arm | None] = {}
        root_set = set(self.roots)
        arms: dict[Node, Arm | None] = {}
        for node in reversed(self._order):
            parent = None if node in root_set else pending[node]
            idom[node] = parent
            depth[node] = depth[parent] + 1
            if parent is None:
                arms[node] = None
            else:
                arms[node] = parent if isinstance(parent, tuple) else arms[parent]
            for i, a in enumerate(node.args):
                source: Node | Arm = node
                if i > 0 and node in branching and not (node.op == "rare" and i == 2):
                    source = (node, i)
                    idom[source] = node
                    depth[source] = depth[node] + 1
                pending[a] = meet(pending[a], source) if a in pending else source
        return arms
