"""Contractions: which folds are matrix products, whoever wrote them.

Comes in: a lowered kernel (faults are values). Goes out: its `Candidate`s, by structure alone; and, for one launch
with its lengths, uniforms and number of elements, a `Contraction`: extents, strides and seed of the same sums, or
None.

A candidate is a fold whose accumulator becomes `acc + load * load`, in any order of operands (addition and
multiplication commute but for a NaN's payload, which nobody sees), or stays as it is under a condition
(kernel/contraction_terms.py). At a launch it is a contraction when both
addresses are affine and in range, nothing in it can fault, and the launch index falls into digits: those that only
one operand moves with are rows or columns, those that both or neither move with are batches. `gpuMatMul`, attention's
scores and its mix of values, linear layers, transposed products and gradients of weights are all caught; a
difference, a product that reads the accumulator, indirect, squared or unknown indices are not.

What the kernel does with the sum is the `epilogue`: the same kernel, reading the sum from one more slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osprey_py.kernel.contraction_affine import Affine, Digit, Facts
from osprey_py.kernel.contraction_terms import Range, added, chosen, is_minus_zero, narrowed
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import BOOL, FLOAT, Node, const, fold_parts, index, load, walk
from osprey_py.kernel.scopes import free
from osprey_py.kernel.substitute import rewrite

FEW = 4
"""Columns that are worth a vector."""


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Candidate:
    """A fold of a kernel that may be a contraction. acc, flag: which of its results are the sum and the fault bit.
    order: every node of the kernel and of the epilogue's fault bit, operands first.
    epilogue: reads the sum at `index` from its last slot. start: makes what the sums begin with, where it is no constant of
    the launch.
    bare: the sum is the kernel's result, so the epilogue is needed only to report faults."""

    kernel: Lowered
    fold: Node
    acc: int
    flag: int | None
    order: tuple[Node, ...]
    epilogue: Lowered
    start: Lowered | None
    bare: bool


@dataclass(frozen=True, slots=True)
class Side:
    """An operand: element offset + row * i + depth * k of a slot, i counting rows of the left, columns of the right."""

    slot: int
    offset: int
    row: int
    depth: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A dimension besides rows and columns: how far a step moves in the operands and the output, and by how many terms it
    moves the sum's end and its beginning."""

    extent: int
    left: int
    right: int
    output: int
    terms: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class Contraction:
    """output[sum of batches + rows * i + columns * j] = seed + sum over k = first … terms-1 of left * right.
    row_terms, row_first: how far the end and the beginning move with each further row (causal sums). Both are as they come,
    k is never below 0 or, where most is a number, at or above it. A sum that begins at its end, or behind it, has no terms.
    started: the output holds what each sum begins with, in the seed's place.
    epilogue: whether anything is left to do with the sum, faults included."""

    m: int
    n: int
    terms: int
    left: Side
    right: Side
    output_row: int
    output_column: int
    seed: float
    batch: tuple[Batch, ...]
    row_terms: int
    started: bool
    epilogue: bool
    first: int = 0
    row_first: int = 0
    most: int | None = None

    @property
    def cut_short(self) -> bool:
        """Whether sums may begin behind the first term, or end in another way than later from row to row."""
        ends = self.most is not None or self.row_terms < 0
        return ends or any((self.first, self.row_first, *(b.first for b in self.batch)))


# --- by structure ---------------------------------------------------------------------------------------------


def candidates(kernel: Lowered) -> tuple[Candidate, ...]:
    """The folds of a map kernel that may be contractions."""
    if kernel.acc is not None or kernel.functions or kernel.general:
        return ()
    order = tuple(walk(kernel.roots))
    unbound = free(kernel.roots)
    found = []
    for node in order:
        if node.op != "fold" or unbound[node]:
            continue
        _, _, nexts, attr = fold_parts(node)
        sums = [j for j, a in enumerate(attr.accs) if a.type is FLOAT]
        flags = [j for j, a in enumerate(attr.accs) if a.type is BOOL]
        if len(sums) != 1 or len(flags) > 1 or len(attr.accs) > 2:
            continue
        ops = [n.op for n in walk(nexts)]
        if "fmul" in ops and "fadd" in ops and ops.count("load") >= 2 and not {"fold", "loop"} & set(ops):
            found.append(_candidate(kernel, node, sums[0], flags[0] if flags else None, order))
    return tuple(found)


