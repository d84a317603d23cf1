"""A plain walk over the typed program that notes every float: the slow gradient of spec/gradients, from the text alone.

    value, gradient = literal(text, "loss", "point")

runs the program `text`, then its function `loss` at its file-scope `point`, and gives Python data: floats, ints, lists
for lists and buffers, tuples, dicts for records. Launches are executed where they stand, element by element; no kernel
is extracted, and what G10 refuses is walked like the rest. The surface's built-ins are in literal_surface.py, what a
kernel can read in literal_reach.py, the order and the rules in literal_tape.py.

Where a site stands: path + (place of the expression in its function, operand); path holds the places of the calls on
the way there from the kernel (G1: calls inlined). On the host every operation is a site of its own, by time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from osprey_py.check import check_source
from osprey_py.check import core as c
from osprey_py.check.core_walk import parts
from osprey_py.check.types import FLOAT
from osprey_py.eval.run import on_big_stack
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import OPS, Site
from osprey_py.kernel.scalars import NAN, SCALARS
from osprey_py.source.render import render
from osprey_py.source.span import NO_SPAN
from tests.gradient.literal_tape import Buf, Key, Tape, Val, gradient_of

INTS = {"+": "add", "-": "sub", "*": "mul", "%": "rem"}
FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "%": "fmod"}
ONE_OP = {
    "sqrt": "sqrt", "exp": "exp", "ln": "ln", "tanh": "tanh", "floor": "floor", "ceil": "ceil", "round": "round",
    "toFloat": "tofloat", "toInt": "toint", "intDiv": "quot", "ieeeDiv": "fdivi", "wrapAdd": "wadd", "wrapSub": "wsub",
    "wrapMul": "wmul", "mulHigh": "mulhigh", "bitAnd": "and", "bitOr": "or", "bitXor": "xor", "bitNot": "inot",
    "shiftLeft": "shl", "shiftRight": "shr", "shiftRightLogical": "shru", "floatBits": "floatbits",
    "floatFromBits": "bitsfloat",
}  # fmt: skip
BY_TYPE = {"min": ("imin", "fmin"), "max": ("imax", "fmax"), "abs": ("iabs", "fabs")}
DIFFERENTIABLE = frozenset(
    "fadd fsub fmul fdiv fdivi fmod fneg fabs fmin fmax sqrt exp ln tanh floor ceil round".split()
)

Env = dict[c.Var, Any]

AT_NOTHING = c.Literal(NO_SPAN, FLOAT, ())
"""Where a built-in stands that is a kernel itself: `gpuMap(b, exp)`."""


@dataclass(frozen=True, eq=False)
class Rec:
    """A record or variant; constructor None: anonymous."""

    constructor: c.Constructor | None
    fields: dict[str, Any]


@dataclass(eq=False)
class Closure:
    function: c.Function
    env: Env


@dataclass(frozen=True, eq=False)
class Builtin:
    name: str


@dataclass(frozen=True, eq=False)
class Maker:
    constructor: c.Constructor


@dataclass(frozen=True, eq=False)
class Captured:
    """What a kernel captured from the host, not looked at yet; path: how it is reached (G13)."""

    value: Any
    path: tuple[Any, ...]


@dataclass(eq=False)
class Launch:
    """One launch while it runs. captured: the floats of the host it reads, by path, in the order of the text."""

    time: int
    captured: dict[tuple[Any, ...], int] = field(default_factory=dict)
    read: dict[tuple[Any, ...], Val] = field(default_factory=dict)
    """The captured floats that the present element has read."""


class Lazy:
    """range, map and filter: computed when consumed, again each time."""

    def __init__(self, source: Any, kind: str = "", f: Any = None, machine: Literal | None = None) -> None:
        self.source, self.kind, self.f, self.machine = source, kind, f, machine

    def __iter__(self) -> Iterator[Any]:
        for x in self.source:
            if self.machine is None:
                yield x
            elif self.kind == "map":
                yield self.machine.apply(self.f, [x])
            elif self.machine.apply(self.f, [x]):
                yield x


@lru_cache(maxsize=64)
def places(body: c.Expr) -> dict[c.Expr, int]:
    """The expressions of a function's body in order of evaluation, from 1: operands before what uses them."""
    order: dict[c.Expr, int] = {}

    def visit(e: c.Expr) -> None:
        for part in parts(e):
            visit(part)
        order[e] = len(order) + 1

    visit(body)
    return order


def success(v: Any) -> Rec:
    return Rec(c.SUCCESS, {"value": v})


