"""Local algebra that changes no byte and no fault.

Comes in: a kernel, as extracted or lowered. Goes out: the same function with fewer nodes: constants computed by the
definitions of kernel/scalars.py, choices between known things made, identities of ints and bools applied,
accumulators that never change or that nobody reads removed. Of float identities only those that hold for NaN, -0.0
and infinities: x·1, x/1, x - 0.0, x + -0.0. As extracted, an operand that may fault is never dropped.
"""

from __future__ import annotations

from dataclasses import replace

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.identities import dropping, folded, is_constant, keeping, known, negated, value_of
from osprey_py.kernel.ir import (
    BOOL,
    OPS,
    Bound,
    FoldAttr,
    Kernel,
    KFunction,
    Node,
    const,
    rebuild,
    seq,
    walk,
)
from osprey_py.kernel.scalars import SCALARS
from osprey_py.kernel.substitute import instantiate, rewrite

TRUE, FALSE, ZERO = const(True), const(False), const(0)


def simplify(kernel: Kernel) -> Kernel:
    """A fixed point is not promised; once is enough in practice. O(nodes)."""
    simplifier = _Simplifier(kernel)
    done: dict[Node, Node] = {}

    def new(root: Node) -> Node:
        return rewrite(root, simplifier.rule, done)

    functions = tuple(KFunction(f.name, f.params, tuple(map(new, f.results))) for f in kernel.functions)
    init = None if kernel.init is None else new(kernel.init)
    simplified = replace(kernel, result=new(kernel.result), functions=functions, init=init)
    if isinstance(simplified, Lowered) and simplified.fault is not None:
        fault = new(simplified.fault)
        return replace(simplified, fault=None if known(fault) is False else fault)
    return simplified


