"""Addresses turned around: which executions of a read meet a given element, in which order.

Comes in: a `Subject` and the integers of a launch. Goes out: of each fold how many steps it takes, and of each read an
`Inverse` with its numbers, or None. Structure and numbers are apart: kernels depend on the structure alone.

An address is a constant plus whole multiples of digits of the launch index and of the fold indices
(kernel/contraction_affine.py). When the multiples are a mixed radix, an element tells those digits; the others, with
multiple zero, are *free*: the executions that met the element are all their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from osprey_py.kernel.contraction_affine import Affine, Facts
from osprey_py.kernel.derive.subject import Path, Subject, index_of
from osprey_py.kernel.ir import Node, walk


@dataclass(frozen=True, slots=True)
class Steps:
    """most: the greatest number of steps of a fold, at least 1. always: there is one in every element. same: always
    `most`."""

    most: int
    always: bool
    same: bool


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the launch index (source -1) or of fold number `source`. whole: it is the whole index, or its unit is
    1. once: its multiple is 1. backwards: greater elements have the smaller digit. open: greater values than it has
    would fit, and are to be refused. later: so are smaller ones, for the constant holds some of its multiples. apart:
    the rest of the constant has to be taken off before it is looked at."""

    source: int
    whole: bool
    once: bool = False
    backwards: bool = False
    open: bool = False
    later: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Inverse:
    """fixed: digits that an element tells, the greatest multiple first. free: the others, as executed: the slowest first.
    holes: elements between the least multiple are there. one: nothing but the element itself, of a launch as long as the
    slot. told: the folds around, by number, of which an element tells whether a step was executed."""

    fixed: tuple[Digit, ...]
    free: tuple[Digit, ...]
    holes: bool
    one: bool
    told: tuple[int, ...]


Numbers = tuple[int, ...]
"""(unit, extent, multiple, multiples in the constant, rest of the constant before) of each fixed digit, then (unit,
extent, how often it stays) of each free one, then in how many executions an element is met, then what is left of the
constant."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """What one launch's integers say. steps: of each fold; None where nothing bounds it. inverses: of each active
    load. answers: to the subject's questions, as far as they hold in every element and step."""

    steps: tuple[Steps | None, ...]
    answers: tuple[bool | None, ...]
    inverses: tuple[tuple[Inverse, Numbers] | None, ...]


def addresses(
    subject: Subject, lengths: Sequence[int], uniforms: Sequence[int | float | bool | None], n: int
) -> Addresses:
    """n > 0."""
    facts = Facts(lengths, uniforms, n)
    wanted: list[Node] = []
    for f in subject.folds:
        count = subject.count(f)
        wanted.append(count)
        facts.learn(tuple(walk((count,))))
        found = facts.values.get(count)
        if isinstance(found, Affine):
            facts.counts[index_of(f)] = max(found.high, 1)
    wanted += (subject.values[x.args[0]] for x in subject.loads)
    # With too many digits, at least what there has to be.
    if not facts.learn(tuple(walk((*wanted, *subject.questions)))):
        facts.cuts.clear()
        facts.values.clear()
        if not facts.learn(tuple(walk(wanted))):
            facts.values.clear()
    steps = tuple(_steps(facts.values.get(subject.count(f))) for f in subject.folds)
    inverses = []
    for x in subject.loads:
        assert isinstance(x.attr, int)
        at = facts.values.get(subject.values[x.args[0]])
        path = subject.path[x]
        sound = isinstance(at, Affine) and all(steps[subject.number[f]] is not None for f in path)
        inverses.append(
            _inverse(at, subject, path, facts, lengths[x.attr]) if sound and isinstance(at, Affine) else None
        )
    found_ = (facts.values.get(q) for q in subject.questions)
    answers = tuple(a if isinstance(a, bool) else None for a in found_)
    return Addresses(steps, answers, tuple(inverses))


def _steps(count: object) -> Steps | None:
    if not isinstance(count, Affine):
        return None
    return Steps(max(count.high, 1), count.low > 0, count.low == count.high and count.low > 0)


@dataclass(frozen=True, slots=True)
class _Part:
    source: int
    unit: int
    extent: int
    multiple: int


def _inverse(at: Affine, subject: Subject, path: Path, facts: Facts, length: int) -> tuple[Inverse, Numbers] | None:
    parts = _parts(at, subject, path, facts)
    fixed = sorted((p for p in parts if p.multiple), key=lambda p: -abs(p.multiple))
    free = [p for p in parts if not p.multiple]
    left = at.constant + sum(p.multiple * (p.extent - 1) for p in fixed if p.multiple < 0)
    for p, q in pairwise(fixed):
        if abs(p.multiple) < abs(q.multiple) * q.extent:
            return None
    if not fixed and not 0 <= left < length:
        return None
    plain = len(fixed) == 1 and fixed[0] == _Part(-1, 1, length, 1)
    one = plain and not free and not path and left == 0 and length == facts.n
    digits: list[Digit] = []
    numbers: list[int] = []
    # What is looked at lies between these.
    low, high = 0, length - 1
    below = sum(abs(p.multiple) * (p.extent - 1) for p in fixed)
    for p in fixed:
        m = abs(p.multiple)
        below -= m * (p.extent - 1)
        # With a carry into this digit, the constant goes first.
        apart = left < 0 or left % m + below >= m
        if apart:
            low, high, taken, left = low - left, high - left, left, 0
        else:
            taken = 0
        within, left = divmod(left, m)
        open_ = high // m - within >= p.extent
        digits.append(Digit(p.source, p.unit == 1, m == 1, p.multiple < 0, open_, low < 0 or within > 0, apart))
        numbers += (p.unit, p.extent, m, within, taken)
        low, high = 0, m - 1
    stays = 1
    rest: list[int] = []
    for p in reversed(free):
        rest[:0] = (p.unit, p.extent, stays)
        stays *= p.extent
    holes = high > 0
    told = tuple(subject.number[f] for f in path if _told(at, f, subject, facts))
    structure = Inverse(tuple(digits), tuple(Digit(p.source, p.unit == 1) for p in free), holes, one, told)
    return structure, (*numbers, *rest, stays, left)


def _told(at: Affine, fold: Node, subject: Subject, facts: Facts) -> bool:
    """Whether a fold's count and index are made of digits that an address tells."""
    count = facts.values.get(subject.count(fold))
    if not isinstance(count, Affine):
        return False
    return {d for d, _ in at.terms} >= {*facts.digits(index_of(fold)), *(d for d, _ in count.terms)}


def _parts(at: Affine, subject: Subject, path: Path, facts: Facts) -> list[_Part]:
    """The digits of the launch index and of the folds around, the slowest first; neighbours that move as one joined."""
    multiples = dict(at.terms)
    parts: list[_Part] = []
    for source, bound in ((-1, None), *((subject.number[f], index_of(f)) for f in path)):
        mine: list[_Part] = []
        for d in facts.digits(bound):
            new = _Part(source, d.unit, d.extent, multiples.get(d, 0))
            if mine and new.multiple == mine[-1].multiple * mine[-1].extent:
                mine[-1] = replace(mine[-1], extent=mine[-1].extent * new.extent)
            else:
                mine.append(new)
        parts += reversed(mine)
    return parts
