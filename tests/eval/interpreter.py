"""Core evaluated by the book: a plain tree walk, without cleverness, to compare generated code with."""

from __future__ import annotations

import io
from typing import Any

from osprey_py.check import core as c
from osprey_py.eval.arithmetic import add, divide, modulo, multiply, negate, subtract
from osprey_py.eval.equality import equal
from osprey_py.eval.formatting import to_string
from osprey_py.eval.library import lists
from osprey_py.eval.registry import BUILTINS
from osprey_py.eval.values import Error, Success, attribute, class_of, make_list
from osprey_py.eval.world import NoGpu, World
from osprey_py.kernel.fault import MathFault

OPS = {"+": add, "-": subtract, "*": multiply, "/": divide, "%": modulo}


class Closure:
    def __init__(self, interpreter, function, env):
        self.interpreter, self.function, self.env = interpreter, function, env

    def __call__(self, *args):
        env = {**self.env, **dict(zip(self.function.params, args, strict=True))}
        return self.interpreter.eval(self.function.body, env)


class Cell:
    def __init__(self, v):
        self.v = v


class Interpreter:
    def __init__(self, program: c.Program) -> None:
        self.functions = {n: Closure(self, f, {}) for n, f in program.functions.items()}
        self.world = World(NoGpu(), io.StringIO(), io.StringIO(), io.StringIO())

    def eval(self, e: c.Expr, env: dict[c.Var, Any]) -> Any:
        match e:
            case c.Literal(value=v):
                return v
            case c.LocalRef(var=v):
                return env[v].v if v.mutable else env[v]
            case c.GlobalRef(name=name):
                return self.functions[name]
            case c.Lambda(function=f):
                return Closure(self, f, env)
            case c.Call(callee=c.BuiltinRef(name=name), args=args):
                values = [self.eval(a, env) for a in args]
                built = BUILTINS[name]
                return built.call(*([self.world] if built.world else []), *values, *([e.span] if built.span else []))
            case c.Call(callee=callee, args=args):
                f = self.eval(callee, env)
                return f(*[self.eval(a, env) for a in args])
            case c.Unary(op="!", operand=x):
                return not self.eval(x, env)
            case c.Unary(operand=x):
                return negate(self.eval(x, env), e.span)
            case c.Binary(op=op, left=left, right=right):
                a, b = self.eval(left, env), self.eval(right, env)
                if op in OPS:
                    return a + b if isinstance(a, str) else OPS[op](a, b, e.span)
                if op in ("==", "!="):
                    return equal(a, b) == (op == "==")
                return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
            case c.Logic(op=op, left=left, right=right):
                a = self.eval(left, env)
                return self.eval(right, env) if a == (op == "&&") else a
            case c.If(condition=condition, then=then, otherwise=otherwise):
                return self.eval(then if self.eval(condition, env) else otherwise, env)
            case c.Block(statements=statements, result=result):
                env = dict(env)
                for s in statements:
                    self.statement(s, env)
                return self.eval(result, env)
            case c.Match(scrutinee=s, arms=arms, recovers=recovers):
                return self.match(self.attempt(s, env) if recovers else self.eval(s, env), arms, env)
            case c.Recover(value=value, default=default, kind=kind):
                try:
                    v = self.eval(value, env)
                except MathFault:
                    return self.eval(default, env)
                if kind == "result":
                    return v.f_value if type(v) is Success else self.eval(default, env)
                return v
            case c.Attempt(value=value):
                return self.attempt(value, env, wraps=e.wraps)
            case c.Interpolate(parts=parts):
                return "".join(p if isinstance(p, str) else to_string(self.eval(p, env)) for p in parts)
            case c.TupleNew(items=items):
                return tuple([self.eval(x, env) for x in items])
            case c.ListNew(items=items):
                return make_list([self.eval(x, env) for x in items])
            case c.RecordNew(constructor=constructor, fields=fields):
                values = {n: self.eval(x, env) for n, x in fields}
                return class_of(constructor)(*[values[n] for n in constructor.fields])
            case c.RecordUpdate(record=record, fields=fields):
                old = self.eval(record, env)
                values = {n: self.eval(x, env) for n, x in fields}
                return type(old)(*[values.get(n, getattr(old, attribute(n))) for n in type(old).fields])
            case c.Field(record=record, name=name):
                return getattr(self.eval(record, env), attribute(name))
            case c.Index(container=container, index=index):
                xs, i = self.eval(container, env), self.eval(index, env)
                return lists.index(xs, i)
        raise TypeError(e)

    def attempt(self, e: c.Expr, env: dict[c.Var, Any], wraps: bool = False) -> Any:
        try:
            v = self.eval(e, env)
        except MathFault as f:
            return Error(f.message)
        return Success(v) if wraps else v

    def statement(self, s: c.Statement, env: dict[c.Var, Any]) -> None:
        match s:
            case c.Bind(pattern=c.PVar(var=v), value=x) if v.mutable:
                env[v] = Cell(self.eval(x, env))
            case c.Bind(pattern=pattern, value=x):
                assert self.bind(pattern, self.eval(x, env), env)
            case c.Assign(var=v, value=x):
                env[v].v = self.eval(x, env)
            case c.Do(value=x):
                self.eval(x, env)

    def match(self, v: Any, arms: tuple[c.Arm, ...], env: dict[c.Var, Any]) -> Any:
        for arm in arms:
            inner = dict(env)
            if self.bind(arm.pattern, v, inner) and (arm.guard is None or self.eval(arm.guard, inner)):
                return self.eval(arm.body, inner)
        raise AssertionError("no arm matches")

    def bind(self, p: c.Pattern, v: Any, env: dict[c.Var, Any]) -> bool:
        match p:
            case c.PWild():
                return True
            case c.PVar(var=var):
                env[var] = v
                return True
            case c.PLiteral(value=want):
                return bool(v == want)
            case c.PConstructor(constructor=constructor, fields=fields):
                if type(v) is not class_of(constructor):
                    return False
                return all(self.bind(q, getattr(v, attribute(n)), env) for n, q in fields)
            case c.PTuple(items=items):
                return all(self.bind(q, x, env) for q, x in zip(items, v, strict=True))
            case c.PList(items=items, rest=rest):
                xs = list(v)
                if len(xs) < len(items) or (rest is None and len(xs) != len(items)):
                    return False
                if not all(self.bind(q, x, env) for q, x in zip(items, xs, strict=False)):
                    return False
                return rest is None or self.bind(rest, make_list(xs[len(items) :]), env)
        raise TypeError(p)
