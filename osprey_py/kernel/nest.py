"""A kernel as a loop nest: what one launch's integers decide is decided, and index arithmetic is sums of digits.

Comes in: a lowered kernel, then the integers of a launch. Goes out: its `Shape`. Launches of one shape (`Shape.key`)
share code; what differs between them are numbers: the extents of the digits, and constants and multiples of the sums.
`Shape.kernel` is the kernel with decided conditions gone and every affine integer replaced by a leaf:

    affine   attr: Sum; constant + sum of multiple * digit, exact, never leaving 64 bits

whose numbers are arguments of the code. A digit is a `Bound`: of the launch index (`Shape.digits`, innermost first),
or of a fold's index (its own variable where it has one digit). So `x[i / w * w + k]` reads at a row's digit times w,
plus k.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from osprey_py.kernel.contraction_affine import Affine, Digit
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import BOOL, INT, Bound, FoldAttr, Node, const, rebuild, var, walk
from osprey_py.kernel.ranges import Questions, Ranges
from osprey_py.kernel.substitute import rewrite


@dataclass(frozen=True, slots=True)
class Coefficient:
    """The multiple of a term (or the constant, term None) of the affine integer at a place among the questions."""

    place: int
    term: int | None


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a digit of the launch index (source None) or of a fold's index, counted from the innermost."""

    source: Bound | None
    digit: int


Number = Coefficient | Extent
"""Where a number that code takes as an argument comes from."""


@dataclass(frozen=True, slots=True)
class Term:
    """multiple * digit. multiple: None where it is 1 in every launch of the shape."""

    digit: Bound
    multiple: Number | None


