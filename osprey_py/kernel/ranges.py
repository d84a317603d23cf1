"""What the integers of a whole kernel are at one launch: affine where they can be, else an interval.

Comes in: a lowered kernel (once), then the integers of a launch: lengths, uniforms, n. Goes out: `Facts` for every
node of type int or bool: an `Affine` over digits, a `Range`, True, False, or None.

What is decided here holds for every element and every turn of every fold, also where nothing chooses the node: a
fold's index is taken to reach zero even when the fold is empty. So code that relies on a decision may be hoisted
anywhere. A fold's flag that starts down and is never raised while it is down is down: decided by assuming it and
looking whether the assumption holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from osprey_py.kernel.contraction_affine import HIGH, LOW, MOST_CUTS, Affine, Cut, Facts, Known
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, FoldAttr, Node, TableAttr, fold_parts, walk


@dataclass(frozen=True, slots=True)
class Range:
    """low <= x <= high."""

    low: int
    high: int


Bounds = Affine | Range

_BINDERS = frozenset({"fold", "loop", "call"})
_DECIDED_BY = frozenset("load inrange table fold loop call select rare uquot urem lt le eq ne".split())


class Questions:
    """A kernel's integers and booleans in order, and what its folds say about their variables. Made once per
    kernel."""

    def __init__(self, kernel: Lowered) -> None:
        order = self._order = tuple(walk(kernel.roots))
        self.nodes = tuple(n for n in order if n.type is not FLOAT)
        """The ints and bools, operands first."""
        self.opaque = {n for n in self.nodes if n.op in _BINDERS or (n.op != "proj" and _of_floats(n))}
        """Those about which nothing can be known. What a fold's other accumulators are says nothing about its flag."""
        self.counts: dict[Bound, Node] = {}
        self.flags: dict[Bound, tuple[Node, Node]] = {}
        """Boolean accumulators with their first and next values."""
        for node in order:
            if node.op != "fold":
                continue
            count, inits, nexts, attr = fold_parts(node)
            self.counts[attr.index] = count
            for acc, init, following in zip(attr.accs, inits, nexts, strict=True):
                if acc.type is BOOL:
                    self.flags[acc] = (init, following)

    def deciding(self, uniforms: Sequence[int]) -> tuple[int, ...]:
        """Those of the uniforms that places, lengths of folds, quotients and choices depend on. The others are only
        computed with: not to know them costs a check at most."""
        found = []
        for k in uniforms:
            reached = {n for n in self._order if n.op == "uniform" and n.attr == k}
            for n in self._order:
                operands = n.args[:1] if n.op in ("fold", "select", "rare") else n.args
                if not reached.isdisjoint(operands) and n.op in _DECIDED_BY:
                    found.append(k)
                    break
                if n.type is not FLOAT and not reached.isdisjoint(n.args):
                    reached.add(n)
        return tuple(found)

    def answer(self, lengths: Sequence[int], uniforms: Sequence[int | float | bool], n: int) -> Ranges:
        """The facts of a launch of n > 0 elements."""
        down = set(self.flags)
        while True:
            facts = Ranges(lengths, uniforms, n, assumed=dict.fromkeys(down, False), questions=self)
            facts.learn_all()
            wrong = {b for b in down if any(facts.values.get(p) is not False for p in self.flags[b])}
            if not wrong:
                return facts
            down -= wrong


