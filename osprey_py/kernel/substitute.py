"""Substitution: one kernel's expression in place of another's reads, and arguments renumbered.

Comes in: kernels as extracted. Goes out: kernels of the same meaning, over fewer or merged slots and uniforms. This
is the primitive that fusion is made of; whether two launches should become one is decided in graph/.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from osprey_py.kernel.faults import may_fault
from osprey_py.kernel.ir import (
    BOOL,
    INT,
    Bound,
    FoldAttr,
    Kernel,
    KFunction,
    LoopAttr,
    Node,
    const,
    index,
    inrange,
    length,
    load,
    rebuild,
    seq,
    uniform,
    var,
    walk,
)
from osprey_py.kernel.scopes import binds, body

Rule = Callable[[Node, tuple[Node, ...]], Node | None]
"""(node, its new operands) -> what it becomes, or None to keep it with the new operands."""


def rewrite(root: Node, rule: Rule, done: dict[Node, Node] | None = None) -> Node:
    """The root with the rule applied to every node, operands first. done: what nodes have become already; it is read
    and extended."""
    new = {} if done is None else done
    for node in _pending(root, new):
        args = tuple([new[a] for a in node.args])
        made = rule(node, args)
        new[node] = rebuild(node, args) if made is None else made
    return new[root]


def _pending(root: Node, done: dict[Node, Node]) -> list[Node]:
    """The nodes under root that are not done, operands first."""
    order: list[Node] = []
    seen: set[Node] = set()
    # None: the operands of the node below it are in order.
    stack: list[Node | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:
            below = stack.pop()
            assert below is not None
            order.append(below)
        elif node not in done and node not in seen:
            seen.add(node)
            stack += (node, None, *reversed(node.args))
    return order


def rewrite_kernel(kernel: Kernel, rule: Rule) -> Kernel:
    """Every expression of a kernel rewritten; nodes that expressions share stay shared."""
    done: dict[Node, Node] = {}
    return replace(
        kernel,
        result=rewrite(kernel.result, rule, done),
        init=None if kernel.init is None else rewrite(kernel.init, rule, done),
        functions=tuple(
            KFunction(f.name, f.params, tuple(rewrite(r, rule, done) for r in f.results)) for f in kernel.functions
        ),
    )


# --- arguments ----------------------------------------------------------------------------------


def renumber(kernel: Kernel, slots: Sequence[int], uniforms: Sequence[int]) -> Kernel:
    """Slot k becomes slots[k] and uniform k uniforms[k]; numbers may coincide where the types agree, and have no
    gaps."""
    if list(slots) == list(range(len(kernel.slots))) and list(uniforms) == list(range(len(kernel.uniforms))):
        return kernel
    renamed = rewrite_kernel(kernel, _renumbering(slots, uniforms))
    return replace(
        renamed,
        slots=tuple(t for _, t in sorted(set(zip(slots, kernel.slots, strict=True)), key=lambda x: x[0])),
        uniforms=tuple(t for _, t in sorted(set(zip(uniforms, kernel.uniforms, strict=True)), key=lambda x: x[0])),
    )


def _renumbering(slots: Sequence[int], uniforms: Sequence[int]) -> Rule:
    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        k = node.attr
        match node.op:
            case "load" | "inrange" | "length":
                assert isinstance(k, int)
                return Node(node.op, node.type, args, slots[k], node.site)
            case "uniform":
                assert isinstance(k, int)
                return uniform(uniforms[k], node.type)
        return None

    return rule


@dataclass(frozen=True, slots=True)
class Deduped:
    """kernel: with merged arguments. slots, uniforms: which of the old ones the new ones are, in order."""

    kernel: Kernel
    slots: tuple[int, ...]
    uniforms: tuple[int, ...]


def dedupe(kernel: Kernel, slots: Sequence[Hashable], uniforms: Sequence[Hashable]) -> Deduped:
    """Merge the slots that hold the same buffer and the uniforms that hold the same value, told by equal keys."""
    slot_numbers, kept_slots = _merged(slots)
    uniform_numbers, kept_uniforms = _merged(uniforms)
    return Deduped(renumber(kernel, slot_numbers, uniform_numbers), kept_slots, kept_uniforms)


def dedupe_slots(kernel: Kernel, slots: Sequence[Hashable]) -> tuple[Kernel, tuple[int, ...]]:
    """`dedupe` of the slots alone: (kernel, which of the old slots the new ones are)."""
    deduped = dedupe(kernel, slots, range(len(kernel.uniforms)))
    return deduped.kernel, deduped.slots


def _merged(keys: Sequence[Hashable]) -> tuple[list[int], tuple[int, ...]]:
    numbers: dict[Hashable, int] = {}
    kept: list[int] = []
    for k, key in enumerate(keys):
        if key not in numbers:
            numbers[key] = len(kept)
            kept.append(k)
    return [numbers[key] for key in keys], tuple(kept)


def instantiate(roots: Sequence[Node], values: Mapping[Bound, Node]) -> tuple[Node, ...]:
    """The roots with variables replaced where they are free. What reads them is copied, its folds and loops with variables
    of their own; the rest is shared with the original."""
    roots = _unshadowed(roots, values)
    copied = moving(roots, lambda node: node.op == "var" and node.attr in values)
    rule = _renewing(dict(values))
    done: dict[Node, Node] = {node: node for node in walk(roots) if node not in copied}
    return tuple(rewrite(root, rule, done) for root in roots)


def _unshadowed(roots: Sequence[Node], values: Mapping[Bound, Node]) -> Sequence[Node]:
    """The roots with new variables in the folds and loops that bind one of those to be replaced: there they mean
    something else."""
    done: dict[Node, Node] = {}
    for node in walk(roots):
        own = {b: var(Bound(b.type, b.name)) for b in binds(node) if b in values}
        if not own:
            continue
        inside = body(node)
        args = (*node.args[: len(node.args) - len(inside)], *instantiate(inside, own))
        attr = node.attr
        if isinstance(attr, FoldAttr):
            attr = FoldAttr(_renamed(attr.index, own), tuple(_renamed(a, own) for a in attr.accs))
        elif isinstance(attr, LoopAttr):
            attr = LoopAttr(tuple(_renamed(v, own) for v in attr.vars))
        done[node] = Node(node.op, node.type, args, attr, node.site)
    if not done:
        return roots
    return tuple(rewrite(root, lambda _node, _args: None, done) for root in roots)


def _renamed(b: Bound, own: Mapping[Bound, Node]) -> Bound:
    found = own[b].attr if b in own else b
    assert isinstance(found, Bound)
    return found


def moving(roots: Sequence[Node], starts: Callable[[Node], bool]) -> set[Node]:
    """The nodes that starts holds for, all that reads them, and all that reads a variable of a fold or loop among
    those."""
    order = list(walk(roots))
    known: set[Node] = set()
    while True:
        bound = {b for node in known for b in binds(node)}
        found = set(known)
        for node in order:
            if starts(node) or (node.op == "var" and node.attr in bound) or not found.isdisjoint(node.args):
                found.add(node)
        if found == known:
            return known
        known = found


def _renewing(values: dict[Bound, Node]) -> Rule:
    """Replaces variables by values, and those that folds and loops bind by new ones."""

    def renew(b: Bound) -> Bound:
        if b not in values:
            values[b] = var(Bound(b.type, b.name))
        fresh = values[b].attr
        assert isinstance(fresh, Bound)
        return fresh

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        attr = node.attr
        if isinstance(attr, FoldAttr):
            return Node(node.op, node.type, args, FoldAttr(renew(attr.index), tuple(map(renew, attr.accs))))
        if isinstance(attr, LoopAttr):
            return Node(node.op, node.type, args, LoopAttr(tuple(map(renew, attr.vars))))
        if isinstance(attr, Bound):
            if attr not in values:
                renew(attr)
            return values[attr]
        return None

    return rule


# --- inlining -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Inlined:
    """kernel: the consumer with the producer in it. Its slots are the consumer's without the inlined one, then the
    producer's; its uniforms the consumer's, then the producer's, then, where `reads_length`, the length of the inlined
    buffer (an int)."""

    kernel: Kernel
    reads_length: bool


def read_places(kernel: Kernel, slot: int) -> tuple[Node, ...]:
    """The distinct index nodes at which a kernel loads from a slot, functions included."""
    roots = (*kernel.roots, *(r for f in kernel.functions for r in f.results))
    return tuple(dict.fromkeys(n.args[0] for n in walk(roots) if n.op == "load" and n.attr == slot))


def inline(consumer: Kernel, slot: int, producer: Kernel, *, same_extent: bool) -> Inlined | None:
    """The consumer computing the elements of `slot` by itself, with the kernel of the map that made them.

    same_extent: the slot has as many elements as the consumer is launched for, so that its index is in range there.
    None when it cannot be done: the producer is no map, or it can fault and is read elsewhere than at the index or a
    fold's index (its faults come before the consumer's and outside the consumer's `?:`, so they are evaluated first
    thing in that scope). The caller sees to it that a producer that can fault has every element read: strict
    evaluation would have.
    """
    if producer.acc is not None:
        return None
    places = read_places(consumer, slot)
    risky = may_fault(producer)
    firsts = _strict_places(consumer, slot, places) if risky else {}
    if firsts is None:
        return None
    others = len(consumer.slots) - 1
    slots = [k - (k > slot) for k in range(len(consumer.slots))]
    reads_length = False
    size = uniform(len(consumer.uniforms) + len(producer.uniforms), INT)
    copies = _Copies(producer, others, len(consumer.uniforms), len(consumer.functions))

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        nonlocal reads_length
        k = node.attr
        match node.op:
            case "load":
                assert isinstance(k, int)
                return copies.at(args[0]) if k == slot else load(slots[k], node.type, args[0])
            case "inrange":
                assert isinstance(k, int)
                if k != slot:
                    return inrange(slots[k], args[0])
                if same_extent and args[0].op == "index":
                    return const(True)
                reads_length = True
                low, high = Node("le", BOOL, (const(0), args[0])), Node("lt", BOOL, (args[0], size))
                return Node("band", BOOL, (low, high))
            case "length":
                assert isinstance(k, int)
                reads_length = reads_length or k == slot
                return size if k == slot else length(slots[k])
            case "fold" if node in firsts:
                accs = (len(args) - 1) // 2
                first = seq((copies.at(firsts[node]),), args[1 + accs])
                return Node("fold", node.type, (*args[: 1 + accs], first, *args[2 + accs :]), k, node.site)
        return None

    merged = rewrite_kernel(consumer, rule)
    result = merged.result
    if risky:
        # What is read nowhere is evaluated all the same: strict evaluation would have.
        own = [p for p in places if p.op == "index"][:1] or ([index()] if same_extent and not places else [])
        result = seq([copies.at(p) for p in own], result)
    return Inlined(
        replace(
            merged,
            slots=(*(t for k, t in enumerate(consumer.slots) if k != slot), *producer.slots),
            uniforms=(*consumer.uniforms, *producer.uniforms, *((INT,) if reads_length else ())),
            result=result,
            functions=(*merged.functions, *copies.functions),
            sources=tuple(dict.fromkeys((*producer.sources, *consumer.sources))),
        ),
        reads_length,
    )


def _strict_places(consumer: Kernel, slot: int, places: Sequence[Node]) -> dict[Node, Node] | None:
    """For each fold of the consumer, the place (its own index) whose element is evaluated first in its body; None
    when an element is read anywhere but at the index or a fold's index."""
    folds: dict[Bound, Node] = {n.attr.index: n for n in walk(consumer.roots) if isinstance(n.attr, FoldAttr)}
    firsts: dict[Node, Node] = {}
    for place in places:
        if place.op == "var" and place.attr in folds:
            firsts[folds[place.attr]] = place
        elif place.op != "index":
            return None
    return firsts


