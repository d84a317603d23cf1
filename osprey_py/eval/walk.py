"""Generic walks over Core: direct children in order of evaluation, free variables, which types may hold buffers.

Comes in: expressions of check/core.py. Goes out: what the passes before code generation ask (eval/liveness.py,
eval/callgraph.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from osprey_py.check import core as c
from osprey_py.check.types import FunctionType, Named, RecordType, TupleType, Type, TypeVar

RESUME = c.Var("resume", FunctionType((), Named("Unit")))
"""Stands for the continuation parameter of the innermost resuming handler arm in sets of free variables."""


Children = tuple[c.Expr, ...]
_NONE: Children = ()


def _of_match(e: c.Match) -> Children:
    return (e.scrutinee, *(x for arm in e.arms for x in (arm.guard, arm.body) if x is not None))


def _of_block(e: c.Block) -> Children:
    return (*(s.value for s in e.statements if isinstance(s, c.Bind | c.Assign | c.Do)), e.result)


_CHILDREN: dict[type[c.Expr], Callable[[Any], Children]] = {
    c.Call: lambda e: (e.callee, *e.args),
    c.Unary: lambda e: (e.operand,),
    c.Field: lambda e: (e.record,),
    c.Attempt: lambda e: (e.value,),
    c.Resume: lambda e: (e.value,),
    c.Binary: lambda e: (e.left, e.right),
    c.Logic: lambda e: (e.left, e.right),
    c.Index: lambda e: (e.container, e.index),
    c.Recover: lambda e: (e.value, e.default),
    c.Interpolate: lambda e: tuple([p for p in e.parts if not isinstance(p, str)]),
    c.If: lambda e: (e.condition, e.then, e.otherwise),
    c.Match: _of_match,
    c.Block: _of_block,
    c.RecordNew: lambda e: tuple([x for _, x in e.fields]),
    c.RecordUpdate: lambda e: (e.record, *(x for _, x in e.fields)),
    c.TupleNew: lambda e: e.items,
    c.ListNew: lambda e: e.items,
    c.MapNew: lambda e: tuple([x for pair in e.entries for x in pair]),
    c.Perform: lambda e: e.args,
    c.Handle: lambda e: _NONE if resumes(e) else (e.body,),
}


def children(e: c.Expr) -> Children:
    """Direct sub-expressions of the same function body, in order of evaluation. A Lambda and the arms of a Handle are
    other functions' bodies and not among them; nor is the body of a Handle whose arms resume (it runs as its own
    function)."""
    found = _CHILDREN.get(type(e))
    return _NONE if found is None else found(e)


def resumes(e: c.Handle) -> bool:
    """Some arm resumes, so the body runs as a computation of its own."""
    return any(arm.resumes for arm in e.arms)


def walk(root: c.Expr) -> Iterator[c.Expr]:
    """root and every expression below it, those in lambdas and handlers included."""
    todo = [root]
    while todo:
        e = todo.pop()
        yield e
        todo.extend(reversed(children(e)))
        if isinstance(e, c.Lambda):
            todo.append(e.function.body)
        elif isinstance(e, c.Handle):
            todo.extend(arm.body for arm in e.arms)
            if resumes(e):
                todo.append(e.body)


def pattern_vars(p: c.Pattern) -> Iterator[c.Var]:
    match p:
        case c.PVar(var=v):
            yield v
        case c.PConstructor(fields=fields) | c.PRecord(fields=fields):
            for _, q in fields:
                yield from pattern_vars(q)
        case c.PTuple(items=items):
            for q in items:
                yield from pattern_vars(q)
        case c.PList(items=items, rest=rest):
            for q in items:
                yield from pattern_vars(q)
            if rest is not None:
                yield from pattern_vars(rest)


def bound_here(e: c.Expr) -> Iterator[c.Var]:
    """The variables that e itself binds for its children."""
    if isinstance(e, c.Match):
        for arm in e.arms:
            yield from pattern_vars(arm.pattern)
    elif isinstance(e, c.Block):
        for s in e.statements:
            if isinstance(s, c.Bind):
                yield from pattern_vars(s.pattern)


class FreeVariables:
    """Free local variables of lambdas and of other pieces of code, memoised, in order of first appearance.
    not_local: variables that live elsewhere (file-scope lets)."""

    def __init__(self, not_local: Iterable[c.Var] = ()) -> None:
        self._not_local = frozenset(not_local)
        self._memo: dict[object, tuple[c.Var, ...]] = {}

    def of_function(self, f: c.Function) -> tuple[c.Var, ...]:
        found = self._memo.get(f)
        if found is None:
            found = self._memo[f] = self._without(self.of(f.body), f.params)
        return found

    def of_arm(self, arm: c.HandlerArm) -> tuple[c.Var, ...]:
        found = self._memo.get(arm)
        if found is None:
            own = (*arm.params, RESUME) if arm.resumes else arm.params
            found = self._memo[arm] = self._without(self.of(arm.body), own)
        return found

    @staticmethod
    def _without(used: tuple[c.Var, ...], bound: Iterable[c.Var]) -> tuple[c.Var, ...]:
        hidden = frozenset(bound)
        return tuple(v for v in used if v not in hidden)

    def of(self, root: c.Expr) -> tuple[c.Var, ...]:
        """Every variable is bound once in a program, so free is: used and not bound below."""
        found = self._memo.get(root)
        if found is not None:
            return found
        used: dict[c.Var, None] = {}
        bound: set[c.Var] = set(self._not_local)
        todo = [root]
        while todo:
            e = todo.pop()
            bound.update(bound_here(e))
            match e:
                case c.LocalRef(var=v):
                    used[v] = None
                case c.Lambda(function=f):
                    used.update(dict.fromkeys(self.of_function(f)))
                case c.Resume():
                    used[RESUME] = None
                case c.Handle(arms=arms, body=body):
                    for arm in arms:
                        used.update(dict.fromkeys(self.of_arm(arm)))
                    if resumes(e):
                        used.update(dict.fromkeys(self.of(body)))
                case c.Block(statements=statements):
                    used.update((s.var, None) for s in statements if isinstance(s, c.Assign))
            todo.extend(reversed(children(e)))
        found = self._memo[root] = tuple(v for v in used if v not in bound)
        return found


class BufferTypes:
    """Whether a value of a type may keep a GpuBuffer alive. Types are told apart by identity: hashing one takes time in
    its size, and a program may nest types as deep as it likes."""

    def __init__(self, types: dict[str, c.TypeInfo]) -> None:
        self._types = types
        self._memo: dict[int, tuple[Type, bool]] = {}

    def __call__(self, t: Type) -> bool:
        found = self._memo.get(id(t))
        return self._reaches_buffer(t) if found is None else found[1]

    def _reaches_buffer(self, root: Type) -> bool:
        seen = {id(root): root}
        todo = [root]
        while todo:
            t = todo.pop()
            if isinstance(t, TypeVar | FunctionType) or (isinstance(t, Named) and t.name in ("GpuBuffer", "Iterator")):
                self._memo[id(root)] = root, True
                return True
            for inside in self._inside(t):
                if id(inside) not in seen and id(inside) not in self._memo:
                    seen[id(inside)] = inside
                    todo.append(inside)
                elif self._memo.get(id(inside), (inside, False))[1]:
                    self._memo[id(root)] = root, True
                    return True
        # What holds no buffer holds nothing that holds one.
        self._memo.update((key, (t, False)) for key, t in seen.items())
        return False

    def _inside(self, t: Type) -> list[Type]:
        """The types of what a value of type t holds directly."""
        match t:
            case TupleType(items=items):
                return list(items)
            case RecordType(fields=fields):
                return [x for _, x in fields]
            case Named(name=name, args=args):
                info = self._types.get(name)
                fields_of = [x for xs in info.field_types.values() for x in xs] if info is not None else []
                # The arguments stand for the declaration's own type parameters.
                params = info.params if info is not None else ()
                return [*args, *(x for x in fields_of if not (isinstance(x, TypeVar) and x.name in params))]
        return []