def error(message: str) -> Rec:
    return Rec(c.ERROR, {"message": message})


class Literal:
    """The walk. launch: the launch whose element is being computed, None on the host."""

    scalars: Mapping[str, Callable[..., Any]] = SCALARS

    def __init__(self, program: c.Program) -> None:
        self.program = program
        self.tape = Tape()
        self.globals: Env = {}
        self.launch: Launch | None = None
        self.path: tuple[int, ...] = ()
        self.place_of: dict[c.Expr, int] = {AT_NOTHING: 0}
        from tests.gradient.literal_surface import SURFACE

        self.surface: dict[str, Callable[..., Any]] = SURFACE
        for statement in program.startup:
            self.statement(statement, self.globals)

    # --- operations -----------------------------------------------------------------------------------------

    def place(self, e: c.Expr) -> int:
        found = self.place_of.get(e)
        assert found is not None
        return found

    def sites(self, e: c.Expr, count: int) -> tuple[Key, ...]:
        """Where the operands of the operation at e stand."""
        if self.launch is None:
            now = self.tape.tick()
            return tuple((now, (k,)) for k in range(count))
        base = (*self.path, self.place(e))
        return tuple((self.launch.time, (*base, k)) for k in range(count))

    def operation(self, op: str, e: c.Expr, *args: Any) -> Any:
        """A scalar operation, on ints, bools and Vals."""
        plain = [a.value if isinstance(a, Val) else a for a in args]
        if OPS[op].checked:
            plain.append(Site(e.span))
        value = self.scalars[op](*plain)
        if op in DIFFERENTIABLE:
            return self.tape.note(op, value, args, self.sites(e, len(args)))
        return Val(value) if op == "tofloat" or type(value) is float else value

    # --- captured values ------------------------------------------------------------------------------------

    def resolve(self, v: Any) -> Any:
        """What a captured value is: a float is read once for each element of the launch (G13)."""
        while isinstance(v, Captured):
            value, path = v.value, v.path
            if isinstance(value, Val):
                return self.captured(value, path)
            if isinstance(value, tuple):
                return tuple(Captured(x, (*path, k)) for k, x in enumerate(value))
            if isinstance(value, Rec):
                return Rec(value.constructor, {n: Captured(x, (*path, n)) for n, x in value.fields.items()})
            if isinstance(value, Closure):
                env = {u: x if isinstance(x, Captured) else Captured(x, (*path, u.uid)) for u, x in value.env.items()}
                return Closure(value.function, env)
            v = value
        return v

    def captured(self, value: Val, path: tuple[Any, ...]) -> Val:
        launch = self.launch
        assert launch is not None
        found = launch.read.get(path)
        if found is None:
            number = launch.captured.setdefault(path, len(launch.captured))
            found = launch.read[path] = self.tape.copy("captured", value, (launch.time, (-1, number)))
        return found

    # --- expressions ----------------------------------------------------------------------------------------

    def eval(self, e: c.Expr, env: Env) -> Any:
        found = self.visit(e, env)
        return self.resolve(found) if type(found) is Captured else found

    def visit(self, e: c.Expr, env: Env) -> Any:
        match e:
            case c.LocalRef(var=v):
                return env[v] if v in env else self.globals[v]
            case c.Literal(value=value):
                return Val(value) if type(value) is float else value
            case c.Call(callee=callee, args=args):
                f = self.eval(callee, env)
                return self.call(f, [self.eval(a, env) for a in args], e)
            case c.Binary(op=op, left=left, right=right):
                return self.binary(op, self.eval(left, env), self.eval(right, env), e)
            case c.GlobalRef(name=name):
                if name in self.program.functions:
                    return Closure(self.program.functions[name], {})
                value = self.globals[self.program.globals[name]]
                return value if self.launch is None else Captured(value, ("global", name))
            case c.Block(statements=statements, result=result):
                env = dict(env)
                for statement in statements:
                    self.statement(statement, env)
                return self.eval(result, env)
            case c.Field(record=record, name=name):
                return self.eval(record, env).fields[name]
            case c.If(condition=condition, then=then, otherwise=otherwise):
                return self.choose(
                    self.eval(condition, env), lambda: self.eval(then, env), lambda: self.eval(otherwise, env)
                )
            case c.Recover(value=value, default=default, kind=kind):
                return self.recover(value, default, kind, env)
            case c.Unary(op="!", operand=x):
                return self.negate(self.eval(x, env))
            case c.Unary(operand=x):
                v = self.eval(x, env)
                return self.operation("neg" if type(v) is int else "fneg", e, v)
            case c.Logic(op=op, left=left, right=right):
                a = self.eval(left, env)
                if op == "&&":
                    return self.choose(a, lambda: self.eval(right, env), lambda: False)
                return self.choose(a, lambda: True, lambda: self.eval(right, env))
            case c.Match(scrutinee=s, arms=arms, recovers=recovers):
                return self.arms(self.attempt(s, env, False) if recovers else self.eval(s, env), arms, env)
            case c.Lambda(function=f):
                return Closure(f, env)
            case c.BuiltinRef(name=name):
                constant = {"inf": math.inf, "nan": NAN}.get(name)
                return Builtin(name) if constant is None else Val(constant)
            case c.ConstructorRef(constructor=constructor):
                return Maker(constructor)
            case c.Attempt(value=value, wraps=wraps):
                return self.attempt(value, env, wraps)
            case c.TupleNew(items=items):
                return tuple([self.eval(x, env) for x in items])
            case c.ListNew(items=items):
                return [self.eval(x, env) for x in items]
            case c.RecordNew(constructor=constructor, fields=fields):
                return Rec(constructor, {n: self.eval(x, env) for n, x in fields})
            case c.RecordUpdate(record=record, fields=fields):
                old = self.eval(record, env)
                return Rec(old.constructor, {**old.fields, **{n: self.eval(x, env) for n, x in fields}})
            case c.Index(container=container, index=index):
                xs, i = self.eval(container, env), self.eval(index, env)
                return success(xs[i]) if 0 <= i < len(xs) else error("index")
        raise TypeError(e)

    def choose(self, condition: bool, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        return then() if condition else otherwise()

    def negate(self, v: bool) -> bool:
        return not v

    def binary(self, op: str, a: Any, b: Any, e: c.Expr) -> Any:
        if op in ("==", "!="):
            return self.equal(a, b) == (op == "==")
        if isinstance(a, str):
            return a + b if op == "+" else self.less(op, a, b)
        if op in ("<", "<=", ">", ">="):
            return self.less(op, *(x.value if isinstance(x, Val) else x for x in (a, b)))
        return self.operation((INTS if type(a) is int else FLOATS)[op], e, a, b)

    @staticmethod
    def less(op: str, a: Any, b: Any) -> bool:
        return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])

    def equal(self, a: Any, b: Any) -> bool:
        a, b = self.resolve(a), self.resolve(b)
        match a, b:
            case Val(), Val():
                return bool(a.value == b.value)
            case (tuple(), tuple()) | (list(), list()):
                return len(a) == len(b) and all(self.equal(x, y) for x, y in zip(a, b, strict=True))
            case Rec(), Rec():
                return a.constructor is b.constructor and all(self.equal(x, b.fields[n]) for n, x in a.fields.items())
        return bool(a == b)

    def recover(self, value: c.Expr, default: c.Expr, kind: str, env: Env) -> Any:
        try:
            v = self.eval(value, env)
        except MathFault as fault:
            if not fault.recoverable:
                raise
            return self.eval(default, env)
        if isinstance(v, Rec) and v.constructor in (c.SUCCESS, c.ERROR):
            return v.fields["value"] if v.constructor is c.SUCCESS else self.eval(default, env)
        return v

    def attempt(self, e: c.Expr, env: Env, wraps: bool) -> Any:
        try:
            v = self.eval(e, env)
        except MathFault as fault:
            if not fault.recoverable:
                raise
            return error(fault.message)
        return success(v) if wraps else v

    # --- patterns -------------------------------------------------------------------------------------------

    def statement(self, s: c.Statement, env: Env) -> None:
        match s:
            case c.Bind(pattern=pattern, value=x):
                self.place_all(x)
                assert self.bind(pattern, self.eval(x, env), env)
            case c.Do(value=x):
                self.place_all(x)
                self.eval(x, env)
            case _:
                raise TypeError(s)

    def place_all(self, body: c.Expr) -> None:
        """Numbers the expressions of a body the first time it runs."""
        if body not in self.place_of:
            self.place_of.update(places(body))

    def arms(self, v: Any, arms: tuple[c.Arm, ...], env: Env) -> Any:
        for arm in arms:
            inner = dict(env)
            if self.bind(arm.pattern, v, inner) and (arm.guard is None or self.eval(arm.guard, inner)):
                return self.eval(arm.body, inner)
        raise AssertionError("no arm matches")

    def bind(self, p: c.Pattern, v: Any, env: Env) -> bool:
        v = self.resolve(v)
        match p:
            case c.PWild():
                return True
            case c.PVar(var=var):
                env[var] = v
                return True
            case c.PLiteral(value=want):
                return bool((v.value if isinstance(v, Val) else v) == want)
            case c.PConstructor(constructor=constructor, fields=fields):
                return v.constructor is constructor and all(self.bind(q, v.fields[n], env) for n, q in fields)
            case c.PRecord(fields=fields):
                return all(self.bind(q, v.fields[n], env) for n, q in fields)
            case c.PTuple(items=items):
                return all(self.bind(q, x, env) for q, x in zip(items, v, strict=True))
            case c.PList(items=items, rest=rest):
                if len(v) < len(items) or (rest is None and len(v) != len(items)):
                    return False
                if not all(self.bind(q, x, env) for q, x in zip(items, v, strict=False)):
                    return False
                return rest is None or self.bind(rest, v[len(items) :], env)
        raise TypeError(p)

    # --- calls ----------------------------------------------------------------------------------------------

    def call(self, f: Any, args: list[Any], e: c.Expr) -> Any:
        """A call that stands at e."""
        if isinstance(f, Builtin):
            return self.builtin(f.name, args, e)
        path = self.path
        self.path = (*path, self.place(e)) if self.launch is not None else path
        try:
            return self.apply(f, args)
        finally:
            self.path = path

    def apply(self, f: Any, args: list[Any]) -> Any:
        """f of args, its sites under the present path."""
        f = self.resolve(f)
        match f:
            case Closure(function=function, env=env):
                self.place_all(function.body)
                return self.eval(function.body, {**env, **dict(zip(function.params, args, strict=True))})
            case Maker(constructor=constructor):
                return Rec(constructor, dict(zip(constructor.fields, args, strict=True)))
            case Builtin(name=name):
                return self.builtin(name, args, AT_NOTHING)
        raise TypeError(f)

    def builtin(self, name: str, args: list[Any], e: c.Expr) -> Any:
        if name in ONE_OP:
            return self.operation(ONE_OP[name], e, *args)
        if name in BY_TYPE:
            return self.operation(BY_TYPE[name][type(args[0]) is not int], e, *args)
        return self.surface[name](self, e, *args)


