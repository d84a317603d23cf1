"""Random typed programs: generated code against the tree walk, value by value, fault by fault, effect by effect.

Effects are notes: `note(k, x)` writes k down and gives x, so the order of evaluation is seen. Handles stand for
buffers, so that last uses are exercised; `note` also looks at them, which fails where one was cleared too early.
"""

from __future__ import annotations

from core_build import BOOL, INT, STRING, FunctionType, Named, program, result_of, span, world
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import Interpreter

from osprey_py.check import core as c
from osprey_py.check.types import TupleType, Type
from osprey_py.eval.equality import equal
from osprey_py.eval.unit import Unit
from osprey_py.kernel.fault import MathFault

BUFFER = Named("GpuBuffer", (INT,))
INTS = Named("List", (INT,))
BUFFERS = Named("List", (BUFFER,))
PAIR = TupleType((BUFFER, INT))
BOX = Named("Box")
BOX_NEW = c.Constructor("Box", "Box", ("held", "count"))
SHAPE = Named("Shape")
FULL = c.Constructor("Shape", "Full", ("0", "1"), positional=True)
EMPTY = c.Constructor("Shape", "Empty", ())
INFOS = [
    c.TypeInfo("Box", (), (BOX_NEW,), {"Box": (BUFFER, INT)}),
    c.TypeInfo("Shape", (), (FULL, EMPTY), {"Full": (BUFFER, INT), "Empty": ()}),
]
TYPES: list[Type] = [INT, BOOL, STRING, BUFFER, INTS, BUFFERS, PAIR, BOX, SHAPE, result_of(INT)]
NOTES = {t: c.Var(f"note{k}", FunctionType((INT, t), t)) for k, t in enumerate(TYPES)}
HANDLES = [c.Var("left", BUFFER), c.Var("right", BUFFER)]


class Handle:
    """A thing whose identity is all there is to it."""


