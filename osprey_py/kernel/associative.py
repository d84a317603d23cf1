"""Folds and scans whose operation is exactly associative, so that terms may be taken in any order (spec/numerics, N15).

Comes in: a kernel as extracted. Goes out: a `Reduction`, or None where the order counts or is not seen not to. The
smallest and the largest are exact whatever comes first, of floats too: NaN wins, and -0.0 is less than 0.0. A sum of ints
is exact as long as no prefix overflows, which who computes it must see to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from osprey_py.kernel.ir import INT, Bound, Kernel, Node, const, fold_parts, index, select, walk
from osprey_py.kernel.scopes import free
from osprey_py.kernel.substitute import rewrite

Operation = Literal["add", "imin", "imax", "fmin", "fmax", "and", "or", "band", "bor"]

IDENTITY: dict[str, int | float | bool] = {
    "add": 0,
    "imin": (1 << 63) - 1,
    "imax": -(1 << 63),
    "fmin": float("inf"),
    "fmax": -float("inf"),
    "and": -1,
    "or": 0,
    "band": True,
    "bor": False,
}
"""What changes nothing, by operation; all of them commute."""


@dataclass(frozen=True, eq=False, slots=True)
class Reduction:
    """operation: between any two. init: what it begins with, a constant or a uniform. terms: how many, an integer that is
    a constant, a uniform or a length; of a scan None, for it has one an element. term: the map kernel of the terms."""

    operation: str
    init: Node
    terms: Node | None
    term: Kernel


def reduction(kernel: Kernel) -> Reduction | None:
    """What a scan's kernel combines, or that of a map whose one element is a fold."""
    if kernel.functions:
        return None
    if kernel.acc is not None:
        assert kernel.init is not None
        found = _step(kernel.result, kernel.acc, free((kernel.result,)))
        return _made(kernel, found, kernel.init, None, None)
    result = kernel.result
    if result.op != "proj" or result.args[0].op != "fold" or any(n.op == "index" for n in walk((result,))):
        return None
    terms, inits, nexts, attr = fold_parts(result.args[0])
    if len(nexts) != 1 or terms.op not in ("const", "uniform", "length"):
        return None
    return _made(kernel, _step(nexts[0], attr.accs[0], free(nexts)), inits[0], terms, attr.index)


def _made(
    kernel: Kernel, found: tuple[str, Node] | None, init: Node, terms: Node | None, at: Bound | None
) -> Reduction | None:
    if found is None or init.op not in ("const", "uniform"):
        return None
    operation, term = found

    def indexed(node: Node, args: tuple[Node, ...]) -> Node | None:
        return index() if node.op == "var" and node.attr is at else None

    term = term if at is None else rewrite(term, indexed)
    return Reduction(operation, init, terms, replace(kernel, result=term, acc=None, init=None))


def _step(node: Node, acc: Bound, reads: dict[Node, frozenset[Bound]]) -> tuple[str, Node] | None:
    """(operation, term) of acc's next value, where the term does not read acc."""

    def is_acc(x: Node) -> bool:
        return x.op == "var" and x.attr is acc

    if node.op in IDENTITY:
        a, b = node.args
        term = b if is_acc(a) else a if is_acc(b) else None
        return None if term is None or acc in reads[term] else (node.op, term)
    if node.op != "select":
        return None
    condition, yes, no = node.args
    if is_acc(condition):  # acc && yes, acc || no
        if acc not in reads[yes] and no.op == "const" and no.attr is False:
            return "band", yes
        return ("bor", no) if acc not in reads[no] and yes.op == "const" and yes.attr is True else None
    if acc in reads[condition] or is_acc(yes) == is_acc(no):
        return None
    found = _step(no if is_acc(yes) else yes, acc, reads)  # condition ? acc + term : acc
    if found is None:
        return None
    operation, term = found
    nothing = const(IDENTITY[operation])
    return operation, select(condition, nothing, term) if is_acc(yes) else select(condition, term, nothing)


def count(terms: Node, lengths: list[int], uniforms: tuple[int | float | bool, ...]) -> int:
    """How many terms there are at a launch."""
    assert terms.type is INT
    place = terms.attr
    assert isinstance(place, int)
    return place if terms.op == "const" else lengths[place] if terms.op == "length" else int(uniforms[place])
