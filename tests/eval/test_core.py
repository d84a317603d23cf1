"""Generated code from Core built by hand: every kind of expression, faults, tail calls, last uses."""

from __future__ import annotations

import math
import sys

import pytest
from core_build import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    UNIT,
    FunctionType,
    Named,
    arm,
    block,
    built,
    c,
    call,
    fn,
    glob,
    if_,
    lam,
    let,
    lit,
    load,
    match,
    op,
    program,
    recover,
    ref,
    result_of,
    run,
    span,
    var,
    world,
)

from osprey_py.check.types import TupleType, TypeVar
from osprey_py.eval import closures
from osprey_py.eval.run import on_big_stack
from osprey_py.eval.values import Error, Success, make_list
from osprey_py.kernel.fault import MathFault

MAX = 2**63 - 1


def fault_of(e):
    with pytest.raises(MathFault) as caught:
        run(e)
    return caught.value.message


@pytest.mark.parametrize(
    ("o", "a", "b", "want"),
    [
        ("+", 2, 3, 5),
        ("-", 2, 3, -1),
        ("*", -4, 3, -12),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", -(2**63), -1, 0),
        ("+", 1.5, 2.0, 3.5),
        ("/", 1.0, 4.0, 0.25),
        ("%", -7.5, 2.0, -1.5),
        ("*", 1e308, 10.0, math.inf),
        ("+", "a", "b", "ab"),
        ("==", 0.0, -0.0, True),
        ("==", math.nan, math.nan, False),
        ("!=", math.nan, math.nan, True),
        ("<", "a", "b", True),
    ],
)
def test_operators(o, a, b, want):
    """V3.2, V3.3: the same inline, through variables, and where the type is a variable."""
    assert run(op(o, lit(a), lit(b))) == want
    t = lit(a).type
    x, y = var("x", t), var("y", t)
    f = load(program(fn("f", [x, y], op(o, ref(x), ref(y)))))["f"]
    assert f(a, b) == want and type(f(a, b)) is type(want)
    g = TypeVar("T", 0)
    x, y = var("x", g), var("y", g)
    f = load(program(fn("f", [x, y], op(o, ref(x), ref(y)))))["f"]
    assert f(a, b) == want and type(f(a, b)) is type(want)


@pytest.mark.parametrize(
    ("o", "a", "b", "message"),
    [
        ("+", MAX, 1, "integer overflow"),
        ("-", -MAX, 2, "integer overflow"),
        ("*", 2**32, 2**31, "integer overflow"),
        ("%", 1, 0, "division by zero"),
        ("/", 1.0, -0.0, "division by zero"),
        ("%", 1.0, 0.0, "division by zero"),
    ],
)
def test_faults(o, a, b, message):
    assert fault_of(op(o, lit(a), lit(b))) == message
    assert run(recover(op(o, lit(a), lit(b)), lit(a))) == a
    t = lit(a).type
    for kind in (t, TypeVar("T", 0)):
        x, y = var("x", kind), var("y", kind)
        f = load(program(fn("f", [x, y], op(o, ref(x), ref(y)))))["f"]
        with pytest.raises(MathFault):
            f(a, b)


def test_int_div_truncates():
    for a in (-7, 7, -(2**63)):
        for b in (-2, 2, 3, 1):
            x, y = var("x"), var("y")
            f = load(program(fn("f", [x, y], built("intDiv", ref(x), ref(y), t=INT))))["f"]
            g = load(program(fn("f", [x], built("intDiv", ref(x), lit(b), t=INT))))["f"]
            want = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            assert f(a, b) == g(a) == want
    assert fault_of(built("intDiv", lit(-(2**63)), lit(-1), t=INT)) == "integer overflow"


