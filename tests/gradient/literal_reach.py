"""What a kernel's text can read, both sides of every branch counted, and what of it leads to the result (G5, G13).

Comes in: a kernel and the buffers of a launch. Goes out: the captured floats in the order of the text, and the buffers
and floats of the host that have a way to the result through operands that have contributions. The kernel is walked
once, with scalars of which nothing is known but where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from osprey_py.check import core as c
from osprey_py.kernel.ir import OPS
from tests.gradient.literal import (
    BY_TYPE,
    DIFFERENTIABLE,
    FLOATS,
    INTS,
    ONE_OP,
    Builtin,
    Captured,
    Closure,
    Env,
    Launch,
    Literal,
    Rec,
    error,
    success,
)
from tests.gradient.literal_tape import Buf, Val

PASSING = DIFFERENTIABLE - {"floor", "ceil", "round"}
_NESTED = 8
"""Calls of one function inside each other that are walked; more is recursion."""


@dataclass(frozen=True)
class Unknown:
    """A scalar; sources: what it comes from."""

    sources: frozenset[Any] = frozenset()


@dataclass(frozen=True, eq=False)
class Either:
    """One of several variants."""

    cases: tuple[Rec, ...]


NOTHING = object()
"""The value of what is not walked."""

NUMBER = Unknown()


@dataclass(frozen=True, eq=False)
class Stages:
    """A buffer made in a kernel. at: an element of it."""

    at: Callable[[], Any]


def sources(v: Any) -> frozenset[Any]:
    return v.sources if isinstance(v, Unknown) else frozenset()


def cases(v: Any) -> tuple[Rec, ...]:
    return v.cases if isinstance(v, Either) else (v,)


def join(a: Any, b: Any) -> Any:
    """What is a or b."""
    if a is NOTHING:
        return b
    if b is NOTHING or a is b:
        return a
    match a, b:
        case (tuple(), tuple()):
            return tuple(join(x, y) for x, y in zip(a, b, strict=True))
        case ((Rec() | Either()), (Rec() | Either())):
            found: dict[Any, Rec] = {}
            for r in (*cases(a), *cases(b)):
                old = found.get(r.constructor)
                fields = r.fields if old is None else {n: join(v, old.fields[n]) for n, v in r.fields.items()}
                found[r.constructor] = Rec(r.constructor, fields)
            return next(iter(found.values())) if len(found) == 1 else Either(tuple(found.values()))
        case Closure(), Closure():
            return Closure(a.function, {v: join(x, b.env[v]) if v in b.env else x for v, x in a.env.items()})
        case ((Unknown() | bool()), (Unknown() | bool())):
            return a if a == b and isinstance(a, bool) else Unknown(sources(a) | sources(b))
    return a


class Reach(Literal):
    """A walk over one kernel. risky: how many operations on the way can fault."""

    def __init__(self, x: Literal) -> None:
        self.program, self.globals, self.place_of = x.program, x.globals, x.place_of
        self.launch = Launch(0)
        self.path = ()
        self.order: dict[tuple[Any, ...], int] = {}
        self.risky = 0
        self.active: list[c.Function] = []

    def captured(self, value: Val, path: tuple[Any, ...]) -> Any:
        self.order.setdefault(path, len(self.order))
        return Unknown(frozenset((value,)))

    def resolve(self, v: Any) -> Any:
        found = super().resolve(v)
        return NUMBER if isinstance(v, Captured) and isinstance(found, int | bool) else found

    def ran(self, op: str, *args: Any) -> Unknown:
        self.risky += OPS[op].checked
        return Unknown(frozenset().union(*map(sources, args))) if op in PASSING else NUMBER

    # --- choices -----------------------------------------------------------------------------------------------

    def choose(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        if isinstance(condition, bool):
            return then() if condition else otherwise()
        a = then()
        return join(a, otherwise())

    def negate(self, v: Any) -> Any:
        return not v if isinstance(v, bool) else NUMBER

    def visit(self, e: c.Expr, env: Env) -> Any:
        match e:
            case c.Literal(value=bool() as value):
                return value
            case c.Literal(value=int() | float()):
                return NUMBER
            case c.BuiltinRef(name="inf" | "nan"):
                return NUMBER
            case c.Unary(op="-", operand=x):
                return self.ran("neg" if str(e.type) == "int" else "fneg", self.eval(x, env))
            case c.Field(record=record, name=name):
                v = self.eval(record, env)
                return NOTHING if v is NOTHING else cases(v)[0].fields[name]
        return super().visit(e, env)

    def binary(self, op: str, a: Any, b: Any, e: c.Expr) -> Any:
        if op not in FLOATS:
            return NUMBER
        return self.ran((INTS if op != "/" and str(e.type) == "int" else FLOATS)[op], a, b)

    def recover(self, value: c.Expr, default: c.Expr, kind: str, env: Env) -> Any:
        before = self.risky
        v = self.eval(value, env)
        if isinstance(v, Rec | Either) and any(r.constructor in (c.SUCCESS, c.ERROR) for r in cases(v)):
            good = [r.fields["value"] for r in cases(v) if r.constructor is c.SUCCESS]
            sure = len(good) == len(cases(v)) and self.risky == before
            found = good[0] if good else NOTHING
            return found if sure else join(found, self.eval(default, env))
        return v if self.risky == before else join(v, self.eval(default, env))

    def attempt(self, e: c.Expr, env: Env, wraps: bool) -> Any:
        before = self.risky
        v = self.eval(e, env)
        v = success(v) if wraps else v
        return v if self.risky == before or not isinstance(v, Rec | Either) else join(v, error(""))

    def statement(self, s: c.Statement, env: Env) -> None:
        assert isinstance(s, c.Bind | c.Do)
        v = self.eval(s.value, env)
        if isinstance(s, c.Bind):
            self.bind(s.pattern, v, env)

    def arms(self, v: Any, arms: tuple[c.Arm, ...], env: Env) -> Any:
        found: Any = NOTHING
        for arm in arms:
            inner = dict(env)
            matches: Any = self.bind(arm.pattern, v, inner)
            if matches is False:
                continue
            if arm.guard is not None:
                guard = self.eval(arm.guard, inner)
                matches = matches if guard is True else guard
            if matches is not False:
                found = join(found, self.eval(arm.body, inner))
            if matches is True:
                break
        return found

    def bind(self, p: c.Pattern, v: Any, env: Env) -> Any:
        """True, False, or neither is known: NUMBER."""
        v = self.resolve(v)
        match p:
            case c.PWild():
                return True
            case c.PVar(var=var):
                env[var] = v
                return True
            case c.PLiteral(value=want):
                return v == want if isinstance(v, bool) or want == () else NUMBER
            case c.PConstructor(constructor=constructor, fields=fields):
                mine = [r for r in cases(v) if r.constructor is constructor]
                if not mine:
                    return False
                bits = [self.bind(q, mine[0].fields[n], env) for n, q in fields]
                return both([True if len(cases(v)) == 1 else NUMBER, *bits])
            case c.PRecord(fields=fields):
                return both(self.bind(q, cases(v)[0].fields[n], env) for n, q in fields)
            case c.PTuple(items=items):
                return both([self.bind(q, x, env) for q, x in zip(items, v, strict=True)])
        raise TypeError(p)

    # --- calls -------------------------------------------------------------------------------------------------

    def apply(self, f: Any, args: list[Any]) -> Any:
        f = self.resolve(f)
        if not isinstance(f, Closure):
            return super().apply(f, args)
        if self.active.count(f.function) >= _NESTED:
            self.risky += 1
            return NOTHING
        self.active.append(f.function)
        try:
            return super().apply(f, args)
        finally:
            self.active.pop()

    def builtin(self, name: str, args: list[Any], e: c.Expr) -> Any:
        if name in ONE_OP:
            return self.ran(ONE_OP[name], *args)
        if name in BY_TYPE:
            return self.ran(BY_TYPE[name][str(e.type) != "int"], *args)
        match name, args:
            case "gpuGet", [b, _]:
                return Either((success(Unknown(frozenset((b,)))), error("")))
            case "gpuMap", [b, f]:
                return Stages(lambda: self.apply(f, [element(b)]))
            case "gpuZipWith", [a, b, f]:
                return Stages(lambda: self.apply(f, [element(a), element(b)]))
            case "gpuFilter", [b, f]:

                def kept() -> Any:
                    v = element(b)
                    self.apply(f, [v])
                    return v

                return Stages(kept)
            case "gpuFold", [b, init, f]:
                return self.fold(b, init, f)
            case "stopGradient", [v]:
                return silent(v)
            case "gpuIota", _:
                return Stages(lambda: NUMBER)
        return NUMBER  # gpuLength, isNan

    def fold(self, b: Any, init: Any, f: Any) -> Any:
        acc = init
        while True:
            after = join(acc, self.apply(f, [acc, element(b)]))
            if not isinstance(after, Unknown) or after == acc:
                return after
            acc = after


def element(b: Any) -> Any:
    if isinstance(b, Stages):
        return b.at()
    return Unknown(frozenset((b,)))


def both(bits: Iterable[Any]) -> Any:
    found = list(bits)
    return False if any(b is False for b in found) else True if all(b is True for b in found) else NUMBER


def silent(v: Any) -> Any:
    match v:
        case tuple():
            return tuple(map(silent, v))
        case Rec():
            return Rec(v.constructor, {n: silent(x) for n, x in v.fields.items()})
        case Unknown():
            return NUMBER
        case Buf():
            return Buf(v.items)
    return v


def reached(
    x: Literal, kind: str, f: Any, inputs: list[Buf], first: Any
) -> tuple[dict[tuple[Any, ...], int], list[Any]]:
    """(captured floats in order, the buffers and floats of the host with a way to the result). first: a fold's or
    scan's first accumulator."""
    walk = Reach(x)
    if kind != "map":
        walk.order[("first",)] = 0
    kernel = Captured(f, ("f",))
    if kind == "map":
        found = walk.apply(kernel, [element(b) for b in inputs])
    else:
        start = Unknown(frozenset((first,))) if isinstance(first, Val) else NUMBER
        found = walk.fold(inputs[0], start, kernel)
    return walk.order, [s for s in sources(found) if isinstance(s, Val | Buf)]


__all__ = ["Builtin", "reached"]