class _Simplifier:
    def __init__(self, kernel: Kernel) -> None:
        self.lowered = isinstance(kernel, Lowered)
        self.noted: set[Node] = set()
        self.risky: set[Node] = set()
        self.endless: set[Node] = set()
        # Which results of each fold somebody reads.
        self.read: dict[Node, set[int]] = {}
        # A fold that lost accumulators: what each of its results became.
        self.results: dict[Node, tuple[Node, ...]] = {}
        for node in walk((*kernel.roots, *(r for f in kernel.functions for r in f.results))):
            self._note(node)
            if node.op == "proj" and isinstance(node.attr, int):
                self.read.setdefault(node.args[0], set()).add(node.attr)

    def _note(self, node: Node) -> None:
        """What may fault or may not end, of this node; new operands of it are looked at first, however they were made."""
        if node in self.noted:
            return
        self.noted.add(node)
        for a in node.args:
            self._note(a)
        if OPS[node.op].checked and node.op != "call":
            self.risky.add(node)
        elif node.op == "recover":
            if node.args[1] in self.risky and node.args[0] in self.risky:
                self.risky.add(node)
        elif node.op == "call" or not self.risky.isdisjoint(node.args):
            self.risky.add(node)
        if node.op in ("loop", "call") or not self.endless.isdisjoint(node.args):
            self.endless.add(node)

    def rule(self, old: Node, args: tuple[Node, ...]) -> Node:
        if old.op == "proj" and old.args[0] in self.results:
            assert isinstance(old.attr, int)
            result = self.results[old.args[0]][old.attr]
            self._note(result)
            return result
        if old.op == "fold":
            return self._fold(old, args)
        node = rebuild(old, args)
        while True:
            self._note(node)
            step = self._step(node)
            if step is None or step is node:
                return node
            node = step

    def droppable(self, node: Node) -> bool:
        """Not evaluating the node can be noticed by nobody."""
        return node not in self.risky and node not in self.endless

    # --- one node --------------------------------------------------------------------------------

    def _step(self, node: Node) -> Node | None:
        """A simpler node of the same meaning, None when there is none."""
        found = dropping(node)
        if found is not None and all(map(self.droppable, node.args)):
            return found
        match node.op:
            case "recover":
                return None if node.args[0] in self.risky else node.args[0]
            case "seq":
                return self._seq(node)
            case "select" | "rare":
                return self._select(node)
            case "bnot":
                return negated(node.args[0]) or folded(node)
        return (folded(node) or keeping(node)) if node.op in SCALARS or node.op == "table" else None

    def _seq(self, node: Node) -> Node | None:
        firsts: list[Node] = []
        for a in node.args[:-1]:
            inner = a.args if a.op == "seq" else (a,)
            firsts += (x for x in inner if not self.droppable(x) and x not in firsts)
        last = node.args[-1]
        if last.op == "seq":
            firsts += last.args[:-1]
            last = last.args[-1]
        made = seq(firsts, last)
        return None if made.op == "seq" and made.args == node.args else made

    def _select(self, node: Node) -> Node | None:
        c, a, b = node.args
        decided = known(c)
        if decided is not None:
            return a if decided else b
        if (a is b or (a.op == "const" and b.op == "const" and is_constant(b, value_of(a)))) and self.droppable(c):
            return a
        if c.op == "bnot":
            return Node(node.op, node.type, (c.args[0], b, a)) if node.op == "select" else None
        if a.op == "select" and a.args[0] is c:
            return Node(node.op, node.type, (c, a.args[1], b))
        if b.op == "select" and b.args[0] is c:
            return Node(node.op, node.type, (c, a, b.args[2]))
        if node.type is not BOOL:
            return None
        if is_constant(a, True) and is_constant(b, False):
            return c
        if is_constant(a, False) and is_constant(b, True):
            return Node("bnot", BOOL, (c,))
        if not self.lowered or a in self.endless or b in self.endless:
            return None
        if is_constant(b, False):
            return Node("band", BOOL, (c, a))
        if is_constant(a, True):
            return Node("bor", BOOL, (c, b))
        if is_constant(a, False):
            return Node("band", BOOL, (Node("bnot", BOOL, (c,)), b))
        return Node("bor", BOOL, (Node("bnot", BOOL, (c,)), a)) if is_constant(b, True) else None

    # --- folds
    # ---------------------------------------------------------------------------------------------------------

    def _fold(self, old: Node, args: tuple[Node, ...]) -> Node:
        """A fold without the accumulators that never change and those that nobody needs."""
        attr = old.attr
        assert isinstance(attr, FoldAttr)
        k = len(attr.accs)
        n, inits, nexts = args[0], args[1 : 1 + k], args[1 + k :]
        count = known(n)
        if count is not None and count <= 0 and all(map(self.droppable, inits)):
            self.results[old] = inits
            return rebuild(old, args)
        kept = set(range(k))
        while True:
            fixed = {j for j in kept if nexts[j].op == "var" and nexts[j].attr is attr.accs[j]}
            fixed = {j for j in fixed if self.droppable(inits[j])}
            if not fixed:
                break
            kept -= fixed
            # What does not change is left alone: it may be read elsewhere, and a fold must not become two.
            done = {x: x for x in walk((*inits, *nexts))}
            known_now = instantiate(nexts, {attr.accs[j]: inits[j] for j in fixed})
            nexts = tuple(rewrite(x, self.rule, done) for x in known_now)
        # A first value that may fault keeps its accumulator, and what that one's step reads.
        read = self.read.get(old, set(range(k))) | {j for j in kept if not self.droppable(inits[j])}
        needed = read if kept <= read else self._needed(attr.accs, nexts, read)
        order = [j for j in sorted(kept) if j in needed]
        if len(order) == k:
            made = rebuild(old, args)
        elif order:
            operands = (n, *(inits[j] for j in order), *(nexts[j] for j in order))
            made = Node(
                "fold", attr.accs[order[0]].type, operands, FoldAttr(attr.index, tuple(attr.accs[j] for j in order))
            )
        elif self.droppable(n):
            made = n
        else:
            made, order = rebuild(old, args), list(range(k))
        self._note(made)
        if self.lowered and order and not self.droppable(made):
            # What is left may not end, and here nothing says that it is to be computed for a value that does not need it.
            made, order = rebuild(old, args), list(range(k))
        if len(order) < k:
            place = {j: position for position, j in enumerate(order)}
            # What is left may fault, whoever reads only what never changes.
            kept_on = () if self.droppable(made) or not place else (Node("proj", made.type, (made,), 0),)
            self.results[old] = tuple(
                Node("proj", acc.type, (made,), place[j]) if j in place else seq(kept_on, inits[j])
                for j, acc in enumerate(attr.accs)
            )
        self._note(made)
        return made

    def _needed(self, accs: tuple[Bound, ...], nexts: tuple[Node, ...], read: set[int]) -> set[int]:
        """The accumulators that are read, that those read, and those whose steps may fault."""
        numbers = {b: j for j, b in enumerate(accs)}
        needed: set[int] = set()
        todo = [*read, *(j for j in range(len(accs)) if not self._safe(nexts[j]))]
        while todo:
            j = todo.pop()
            if j not in needed:
                needed.add(j)
                todo += [numbers[v.attr] for v in walk((nexts[j],)) if v.op == "var" and v.attr in numbers]
        return needed

    def _safe(self, node: Node) -> bool:
        return all(n.op not in ("loop", "call") and not OPS[n.op].checked for n in walk((node,)))