def test_evaluation_order_with_statements():
    """V3.0: an operand that needs statements does not overtake an earlier one."""
    log = var("log", Named("List", (INT,)), mutable=True)

    def note(k):
        old = c.LocalRef(span(), log.type, log)
        step = c.Assign(span(), log, built("listAppend", old, lit(k), t=log.type))
        return block(step, result=lit(k))

    plain = note(1)
    e = block(
        let(log, built("List", t=log.type)),
        let(s := var("s"), op("+", op("*", plain, lit(10)), if_(lit(True), note(2), note(3)))),
        result=c.TupleNew(span(), TupleType((INT, log.type)), (ref(s), c.LocalRef(span(), log.type, log))),
    )
    total, seen = run(e)
    assert total == 12 and list(seen) == [1, 2]


def test_self_tail_call_is_a_loop():
    n, acc = var("n"), var("acc")
    t = FunctionType((INT, INT), INT)
    body = if_(
        op("==", ref(n), lit(0)), ref(acc), call(glob("f", t), op("-", ref(n), lit(1)), op("+", ref(acc), ref(n)))
    )
    assert load(program(fn("f", [n, acc], body)))["f"](100_000, 0) == 5000050000


def test_mutual_tail_calls_need_no_stack():
    n, m = var("n"), var("m")
    t = FunctionType((INT,), BOOL)
    even = fn("even", [n], if_(op("==", ref(n), lit(0)), lit(True), call(glob("odd", t), op("-", ref(n), lit(1)))))
    odd = fn("odd", [m], if_(op("==", ref(m), lit(0)), lit(False), call(glob("even", t), op("-", ref(m), lit(1)))))
    f = load(program(even, odd))
    assert f["even"](100_001) is False and f["odd"](100_001) is True


def test_depth_limit_is_exact():
    """V4.2"""
    n = var("n")
    t = FunctionType((INT,), INT)
    body = if_(op("==", ref(n), lit(0)), lit(0), op("+", lit(1), call(glob("f", t), op("-", ref(n), lit(1)))))
    w = world()
    f = load(program(fn("f", [n], body)), w)["f"]

    def work():
        assert f(99_999) == 99_999
        assert w.depth == 0
        with pytest.raises(MathFault) as caught:
            f(100_000)
        assert caught.value.message == "recursion too deep" and not caught.value.recoverable
        return 0

    assert on_big_stack(work) == 0


def test_local_recursive_lambda():
    n, f = var("n"), var("fact", FunctionType((INT,), INT))
    body = if_(op("==", ref(n), lit(0)), lit(1), op("*", ref(n), call(ref(f), op("-", ref(n), lit(1)))))
    assert run(block(let(f, lam([n], body)), result=call(ref(f), lit(5)))) == 120


def test_closures_are_inspectable():
    """core_of, captured, global_value: what kernel extraction relies on."""
    x, k, cell = var("x"), var("k"), var("m", INT, mutable=True)
    inner = lam([x], op("+", op("*", ref(x), ref(k)), c.LocalRef(span(), INT, cell)))
    body = block(let(cell, lit(7)), result=inner)
    f = load(program(fn("make", [k], body)))["make"](5)
    assert closures.core_of(f) is inner.function
    assert closures.captured(f) == {k: 5, cell: 7}
    assert f(2) == 17


def test_records_and_match():
    circle = c.Constructor("Shape", "Circle", ("radius",))
    square = c.Constructor("Shape", "Square", ("0",), positional=True)
    empty = c.Constructor("Shape", "Empty", ())
    info = c.TypeInfo("Shape", (), (circle, square, empty), {"Circle": (FLOAT,), "Square": (FLOAT,), "Empty": ()})
    shape = Named("Shape")
    s, r, side = var("s", shape), var("r", FLOAT), var("side", FLOAT)
    body = match(
        ref(s),
        arm(c.PConstructor(circle, (("radius", c.PVar(r)),)), lit("big"), op(">", ref(r), lit(10.0))),
        arm(c.PConstructor(circle, ()), lit("circle")),
        arm(c.PConstructor(square, (("0", c.PVar(side)),)), c.Interpolate(span(), STRING, ("square ", ref(side)))),
        arm(c.PWild(), lit("empty")),
    )
    f = fn("name", [s], body)

    def new(k, **fields):
        return c.RecordNew(span(), shape, k, tuple((n.removeprefix("_"), lit(v)) for n, v in fields.items()))

    t = FunctionType((shape,), STRING)
    for e, want in (
        (new(circle, radius=11.0), "big"),
        (new(circle, radius=1.0), "circle"),
        (new(square, _0=2.0), "square 2.0"),
        (new(empty), "empty"),
    ):
        assert run(call(glob("name", t), e), f, types=[info]) == want
        shown = run(built("toString", e, t=STRING), types=[info])
        assert shown in ("Circle { radius: 11.0 }", "Circle { radius: 1.0 }", "Square(2.0)", "Empty")
    value = op("+", call(glob("name", t), new(empty)), lit("!"))
    assert run(value, f, types=[info]) == "empty!"