class Maker:
    """Builds expressions from hypothesis' choices. scope: the variables in reach."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.functions: list[c.Function] = []
        self.notes = 0

    def pick(self, options):
        return self.draw(st.sampled_from(options))

    def leaf(self, t: Type, scope: list[c.Var]) -> c.Expr:
        known = [v for v in scope if v.type == t]
        if known and (t == BUFFER or self.pick([True, False, True])):
            v = self.pick(known)
            return c.LocalRef(span(), t, v)
        if t == INT:
            return c.Literal(span(), t, self.pick([0, 1, 2, -3, 7, 2**62, -(2**63)]))
        if t == BOOL:
            return c.Literal(span(), t, self.pick([True, False]))
        if t == STRING:
            return c.Literal(span(), t, self.pick(["", "a", "b'\n"]))
        return self.build(t, scope, 0)

    def build(self, t: Type, scope: list[c.Var], depth: int) -> c.Expr:
        """A value made of its parts."""
        parts = {
            INTS: [INT, INT],
            BUFFERS: [BUFFER, BUFFER],
            PAIR: [BUFFER, INT],
            BOX: [BUFFER, INT],
            SHAPE: [BUFFER, INT],
        }
        if t in parts:
            xs = tuple(self.expr(p, scope, depth - 1) for p in parts[t])
            if t in (INTS, BUFFERS):
                return c.ListNew(span(), t, xs[: self.pick([0, 1, 2])])
            if t == PAIR:
                return c.TupleNew(span(), t, xs)
            if t == BOX:
                fields = [("held", xs[0]), ("count", xs[1])]
                return c.RecordNew(span(), t, BOX_NEW, tuple(self.pick([fields, fields[::-1]])))
            if self.pick([True, False, True]):
                return c.RecordNew(span(), t, FULL, (("0", xs[0]), ("1", xs[1])))
            return c.RecordNew(span(), t, EMPTY, ())
        assert t == result_of(INT)
        if self.pick([True, False]):
            return c.RecordNew(span(), t, c.SUCCESS, (("value", self.expr(INT, scope, depth - 1)),))
        return c.RecordNew(span(), t, c.ERROR, (("message", self.expr(STRING, scope, depth - 1)),))

    def note(self, t: Type, x: c.Expr) -> c.Expr:
        self.notes += 1
        f = NOTES[t]
        return c.Call(span(), t, c.LocalRef(span(), f.type, f), (c.Literal(span(), INT, self.notes), x))

    def expr(self, t: Type, scope: list[c.Var], depth: int) -> c.Expr:
        if depth <= 0:
            return self.leaf(t, scope)
        again = lambda u, more=(): self.expr(u, [*scope, *more], depth - 1)  # noqa: E731
        forms = ["leaf", "note", "note", "if", "block", "block", "match", "match", "match", "call", "apply"]
        if t == INT:
            forms += ["arith", "arith", "recover", "recover", "field", "lookup"]
        if t == BOOL:
            forms += ["compare", "logic", "not", "probe", "probe"]
        if t == STRING:
            forms += ["text"]
        if t == BUFFER:
            forms += ["field"]
        if t == BOX:
            forms += ["update"]
        if t not in (INT, BOOL, STRING, BUFFER):
            forms += ["build", "build"]
        if t == result_of(INT):
            forms += ["attempt", "index"]
        form = self.pick(forms)
        if form == "leaf":
            return self.leaf(t, scope)
        if form == "note":
            return self.note(t, again(t))
        if form == "build":
            return self.build(t, scope, depth)
        if form == "if":
            return c.If(span(), t, again(BOOL), again(t), again(t))
        if form == "block":
            statements: list[c.Statement] = []
            inner: list[c.Var] = []
            for _ in range(self.pick([1, 2, 3])):
                kind = self.pick(["let", "let", "tuple", "do", "wild"])
                if kind == "let":
                    u = self.pick(TYPES)
                    value = again(u, inner)
                    v = c.Var(self.pick(["x", "y"]), u)
                    statements.append(c.Bind(span(), c.PVar(v), value))
                    inner.append(v)
                elif kind == "tuple":
                    value = again(PAIR, inner)
                    v, w = c.Var("p", BUFFER), c.Var("q", INT)
                    statements.append(c.Bind(span(), c.PTuple((c.PVar(v), self.pick([c.PVar(w), c.PWild()]))), value))
                    inner.append(v)
                elif kind == "do":
                    u = self.pick(TYPES)
                    statements.append(c.Do(span(), self.note(u, again(u, inner))))
                else:
                    statements.append(c.Bind(span(), c.PWild(), again(self.pick(TYPES), inner)))
            return c.Block(span(), t, tuple(statements), again(t, inner))
        if form == "match":
            return self.match(t, scope, depth)
        if form == "call":
            fits = [f for f in self.functions if f.body.type == t]
            if not fits:
                return again(t)
            f = self.pick(fits)
            args = tuple(again(p.type) for p in f.params)
            return c.Call(span(), t, c.GlobalRef(span(), f.type, f.name), args)
        if form == "apply":
            u = self.pick(TYPES)
            p = c.Var("arg", u)
            body = again(t, (p,))
            f = c.Function("<lambda>", (p,), body, FunctionType((u,), t), span())
            made = c.Lambda(span(), f.type, f)
            if self.pick([True, False]):
                return c.Call(span(), t, made, (again(u),))
            held = c.Var("f", f.type)
            use = c.Call(span(), t, c.LocalRef(span(), f.type, held), (again(u),))
            return c.Block(span(), t, (c.Bind(span(), c.PVar(held), made),), use)
        if form == "arith":
            o = self.pick(["+", "-", "*", "%", "intDiv", "neg"])
            if o == "neg":
                return c.Unary(span(), INT, "-", again(INT))
            args = (again(INT), again(INT))
            if o == "intDiv":
                return c.Call(span(), INT, c.BuiltinRef(span(), FunctionType((INT, INT), INT), "intDiv"), args)
            return c.Binary(span(), INT, o, *args)
        if form == "recover":
            if self.pick([True, False]):
                return c.Recover(span(), INT, again(INT), again(INT), "scalar")
            return c.Recover(span(), INT, again(result_of(INT)), again(INT), "result")
        if form == "lookup":
            look = c.Index(span(), result_of(INT), again(INTS), again(INT))
            return c.Recover(span(), INT, look, again(INT), "result")
        if form == "index":
            return c.Index(span(), t, again(INTS), again(INT))
        if form == "attempt":
            return c.Attempt(span(), t, again(INT), True)
        if form == "field":
            return c.Field(span(), t, again(BOX), "count" if t == INT else "held")
        if form == "update":
            fields = [("held", again(BUFFER)), ("count", again(INT))]
            return c.RecordUpdate(
                span(), t, again(BOX), tuple(self.pick([fields, fields[::-1], fields[:1], fields[1:]]))
            )
        if form == "compare":
            u = self.pick([INT, STRING, INTS, BOOL])
            o = self.pick(["==", "!="] if u in (INTS, BOOL) else ["==", "!=", "<", "<=", ">", ">="])
            return c.Binary(span(), BOOL, o, again(u), again(u))
        if form == "logic":
            return c.Logic(span(), BOOL, self.pick(["&&", "||"]), again(BOOL), again(BOOL))
        if form == "probe":
            look = c.Do(span(), self.note(u := self.pick([BUFFER, BOX]), again(u)))
            return c.Block(span(), t, (look,), again(t))
        if form == "not":
            return c.Unary(span(), BOOL, "!", again(BOOL))
        assert form == "text"
        return c.Interpolate(
            span(), STRING, tuple(self.pick([["<", again(INT), ">"], [again(STRING), again(INTS)], ["k"]]))
        )

    def match(self, t: Type, scope: list[c.Var], depth: int) -> c.Expr:
        again = lambda u, more=(): self.expr(u, [*scope, *more], depth - 1)  # noqa: E731
        u = self.pick([INT, STRING, BUFFERS, INTS, PAIR, BOX, SHAPE, result_of(INT)])
        scrutinee = again(u)
        arms: list[c.Arm] = []

        def arm(p: c.Pattern, bound: tuple[c.Var, ...] = (), guarded: bool = False) -> None:
            guard = again(BOOL, bound) if guarded else None
            arms.append(c.Arm(p, guard, again(t, bound), span()))

        guarded = self.pick([True, False])
        b, n, rest = c.Var("b", BUFFER), c.Var("n", INT), c.Var("rest", u)
        if u in (INT, STRING):
            for v in [0, 7] if u == INT else ["a", ""]:
                arm(c.PLiteral(v), (), guarded)
            whole = c.Var("whole", u)
            arm(c.PVar(whole), (whole,))
        elif u in (INTS, BUFFERS):
            first = c.PVar(b if u == BUFFERS else n)
            seen = (b,) if u == BUFFERS else (n,)
            arm(c.PList((first,), None), seen, guarded)
            arm(c.PList((first2 := c.PVar(c.Var("h", seen[0].type)),), c.PVar(rest)), (first2.var, rest))
            arm(c.PWild())
        elif u == PAIR:
            arm(c.PTuple((c.PVar(b), c.PLiteral(1))), (b,), guarded)
            b2, n2 = c.Var("b", BUFFER), c.Var("n", INT)
            arm(c.PTuple((c.PVar(b2), c.PVar(n2))), (b2, n2))
        elif u == BOX:
            arm(c.PConstructor(BOX_NEW, (("count", c.PLiteral(2)), ("held", c.PVar(b)))), (b,), guarded)
            n2 = c.Var("n", INT)
            arm(c.PConstructor(BOX_NEW, (("count", c.PVar(n2)),)), (n2,))
        elif u == SHAPE:
            arm(c.PConstructor(FULL, (("0", c.PVar(b)), ("1", c.PVar(n)))), (b, n), guarded)
            arm(c.PConstructor(EMPTY, ()))
            arm(c.PWild())
        else:
            m = c.Var("m", STRING)
            arm(c.PConstructor(c.SUCCESS, (("value", c.PVar(n)),)), (n,), False)
            wild = self.pick([True, False])
            arm(c.PConstructor(c.ERROR, (("message", c.PWild() if wild else c.PVar(m)),)), () if wild else (m,))
        return c.Match(span(), t, scrutinee, tuple(arms), u == result_of(INT) and self.pick([True, True, False]))


@st.composite
def programs(draw):
    """A program whose `main` takes the notes and two handles."""
    maker = Maker(draw)
    notes = list(NOTES.values())
    for k in range(draw(st.integers(0, 2))):
        t, params = maker.pick(TYPES), [c.Var("a", maker.pick(TYPES)), c.Var("b", BUFFER)]
        # Called functions cannot note: they have no notes in reach.
        saved, maker.note = maker.note, lambda t, x: x
        body = maker.expr(t, params, 2)
        maker.note = saved
        maker.functions.append(
            c.Function(f"f{k}", tuple(params), body, FunctionType(tuple(p.type for p in params), t), span())
        )
    t = maker.pick(TYPES)
    body = maker.expr(t, [*HANDLES], draw(st.integers(2, 5)))
    params = (*notes, *HANDLES)
    main = c.Function("main", params, body, FunctionType(tuple(p.type for p in params), t), span())
    return program(*maker.functions, main, types=INFOS)


def outcome(run, handles):
    seen = []

    def note(k, x):
        assert x is not None
        seen.append((k, x))
        return x

    try:
        value = run(*[note] * len(NOTES), *handles)
    except MathFault as f:
        return seen, ("fault", f.message, f.span)
    return seen, value


def same(a, b) -> bool:
    return a == b if isinstance(a, tuple) and a and a[0] == "fault" else equal(a, b)


@settings(max_examples=300, deadline=None)
@given(programs())
def test_generated_code_is_the_tree_walk(p):
    """V3.0 - V3.6, V5.1"""
    unit = Unit(p, roots=p.functions)
    compiled = unit.instantiate(world())[unit.function_names["main"]]
    handles = [Handle(), Handle()]
    want_seen, want = outcome(Interpreter(p).functions["main"], handles)
    seen, got = outcome(compiled, handles)
    assert [k for k, _ in seen] == [k for k, _ in want_seen], unit.text
    assert all(equal(x, y) for (_, x), (_, y) in zip(seen, want_seen, strict=True)), unit.text
    assert same(got, want), unit.text
