"""Random programs that launch kernels: lazy, fused and traced evaluation against strict evaluation by the book.

The tree walk runs every launch where it stands, element by element, over plain lists: the definition of what
laziness must not show. Seen are the lines printed, and the value or the fault (message, place, element, launch).
"""

from __future__ import annotations

import io

from core_build import BOOL, INT, UNIT, FunctionType, program, result_of, span
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import Interpreter
from test_random_programs import BUFFER, INFOS, TYPES, Maker

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import core as c
from osprey_py.check.types import Type
from osprey_py.eval.formatting import to_string
from osprey_py.eval.unit import Unit
from osprey_py.eval.values import Error, Success
from osprey_py.eval.world import World
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.fault import MathFault


class Strict:
    """The gpu surface over Python lists, each launch at once."""

    def __init__(self) -> None:
        self.printed: list[str] = []

    def element(self, k, e, f, *args):
        try:
            return f(*args)
        except MathFault as fault:
            # Of launches in kernels, the outermost is the one that was launched.
            fault.element, fault.launch = k, e.span
            raise

    def call(self, name, e, args):
        if name == "print":
            self.printed.append(to_string(args[0]))
            return ()
        if name == "gpuIota":
            return tuple(range(args[0]))
        if name == "gpuLength":
            return len(args[0])
        if name == "gpuMap":
            return tuple([self.element(k, e, args[1], x) for k, x in enumerate(args[0])])
        if name == "gpuZipWith":
            return tuple([self.element(k, e, args[2], x, y) for k, (x, y) in enumerate(zip(*args[:2], strict=False))])
        if name == "gpuFilter":
            return tuple([x for k, x in enumerate(args[0]) if self.element(k, e, args[1], x)])
        if name in ("gpuFold", "gpuScan"):
            acc, seen = args[1], []
            for k, x in enumerate(args[0]):
                acc = self.element(k, e, args[2], acc, x)
                seen.append(acc)
            return acc if name == "gpuFold" else tuple(seen)
        if name == "gpuGet":
            b, i = args
            return Success(b[i]) if 0 <= i < len(b) else Error("gpuGet: index out of bounds")
        if name == "gpuConcat":
            return args[0] + args[1]
        assert name == "gpuSlice"
        b, begin, end = args
        return Success(b[begin:end]) if 0 <= begin <= end <= len(b) else Error("")


class StrictInterpreter(Interpreter):
    def __init__(self, p: c.Program) -> None:
        super().__init__(p)
        self.strict = Strict()

    def eval(self, e, env):
        if isinstance(e, c.Call) and isinstance(e.callee, c.BuiltinRef) and e.callee.name != "intDiv":
            return self.strict.call(e.callee.name, e, [self.eval(a, env) for a in e.args])
        return super().eval(e, env)


