"""Recursion in kernels: tail calls become a loop, other calls a function of the kernel.

Comes in: a call of a function that can reach itself. Goes out: its symbolic value. The frames that count towards
MAX_DEPTH are those of the evaluator: one for each call that is not a tail call within the group of functions that
call each other (spec/gpu-surface, S5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from osprey_py.check import core as c
from osprey_py.eval.callgraph import tail_expressions
from osprey_py.eval.closures import GLOBALS, core_of
from osprey_py.eval.walk import walk
from osprey_py.kernel import symbols as s
from osprey_py.kernel.ir import BOOL, Bound, KFunction, Node, Site, call, const, loop, var
from osprey_py.kernel.refusals import refuse_recursion
from osprey_py.kernel.regions import Region, sequenced
from osprey_py.kernel.result_shapes import fit, result_shape
from osprey_py.kernel.substitute import instantiate
from osprey_py.source.span import Span

if TYPE_CHECKING:
    from osprey_py.kernel.symbolic import Env, Evaluator

_ROUNDS = 16
"""Times that bodies are evaluated to find out what changes from call to call."""

_reached: dict[c.Function, dict[c.Function, None]] = {}


def _called(function: c.Function, home: Any) -> dict[c.Function, None]:
    """The declared functions that a function's code names, in order."""
    namespace = home.__globals__
    names = namespace[GLOBALS]
    found: dict[c.Function, None] = {}
    for e in walk(function.body):
        if isinstance(e, c.GlobalRef) and e.name in names:
            other = core_of(namespace.get(names[e.name]))
            if other is not None:
                found[other] = None
    return found


def reached(function: c.Function, home: Any) -> dict[c.Function, None]:
    """The declared functions that a function can reach through names."""
    known = _reached.get(function)
    if known is None:
        known = {}
        stack = list(reversed(_called(function, home)))
        while stack:
            at = stack.pop()
            if at not in known:
                known[at] = None
                stack.extend(reversed(_called(at, home)))
        _reached[function] = known
    return known


def is_recursive(f: s.Closure) -> bool:
    return f.own is not None or f.function in reached(f.function, f.home)


def group_of(f: s.Closure) -> tuple[c.Function, ...]:
    """The functions that call each other with f, f first."""
    if f.own is not None:
        return (f.function,)
    others = (g for g in reached(f.function, f.home) if g is not f.function and f.function in reached(g, f.home))
    return (f.function, *others)


def call_recursive(x: Evaluator, f: s.Closure, args: list[s.Value], span: Span) -> s.Value:
    """The call's value. A group whose inner calls are all tail calls is a loop in place; else it is a kernel
    function."""
    group = group_of(f)
    args = [x.stored(a) for a in args]
    if all(_only_tail_calls(x, g, f, group) for g in group):
        return _Loop(x, f, group).run(args, span)
    return _call_function(x, f, group, args, span)


# --- tail calls ---------------------------------------------------------------------------------


def _member(x: Evaluator, callee: c.Expr, f: s.Closure, group: Sequence[c.Function]) -> int | None:
    """Which of the group an expression names, None if it names something else."""
    if isinstance(callee, c.LocalRef):
        return 0 if callee.var is f.own else None
    if not isinstance(callee, c.GlobalRef):
        return None
    namespace = f.home.__globals__
    function = core_of(namespace.get(namespace[GLOBALS].get(callee.name)))
    return group.index(function) if function in group else None


def _only_tail_calls(x: Evaluator, g: c.Function, f: s.Closure, group: Sequence[c.Function]) -> bool:
    tails = {id(e.callee) for e in tail_expressions(g.body) if isinstance(e, c.Call)}
    return all(id(e) in tails or _member(x, e, f, group) is None for e in walk(g.body))


