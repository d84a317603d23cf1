"""How the adjoint of a fold's accumulators goes back through its steps (spec/gradients, G6).

Comes in: a fold whose results have adjoints. Goes out: contributions to what its steps and its first values read. There
are three kinds of fold:

- it *adds*: each step's accumulator reads the one before just once, as an operand of + (or the left one of -) or as
  what an `if` chooses: the adjoint of the result is that of every accumulator, and no accumulator has to be known;
- it *keeps*: each step's accumulator is the one before or something new (max, min, the last that…): only the last step
  that brought something new counts, and one more fold finds it;
- anything else: the accumulators are computed again and kept for every step, and so are their adjoints, each by a scan
  of its own. (Accumulators that make each other would need one scan for all; the language's folds have one each.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from osprey_py.kernel.derive.conditions import Condition
from osprey_py.kernel.derive.refusals import refuse_circle
from osprey_py.kernel.derive.rows import Rows, of_before, rows
from osprey_py.kernel.derive.subject import Subject, index_of
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Node, const, fold, fold_parts, select, var
from osprey_py.kernel.scopes import free
from osprey_py.kernel.substitute import instantiate, rewrite

if TYPE_CHECKING:
    from osprey_py.kernel.derive.reverse import Backward

Found = tuple[Condition, Node] | None
"""(when a value has an adjoint, the adjoint)."""


def go_back(b: Backward, node: Node, found: list[Found]) -> None:
    """found: of each result of the fold."""
    if adds(b.s, node):
        _through(b, node, found)
    elif all(f is None or keeps(b.s, node, j) for j, f in enumerate(found)):
        _to_winners(b, node, found)
    else:
        _step_by_step(b, node, found)


# --- folds that add --------------------------------------------------------------------------------------------------


def adds(subject: Subject, node: Node) -> bool:
    """Whether every accumulator that has a gradient is only added to, and nothing it is made of reads another one."""
    _, inits, nexts, attr = fold_parts(node)
    reads = free(nexts)
    accs = set(attr.accs)
    for acc, first, following in zip(attr.accs, inits, nexts, strict=True):
        if first in subject.active or following in subject.active:
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


def _through(b: Backward, node: Node, found: list[Found]) -> None:
    _, inits, nexts, attr = fold_parts(node)
    for j, f in enumerate(found):
        if f is not None:
            b.contribute(nexts[j], (node.serial, j), b.s.inside(node), *f)
    b.within(node)
    for j, f in enumerate(found):
        b.forget(attr.accs[j])
        if f is not None:
            b.contribute(inits[j], (attr.index.uid, j), b.s.path[node], *f)


# --- folds that keep -------------------------------------------------------------------------------------------------


def keeps(subject: Subject, node: Node, j: int) -> bool:
    """Whether accumulator j is kept or replaced in every step, by what reads no accumulator."""
    _, _, nexts, attr = fold_parts(node)
    reads = free((nexts[j],))
    others = reads[nexts[j]] & set(attr.accs) - {attr.accs[j]}
    return not others and _replaced(nexts[j], attr.accs[j], reads, subject) is not None


def _replaced(node: Node, acc: Bound, reads: dict[Node, frozenset[Bound]], subject: Subject) -> Node | None:
    """Whether the node is something new; None when it may be made of acc."""
    if acc not in reads[node]:
        return const(True)
    match node.op:
        case "var":
            return const(False)
        case "seq":
            return _replaced(node.args[-1], acc, reads, subject)
        case "fmax" | "fmin":
            a, b = node.args
            if (a.op == "var") == (b.op == "var") or (acc in reads[a]) == (acc in reads[b]):
                return None
            first, second = (a, b) if node.op == "fmax" else (b, a)
            values = subject.values
            takes_second = Node("lt", BOOL, (values[first], values[second]))
            return takes_second if a.op == "var" else Node("bnot", BOOL, (takes_second,))
        case "select" | "rare":
            c, a, b = node.args
            when = subject.values[c]
        case "recover":
            b, a = node.args
            bit = subject.bits[b]
            if bit is None:
                return _replaced(b, acc, reads, subject)
            when = bit
        case _:
            return None
    x, y = (_replaced(z, acc, reads, subject) for z in (a, b))
    return None if x is None or y is None else select(when, x, y)


def _to_winners(b: Backward, node: Node, found: list[Found]) -> None:
    """Only the last step in which something new came has an adjoint to pass on."""
    _, inits, nexts, attr = fold_parts(node)
    winners: dict[int, Node] = {}
    for j, f in enumerate(found):
        if f is None:
            continue
        when, adjoint = f
        winner, before = _winner(b, node, j)
        winners[j] = winner
        b.known[attr.accs[j]] = before
        b.settled.update(_deciding(nexts[j], attr.accs[j]))
        here = Node("eq", BOOL, (var(attr.index), winner))
        b.contribute(nexts[j], (node.serial, j), b.s.inside(node), b.conditions.both(when, here), adjoint)
    b.within(node)
    for j, f in enumerate(found):
        b.forget(attr.accs[j])
        if f is not None:
            never = Node("lt", BOOL, (winners[j], const(0)))
            b.contribute(inits[j], (attr.index.uid, j), b.s.path[node], b.conditions.both(f[0], never), f[1])


def _winner(b: Backward, node: Node, j: int) -> tuple[Node, Node]:
    """(the last step in which accumulator j was replaced, -1 for none; the accumulator before it)."""
    _, inits, nexts, attr = fold_parts(node)
    acc = attr.accs[j]
    new = _replaced(nexts[j], acc, free((nexts[j],)), b.s)
    assert new is not None
    step, value, winner, before = Bound(INT, "k"), Bound(FLOAT, "acc"), Bound(INT, "winner"), Bound(FLOAT, "before")
    now = {acc: var(value), attr.index: var(step)}
    following, comes = instantiate((b.value(nexts[j]), b.at(new, nexts[j])), now)
    found = fold(
        b.count(node),
        step,
        (value, winner, before),
        (b.value(inits[j]), const(-1), const(0.0)),
        (following, select(comes, var(step), var(winner)), select(comes, var(value), var(before))),
    )
    return found[1], found[2]


def _deciding(node: Node, acc: Bound) -> dict[Node, Node]:
    """Choices between the accumulator and something new, with the new: in the step that counts, it was taken."""
    settled: dict[Node, Node] = {}
    stack = [node]
    while stack:
        n = stack.pop()
        choices = {"select": n.args[1:], "rare": n.args[1:], "recover": n.args, "fmax": n.args, "fmin": n.args}.get(
            n.op
        )
        if n.op == "seq":
            stack.append(n.args[-1])
        elif choices is not None:
            kept = [x.op == "var" and x.attr is acc for x in choices]
            if any(kept):
                settled[n] = choices[kept.index(False)]
            stack += (x for x in choices if acc in free((x,))[x])
    return settled


# --- all others ------------------------------------------------------------------------------------------------------


def _step_by_step(b: Backward, node: Node, found: list[Found]) -> None:
    _, inits, nexts, attr = fold_parts(node)
    inside, home = b.s.inside(node), b.s.path[node]
    accs = attr.accs
    b.known.update(zip(accs, _stored(b, node), strict=True))
    moving = [j for j, x in enumerate(nexts) if x in b.s.active]
    adjoints = {j: rows(node, FLOAT, b.count(node), backwards=True) for j in moving}

    def run(reached: dict[int, Condition]) -> dict[int, Found]:
        for j in moving:
            b.contribute(nexts[j], (node.serial, j), inside, reached[j], adjoints[j].read(b.s))
        b.within(node)
        return {j: b.take(accs[j], inside) for j in moving}

    # First as if every step had an adjoint to pass on, then, where that is not so, with what tells.
    mark = b.mark()
    whens = {j: f[0] if (f := found[j]) is not None else None for j in moving}
    told: dict[int, Rows] = {}
    before = run(whens) if all(found[j] is not None for j in moving) else None
    if before is None or any(f is None or f[0] is not whens[j] for j, f in before.items()):
        b.back_to(mark)
        told = {j: rows(node, BOOL, b.count(node), backwards=True) for j in moving}
        before = run({j: told[j].read(b.s) for j in moving})
    for j in moving:
        end, back = found[j], before[j]
        adjoints[j].first = const(0.0) if end is None else end[1]
        adjoints[j].step = const(0.0) if back is None else of_before(b.s, back[1], adjoints[j])
        if told:
            told[j].first = const(False) if end is None else end[0] or const(True)
            told[j].step = const(False) if back is None else of_before(b.s, back[0] or const(True), told[j])
    for j in moving:
        if inits[j] in b.s.active:
            b.contribute(inits[j], (attr.index.uid, j), home, *_at_start(b, node, found[j], before[j]))
    for j, acc in enumerate(accs):
        b.forget(acc)
        if j not in moving and node not in b.positive and (f := found[j]) is not None:
            # A first value that no step reads: the result where there is no step.
            none = b.conditions.both(f[0], Node("lt", BOOL, (const(0), b.count(node))), False)
            b.contribute(inits[j], (attr.index.uid, j), home, none, f[1])


def _at_start(b: Backward, node: Node, end: Found, back: Found) -> tuple[Condition, Node]:
    """The adjoint of a first value: what step 0 gives; that of the result when there are no steps."""
    nothing = const(False), const(0.0)
    when, value = nothing if back is None else (back[0] or const(True), back[1])
    when, value = instantiate((when, value), {index_of(node): const(0)})
    if node not in b.positive:
        some = Node("lt", BOOL, (const(0), b.count(node)))
        other, last = nothing if end is None else (end[0] or const(True), end[1])
        when, value = select(some, when, other), select(some, value, last)
    return (None if when.op == "const" and when.attr is True else when), value


def _stored(b: Backward, node: Node) -> list[Node]:
    """Each accumulator as it was before the present step."""
    _, inits, nexts, attr = fold_parts(node)
    needs = {a: free((x,))[x] & set(attr.accs) - {a} for a, x in zip(attr.accs, nexts, strict=True)}
    if _circular(needs):
        raise refuse_circle(b.s.kernel)
    kept = [rows(node, acc.type, b.count(node), backwards=False) for acc in attr.accs]
    reads = {acc: r.read(b.s) for acc, r in zip(attr.accs, kept, strict=True)}
    for acc, r, first, following in zip(attr.accs, kept, inits, nexts, strict=True):
        now = {a: var(r.before) if a is acc else read for a, read in reads.items()}
        r.first = b.value(first)
        r.step = replaced(b.value(following), now)
    return list(reads.values())


def replaced(node: Node, now: dict[Bound, Node]) -> Node:
    """An expression with variables replaced."""

    def rule(old: Node, args: tuple[Node, ...]) -> Node | None:
        return now.get(old.attr) if old.op == "var" and isinstance(old.attr, Bound) else None

    return rewrite(node, rule)


def _circular(needs: dict[Bound, frozenset[Bound]]) -> bool:
    left = dict(needs)
    while left:
        free_now = [a for a, others in left.items() if others.isdisjoint(left)]
        if not free_now:
            return True
        for a in free_now:
            del left[a]
    return False
