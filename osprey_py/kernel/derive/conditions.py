"""Conditions under which something has contributed (spec/gradients, G5).

Comes in: boolean expressions. Goes out: conjunctions and disjunctions of them, of which equal ones are one object, so
that who needs no guard can be seen. None stands for always, NEVER for never: what the text could do, and no element
does.
"""

from __future__ import annotations

from collections.abc import Iterable

from osprey_py.kernel.ir import BOOL, Node, const, select

Condition = Node | None
NEVER = const(False)


class Conditions:
    """Keeps what it has made."""

    def __init__(self) -> None:
        self._both: dict[tuple[Condition, Node, bool], Node] = {}
        self._made_of: dict[Condition, tuple[Condition, Node, bool]] = {}
        self._any: dict[frozenset[Node], Condition] = {}

    def both(self, first: Condition, c: Node, truth: bool = True) -> Condition:
        """first, and c is `truth`."""
        while c.op == "bnot":
            c, truth = c.args[0], not truth
        if first is NEVER or (c.op == "const" and c.attr is not truth):
            return NEVER
        if c.op == "const":
            return first
        known = first
        while known in self._made_of:
            before, d, holds = self._made_of[known]
            if d is c and holds is truth:
                assert first is not None
                return first
            known = before
        key = (first, c, truth)
        made = self._both.get(key)
        if made is None:
            right = c if truth else Node("bnot", BOOL, (c,))
            # What is read in c may be there only where first holds.
            made = right if first is None else select(first, right, const(False))
            self._both[key] = made
            self._made_of[made] = key
        return made

    def any(self, conditions: Iterable[Condition]) -> Condition:
        """One of them holds."""
        found: list[Node] = []
        for c in conditions:
            if c is None:
                return None
            if c is not NEVER and c not in found:
                found.append(c)
        if not found:
            return NEVER
        key = frozenset(found)
        if key not in self._any:
            self._any[key] = self._joined(found)
        return self._any[key]

    def _joined(self, found: list[Node]) -> Condition:
        for j, x in enumerate(found):
            for y in found[j + 1 :]:
                a, b = self._made_of.get(x), self._made_of.get(y)
                if a is not None and b is not None and a[:2] == b[:2] and a[2] != b[2]:
                    # Both branches of a choice: where it was reached.
                    return self.any([a[0], *(z for z in found if z is not x and z is not y)])
        made = found[0]
        for x in found[1:]:
            made = select(made, const(True), x)
        return made
