"""Symbolic evaluation of the typed program: the body of a kernel becomes IR.

Comes in: a function's Core, symbolic arguments, what the function captured. Goes out: a symbolic value whose nodes
are the kernel. Helpers are inlined, structure is Python structure, `if`, `match`, `&&` and `||` become selects, `?:`
a `recover`; what is evaluated but not used stays in the region (kernel/regions.py), so that it faults when the
program says so (language, section Failure). What a kernel cannot hold is an error that names it and its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from osprey_py.check import core as c
from osprey_py.eval.walk import walk
from osprey_py.kernel import symbols as s
from osprey_py.kernel.captures import Captures
from osprey_py.kernel.ir import BOOL, FLOAT, INT, OPS, KFunction, Node, Site, Ty, const
from osprey_py.kernel.recursion import call_recursive, is_recursive
from osprey_py.kernel.refusals import refuse, refuse_choice
from osprey_py.kernel.regions import Region, sequenced
from osprey_py.kernel.symbolic_builtins import call_builtin
from osprey_py.source.span import Span

_ARITHMETIC = {
    (INT, "+"): "add",
    (INT, "-"): "sub",
    (INT, "*"): "mul",
    (INT, "%"): "rem",
    (FLOAT, "+"): "fadd",
    (FLOAT, "-"): "fsub",
    (FLOAT, "*"): "fmul",
    (FLOAT, "/"): "fdiv",
    (FLOAT, "%"): "fmod",
}
"""The op of an operator, by the type of its operands."""

_TOO_NESTED = 64
"""Calls of one function inside each other that are not known to be recursion."""

Env = dict[c.Var, s.Value]


@lru_cache(maxsize=4096)
def variables_in(function: c.Function) -> frozenset[c.Var]:
    """Every local variable that a function's body mentions."""
    return frozenset(e.var for e in walk(function.body) if isinstance(e, c.LocalRef))


