"""Last uses: where the value of a local variable dies (spec/evaluation V5).

Comes in: the body of one function. Goes out: `Liveness`, which says of each reference whether it is the last on its
path, and which variables to clear where a branch begins. Only variables whose type may hold a buffer are tracked: the
runtime frees and fuses by the life of handles, everything else may live until its function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from osprey_py.check import core as c
from osprey_py.check.types import Type
from osprey_py.eval.walk import FreeVariables, children, pattern_vars, resumes

Live = frozenset[c.Var]
NONE: Live = frozenset()


class Liveness:
    """last: references after which the variable is not read again.
    captured: for a Lambda, HandlerArm or body of a resuming Handle, the variables that die when it is created.
    drops: for the expression of a branch, the variables that are dead on entering it.
    after: for a Recover, the variables dead once its value succeeded.
    unused: tracked variables that are bound and never read."""

    def __init__(
        self,
        body: c.Expr,
        params: Iterable[c.Var],
        not_owned: Iterable[c.Var],
        holds_buffers: Callable[[Type], bool],
        free: FreeVariables,
    ) -> None:
        self.last: set[c.LocalRef] = set()
        self.captured: dict[object, Live] = {}
        self.drops: dict[c.Expr, Live] = {}
        self.after: dict[c.Recover, Live] = {}
        self.unused: set[c.Var] = set()
        self._not_owned = frozenset(not_owned)
        self._holds = holds_buffers
        self._free = free
        entry = self._go(body, NONE)
        dead = frozenset(p for p in params if self.tracks(p)) - entry
        self.drops[body] = self.drops.get(body, NONE) | dead

    def tracks(self, v: c.Var) -> bool:
        return v not in self._not_owned and not v.mutable and self._holds(v.type)

    def _capture(self, key: object, variables: Iterable[c.Var], live: Live) -> Live:
        seen = frozenset(v for v in variables if self.tracks(v))
        self.captured[key] = seen - live
        return live | seen

    def _many(self, es: Iterable[c.Expr], live: Live) -> Live:
        for e in reversed(tuple(es)):
            live = self._go(e, live)
        return live

    def _drop(self, branch: c.Expr, dead: Live) -> None:
        if dead:
            self.drops[branch] = self.drops.get(branch, NONE) | dead

    def _go(self, e: c.Expr, live: Live) -> Live:
        """What is live before e, given what is live after it."""
        match e:
            case c.LocalRef(var=v):
                if not self.tracks(v):
                    return live
                if v not in live:
                    self.last.add(e)
                    return live | {v}
                return live
            case c.Lambda(function=f):
                return self._capture(e, self._free.of_function(f), live)
            case c.If(condition=condition, then=then, otherwise=otherwise):
                a, b = self._go(then, live), self._go(otherwise, live)
                self._drop(then, b - a)
                self._drop(otherwise, a - b)
                return self._go(condition, a | b)
            case c.Logic(left=left, right=right):
                return self._go(left, live | self._go(right, live))
            case c.Match():
                return self._match(e, live)
            case c.Block(statements=statements, result=result):
                live = self._go(result, live)
                for s in reversed(statements):
                    bound = frozenset(pattern_vars(s.pattern)) if isinstance(s, c.Bind) else NONE
                    self._bound(bound, live)
                    if isinstance(s, c.Bind | c.Assign | c.Do):
                        # Without `bound` again: a local function may name itself.
                        live = self._go(s.value, live - bound) - bound
                return live
            case c.Recover(value=value, default=default):
                in_default = self._go(default, live)
                before = self._go(value, live | in_default)
                self._drop(default, before - in_default)
                self.after[e] = in_default - live
                return before
            case c.Handle(arms=arms, body=body):
                live = self._capture(e, self._free.of(body), live) if resumes(e) else self._go(body, live)
                for arm in reversed(arms):
                    live = self._capture(arm, self._free.of_arm(arm), live)
                return live
            case c.RecordUpdate(record=record, fields=fields):
                return self._go(record, self._many((x for _, x in fields), live))
        return self._many(children(e), live)

    def _bound(self, variables: Live, live: Live) -> None:
        self.unused.update(v for v in variables if v not in live and self.tracks(v))

    def _match(self, e: c.Match, live: Live) -> Live:
        tried: Live = live
        bodies: list[tuple[c.Arm, Live]] = []
        for arm in reversed(e.arms):
            body = self._go(arm.body, live)
            bodies.append((arm, body))
            entry = body if arm.guard is None else self._go(arm.guard, body | tried)
            bound = frozenset(pattern_vars(arm.pattern))
            self._bound(bound, entry)
            # With a guard the arm may be left for the next one.
            tried = (entry | tried) - bound
        for arm, body in bodies:
            self._drop(arm.body, tried - body)
        return self._go(e.scrutinee, tried)
