"""The backward pass of one launch: from a kernel to its `Recipe`.

    recipe("map", kernel, active, lengths, uniforms, n)

Comes in: a kernel as it was launched, the slots whose adjoint is wanted, and the integers of the launch. Goes out: the
launches to make and which of them are subtotals of which slot, in the order in which they are added. Kept by these
arguments; the kernels in it are kept by structure, so that lengths and scalars that lead to the same structure share
them (and the plans that are made of them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from osprey_py.kernel.derive.addresses import Addresses, Inverse, Numbers, addresses
from osprey_py.kernel.derive.launches import Launch, Launches, Number
from osprey_py.kernel.derive.lifted import counted
from osprey_py.kernel.derive.recipe import Dense, Given, Made, Make, Recipe, Scattered
from osprey_py.kernel.derive.refusals import refuse_fold, refuse_loop
from osprey_py.kernel.derive.reverse import reads
from osprey_py.kernel.derive.subject import look
from osprey_py.kernel.derive.subtotals import subtotal
from osprey_py.kernel.ir import FLOAT, Kernel, Node, const, walk

Scalar = int | float | bool


@lru_cache(maxsize=4096)
def structural(kernel: Kernel) -> frozenset[int]:
    """The uniforms that places of reads, counts of folds and lengths depend on: the only ones whose values `recipe`
    looks at."""
    inputs = [n.args[0] for n in walk(kernel.roots) if n.op in ("load", "fold")]
    return frozenset(
        n.attr for n in walk(inputs) if n.op == "uniform" and isinstance(n.attr, int) and n.type is not FLOAT
    )


def recipe(
    op: Literal["map", "scan"],
    kernel: Kernel,
    active: tuple[int, ...],
    lengths: tuple[int, ...],
    uniforms: Sequence[Scalar | None],
    n: int,
    iotas: tuple[int, ...] = (),
) -> Recipe:
    """The backward pass of a launch of n elements (a fold is a map of one) for the slots in `active`. uniforms: those
    that are not structural may be None. iotas: slots that hold 0, 1, 2 …; no launch reads them. Raises OspreyError where
    the kernel has no derivative (spec/gradients, G10)."""
    matter = structural(kernel)
    known = tuple([u if k in matter else None for k, u in enumerate(uniforms)])
    return _recipe(op, kernel, active, lengths, known, n, iotas)


@lru_cache(maxsize=8192)
def _recipe(
    op: Literal["map", "scan"],
    kernel: Kernel,
    active: tuple[int, ...],
    lengths: tuple[int, ...],
    uniforms: tuple[Scalar | None, ...],
    n: int,
    iotas: tuple[int, ...],
) -> Recipe:
    derivative = _derivative(op, kernel, active, iotas)
    if derivative is None or not derivative.subject.loads:
        return Recipe((), ())
    if n <= 0:
        return _nothing(derivative, lengths)
    found = addresses(derivative.subject, lengths, uniforms, n)
    for f, steps in zip(derivative.subject.folds, found.steps, strict=True):
        if steps is None and derivative.matters(f):
            raise refuse_fold(kernel)
    return _filled(derivative.plan(found), found, lengths, n)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A recipe whose numbers are named."""

    launches: tuple[Launch, ...]
    subtotals: tuple[tuple[int, Dense | Scattered], ...]


class _Derivative:
    """A kernel's derivative by some slots. plans: by structure."""

    def __init__(self, kernel: Kernel, active: tuple[int, ...]) -> None:
        self.subject = look(kernel, active)
        self.plans: dict[object, _Plan] = {}

    def matters(self, fold: Node) -> bool:
        """Something that is differentiated is in the fold."""
        s = self.subject
        return any(s.results.get((fold, j)) in s.active for j in range(len(fold.args) // 2)) or any(
            fold in s.path[x] for x in s.loads
        )

    def plan(self, found: Addresses) -> _Plan:
        shape = tuple(None if x is None else (x.always, x.same) for x in found.steps)
        inverses = tuple(None if x is None else x[0] for x in found.inverses)
        key = shape, found.answers, inverses
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self._plan(found, inverses)
        return plan

    def _plan(self, found: Addresses, inverses: tuple[Inverse | None, ...]) -> _Plan:
        s = self.subject.decided(found.answers)
        steps = dict(zip(s.folds, found.steps, strict=True))
        positive = frozenset(f for f, x in steps.items() if x is not None and x.always)
        same = frozenset(f for f, x in steps.items() if x is not None and x.same)
        launches = Launches(s)
        numbers = {x: k for k, x in enumerate(s.loads)}
        subtotals = []
        for r in reads(s, positive):
            k = numbers[r.node]
            assert isinstance(r.node.attr, int)
            subtotals.append((r.node.attr, subtotal(launches, r, inverses[k], k, same)))
        return _Plan(tuple(launches.launches), tuple(subtotals))


@lru_cache(maxsize=4096)
def _derivative(op: str, kernel: Kernel, active: tuple[int, ...], iotas: tuple[int, ...]) -> _Derivative | None:
    """None of a kernel that reads no active slot."""
    roots = (*kernel.roots, *(r for f in kernel.functions for r in f.results))
    if not any(x.op == "load" and x.type is FLOAT and x.attr in active for x in walk(roots)):
        return None
    if kernel.general:
        raise refuse_loop(kernel)
    return _Derivative(counted(kernel, iotas) if iotas else kernel, active)


def _filled(plan: _Plan, found: Addresses, lengths: tuple[int, ...], n: int) -> Recipe:
    """The plan with its numbers."""
    most = [1 if x is None else x.most for x in found.steps]
    numbers: list[Numbers] = [() if x is None else x[1] for x in found.inverses]

    def value(name: Number) -> int:
        match name:
            case ("steps", int(f)):
                return most[f]
            case ("length", int(k)):
                return lengths[k]
            case ("site", int(k), int(j)):
                return numbers[k][j]
            case ("flat", *folds):
                return n * prod(most[f] for f in folds if isinstance(f, int))
        raise ValueError(name)

    def argument(x: Given | Number | float) -> Given | int | float:
        return value(x) if isinstance(x, tuple) else x

    makes = tuple(
        Make(x.op, x.kernel, x.inputs, tuple(map(argument, x.uniforms)), value(x.length)) for x in plan.launches
    )
    return Recipe(makes, plan.subtotals)


_ZERO = Kernel((), (), const(0.0), name="gradient of nothing")


def _nothing(derivative: _Derivative, lengths: tuple[int, ...]) -> Recipe:
    """Of a launch of no elements."""
    slots = [x.attr for x in reversed(derivative.subject.loads) if isinstance(x.attr, int)]
    makes = tuple(Make("map", _ZERO, (), (), lengths[k]) for k in slots)
    return Recipe(makes, tuple((k, Dense(Made(j), True)) for j, k in enumerate(slots)))
