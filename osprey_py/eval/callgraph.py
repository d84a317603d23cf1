"""Which functions are recursive, which calls are tail calls within a cycle, and what may launch.

Comes in: a Program. Goes out: `CallGraph`, read by code generation (spec/evaluation V4: tail calls, depth).
"""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.check.builtins import SIGNATURES
from osprey_py.check.types import FunctionType
from osprey_py.eval.walk import walk

_ALSO = frozenset("toGpu fromGpu valueAndGradient gradient buffersOf mapBuffers zipBuffers".split())
LAUNCHING = frozenset(n for n in SIGNATURES if n.startswith("gpu") or n in _ALSO)


def tail_expressions(body: c.Expr) -> list[c.Expr]:
    """The expressions in tail position of a function body (leaves of control flow)."""
    found: list[c.Expr] = []
    todo = [body]
    while todo:
        e = todo.pop()
        match e:
            case c.If(then=a, otherwise=b):
                todo += [a, b]
            case c.Match(arms=arms):
                todo += [arm.body for arm in arms]
            case c.Block(result=r):
                todo.append(r)
            case c.Recover(default=d):
                todo.append(d)
            case _:
                found.append(e)
    return found


class CallGraph:
    """group[f]: the functions that f's strongly connected component has, f included.
    counted: functions whose frames count towards the limit: in a cycle that is not all tail calls.
    mutual: functions in a group with a tail call to another member: they run on a trampoline.
    launches: functions that may launch a kernel, directly or by what they call."""

    def __init__(self, program: c.Program) -> None:
        self.functions = program.functions
        self._edges: dict[str, tuple[str, ...]] = {}
        self._non_tail: dict[str, frozenset[str]] = {}
        self._tail: dict[str, frozenset[str]] = {}
        self._unknown: set[str] = set()
        launching: set[str] = set()
        for name, f in program.functions.items():
            tails = {
                id(e.callee): e.callee.name
                for e in tail_expressions(f.body)
                if isinstance(e, c.Call) and isinstance(e.callee, c.GlobalRef) and e.callee.name in program.functions
            }
            refs: dict[str, None] = {}
            other: set[str] = set()
            for e in walk(f.body):
                if isinstance(e, c.GlobalRef) and e.name in program.functions:
                    refs[e.name] = None
                    if id(e) not in tails:
                        other.add(e.name)
                elif isinstance(e, c.BuiltinRef) and e.name in LAUNCHING:
                    launching.add(name)
            if may_call_unknown(f.body):
                self._unknown.add(name)
            self._edges[name] = tuple(refs)
            self._non_tail[name] = frozenset(other)
            self._tail[name] = frozenset(tails.values())
        self.any_launch = bool(launching) or any(
            isinstance(e, c.BuiltinRef) and e.name in LAUNCHING for s in program.startup for e in walk(_value(s))
        )
        self.group = self._components()
        self.counted = {
            n
            for n, members in self.group.items()
            if (len(members) > 1 or n in self._edges[n]) and any(self._non_tail[m] & members for m in members)
        }
        self.mutual = {n for n, members in self.group.items() if any(self._tail[m] & members - {m} for m in members)}
        self.launches = self._reaching(launching | (self._unknown if self.any_launch else set()))

    def may_launch(self, e: c.Expr) -> bool:
        """Evaluating e may launch a kernel."""
        if not self.any_launch:
            return False
        for x in walk(e):
            if isinstance(x, c.BuiltinRef) and x.name in LAUNCHING:
                return True
            if isinstance(x, c.GlobalRef) and x.name in self.launches:
                return True
        return may_call_unknown(e)

    def _reaching(self, goal: set[str]) -> set[str]:
        callers: dict[str, list[str]] = {}
        for n, refs in self._edges.items():
            for r in refs:
                callers.setdefault(r, []).append(n)
        found, todo = set(goal), list(goal)
        while todo:
            for n in callers.get(todo.pop(), ()):
                if n not in found:
                    found.add(n)
                    todo.append(n)
        return found

    def _components(self) -> dict[str, frozenset[str]]:
        """Tarjan's algorithm, without recursion."""
        order: dict[str, int] = {}
        low: dict[str, int] = {}
        on: set[str] = set()
        stack: list[str] = []
        result: dict[str, frozenset[str]] = {}
        for root in self._edges:
            if root in order:
                continue
            work = [(root, iter(self._edges[root]))]
            order[root] = low[root] = len(order)
            stack.append(root)
            on.add(root)
            while work:
                n, rest = work[-1]
                for m in rest:
                    if m not in order:
                        order[m] = low[m] = len(order)
                        stack.append(m)
                        on.add(m)
                        work.append((m, iter(self._edges[m])))
                        break
                    if m in on:
                        low[n] = min(low[n], order[m])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[n])
                    if low[n] == order[n]:
                        cut = stack.index(n)
                        members = frozenset(stack[cut:])
                        del stack[cut:]
                        on -= members
                        result.update(dict.fromkeys(members, members))
        return result


def _value(s: c.Statement) -> c.Expr:
    assert isinstance(s, c.Bind | c.Assign | c.Do)
    return s.value


def may_call_unknown(e: c.Expr) -> bool:
    """Some function value that is not written here may be called in e."""
    for x in walk(e):
        if isinstance(x, c.Perform | c.Resume):
            return True
        if isinstance(x, c.LocalRef | c.Field) and isinstance(x.type, FunctionType):
            return True
        if isinstance(x, c.Call) and not isinstance(x.callee, c.GlobalRef | c.BuiltinRef | c.Lambda):
            return True
    return False