@dataclass(frozen=True, slots=True)
class Sum:
    """constant: None where it is 0 in every launch of the shape."""

    constant: Number | None
    terms: tuple[Term, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """The nest of the launches that have this key.

    digits: of the launch index, innermost first, none of extent 1. in_range: the loads that need no check.
    folds: for the index of a fold that is cut, its digits."""

    key: Hashable
    kernel: Lowered
    digits: tuple[Bound, ...]
    in_range: frozenset[Node]
    folds: dict[Bound, tuple[Bound, ...]]


class Nest:
    """A lowered kernel, ready to be asked about launches."""

    def __init__(self, kernel: Lowered) -> None:
        self.kernel = kernel
        self.questions = Questions(kernel)
        order = tuple(walk(kernel.roots))
        self._loads = tuple(n for n in order if n.op == "load")
        self._indices = tuple(n.attr.index for n in order if isinstance(n.attr, FoldAttr))
        self._places = {n: k for k, n in enumerate(self.questions.nodes)}

    def facts(self, lengths: Sequence[int], uniforms: Sequence[int | float | bool], n: int) -> Ranges:
        """What is known of a launch of n > 0 elements. Of a uniform given as a float nothing is."""
        return self.questions.answer(lengths, uniforms, n)

    def key(self, facts: Ranges) -> Hashable:
        """Equal for launches that share code."""
        names: dict[Digit, tuple[int, int]] = {}
        counts = []
        for j, source in enumerate((None, *self._indices)):
            digits = facts.digits(source) if source is None or source in facts.counts else ()
            counts.append(len(digits))
            names.update((d, (j, k)) for k, d in enumerate(digits))
        kinds: list[Hashable] = []
        for node in self.questions.nodes:
            known = facts.values[node]
            if isinstance(known, Affine):
                kinds.append((known.constant == 0, *((names[d], m == 1) for d, m in known.terms)))
            else:
                kinds.append(known)
        return (tuple(counts), tuple(kinds), tuple(self._in_range(load, facts) for load in self._loads))

    def numbers(self, facts: Ranges, wanted: Sequence[Number]) -> list[int]:
        """The numbers of a launch."""
        return [self._number(facts, x) for x in wanted]

    def _number(self, facts: Ranges, wanted: Number) -> int:
        if isinstance(wanted, Extent):
            return facts.digits(wanted.source)[wanted.digit].extent
        known = facts.values[self.questions.nodes[wanted.place]]
        assert isinstance(known, Affine)
        return known.constant if wanted.term is None else known.terms[wanted.term][1]

    def encode(self, number: Number) -> tuple[int, int, int]:
        """A number's origin as three integers, the same in every process."""
        if isinstance(number, Coefficient):
            return (0, number.place, -1 if number.term is None else number.term)
        return (1, -1 if number.source is None else self._indices.index(number.source), number.digit)

    def decode(self, code: tuple[int, int, int]) -> Number:
        kind, first, second = code
        if kind == 0:
            return Coefficient(first, None if second < 0 else second)
        return Extent(None if first < 0 else self._indices[first], second)

    def shape(self, facts: Ranges) -> Shape:
        """The code's view of a launch, and of all others with its key."""
        names: dict[Digit, Bound] = {}
        launch = facts.digits(None)
        names.update((d, Bound(INT, f"digit{k}")) for k, d in enumerate(launch))
        folds: dict[Bound, tuple[Bound, ...]] = {}
        for source in self._indices:
            if source not in facts.counts:
                continue
            digits = facts.digits(source)
            if len(digits) == 1 and digits[0].unit == 1:
                names[digits[0]] = source
            elif digits:
                folds[source] = tuple(Bound(INT, f"{source.name}{k}") for k in range(len(digits)))
                names.update(zip(digits, folds[source], strict=True))

        def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
            known = facts.values.get(node)
            if isinstance(known, bool):
                return None if node.op == "const" else const(known)
            if isinstance(known, Affine) and node.op not in ("const", "uniform", "length"):
                return self._sum(node, known, names)
            return simplify(node, args)

        done: dict[Node, Node] = {}
        kernel = self.kernel
        fault = None if kernel.fault is None else rewrite(kernel.fault, rule, done)
        kernel = replace(
            kernel,
            result=rewrite(kernel.result, rule, done),
            init=None if kernel.init is None else rewrite(kernel.init, rule, done),
            fault=None if fault is None or (fault.op == "const" and fault.attr is False) else fault,
        )
        sound = frozenset(done[x] for x in self._loads if x in done and self._in_range(x, facts))
        return Shape(self.key(facts), kernel, tuple(names[d] for d in launch), sound, folds)

    def _in_range(self, load: Node, facts: Ranges) -> bool:
        at = facts.bounds(load.args[0])
        assert isinstance(load.attr, int)
        return at is not None and at.low >= 0 and at.high < facts.lengths[load.attr]

    def _sum(self, node: Node, known: Affine, names: dict[Digit, Bound]) -> Node:
        place = self._places[node]
        terms = tuple(Term(names[d], None if m == 1 else Coefficient(place, k)) for k, (d, m) in enumerate(known.terms))
        if known.constant == 0 and len(terms) == 1 and terms[0].multiple is None:
            return var(terms[0].digit)
        return Node("affine", INT, (), Sum(Coefficient(place, None) if known.constant else None, terms))


def _decided(node: Node) -> bool | None:
    return node.attr if node.op == "const" and isinstance(node.attr, bool) else None


def simplify(node: Node, args: tuple[Node, ...]) -> Node | None:
    """The node over new operands, without conditions that are constants and without flags that are never raised."""
    if node.op in ("select", "rare"):
        c = _decided(args[0])
        if c is not None:
            return args[1] if c else args[2]
        if node.type is BOOL:
            yes, no = _decided(args[1]), _decided(args[2])
            if yes is True and no is False:
                return args[0]
            if no is False:
                return Node("band", BOOL, (args[0], args[1])) if yes is None else args[1]
        return None
    if node.op in ("band", "bor"):
        whole = node.op == "bor"
        for a, b in (args, args[::-1]):
            if _decided(a) is whole:
                return a
            if _decided(a) is (not whole):
                return b
        return None
    if node.op == "bnot":
        c = _decided(args[0])
        return None if c is None else const(not c)
    if node.op == "fold":
        return _without_idle_flags(node, args)
    if node.op == "proj" and isinstance(node.args[0].attr, FoldAttr):
        before, after = node.args[0].attr, args[0].attr
        assert isinstance(after, FoldAttr) and isinstance(node.attr, int)
        bound = before.accs[node.attr]
        if bound not in after.accs:
            return const(False)
        place = after.accs.index(bound)
        return rebuild(node, args) if place == node.attr else Node("proj", node.type, args, place)
    return None


def _without_idle_flags(node: Node, args: tuple[Node, ...]) -> Node | None:
    """A fold's boolean accumulator that starts down and stays down is none."""
    attr = node.attr
    assert isinstance(attr, FoldAttr)
    k = len(attr.accs)
    inits, nexts = args[1 : 1 + k], args[1 + k :]
    kept = [
        j
        for j, acc in enumerate(attr.accs)
        if not (acc.type is BOOL and _decided(inits[j]) is False and _decided(nexts[j]) is False)
    ]
    if len(kept) == k or not kept:
        return None
    return Node(
        "fold",
        attr.accs[kept[0]].type,
        (args[0], *(inits[j] for j in kept), *(nexts[j] for j in kept)),
        FoldAttr(attr.index, tuple(attr.accs[j] for j in kept)),
        node.site,
    )