def _candidate(kernel: Lowered, fold: Node, acc: int, flag: int | None, order: tuple[Node, ...]) -> Candidate:
    total = load(len(kernel.slots), FLOAT, index())

    def rule(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op == "proj" and node.args[0] is fold:
            return total if node.attr == acc else const(False)
        if node.op == "bor":
            falsehoods = [a.op == "const" and a.attr is False for a in args]
            return args[1] if falsehoods[0] else args[0] if falsehoods[1] else None
        return None

    done: dict[Node, Node] = {}
    result = rewrite(kernel.result, rule, done)
    fault = None if kernel.fault is None else rewrite(kernel.fault, rule, done)
    if fault is not None and fault.op == "const" and fault.attr is False:
        fault = None
    epilogue = replace(kernel, slots=(*kernel.slots, FLOAT), result=result, fault=fault)
    if fault is not None:
        order = (*order, *walk((fault,)))
    init = fold_parts(fold)[1][acc]
    start = None if init.op in ("const", "uniform") else replace(kernel, result=init, fault=None)
    return Candidate(kernel, fold, acc, flag, order, epilogue, start, result is total)


# --- at a launch ----------------------------------------------------------------------------------------------


def match(c: Candidate, lengths: Sequence[int], uniforms: Sequence[int | float | bool], n: int) -> Contraction | None:
    """The contraction that a candidate is when it is launched so, or None. n > 0."""
    count, inits, nexts, attr = fold_parts(c.fold)
    facts = Facts(lengths, uniforms, n)
    if not facts.learn(tuple(walk((count,)))):
        return None
    terms = facts.values[count]
    if not isinstance(terms, Affine) or terms.low < 0 or terms.high == 0:
        return None
    facts.counts[attr.index] = terms.high
    if c.flag is not None:
        facts.assumed[attr.accs[c.flag]] = False
    if not facts.learn(c.order):
        return None
    if c.flag is not None and not all(facts.values[x[c.flag]] is False for x in (inits, nexts)):
        return None
    seed = _seed(inits[c.acc], uniforms)
    # A captured seed decides nothing: what is proven of integers holds whatever it is.
    keeps = inits[c.acc].op == "const" and seed is not None and not is_minus_zero(seed)
    adds = added(nexts[c.acc], attr.accs[c.acc], keeps, facts)
    terms = facts.values[count]
    if (seed is None and c.start is None) or adds is None or not isinstance(terms, Affine):
        return None
    term, conditions = adds
    depth = facts.digits(attr.index)
    operands = _product(term, facts)
    if len(depth) > 1 or operands is None:
        return None
    summed = narrowed(conditions, terms, depth, facts)
    if summed is None:
        return None
    fault = c.epilogue.fault
    epilogue = not c.bare or (fault is not None and facts.values[fault] is not False)
    return _shape(operands, summed, depth, facts, seed, epilogue)


def _seed(init: Node, uniforms: Sequence[int | float | bool]) -> float | None:
    value = init.attr if init.op == "const" else None
    if init.op == "uniform" and isinstance(init.attr, int):
        value = uniforms[init.attr]
    return value if isinstance(value, float) else None


@dataclass(frozen=True, slots=True)
class _Load:
    slot: int
    at: Affine


def _product(product: Node, facts: Facts) -> tuple[_Load, _Load] | None:
    """The operands of `load * load`."""
    if product.op != "fmul":
        return None
    found = []
    for x in product.args:
        read = chosen(x, facts)
        at = facts.values[read.args[0]] if read.op == "load" else None
        if not isinstance(at, Affine):
            return None
        assert isinstance(read.attr, int)
        if at.low < 0 or at.high >= facts.lengths[read.attr]:
            return None
        found.append(_Load(read.attr, at))
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A digit of the launch index, or several that move as one."""

    unit: int
    extent: int
    left: int
    right: int
    terms: int
    first: int


def _shape(
    operands: tuple[_Load, _Load],
    summed: Range,
    depth: tuple[Digit, ...],
    facts: Facts,
    seed: float | None,
    epilogue: bool,
) -> Contraction | None:
    """Rows, columns and batches out of digits."""
    moves = [dict(x.at.terms) for x in operands]
    more, later = dict(summed.end.terms), dict(summed.first.terms)
    if any(d.source is not None for d in more):
        return None
    dimensions: list[_Dimension] = []
    for d in facts.digits(None):
        new = _Dimension(d.unit, d.extent, moves[0].get(d, 0), moves[1].get(d, 0), more.get(d, 0), later.get(d, 0))
        last = dimensions[-1] if dimensions else None
        if last is not None and _continues(last, new):
            dimensions[-1] = replace(last, extent=last.extent * new.extent)
        else:
            dimensions.append(new)
    single = [d for d in dimensions if bool(d.left) != bool(d.right)]
    even = [d for d in single if not d.terms and not d.first]
    columns = next((d for d in even if d.extent >= FEW), None) or max(even, key=lambda d: d.extent, default=None)
    if columns is None:
        return None
    swapped = bool(columns.left)
    others = [d for d in single if bool(d.left) != swapped]
    rows = max(others, key=lambda d: d.extent, default=None)
    k = depth[0] if depth else None
    sides = [
        Side(x.slot, x.at.constant, (d.left + d.right) if d else 0, move.get(k, 0) if k else 0)
        for x, move, d in zip(operands, moves, (columns, rows) if swapped else (rows, columns), strict=True)
    ]
    left, right = reversed(sides) if swapped else sides
    batch = tuple(
        Batch(d.extent, *((d.right, d.left) if swapped else (d.left, d.right)), d.unit, d.terms, d.first)
        for d in reversed(dimensions)
        if d is not columns and d is not rows
    )
    return Contraction(
        rows.extent if rows else 1,
        columns.extent,
        summed.end.constant,
        left,
        right,
        rows.unit if rows else 0,
        columns.unit,
        0.0 if seed is None else seed,
        batch,
        rows.terms if rows else 0,
        seed is None,
        epilogue,
        summed.first.constant,
        rows.first if rows else 0,
        summed.most,
    )


def _continues(low: _Dimension, high: _Dimension) -> bool:
    """Whether two neighbouring digits are one to both operands and to where the sum begins and ends."""
    pairs = ((low.left, high.left), (low.right, high.right), (low.terms, high.terms), (low.first, high.first))
    return all(b == a * low.extent for a, b in pairs)