# --- the door -----------------------------------------------------------------------------------------------


def checked(text: str, folder: Path | None = None) -> c.Program:
    """folder: where the text imports from."""
    program, diagnostics = check_source(text, folder=folder)
    assert program is not None, "\n".join(render(d) for d in diagnostics)
    return program


def plain(v: Any) -> Any:
    """Floats, ints, lists, tuples and dicts."""
    match v:
        case Val():
            return v.value
        case Buf():
            return [plain(x) for x in v.items]
        case Rec():
            return {n: plain(x) for n, x in v.fields.items()}
        case list():
            return [plain(x) for x in v]
        case tuple():
            return tuple(plain(x) for x in v)
    return v


def parameters(tape: Tape, v: Any) -> Any:
    """The same data, every float of it a parameter of its own."""
    match v:
        case Val():
            return tape.parameter(v.value)
        case Buf():
            return Buf([tape.parameter(x.value) for x in v.items])
        case Rec():
            return Rec(v.constructor, {n: parameters(tape, x) for n, x in v.fields.items()})
        case list():
            return [parameters(tape, x) for x in v]
        case tuple():
            return tuple(parameters(tape, x) for x in v)
    raise TypeError(v)


def gradients(v: Any) -> Any:
    match v:
        case Val():
            return gradient_of(v)
        case Buf():
            return [gradient_of(x) for x in v.items]
        case Rec():
            return {n: gradients(x) for n, x in v.fields.items()}
        case list():
            return [gradients(x) for x in v]
    return tuple(gradients(x) for x in v)


def global_named(machine: Literal, name: str) -> Any:
    return next(v for u, v in machine.globals.items() if u.name == name)


def literal(text: str, function: str, point: str, folder: Path | None = None) -> tuple[float, Any]:
    """(f(at), the gradient) of the program's function and file-scope `let` of these names."""
    program = checked(f"{text}\nlet {function}_kept = {function}", folder)

    def run() -> tuple[float, Any]:
        machine = Literal(program)
        at = parameters(machine.tape, global_named(machine, point))
        result = machine.apply(Closure(program.functions[function], {}), [at])
        assert isinstance(result, Val)
        machine.tape.backward(result)
        return result.value, gradients(at)

    return on_big_stack(run)