class Evaluator:
    """The extraction of one kernel. region: where strict evaluation stands now."""

    def __init__(self, captures: Captures) -> None:
        self.captures = captures
        self.region = Region()
        self.functions: list[KFunction] = []
        self.active: list[c.Function] = []
        self.home: Any = None
        self.compiled: dict[object, int] = {}
        self.result_shapes: list[s.Shape] = []

    # --- nodes -----------------------------------------------------------------------------------

    def op(self, op: str, ty: Ty, *args: Node, span: Span) -> Node:
        """A scalar op; a checked one is evaluated here and now."""
        if not OPS[op].checked:
            return Node(op, ty, args)
        node = Node(op, ty, args, None, Site(span))
        self.region.ran(node)
        return node

    @contextmanager
    def apart(self) -> Any:
        """Evaluate in a region of its own."""
        outer, self.region = self.region, Region()
        try:
            yield self.region
        finally:
            self.region = outer

    def sound(self, region: Region, ok: Node = s.TRUE) -> Node:
        """The bit that what was evaluated in a region did not fault, and `ok` holds."""
        if not region.may_fault:
            return ok
        return Node("recover", BOOL, (sequenced(region.effects, ok), s.FALSE))

    def branch(self, c_: Node, then: Callable[[], s.Value], otherwise: Callable[[], s.Value], span: Span) -> s.Value:
        """then() if c else otherwise(), only the chosen one evaluated."""
        known = s.truth(c_)
        if known is not None:
            return then() if known else otherwise()
        with self.apart() as left:
            a = self.settled(then())
        with self.apart() as right:
            b = self.settled(otherwise())
        return self.join(c_, a, left, b, right, span)

    def join(self, c_: Node, a: s.Value, left: Region, b: s.Value, right: Region, span: Span) -> s.Value:
        """The choice between two values and what was evaluated on the way to them."""
        try:
            value = s.chosen(c_, a, b)
        except s.NoChoice as no:
            raise refuse_choice(no.what, span) from None
        if not (left.may_fault or right.may_fault):
            return value
        # The faults of both sides happen in one select: that of the first leaf, or one made for them.
        nodes, shape = s.leaves(value)
        first, left_shape = s.leaves(a)
        second, right_shape = s.leaves(b)
        whole = left_shape == shape == right_shape and bool(nodes)
        x, y = (first[0], second[0]) if whole else (s.TRUE, s.TRUE)
        effect = Node("select", x.type, (c_, sequenced(left.effects, x), sequenced(right.effects, y)))
        self.region.ran(effect)
        return s.with_leaves(shape, iter((effect, *nodes[1:]))) if whole else value

    def stored(self, value: s.Value) -> s.Value:
        """What a loop, a fold or a function can keep of a value: settled, with every leaf harmless to evaluate."""
        return s.shielded(self.settled(value))

    def settled(self, value: s.Value) -> s.Value:
        """With all that was captured looked at."""
        value = self.captures.resolve(value)
        match value:
            case s.Tuple(items=items):
                return s.Tuple(tuple(map(self.settled, items)))
            case s.Record(constructor=constructor, fields=fields):
                return s.Record(constructor, {n: self.settled(x) for n, x in fields.items()})
            case s.Union(cases=cases):
                return s.Union({k: (bit, {n: self.settled(x) for n, x in f.items()}) for k, (bit, f) in cases.items()})
            case s.Closure(function=function, env=env):
                for variable in env:
                    env[variable] = self.settled(env[variable])
                return s.Closure(function, env, value.home, value.own)
        return value

    # --- expressions
    # ---------------------------------------------------------------------------------------------------

    def scalar(self, e: c.Expr, env: Env) -> Node:
        value = self.evaluate(e, env)
        if not isinstance(value, Node):
            raise refuse(value, e.span)
        return value

    def evaluate(self, e: c.Expr, env: Env) -> s.Value:
        return self.captures.resolve(self._evaluate(e, env))

    def _evaluate(self, e: c.Expr, env: Env) -> s.Value:
        match e:
            case c.Literal(value=value):
                if isinstance(value, str):
                    return s.Opaque("text")
                return s.UNIT if isinstance(value, tuple) else const(value)
            case c.LocalRef(var=var):
                return env[var]
            case c.GlobalRef(name=name):
                return self.captures.of_global(self.home, name)
            case c.BuiltinRef(name=name):
                constant = {"inf": float("inf"), "nan": float("nan")}.get(name)
                return s.Builtin(name) if constant is None else const(constant)
            case c.ConstructorRef(constructor=constructor):
                return s.Maker(constructor)
            case c.Lambda(function=function):
                mentioned = variables_in(function)
                return s.Closure(function, {v: x for v, x in env.items() if v in mentioned}, self.home)
            case c.Call(callee=callee, args=args):
                f = self.evaluate(callee, env)
                return self.apply(f, [self.evaluate(a, env) for a in args], e.span)
            case c.Unary():
                return self._unary(e, env)
            case c.Binary():
                return self._binary(e, env)
            case c.Logic(op=op, left=left, right=right):
                a = self.scalar(left, env)
                if op == "&&":
                    return self.branch(a, lambda: self.scalar(right, env), lambda: s.FALSE, e.span)
                return self.branch(a, lambda: s.TRUE, lambda: self.scalar(right, env), e.span)
            case c.If(condition=condition, then=then, otherwise=otherwise):
                a = self.scalar(condition, env)
                return self.branch(a, lambda: self.evaluate(then, env), lambda: self.evaluate(otherwise, env), e.span)
            case c.Recover():
                return self._recover(e, env)
            case c.Attempt(value=inner, wraps=wraps):
                with self.apart() as region:
                    tried = self.evaluate(inner, env)
                if wraps:
                    return s.result(self.sound(region), tried, s.Opaque("an error's text"))
                return self._sound_result(tried, region)
            case c.Match():
                return self.arms(e, self.scrutinee(e, env), 0, env, lambda body: self.evaluate(body, env))
            case c.Block(statements=statements, result=result):
                for statement in statements:
                    self.statement(statement, env)
                return self.evaluate(result, env)
            case c.RecordNew(constructor=constructor, fields=fields):
                made = {n: self.evaluate(x, env) for n, x in fields}
                if constructor is None:
                    return s.Record(None, {n: made[n] for n in sorted(made)})
                return s.Record(constructor, {n: made[n] for n in constructor.fields})
            case c.RecordUpdate(record=record, fields=fields):
                old = self.evaluate(record, env)
                changes = {n: self.evaluate(x, env) for n, x in fields}
                if not isinstance(old, s.Record):
                    raise refuse(old, e.span)
                return s.Record(old.constructor, {**old.fields, **changes})
            case c.Field(record=record, name=name):
                return self._field(self.evaluate(record, env), name, e.span)
            case c.TupleNew(items=items):
                return s.Tuple(tuple(self.evaluate(x, env) for x in items))
        raise refuse(e, e.span)

    def _field(self, record: s.Value, name: str, span: Span) -> s.Value:
        if not isinstance(record, s.Record | s.Union):
            raise refuse(record, span)
        if isinstance(record, s.Record):
            return record.fields[name]
        # A type with one constructor: the bits say nothing.
        (_, fields), *_ = record.cases.values()
        return fields[name]

    def _unary(self, e: c.Unary, env: Env) -> Node:
        a = self.scalar(e.operand, env)
        if e.op == "!":
            return s.negation(a)
        if a.op == "const" and a.type is FLOAT:
            assert isinstance(a.attr, float)
            return const(-a.attr)
        if a.op == "const" and isinstance(a.attr, int) and a.attr > -(2**63):
            return const(-a.attr)
        return self.op("neg" if a.type is INT else "fneg", a.type, a, span=e.span)

    def _binary(self, e: c.Binary, env: Env) -> Node:
        left = self.evaluate(e.left, env)
        right = self.evaluate(e.right, env)
        if e.op in ("==", "!="):
            return self.equal(left, right, e.op, e.span)
        if not isinstance(left, Node) or not isinstance(right, Node):
            raise refuse(right if isinstance(left, Node) else left, e.span)
        if e.op in ("<", "<="):
            return Node("lt" if e.op == "<" else "le", BOOL, (left, right))
        if e.op in (">", ">="):
            # a > b is b < a, with a evaluated first; both are evaluated already.
            return Node("lt" if e.op == ">" else "le", BOOL, (right, left))
        return self.op(_ARITHMETIC[left.type, e.op], left.type, left, right, span=e.span)

    def equal(self, a: s.Value, b: s.Value, op: str, span: Span) -> Node:
        """Structural equality; `op` is == or !=."""
        a, b = self.captures.resolve(a), self.captures.resolve(b)
        if isinstance(a, Node) and isinstance(b, Node):
            return Node("eq" if op == "==" else "ne", BOOL, (a, b))
        if op == "!=":
            return s.negation(self.equal(a, b, "==", span))
        match a, b:
            case s.Tuple(items=xs), s.Tuple(items=ys):
                return self._all(self.equal(x, y, "==", span) for x, y in zip(xs, ys, strict=True))
            case s.Record(constructor=None, fields=fs), s.Record(fields=gs):
                return self._all(self.equal(x, gs[n], "==", span) for n, x in fs.items())
            case ((s.Record() | s.Union()), (s.Record() | s.Union())):
                alike = s.FALSE
                others = s.cases(b)
                for constructor, (bit, fields) in s.cases(a).items():
                    other, theirs = others.get(constructor, (s.FALSE, fields))
                    if s.truth(bit) is False or s.truth(other) is False:
                        continue
                    same = self._all(self.equal(x, theirs[n], "==", span) for n, x in fields.items())
                    both = self._all((bit, other))
                    alike = s.choice(both, same, alike)
                return alike
        raise refuse(a, span)

    @staticmethod
    def _all(bits: Any) -> Node:
        result = s.TRUE
        for bit in bits:
            result = bit if s.truth(result) is True else s.choice(result, bit, s.FALSE)
        return result

    # --- faults that become values
    # ---------------------------------------------------------------------------------------

    def _sound_result(self, value: s.Value, region: Region) -> s.Value:
        """A Result, an Error when the region that made it faulted."""
        if not region.may_fault:
            return value
        found = s.cases(value)
        ok, fields = found.get(c.SUCCESS, (s.FALSE, {}))
        _, error = found.get(c.ERROR, (s.FALSE, {"message": s.Opaque("an error's text")}))
        sound = self.sound(region, ok)
        return s.Union({c.SUCCESS: (sound, fields), c.ERROR: (s.negation(sound), error)})

    def tried(self, e: c.Recover, env: Env) -> tuple[s.Value, Node, Region | None]:
        """The left side of `?:`: (its value, the bit that the value counts, the region it ran in when a fault is all
        that the bit tells)."""
        with self.apart() as region:
            value = self.settled(self.evaluate(e.value, env))
        if not _is_result(value):
            return value, self.sound(region), region
        ok, fields = s.cases(self._sound_result(value, region)).get(c.SUCCESS, (s.FALSE, {}))
        return fields.get("value", s.ABSENT), ok, None

    def _recover(self, e: c.Recover, env: Env) -> s.Value:
        value, ok, region = self.tried(e, env)
        if s.truth(ok) is True:
            return value
        # A scalar that may fault is one `recover`; all else is chosen by the bit.
        if region is None or not isinstance(value, Node):
            return self.branch(ok, lambda: value, lambda: self.evaluate(e.default, env), e.span)
        with self.apart() as other:
            default = self.scalar(e.default, env)
        node = Node("recover", value.type, (sequenced(region.effects, value), sequenced(other.effects, default)))
        if other.may_fault:
            self.region.ran(node)
        return node

    # --- patterns
    # ----------------------------------------------------------------------------------------------------------

    def scrutinee(self, e: c.Match, env: Env) -> s.Value:
        """What a match looks at; with Success and Error arms its faults are an Error."""
        if not e.recovers:
            return self.evaluate(e.scrutinee, env)
        with self.apart() as region:
            value = self.evaluate(e.scrutinee, env)
        return self._sound_result(value, region)

    def arms(self, e: c.Match, value: s.Value, k: int, env: Env, evaluate: Callable[[c.Expr], s.Value]) -> s.Value:
        """The value of the arms from the k-th on."""
        arm = e.arms[k]
        matches = self.test(arm.pattern, value, env, arm.span)
        guard = arm.guard
        if guard is not None:
            matches_so_far = matches
            matches_guard = self.branch(matches_so_far, lambda: self.scalar(guard, env), lambda: s.FALSE, arm.span)
            assert isinstance(matches_guard, Node)
            matches = matches_guard
        if k + 1 == len(e.arms):
            return evaluate(arm.body)
        return self.branch(
            matches, lambda: evaluate(arm.body), lambda: self.arms(e, value, k + 1, env, evaluate), arm.span
        )

    def test(self, pattern: c.Pattern, value: s.Value, env: Env, span: Span) -> Node:
        """The bit that a value matches, with the pattern's variables bound."""
        value = self.captures.resolve(value)
        match pattern:
            case c.PWild():
                return s.TRUE
            case c.PVar(var=var):
                env[var] = value
                return s.TRUE
            case c.PLiteral(value=()):
                return s.TRUE
            case c.PLiteral(value=bool() as wanted) if isinstance(value, Node):
                return value if wanted else s.negation(value)
            case c.PLiteral(value=int() | float() as wanted) if isinstance(value, Node):
                return Node("eq", BOOL, (value, const(wanted)))
            case c.PTuple(items=items) if isinstance(value, s.Tuple):
                return self._all([self.test(p, x, env, span) for p, x in zip(items, value.items, strict=True)])
            case c.PRecord(fields=fields) if isinstance(value, s.Record):
                return self._all([self.test(p, value.fields[n], env, span) for n, p in fields])
            case c.PConstructor(constructor=constructor, fields=fields) if isinstance(value, s.Record | s.Union):
                bit, have = s.cases(value).get(constructor, (s.FALSE, {}))
                if s.truth(bit) is False:
                    self._bind_nothing(pattern, env)
                    return s.FALSE
                return self._all([bit, *(self.test(p, have[n], env, span) for n, p in fields)])
        raise refuse(value, span)

    def _bind_nothing(self, pattern: c.Pattern, env: Env) -> None:
        """Variables of a pattern that never matches: its arm is evaluated for its shape at most."""
        match pattern:
            case c.PVar(var=var):
                env[var] = s.Opaque("a variant that is never there")
            case c.PConstructor(fields=fields) | c.PRecord(fields=fields):
                for _, p in fields:
                    self._bind_nothing(p, env)
            case c.PTuple(items=items):
                for p in items:
                    self._bind_nothing(p, env)

    def statement(self, statement: c.Statement, env: Env) -> None:
        match statement:
            case c.Bind(pattern=pattern, value=value):
                found = self.evaluate(value, env)
                if isinstance(pattern, c.PVar) and isinstance(value, c.Lambda) and isinstance(found, s.Closure):
                    own = pattern.var if pattern.var in variables_in(found.function) else None
                    found = s.Closure(found.function, found.env, found.home, own)
                self.test(pattern, found, env, statement.span)
            case c.Do(value=value):
                self.evaluate(value, env)
            case _:
                raise refuse(statement, statement.span)

    # --- calls
    # ------------------------------------------------------------------------------------------------------------

    def apply(self, f: s.Value, args: Sequence[s.Value], span: Span) -> s.Value:
        """A call; arguments have been evaluated."""
        f = self.captures.resolve(f)
        match f:
            case s.Builtin(name=name):
                return self.captures.resolve(call_builtin(self, name, list(args), span))
            case s.Maker(constructor=constructor):
                return s.Record(constructor, dict(zip(constructor.fields, args, strict=True)))
            case s.Closure():
                if is_recursive(f):
                    return call_recursive(self, f, list(args), span)
                return self.enter(f, args, span)
        raise refuse(f, span)

    def enter(self, f: s.Closure, args: Sequence[s.Value], span: Span) -> s.Value:
        """The body of a function, inlined."""
        if self.active.count(f.function) >= _TOO_NESTED:
            raise refuse(f, span)
        with self.inside(f):
            return self.evaluate(f.function.body, self.activation(f, args))

    @contextmanager
    def inside(self, f: s.Closure) -> Any:
        """GlobalRefs mean what they mean in f's code."""
        home, self.home = self.home, f.home
        self.active.append(f.function)
        try:
            yield
        finally:
            self.active.pop()
            self.home = home

    @staticmethod
    def activation(f: s.Closure, args: Sequence[s.Value]) -> Env:
        env = dict(f.env)
        if f.own is not None:
            env[f.own] = f
        env.update(zip(f.function.params, args, strict=True))
        return env


def _is_result(value: s.Value) -> bool:
    return (
        isinstance(value, s.Record | s.Union)
        and (isinstance(value, s.Union) or value.constructor is not None)
        and not s.cases(value).keys().isdisjoint((c.SUCCESS, c.ERROR))
    )
