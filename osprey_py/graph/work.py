"""How much a step computes and moves, as its kernel is written: for profiles.

Comes in: a kernel, the lengths and element sizes of its slots, the launch's integers, n. Goes out: its `Work`.

A value is computed once for each combination of what it depends on: of a map over rows and columns, what reads the row
alone counts once a row. exp, ln and tanh count the operations of their usual path. Integers cost nothing. A slot is read as
often as its loads run, but never more than once whole: what is read again lies in a cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import nan, prod

from osprey_py.kernel.contraction_affine import Affine, Digit
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import FLOAT, PRIVATE, Bound, FoldAttr, Kernel, Node, fold_parts, walk
from osprey_py.kernel.passes import prepared
from osprey_py.kernel.ranges import Questions, Ranges
from osprey_py.numerics.expand import expand

COUNTED = frozenset(
    "fadd fsub fmul fdiv fdivi fmod fmodi fneg fabs fmin fmax floor ceil round sqrt lt le eq ne".split()
)
"""Operations on floats that count one each."""


@dataclass(frozen=True, slots=True)
class Work:
    """operations: on floats. bytes: read and written. Both are 0 where nobody can know: loops of unknown length."""

    operations: int
    bytes: int


class Works:
    """Remembers what has been counted."""

    def __init__(self) -> None:
        self._questions: dict[Kernel, tuple[Lowered, Questions]] = {}
        self._found: dict[tuple[object, ...], Work] = {}

    def of(
        self,
        kernel: Kernel,
        lengths: Sequence[int],
        sizes: Sequence[int],
        uniforms: Sequence[int | float | bool],
        n: int,
    ) -> Work:
        """Of a launch of n elements. sizes: bytes of an element of each slot."""
        known = [nan if t is FLOAT else u for t, u in zip(kernel.uniforms, uniforms, strict=True)]
        key = (kernel, n, *lengths, *sizes, *(u for u in known if u == u))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._count(kernel, lengths, sizes, known, n)
        return found

    def _count(
        self, kernel: Kernel, lengths: Sequence[int], sizes: Sequence[int], uniforms: Sequence[float], n: int
    ) -> Work:
        if n <= 0 or kernel.general:
            return Work(0, 0)
        if kernel not in self._questions:
            lowered = prepared(kernel)
            self._questions[kernel] = (lowered, Questions(lowered))
        lowered, questions = self._questions[kernel]
        return _Count(lowered, questions.answer(lengths, uniforms, n), n).work(lengths, sizes)


@cache
def operations_of(op: str) -> int:
    """Operations on floats of exp, ln or tanh, where the fast phase decides; a multiplication with an addition is two."""
    (root,) = expand((Node(op, FLOAT, (Node("var", FLOAT, (), Bound(FLOAT)),)),))
    return sum(2 if n.op in PRIVATE else _is_counted(n) for n in _usual((root,), {}))


def _is_counted(node: Node) -> bool:
    return node.op in COUNTED and (node.type is FLOAT or node.args[0].type is FLOAT)


def _usual(roots: Sequence[Node], decided: Mapping[Node, object]) -> Iterator[Node]:
    """The nodes that run in the usual case: not the rare side, and of a decided choice only what is chosen."""
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if node.op in ("select", "rare"):
            choice, a, b = node.args
            known = decided.get(choice)
            if isinstance(known, bool):
                stack.append(a if known else b)
                continue
            if node.op == "rare":
                stack += (choice, b)
                continue
        stack.extend(node.args)


Axis = Digit | Bound | None
"""What a value varies with: a digit of an index, a fold's index as a whole, or (None) the launch index as a whole."""


@dataclass
class _Count:
    """One launch. n > 0."""

    kernel: Lowered
    facts: Ranges
    n: int

    def work(self, lengths: Sequence[int], sizes: Sequence[int]) -> Work:
        values = self.facts.values
        usual = set(_usual((self.kernel.result,), values))
        self.folds: dict[Bound, Node] = {}
        order = [node for node in walk(self.kernel.roots) if node in usual]
        for node in order:
            if isinstance(node.attr, FoldAttr):
                self.folds |= dict.fromkeys((node.attr.index, *node.attr.accs), node)
        axes: dict[Node, frozenset[Axis]] = {}
        operations = 0.0
        reads = [0.0] * len(sizes)
        for node in order:
            axes[node] = self._axes(node, axes)
            if node.op in ("exp", "ln", "tanh"):
                operations += operations_of(node.op) * self._times(axes[node], axes)
            elif _is_counted(node):
                operations += self._times(axes[node], axes)
            elif node.op == "load":
                assert isinstance(node.attr, int)
                reads[node.attr] += self._times(axes[node], axes)
        moved = sum(min(r, n) * size for r, n, size in zip(reads, lengths, sizes, strict=True))
        return Work(round(operations), round(moved))

    def _axes(self, node: Node, axes: dict[Node, frozenset[Axis]]) -> frozenset[Axis]:
        known = self.facts.values.get(node)
        if isinstance(known, Affine):
            return frozenset(d if self._cut(d) else d.source for d, _ in known.terms)
        if isinstance(known, bool):
            return frozenset()
        if node.op == "index":
            return frozenset((None,))
        if node.op == "var":
            assert isinstance(node.attr, Bound)
            fold = self.folds.get(node.attr)
            if fold is None:
                return frozenset()
            count, inits, _, attr = fold_parts(fold)
            before = (count, *inits) if node.attr is not attr.index else ()
            return frozenset[Axis]((attr.index,)).union(*(axes[a] for a in before if a in axes))
        found = frozenset[Axis]().union(*(axes[a] for a in node.args if a in axes))
        if isinstance(node.attr, FoldAttr):
            index = node.attr.index
            found = frozenset(a for a in found if a is not index and not (isinstance(a, Digit) and a.source is index))
        return found

    def _cut(self, digit: Digit) -> bool:
        """Whether the digit is less than its whole index."""
        return len(self.facts.digits(digit.source)) > 1

    def _times(self, axes: frozenset[Axis], known: dict[Node, frozenset[Axis]]) -> float:
        """How many combinations there are."""
        whole = {a for a in axes if not isinstance(a, Digit)}
        found = float(prod(a.extent for a in axes if isinstance(a, Digit) and a.source not in whole))
        for a in whole:
            found *= self.n if a is None else self._turns(a, axes, known)
        return found

    def _turns(self, index: Bound, axes: frozenset[Axis], known: dict[Node, frozenset[Axis]]) -> float:
        """Of a fold: on average, where what varies the count is counted too; at most, where it is not."""
        count = fold_parts(self.folds[index])[0]
        bounds = self.facts.bounds(count)
        if bounds is None:
            return 1.0
        high = max(0, bounds.high)
        return (max(0, bounds.low) + high) / 2 if known[count] <= axes else high