def test_list_patterns():
    xs, h, t = var("xs", Named("List", (INT,))), var("h"), var("t", Named("List", (INT,)))
    ft = FunctionType((xs.type,), INT)
    body = match(
        ref(xs),
        arm(c.PList((), None), lit(0)),
        arm(c.PList((c.PVar(h),), c.PVar(t)), op("+", ref(h), call(glob("total", ft), ref(t)))),
    )
    assert load(program(fn("total", [xs], body)))["total"](make_list([1, 2, 3])) == 6


def test_results():
    ok = c.RecordNew(span(), result_of(INT), c.SUCCESS, (("value", lit(4)),))
    bad = c.RecordNew(span(), result_of(INT), c.ERROR, (("message", lit("no")),))
    assert run(recover(ok, lit(1), "result")) == 4
    assert run(recover(bad, lit(1), "result")) == 1
    assert run(recover(bad, lit(1), "either")) == 1
    v, m = var("v"), var("m", STRING)
    arms = (
        arm(c.PConstructor(c.SUCCESS, (("value", c.PVar(v)),)), c.Interpolate(span(), STRING, (ref(v),))),
        arm(c.PConstructor(c.ERROR, (("message", c.PVar(m)),)), ref(m)),
    )
    assert run(match(ok, *arms, recovers=True)) == "4"
    assert run(match(bad, *arms, recovers=True)) == "no"
    wrong = c.RecordNew(span(), result_of(INT), c.SUCCESS, (("value", op("%", lit(1), lit(0))),))
    assert run(match(wrong, *arms, recovers=True)) == "division by zero"
    assert run(c.Attempt(span(), result_of(INT), op("+", lit(MAX), lit(1)), True)).f_message == "integer overflow"
    made = run(c.Attempt(span(), result_of(INT), op("+", lit(1), lit(1)), True))
    assert type(made) is Success and made.f_value == 2
    xs = c.ListNew(span(), Named("List", (INT,)), (lit(5), lit(6)))
    for index, want in ((1, 6), (2, -1), (-1, -1)):
        assert run(recover(c.Index(span(), result_of(INT), xs, lit(index)), lit(-1), "result")) == want
        assert run(recover(built("listGet", xs, lit(index), t=result_of(INT)), lit(-1), "result")) == want
        assert type(run(c.Index(span(), result_of(INT), xs, lit(index)))) is (Success if want == 6 else Error)


class Handle:
    """Stands for a buffer: counted by Python."""


def test_values_die_at_their_last_use():
    """V5: the callee of a last use holds the only reference."""
    buffer = Named("GpuBuffer", (FLOAT,))
    x, y = var("x", buffer), var("y", buffer)
    seen = []
    probe = var("probe", FunctionType((buffer,), INT))
    first = let(a := var("a"), call(ref(probe), ref(x)))
    second = let(b := var("b"), call(ref(probe), ref(x)))
    f = fn("f", [x, probe], block(first, second, result=op("+", ref(a), ref(b))))
    g = fn("g", [y, probe2 := var("probe", probe.type)], call(glob("f", f.type), ref(y), ref(probe2)))

    def count(v):
        seen.append(sys.getrefcount(v))
        return 0

    load(program(f, g))["g"](Handle(), count)
    assert seen[0] == seen[1] + 1
    baseline = []

    def alone(v):
        baseline.append(sys.getrefcount(v))

    alone(Handle())
    assert seen[1] == baseline[0]