class _Copies:
    """Copies of a producer's expression, one for each index node; what does not depend on the index is copied once."""

    def __init__(self, producer: Kernel, slot_offset: int, uniform_offset: int, function_offset: int) -> None:
        self.producer = producer
        self.offset = function_offset
        self.arguments = _renumbering(
            [slot_offset + k for k in range(len(producer.slots))],
            [uniform_offset + k for k in range(len(producer.uniforms))],
        )
        self.moving = moving((producer.result,), lambda node: node.op == "index")
        self.fixed: dict[Node, Node] = {}
        self.copies: dict[object, Node] = {}
        rule = self._rule({})
        for node in walk((producer.result,)):
            if node not in self.moving:
                rewrite(node, rule, self.fixed)
        self.functions = tuple(self._function(f) for f in producer.functions)

    def at(self, place: Node) -> Node:
        key = place.attr if place.op == "var" else place.op if place.op == "index" else place
        made = self.copies.get(key)
        if made is None:
            done = dict(self.fixed)
            done.update((n, place) for n in self.moving if n.op == "index")
            made = self.copies[key] = rewrite(self.producer.result, self._rule({}), done)
        return made

    def _function(self, function: KFunction) -> KFunction:
        params = {p: Bound(p.type, p.name) for p in function.params}
        rule = self._rule(params)
        done: dict[Node, Node] = {}
        results = tuple(rewrite(r, rule, done) for r in function.results)
        return KFunction(function.name, tuple(params[p] for p in function.params), results)

    def _rule(self, params: dict[Bound, Bound]) -> Rule:
        """Arguments renumbered, variables replaced by new ones, calls by the merged numbering."""
        renewing = _renewing({b: var(new) for b, new in params.items()})

        def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
            if node.op == "call":
                assert isinstance(node.attr, int)
                return Node("call", node.type, args, node.attr + self.offset, node.site)
            return renewing(node, args) or self.arguments(node, args)

        return rule
