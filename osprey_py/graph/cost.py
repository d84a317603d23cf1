"""What fusion has to know about a kernel: how much work an element is, and how it reads its slots.

Comes in: a kernel. Goes out: its `Facts`. Work is counted in units of one simple operation on an element that is already in
a register; moving an element to memory or back is WORK_OF_A_MOVE of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from osprey_py.kernel.ir import FoldAttr, Kernel, Node, fold_parts, walk
from osprey_py.kernel.scopes import free

WORK_OF_A_MOVE = 2
"""8 bytes through the second level of the cache, against one vectorised operation."""

FREE = frozenset({"const", "uniform", "index", "var", "length", "proj", "seq", "stop"})
WORK = {
    "quot": 2,
    "rem": 2,
    "uquot": 2,
    "urem": 2,
    "fdiv": 4,
    "fdivi": 4,
    "sqrt": 4,
    "fmod": 20,
    "fmodi": 20,
    "exp": 20,
    "ln": 20,
    "tanh": 40,
}
"""Work of an operation that is not 1."""


class Place(Enum):
    """Where a kernel reads a slot. INDEX: at its own index only. FOLD: at the index of one outermost fold over the whole
    slot only, so each element once. OTHER: anywhere."""

    INDEX = "index"
    FOLD = "fold"
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Facts:
    """work: of an element, what is inside a fold counted once. heavy: it has folds, loops or calls, so an element may
    cost any amount."""

    kernel: Kernel

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        roots = (*self.kernel.roots, *(r for f in self.kernel.functions for r in f.results))
        return tuple(walk(roots))

    @cached_property
    def work(self) -> int:
        return sum(0 if n.op in FREE else WORK.get(n.op, 1) for n in self.nodes)

    @cached_property
    def heavy(self) -> bool:
        return any(n.op in ("fold", "loop", "call") for n in self.nodes)

    @cached_property
    def general(self) -> bool:
        return self.kernel.general

    @cached_property
    def _whole_folds(self) -> dict[object, object]:
        """For the index variable of each outermost fold whose count is a slot's length: the slot."""
        unbound = free(self.kernel.roots)
        folds: dict[object, object] = {}
        for n in walk(self.kernel.roots):
            if isinstance(n.attr, FoldAttr) and not unbound[n]:
                count = fold_parts(n)[0]
                if count.op == "length":
                    folds[n.attr.index] = count.attr
        return folds

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """How each slot is read; a slot that is not read at all is read at INDEX."""
        found = [Place.INDEX] * len(self.kernel.slots)
        reads: dict[int, set[object]] = {}
        for n in self.nodes:
            if n.op == "load":
                assert isinstance(n.attr, int)
                place = n.args[0]
                reads.setdefault(n.attr, set()).add(
                    place.attr if place.op == "var" else place.op if place.op == "index" else place
                )
        for slot, at in reads.items():
            if at != {"index"}:
                whole = len(at) == 1 and not self.general and self._whole_folds.get(next(iter(at))) == slot
                found[slot] = Place.FOLD if whole else Place.OTHER
        return tuple(found)