def test_effects_that_answer():
    """V6.1"""
    v, n = var("v"), var("n", INT, mutable=True)
    body = op("+", c.Perform(span(), INT, "Ask", "get", (lit(20),)), c.Perform(span(), INT, "Ask", "get", (lit(1),)))
    handler = c.HandlerArm("get", (v,), op("*", ref(v), lit(2)), False, span())
    assert run(c.Handle(span(), INT, "Ask", (handler,), body)) == 42
    assert n.mutable


def _state(count):
    """A loop of `count` performs under a handler that resumes in tail position."""
    n = var("n")
    t = FunctionType((INT,), INT)
    step = c.Do(span(), c.Perform(span(), UNIT, "Tick", "tick", (ref(n),)))
    loop = fn(
        "loop",
        [n],
        if_(op("==", ref(n), lit(0)), lit(5), block(step, result=call(glob("loop", t), op("-", ref(n), lit(1))))),
    )
    k = var("k")
    handler = c.HandlerArm("tick", (k,), c.Resume(span(), INT, lit(())), True, span())
    return loop, c.Handle(span(), INT, "Tick", (handler,), call(glob("loop", t), lit(count)))


def test_resume_in_tail_position_needs_no_stack():
    loop, e = _state(50_000)
    assert run(e, loop) == 5


def test_resume_gives_the_answer_of_the_rest():
    """V6.2: deep; the arm's value is the answer; not resuming drops the rest."""
    k = var("k")
    more = c.HandlerArm("pick", (k,), op("*", lit(2), c.Resume(span(), INT, ref(k))), True, span())
    body = op("+", c.Perform(span(), INT, "P", "pick", (lit(3),)), c.Perform(span(), INT, "P", "pick", (lit(4),)))
    assert run(c.Handle(span(), INT, "P", (more,), body)) == 28
    stop = c.HandlerArm(
        "pick", (k,), if_(op(">", ref(k), lit(3)), lit(-1), c.Resume(span(), INT, ref(k))), True, span()
    )
    assert run(c.Handle(span(), INT, "P", (stop,), body)) == -1


def test_deep_nesting():
    """V1.3: nested deeper than Python's own parser and compiler allow."""
    assert on_big_stack(_deep_nesting) == 0


def _deep_nesting():
    x = var("x")
    e = ref(x)
    for k in range(300):
        v = var(f"v{k}")
        e = match(
            op("+", e, lit(1)),
            arm(c.PLiteral(-1), lit(0)),
            arm(c.PVar(v), block(let(w := var("w"), ref(v)), result=ref(w))),
        )
    assert load(program(fn("f", [x], e)))["f"](1) == 301
    e = lit(0)
    for k in range(300):
        e = if_(op("==", ref(x), lit(k)), lit(k), op("+", lit(1), e))
    assert load(program(fn("f", [x], e)))["f"](200) == 299
    e = lit(0)
    for k in range(1000):
        e = op("+", e, lit(1)) if k % 2 else op("+", lit(1), e)
    assert run(e) == 1000
    return 0


def test_file_scope_values_die():
    """V5.2"""
    import io

    from osprey_py.backends.oracle import OracleBackend
    from osprey_py.check import check_source
    from osprey_py.eval.unit import Unit
    from osprey_py.eval.world import World
    from osprey_py.graph.runtime import Runtime

    text = "let a = gpuIota(5)\nlet b = gpuMap(a, fn(x) => x + 1)\nfn f() = gpuLength(b)\nprint(f())\nprint(gpuLength(b))\n"
    checked, _ = check_source(text)
    assert checked is not None
    unit = Unit(checked)
    w = World(Runtime(OracleBackend()), io.StringIO(), io.StringIO(), io.StringIO(""))
    namespace = unit.instantiate(w)
    namespace["startup"]()
    values = {v.name: namespace[name] for v, name in unit.global_lets.items()}
    assert values["a"] is None and len(values["b"]) == 5
    assert w.stdout.getvalue() == "5\n5\n"