class _Loop:
    """The state is which function of the group runs (when there are several) and the arguments of each."""

    def __init__(self, x: Evaluator, f: s.Closure, group: Sequence[c.Function]) -> None:
        self.x = x
        self.f = f
        self.group = group
        self.state: list[s.Value] = []

    def run(self, args: list[s.Value], span: Span) -> s.Value:
        """What changes from call to call shows when the bodies are evaluated: where a call brings another variant,
        or is the first of a member, they are evaluated again with a state that has room for it."""
        start: s.Value = s.Tuple(self._initial(args))
        for _ in range(_ROUNDS):
            starts, shape = s.leaves(start)
            if not starts:
                starts, shape = s.leaves(s.Tuple((s.FALSE, s.Tuple(tuple(args)))))
            variables = tuple(Bound(n.type, "state") for n in starts)
            state = s.with_leaves(shape, map(var, variables))
            assert isinstance(state, s.Tuple)
            self.state = list(state.items)
            with self.x.apart() as region:
                outcome = self._dispatch(self._members(), span)
            assert isinstance(outcome, s.Tuple)
            again, following, value = outcome.items
            assert isinstance(again, Node)
            if isinstance(following, s.Absent):
                return self.x.enter(self.f, args, span)
            wider = self._room(again, state, following, span)
            if wider == shape:
                if isinstance(value, s.Absent):
                    raise refuse_recursion("it never comes to an end", span)
                nexts, _ = s.leaves(fit(following, shape))
                return self._loop(variables, starts, nexts, again, region, value)
            start = fit(start, wider)
        raise refuse_recursion("what it is given grows from call to call", span)

    def _loop(
        self,
        variables: tuple[Bound, ...],
        starts: tuple[Node, ...],
        nexts: tuple[Node, ...],
        again: Node,
        region: Region,
        value: s.Value,
    ) -> s.Value:
        results = loop(variables, starts, sequenced(region.effects, again), nexts)
        if region.may_fault:
            self.x.region.ran(results[0].args[0])
        made, made_shape = s.leaves(self.x.settled(value))
        final = instantiate(made, dict(zip(variables, results, strict=True)))
        return s.with_leaves(made_shape, iter(final))

    @staticmethod
    def _room(bit: Node, state: s.Value, following: s.Value, span: Span) -> s.Shape:
        """The shape that both have room in."""
        try:
            return s.leaves(s.chosen(bit, state, following))[1]
        except s.NoChoice as no:
            raise refuse_recursion(f"{no.what} changes from call to call", span) from None

    def _initial(self, args: list[s.Value]) -> tuple[s.Value, ...]:
        """The arguments of each member; those of members that have not run yet are absent."""
        given = s.Tuple(tuple(args))
        return (given,) if len(self.group) == 1 else (const(0), given, *[s.ABSENT] * (len(self.group) - 1))

    def _arguments(self, k: int) -> s.Value:
        return self.state[k + (len(self.group) > 1)]

    def _members(self) -> list[int]:
        """Those that may run."""
        return [k for k in range(len(self.group)) if not isinstance(self._arguments(k), s.Absent)]

    def _dispatch(self, members: list[int], span: Span) -> s.Value:
        """What the member that runs does."""
        k, *others = members
        if not others:
            return self._body(k)
        which = self.state[0]
        assert isinstance(which, Node)
        runs = Node("eq", BOOL, (which, const(k)))
        return self.x.branch(runs, lambda: self._body(k), lambda: self._dispatch(others, span), span)

    def _body(self, k: int) -> s.Value:
        g = self.group[k]
        closure = self.f if k == 0 else s.Closure(g, {}, self.f.home)
        arguments = self._arguments(k)
        if not isinstance(arguments, s.Tuple):
            arguments = s.UNIT
        with self.x.inside(closure):
            return self.x.settled(self._tail(g.body, self.x.activation(closure, arguments.items)))

    def _tail(self, e: c.Expr, env: Env) -> s.Value:
        """(goes on, the next state, the value): of a tail call the value is absent, else the state."""
        x = self.x
        match e:
            case c.If(condition=condition, then=then, otherwise=otherwise):
                chosen = x.scalar(condition, env)
                return x.branch(chosen, lambda: self._tail(then, env), lambda: self._tail(otherwise, env), e.span)
            case c.Match():
                return x.arms(e, x.scrutinee(e, env), 0, env, lambda body: self._tail(body, env))
            case c.Block(statements=statements, result=result):
                for statement in statements:
                    x.statement(statement, env)
                return self._tail(result, env)
            case c.Recover(default=default):
                value, ok, _ = x.tried(e, env)
                done = s.Tuple((s.FALSE, s.ABSENT, value))
                return x.branch(ok, lambda: done, lambda: self._tail(default, env), e.span)
            case c.Call(callee=callee, args=args):
                k = _member(x, callee, self.f, self.group)
                if k is not None:
                    found = s.Tuple(tuple(x.stored(x.evaluate(a, env)) for a in args))
                    state = list(self.state)
                    if len(self.group) > 1:
                        state[0] = const(k)
                        state[k + 1] = found
                    elif isinstance(state[0], s.Tuple):
                        state[0] = found
                    return s.Tuple((s.TRUE, s.Tuple(tuple(state)), s.ABSENT))
        return s.Tuple((s.FALSE, s.ABSENT, x.settled(x.evaluate(e, env))))


# --- functions ----------------------------------------------------------------------------------


def _call_function(x: Evaluator, f: s.Closure, group: Sequence[c.Function], args: list[s.Value], span: Span) -> s.Value:
    """A call of a kernel function, made when it is first called with arguments of this shape. What the closure captured
    goes along as arguments, so that a function reads its parameters only."""
    given, shape = s.leaves(x.settled(s.Tuple((s.Closure(f.function, dict(f.env), f.home, f.own), *args))))
    if _holds_pipe(shape):
        raise refuse_recursion("a buffer that the kernel makes is handed to it", span)
    k = x.compiled.get((f.function, shape))
    if k is None:
        if x.active.count(f.function) >= _ROUNDS:
            raise refuse_recursion("what it is given grows from call to call", span)
        k = len(x.functions)
        x.compiled[f.function, shape] = k
        bindings = dict(zip((p.type for p in f.function.params), map(_shape, args), strict=True))
        x.result_shapes.append(result_shape(f.function.body.type, bindings, f.function, span))
        params = tuple(Bound(n.type, "p") for n in given)
        name = f.function.name
        x.functions.append(KFunction(name, params, (s.FALSE,)))
        inner = s.with_leaves(shape, map(var, params))
        assert isinstance(inner, s.Tuple)
        closure, *parameters = inner.items
        assert isinstance(closure, s.Closure)
        with x.apart() as region:
            value = fit(x.stored(_Loop(x, closure, group).run(parameters, span)), x.result_shapes[k])
        results, _ = s.leaves(value)
        first = sequenced(region.effects, results[0] if results else s.FALSE)
        x.functions[k] = KFunction(name, params, (first, *results[1:]))
    result = x.result_shapes[k]
    types = s.leaf_types(result) or (BOOL,)
    found = call(k, given, types, Site(span))
    x.region.ran(found[0].args[0])
    return s.with_leaves(result, iter(found))


def _holds_pipe(shape: s.Shape) -> bool:
    return isinstance(shape.keep, s.Pipe) or any(map(_holds_pipe, shape.parts))


def _shape(value: s.Value) -> s.Shape:
    return s.leaves(value)[1]