@dataclass
class Ranges(Facts):
    """The facts of one launch."""

    questions: Questions = field(kw_only=True)
    ranges: dict[Node, Range] = field(default_factory=dict)

    def learn_all(self) -> None:
        """Evaluate every node; nothing is known of any when there would be too many cuts."""
        opaque = self.questions.opaque
        for _ in range(MOST_CUTS):
            try:
                for node in self.questions.nodes:
                    self.values[node] = None if node in opaque else self._fact(node)
            except Cut as cut:
                self.cuts[cut.source] = sorted([*self.cuts.get(cut.source, [1]), cut.unit])
                self.values.clear()
                self.ranges.clear()
            else:
                return
        self.values = dict.fromkeys(self.questions.nodes)
        self.cuts.clear()

    def bounds(self, node: Node) -> Bounds | None:
        """The interval of an int node."""
        known = self.values.get(node)
        if isinstance(known, Affine):
            return known
        return self.ranges.get(node)

    def _fact(self, node: Node) -> Known:
        attr = node.attr
        if node.op == "var" and isinstance(attr, Bound) and attr not in self.counts and attr in self.questions.counts:
            count = self.bounds(self.questions.counts[attr])
            if count is not None and count.high < HIGH:
                self.counts[attr] = max(1, count.high)
        if node.op == "proj":  # of a fold: its flag
            fold = node.args[0].attr
            assert isinstance(node.attr, int)
            return self.assumed.get(fold.accs[node.attr]) if isinstance(fold, FoldAttr) else None
        known = self.evaluate(node)
        if known is not None:
            return known
        if node.type is INT:
            found = self._range(node)
            if found is not None:
                self.ranges[node] = found
            return None
        return self._decide(node)

    def _range(self, node: Node) -> Range | None:
        """An interval of an int that is no sum of digits; None when it may be anything, wrapping included."""
        attr = node.attr
        if isinstance(attr, TableAttr):
            values = [int(v) for v in attr.values]
            return Range(min(values), max(values))
        if node.op in ("select", "rare"):
            c = self.values.get(node.args[0])
            sides = [self.bounds(a) for a in (node.args[1:] if c is None else node.args[1:2] if c else node.args[2:])]
            return _hull(sides)
        if node.op == "and":
            masks = [b for b in map(self.bounds, node.args) if b is not None and b.low >= 0]
            return Range(0, min(m.high for m in masks)) if masks else None
        rule = _INTERVALS.get(node.op)
        if rule is None:
            return None
        ends = [self.bounds(a) for a in node.args]
        if any(e is None for e in ends):
            return None
        found = rule(*ends)
        return found if found is not None and found.low >= LOW and found.high <= HIGH else None

    def _decide(self, node: Node) -> bool | None:
        """A comparison or overflow by the ends of intervals."""
        if node.op == "inrange":
            at = self.bounds(node.args[0])
            assert isinstance(node.attr, int)
            if at is None:
                return None
            n = self.lengths[node.attr]
            return True if at.low >= 0 and at.high < n else False if at.high < 0 or at.low >= n else None
        rule = _DECISIONS.get(node.op)
        if rule is None or any(a.type is not INT for a in node.args):
            return None
        a, b = (self.bounds(x) for x in node.args)
        return None if a is None or b is None else rule(a, b)


def _of_floats(node: Node) -> bool:
    return any(a.type is FLOAT for a in node.args)


def _hull(sides: Sequence[Bounds | None]) -> Range | None:
    if any(s is None for s in sides):
        return None
    return Range(min(s.low for s in sides if s), max(s.high for s in sides if s))


def _corners(f: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Range | None]:
    """The interval of an operation that is monotone in each operand: its least and greatest corner."""

    def rule(a: Bounds, b: Bounds) -> Range:
        values = [f(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return Range(min(values), max(values))

    return rule


def _quotient(a: Bounds, b: Bounds) -> Range | None:
    if b.low <= 0:
        return None
    return Range(
        min(_truncate(a.low, b.low), _truncate(a.low, b.high)), max(_truncate(a.high, b.low), _truncate(a.high, b.high))
    )


def _truncate(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def _remainder(a: Bounds, b: Bounds) -> Range | None:
    if b.low <= 0:
        return None
    most = b.high - 1
    return Range(max(-most, min(a.low, 0)), min(most, max(a.high, 0)))


def _shifted_right(a: Bounds, b: Bounds) -> Range | None:
    if b.low < 0 or b.high > 63:
        return None
    return _corners(lambda x, y: x >> y)(a, b)


_INTERVALS: dict[str, Callable[..., Range | None]] = {
    "wadd": _corners(lambda x, y: x + y),
    "wsub": _corners(lambda x, y: x - y),
    "wmul": _corners(lambda x, y: x * y),
    "imin": _corners(min),
    "imax": _corners(max),
    "uquot": _quotient,
    "urem": _remainder,
    "ushr": _shifted_right,
}


def _outside(f: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], bool | None]:
    """Whether a sum, difference or product leaves 64 bits: never, or unknown."""

    def rule(a: Bounds, b: Bounds) -> bool | None:
        found = _corners(f)(a, b)
        assert found is not None
        return False if found.low >= LOW and found.high <= HIGH else None

    return rule


def _less(a: Bounds, b: Bounds) -> bool | None:
    return True if a.high < b.low else False if a.low >= b.high else None


def _less_equal(a: Bounds, b: Bounds) -> bool | None:
    return True if a.high <= b.low else False if a.low > b.high else None


def _equal(a: Bounds, b: Bounds) -> bool | None:
    if a.high < b.low or b.high < a.low:
        return False
    return True if a.low == a.high == b.low == b.high else None


def _different(a: Bounds, b: Bounds) -> bool | None:
    same = _equal(a, b)
    return None if same is None else not same


_DECISIONS: dict[str, Callable[[Bounds, Bounds], bool | None]] = {
    "addo": _outside(lambda x, y: x + y),
    "subo": _outside(lambda x, y: x - y),
    "mulo": _outside(lambda x, y: x * y),
    "lt": _less,
    "le": _less_equal,
    "eq": _equal,
    "ne": _different,
}