class Launcher(Maker):
    """Notes print; buffers are real; a kernel sees the ints and buffers in reach."""

    def __init__(self, draw) -> None:
        super().__init__(draw)
        self.in_kernel = False

    def built(self, name: str, t: Type, *args: c.Expr) -> c.Expr:
        callee = c.BuiltinRef(span(), FunctionType(tuple(a.type for a in args), t), name)
        return c.Call(span(), t, callee, args)

    def note(self, t: Type, x: c.Expr) -> c.Expr:
        if self.in_kernel:
            return x
        self.notes += 1
        v = c.Var("noted", t)
        say = c.Do(span(), self.built("print", UNIT, c.Literal(span(), INT, self.notes)))
        return c.Block(span(), t, (c.Bind(span(), c.PVar(v), x), say), c.LocalRef(span(), t, v))

    def kernel(self, t: Type, scope: list[c.Var], depth: int, count: int) -> c.Expr:
        params = tuple(c.Var("e", INT) for _ in range(count))
        usable = [v for v in scope if v.type in (INT, BOOL, BUFFER)]
        before, self.in_kernel = self.in_kernel, True
        body = self.scalar(t, [*usable, *params, *params], min(depth, 3))
        self.in_kernel = before
        f = c.Function("<lambda>", params, body, FunctionType((INT,) * count, t), span())
        return c.Lambda(span(), f.type, f)

    def scalar(self, t: Type, scope: list[c.Var], depth: int) -> c.Expr:
        """What may stand in a kernel."""
        if depth <= 0:
            return self.leaf(t, scope)
        again = lambda u, more=(): self.scalar(u, [*scope, *more], depth - 1)  # noqa: E731
        form = self.pick(
            ["leaf", "if", "let", "arith", "arith", "arith", "recover", "get", "fold"]
            if t == INT
            else ["leaf", "compare"]
        )
        if form == "if":
            return c.If(span(), t, again(BOOL), again(t), again(t))
        if form == "let":
            v = c.Var("k", INT)
            return c.Block(span(), t, (c.Bind(span(), c.PVar(v), again(INT)),), again(t, (v,)))
        if form == "arith":
            o = self.pick(["+", "-", "*", "%", "intDiv"])
            args = (again(INT), again(INT))
            return self.built("intDiv", INT, *args) if o == "intDiv" else c.Binary(span(), INT, o, *args)
        if form == "recover":
            return c.Recover(span(), INT, again(INT), again(INT), "scalar")
        buffers = [v for v in scope if v.type == BUFFER]
        if form == "get" and buffers:
            b = self.pick(buffers)
            got = self.built("gpuGet", result_of(INT), c.LocalRef(span(), BUFFER, b), again(INT))
            return c.Recover(span(), INT, got, again(INT), "result")
        if form == "fold":
            n = self.built("gpuIota", BUFFER, c.Literal(span(), INT, self.pick([0, 1, 3])))
            return self.built("gpuFold", INT, n, again(INT), self.kernel(INT, scope, depth - 1, 2))
        if form == "compare":
            return c.Binary(span(), BOOL, self.pick(["==", "!=", "<", "<="]), again(INT), again(INT))
        return self.leaf(t, scope)

    def leaf(self, t: Type, scope: list[c.Var]) -> c.Expr:
        known = [v for v in scope if v.type == t]
        if t == BUFFER and not (known and self.pick([True, True, False])):
            return self.built("gpuIota", BUFFER, c.Literal(span(), INT, self.pick([0, 1, 2, 3, 5])))
        if t == INT and not self.pick([True, True, False]):
            return c.Literal(span(), INT, self.pick([0, 1, 2, 3]))
        return super().leaf(t, scope)

    def expr(self, t: Type, scope: list[c.Var], depth: int) -> c.Expr:
        if depth > 0 and t in (BUFFER, INT) and self.pick([True, False]):
            again = lambda u: self.expr(u, scope, depth - 1)  # noqa: E731
            if t == INT:
                form = self.pick(["fold", "fold", "get", "length"])
                if form == "fold":
                    return self.built("gpuFold", INT, again(BUFFER), again(INT), self.kernel(INT, scope, depth, 2))
                if form == "length":
                    return self.built("gpuLength", INT, again(BUFFER))
                got = self.built("gpuGet", result_of(INT), again(BUFFER), again(INT))
                return c.Recover(span(), INT, got, again(INT), "result")
            form = self.pick(["map", "map", "map", "zip", "filter", "scan", "concat", "slice"])
            if form == "map":
                return self.built("gpuMap", BUFFER, again(BUFFER), self.kernel(INT, scope, depth, 1))
            if form == "zip":
                return self.built("gpuZipWith", BUFFER, again(BUFFER), again(BUFFER), self.kernel(INT, scope, depth, 2))
            if form == "filter":
                return self.built("gpuFilter", BUFFER, again(BUFFER), self.kernel(BOOL, scope, depth, 1))
            if form == "scan":
                return self.built("gpuScan", BUFFER, again(BUFFER), again(INT), self.kernel(INT, scope, depth, 2))
            if form == "concat":
                return self.built("gpuConcat", BUFFER, again(BUFFER), again(BUFFER))
            cut = self.built("gpuSlice", result_of(BUFFER), again(BUFFER), again(INT), again(INT))
            return c.Recover(span(), BUFFER, cut, again(BUFFER), "result")
        return super().expr(t, scope, depth)


@st.composite
def programs(draw):
    maker = Launcher(draw)
    t = maker.pick(TYPES)
    statements = []
    scope: list[c.Var] = []
    for k in range(draw(st.integers(1, 5))):
        u = maker.pick([BUFFER, BUFFER, BUFFER, INT])
        v = c.Var(f"v{k}", u)
        statements.append(c.Bind(span(), c.PVar(v), maker.expr(u, scope, 2)))
        scope.append(v)
    body = c.Block(span(), t, tuple(statements), maker.expr(t, scope, draw(st.integers(1, 4))))
    return program(c.Function("main", (), body, FunctionType((), t), span()), types=INFOS)


def plain(v, read):
    """A value with buffers as tuples of their elements."""
    if isinstance(v, Buffer):
        return tuple(read(v))
    if isinstance(v, tuple):
        return tuple([plain(x, read) for x in v])
    if hasattr(v, "fields"):
        return (type(v).__name__, *[plain(getattr(v, f"f_{n}"), read) for n in v.fields])
    if hasattr(v, "items"):
        return [plain(x, read) for x in v]
    return v


def told(fault: MathFault):
    return ("fault", fault.message, fault.span, fault.element, fault.launch)


def strictly(p: c.Program):
    by_the_book = StrictInterpreter(p)
    try:
        value = plain(by_the_book.functions["main"](), None)
    except MathFault as fault:
        value = told(fault)
    return by_the_book.strict.printed, value


def really(p: c.Program, backend, fusion: bool):
    runtime = Runtime(backend, fusion=fusion)
    w = World(runtime, io.StringIO(), io.StringIO(), io.StringIO(""))
    unit = Unit(p, roots=p.functions)
    main = unit.instantiate(w)[unit.function_names["main"]]
    try:
        try:
            value = plain(main(), runtime.read)
            runtime.barrier()
        except MathFault as fault:
            raise runtime.caught(fault, 0) from None
    except MathFault as fault:
        value = told(fault)
    return w.stdout.getvalue().splitlines(), value


@settings(max_examples=60, deadline=None)
@given(programs())
def test_laziness_cannot_be_seen(p):
    """V3.7, V6.4, V7.1: strict order decides what is printed, recovered and reported."""
    want = strictly(p)
    assert really(p, OracleBackend(), True) == want, Unit(p, roots=p.functions).text
    assert really(p, OracleBackend(), False) == want


HOST = HostBackend(threads=2)


@settings(max_examples=20, deadline=None)
@given(programs())
def test_laziness_cannot_be_seen_on_the_host(p):
    """V3.7, V6.4, V7.1"""
    assert really(p, HOST, True) == strictly(p)
