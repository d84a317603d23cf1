"""Short ways to write Core by hand, for tests of the evaluator without a parser."""

from __future__ import annotations

import io
from typing import Any

from osprey_py.check import core as c
from osprey_py.check.types import BOOL, FLOAT, INT, STRING, UNIT, FunctionType, Named, Type
from osprey_py.eval.unit import Unit
from osprey_py.eval.world import NoGpu, World
from osprey_py.source.span import NO_SPAN, Source, Span

SOURCE = Source("test.osp", "0123456789" * 100)
_at = iter(range(10**9))


__all__ = [
    "BOOL",
    "FLOAT",
    "INT",
    "NO_SPAN",
    "STRING",
    "UNIT",
    "FunctionType",
    "Named",
    "arm",
    "block",
    "built",
    "c",
    "call",
    "do",
    "fn",
    "glob",
    "if_",
    "lam",
    "let",
    "lit",
    "load",
    "match",
    "op",
    "program",
    "recover",
    "ref",
    "result_of",
    "run",
    "span",
    "var",
    "world",
]


def span() -> Span:
    k = next(_at) % 990
    return Span(SOURCE, k, k + 1)


def lit(v: Any) -> c.Literal:
    t = {bool: BOOL, int: INT, float: FLOAT, str: STRING, tuple: UNIT}[type(v)]
    return c.Literal(span(), t, v)


def var(name: str, t: Type = INT, mutable: bool = False) -> c.Var:
    return c.Var(name, t, mutable)


def ref(v: c.Var) -> c.LocalRef:
    return c.LocalRef(span(), v.type, v)


def op(o: str, a: c.Expr, b: c.Expr) -> c.Binary:
    return c.Binary(span(), BOOL if o in ("==", "!=", "<", "<=", ">", ">=") else a.type, o, a, b)


def if_(a: c.Expr, b: c.Expr, d: c.Expr) -> c.If:
    return c.If(span(), b.type, a, b, d)


def fn(name: str, params: list[c.Var], body: c.Expr) -> c.Function:
    t = FunctionType(tuple(p.type for p in params), body.type)
    return c.Function(name, tuple(params), body, t, span())


def lam(params: list[c.Var], body: c.Expr) -> c.Lambda:
    f = fn("<lambda>", params, body)
    return c.Lambda(span(), f.type, f)


def glob(name: str, t: Type) -> c.GlobalRef:
    return c.GlobalRef(span(), t, name)


def call(callee: c.Expr, *args: c.Expr, t: Type | None = None) -> c.Call:
    result = t if t is not None else callee.type.result  # type: ignore[attr-defined]
    return c.Call(span(), result, callee, args)


def built(name: str, *args: c.Expr, t: Type) -> c.Call:
    callee = c.BuiltinRef(span(), FunctionType(tuple(a.type for a in args), t), name)
    return c.Call(span(), t, callee, args)


def let(v: c.Var, e: c.Expr) -> c.Bind:
    return c.Bind(span(), c.PVar(v), e)


def block(*statements: c.Statement, result: c.Expr) -> c.Block:
    return c.Block(span(), result.type, statements, result)


def do(e: c.Expr) -> c.Do:
    return c.Do(span(), e)


def arm(p: c.Pattern, body: c.Expr, guard: c.Expr | None = None) -> c.Arm:
    return c.Arm(p, guard, body, span())


def match(e: c.Expr, *arms: c.Arm, recovers: bool = False) -> c.Match:
    return c.Match(span(), arms[0].body.type, e, arms, recovers)


def recover(e: c.Expr, d: c.Expr, kind: Any = "scalar") -> c.Recover:
    return c.Recover(span(), d.type, e, d, kind)


def result_of(t: Type) -> Named:
    return Named("Result", (t, Named("Error")))


def program(
    *functions: c.Function,
    startup: tuple[c.Statement, ...] = (),
    globals_: dict[str, c.Var] | None = None,
    types: Any = (),
) -> c.Program:
    return c.Program({f.name: f for f in functions}, globals_ or {}, startup, None, {t.name: t for t in types})


def world() -> World:
    return World(NoGpu(), io.StringIO(), io.StringIO(), io.StringIO(""))


def load(p: c.Program, w: World | None = None) -> dict[str, Any]:
    """name -> Python function (or value) of every function of the program."""
    unit = Unit(p, roots=p.functions)
    namespace = unit.instantiate(w or world())
    found = {name: namespace[unit.function_names[name]] for name in p.functions}
    return {**found, "startup": namespace["startup"], "text": unit.text}


def run(e: c.Expr, *functions: c.Function, types: Any = ()) -> Any:
    """The value of a closed expression."""
    return load(program(fn("the expression", [], e), *functions, types=types))["the expression"]()
