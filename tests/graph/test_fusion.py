"""What becomes one launch and what does not, and that it cannot be seen."""

from __future__ import annotations

import pytest

from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, length, load, uniform, var, walk
from tests.graph.support import Counting, elementwise, gather, op, running, span, total

DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")
INVERSE = elementwise(lambda a: op("fdiv", const(1.0), a, line=3), FLOAT, name="inverse")
SUM = elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum")
EXP = elementwise(lambda a: op("exp", a), FLOAT, name="exp")
POSITIVE = elementwise(lambda a: op("lt", const(0.0), a), FLOAT, name="positive")
TO_FLOAT = elementwise(lambda i: op("tofloat", i), INT, name="tofloat")


def matmul() -> Kernel:
    """slots a, b; uniforms k, n."""
    k, n = uniform(0, INT), uniform(1, INT)
    row, column = op("uquot", index(), n), op("urem", index(), n)
    i, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    a = load(0, FLOAT, op("wadd", op("wmul", row, k), var(i)))
    b = load(1, FLOAT, op("wadd", op("wmul", var(i), n), column))
    body = op("fadd", var(acc), op("fmul", a, b))
    return Kernel((FLOAT, FLOAT), (INT, INT), fold(k, i, (acc,), (const(0.0),), (body,))[0], name="matmul")


def bias() -> Kernel:
    """at(value, i) + at(bias, i % cols), mapped over an iota: slots iota, value, bias; uniform cols."""
    i = load(0, INT, index())
    value = gather(1, i, const(0.0))
    column = gather(2, op("rem", i, uniform(0, INT), line=7), const(0.0))
    return Kernel((INT, FLOAT, FLOAT), (INT,), op("fadd", value, column), name="bias")


MATMUL, BIAS = matmul(), bias()


def run(rt: Runtime) -> list[str]:
    assert isinstance(rt.backend, Counting)
    return rt.backend.ran


def linear(rt: Runtime, x: Buffer, w: Buffer, b: Buffer, m: int, k: int, n: int) -> Buffer:
    product = rt.map(MATMUL, (x, w), (k, n), m * n)
    places = rt.iota(m * n)
    return rt.map(BIAS, (places, product, b), (n,), m * n)


def floats(rt: Runtime, n: int, start: float = 1.0) -> Buffer:
    return rt.from_list([start + 0.5 * k for k in range(n)], FLOAT)


@pytest.mark.parametrize("fusion", [True, False])
def test_bias_activation_and_residual_stand_behind_the_contraction(fusion: bool) -> None:
    rt = Runtime(Counting(), fusion=fusion)
    x, w, b = floats(rt, 6), floats(rt, 12, -2.0), floats(rt, 4)
    out = rt.map(SUM, (rt.map(EXP, (linear(rt, x, w, b, 2, 3, 4),), (), 8), floats(rt, 8)), (), 8)
    values = rt.read(out)
    if fusion:
        assert run(rt) == ["matmul+bias+exp+sum"]
    else:
        assert run(rt) == ["matmul", "iota", "bias", "exp", "sum"]
    other = Runtime(Counting(), fusion=not fusion)
    x, w, b = floats(other, 6), floats(other, 12, -2.0), floats(other, 4)
    mapped = other.map(EXP, (linear(other, x, w, b, 2, 3, 4),), (), 8)
    assert other.read(other.map(SUM, (mapped, floats(other, 8)), (), 8)) == values


def test_layers_share_their_code_and_one_plan_serves_all_sizes() -> None:
    rt = Runtime(Counting())
    names = set()
    for m in (5, 6, 7, 3, 4):
        x = floats(rt, m * 4)
        for layer in range(3):
            w, b = floats(rt, 16, float(layer)), floats(rt, 4)
            x = linear(rt, x, w, b, m, 4, 4)
        rt.get(x, 0)
        names.update(run(rt))
        del x
    assert len(names) == 1
    assert len(rt.engine.compiled) == 1
    assert rt.stats.steps == 15


def test_a_result_that_is_held_is_stored_and_not_computed_twice() -> None:
    rt = Runtime(Counting())
    x = floats(rt, 4)
    y = rt.map(EXP, (x,), (), 4)
    z = rt.map(DOUBLE, (y,), (), 4)
    assert rt.read(z) == [2 * v for v in rt.read(y)]
    assert run(rt) == ["exp", "double"]


def test_what_is_held_and_read_nowhere_stays_pending() -> None:
    rt = Runtime(Counting())
    i = rt.iota(4)
    assert rt.read(rt.map(TO_FLOAT, (i,), (), 4)) == [0.0, 1.0, 2.0, 3.0]
    assert run(rt) == ["iota+tofloat"] or run(rt) == ["tofloat"]
    assert i.node.storage is None and not i.node.done
    assert rt.read(i) == [0, 1, 2, 3]


def test_a_pending_reader_outside_the_plan_counts_as_a_holder() -> None:
    rt = Runtime(Counting())
    x = floats(rt, 4)
    y = rt.map(EXP, (x,), (), 4)
    z, later = rt.map(DOUBLE, (y,), (), 4), rt.map(SUM, (y, x), (), 4)
    del y
    rt.read(z)
    rt.read(later)
    assert run(rt) == ["exp", "double", "sum"]


def test_costly_work_is_not_done_twice_and_cheap_work_is() -> None:
    for kernel, ran in ((EXP, 3), (DOUBLE, 2)):
        rt = Runtime(Counting())
        y = rt.map(kernel, (floats(rt, 4),), (), 4)
        a, b = rt.map(INVERSE, (y,), (), 4), rt.map(TWICE, (y,), (), 4)
        del y
        rt.read(rt.concat(a, b))
        assert len([n for n in run(rt) if n != "copy"]) == ran, run(rt)


HALF = elementwise(lambda a: op("fmul", a, const(0.25)), FLOAT, name="quarter")
TWICE = elementwise(lambda a: op("fdiv", a, const(0.5)), FLOAT, name="half")


def test_two_readers_in_one_group_share_what_they_read() -> None:
    """Costly work with two readers that end up in one launch is done once there."""
    rt = Runtime(Counting())
    y = rt.map(EXP, (floats(rt, 4),), (), 4)
    z = rt.map(SUM, (rt.map(DOUBLE, (y,), (), 4), rt.map(TWICE, (y,), (), 4)), (), 4)
    del y
    assert len(rt.read(z)) == 4
    assert run(rt) == ["exp+double+half+sum"]
    (kernel,) = [k for _, k, _ in rt.engine.compiled if k is not None]
    assert sum(n.op == "exp" for n in walk(kernel.roots)) == 1


def test_a_chain_of_diamonds_takes_no_more_than_linear_time() -> None:
    rt = Runtime(Counting())
    x = floats(rt, 2)
    for _ in range(200):
        x = rt.map(SUM, (rt.map(DOUBLE, (x,), (), 2), rt.map(HALF, (x,), (), 2)), (), 2)
    assert len(rt.read(x)) == 2
    assert len(run(rt)) < 40


def test_into_a_fold_goes_only_little_work() -> None:
    rt = Runtime(Counting())
    x = floats(rt, 5)
    value = rt.fold(total(), (rt.map(DOUBLE, (x,), (), 5),), ())
    assert value == 20.0
    assert run(rt) == ["double+total"]
    rt.fold(total(), (rt.map(EXP, (x,), (), 5),), ())
    assert run(rt)[1:] == ["exp", "total"]
    run(rt).clear()
    sums = rt.scan(running(), (rt.map(DOUBLE, (x,), (), 5),), (), 5)
    assert rt.read(sums)[-1] == 20.0
    assert run(rt) == ["double+running"]


def test_a_fold_inside_a_map_reads_memory() -> None:
    """Every element would compute the whole slot again."""
    rt = Runtime(Counting())
    i, acc = Bound(INT, "i"), Bound(FLOAT, "acc")
    body = op("fadd", var(acc), load(0, FLOAT, var(i)))
    every = Kernel((FLOAT,), (), fold(length(0), i, (acc,), (const(0.0),), (body,))[0], name="every")
    y = rt.map(every, (rt.map(DOUBLE, (floats(rt, 3),), (), 3),), (), 2)
    assert rt.read(y) == [9.0, 9.0]
    assert run(rt) == ["double", "every"]


def test_an_append_is_filled_by_what_it_appends() -> None:
    rt = Runtime(Counting())
    cache = floats(rt, 4)
    for _ in range(3):
        row = rt.map(DOUBLE, (floats(rt, 2),), (), 2)
        cache = rt.concat(cache, row)
        del row
        rt.get(cache, 0)
    assert run(rt) == ["copy", "double", "copy", "double", "double"]


def test_what_is_decided_against_says_why() -> None:
    rt = Runtime(Counting())
    y = rt.map(EXP, (floats(rt, 4),), (), 4)
    a, b = rt.map(DOUBLE, (y,), (), 4), rt.map(TWICE, (y,), (), 4)
    reversed_ = Kernel((FLOAT,), (), load(0, FLOAT, op("wsub", const(3), index())), name="reversed")
    w = rt.map(SUM, (rt.map(reversed_, (a,), (), 4), b), (), 4)
    del y, a, b
    assert rt.read(w)[0] > 0
    (plan,) = rt._plans.values()
    assert sorted(plan.reasons.values()) == [
        "2 readers would do 21 units of work again to save 6",
        "it is read at computed places, so elements would be computed again",
    ]


# --- faults ------------------------------------------------------------------------------------------------------


def faults(rt: Runtime, what: Buffer) -> tuple[str, int | None, object, object]:
    with pytest.raises(MathFault) as caught:
        rt.read(what)
    f = caught.value
    return f.message, f.element, f.span, f.launch


@pytest.mark.parametrize("fusion", [True, False])
def test_order_of_faults_is_that_of_the_launches(fusion: bool) -> None:
    """S1.3, S7.1: Element 0 faults in the second launch, element 2 in the first: the first launch wins."""
    rt = Runtime(Counting(), fusion=fusion)
    x = rt.from_list([-1.0, 3.0, 0.0], FLOAT)
    minus = elementwise(lambda a: op("fdiv", const(1.0), op("fadd", a, const(1.0)), line=5), FLOAT, name="minus")
    out = rt.map(minus, (rt.map(INVERSE, (x,), (), 3, span(40)),), (), 3, span(41))
    assert faults(rt, out) == ("division by zero", 2, span(3), span(40))


@pytest.mark.parametrize("fusion", [True, False])
def test_a_shorter_reader_does_not_hide_a_fault(fusion: bool) -> None:
    """S1.1, S7.1."""
    rt = Runtime(Counting(), fusion=fusion)
    inverse = rt.map(INVERSE, (rt.from_list([1.0, 2.0, 0.0], FLOAT),), (), 3)
    out = rt.map(SUM, (inverse, floats(rt, 2)), (), 2)
    del inverse
    assert faults(rt, out)[:2] == ("division by zero", 2)


@pytest.mark.parametrize("fusion", [True, False])
def test_a_reader_that_recovers_does_not_recover_its_input(fusion: bool) -> None:
    """S3.2, S7.1."""
    rt = Runtime(Counting(), fusion=fusion)
    safe = Kernel(
        (FLOAT,), (), Node("recover", FLOAT, (op("fdiv", const(1.0), load(0, FLOAT, index())), const(9.0))), name="safe"
    )
    assert rt.read(rt.map(safe, (rt.from_list([0.0, 2.0], FLOAT),), (), 2)) == [9.0, 0.5]
    out = rt.map(safe, (rt.map(INVERSE, (rt.from_list([2.0, 0.0], FLOAT),), (), 2),), (), 2)
    assert faults(rt, out)[:2] == ("division by zero", 1)


@pytest.mark.parametrize("fusion", [True, False])
def test_a_reader_that_skips_does_not_hide_a_fault(fusion: bool) -> None:
    """S3.4, S7.1."""
    rt = Runtime(Counting(), fusion=fusion)
    inverse = rt.map(INVERSE, (rt.from_list([2.0, 0.0], FLOAT),), (), 2)
    first = Kernel((INT, FLOAT), (), gather(1, op("wadd", load(0, INT, index()), const(5)), const(0.0)), name="far")
    out = rt.map(first, (rt.iota(2), inverse), (), 2)
    del inverse
    assert faults(rt, out)[:2] == ("division by zero", 1)


def test_what_is_read_elsewhere_is_not_overwritten() -> None:
    rt = Runtime(Counting())
    back = Kernel((FLOAT,), (), gather(0, op("wsub", const(3), index()), const(0.0)), name="back")
    x = floats(rt, 4)
    y = rt.map(back, (x,), (), 4)
    del x
    assert rt.read(y) == [2.5, 2.0, 1.5, 1.0]


def test_an_update_overwrites_what_dies_unless_it_may_fault() -> None:
    update = elementwise(
        lambda p, g, r: op("fsub", p, op("fmul", r, g)), FLOAT, FLOAT, uniforms=(FLOAT,), name="update"
    )
    for risky in (False, True):
        rt = Runtime(Counting())
        assert isinstance(rt.backend, Counting)
        p = floats(rt, 64)
        for _ in range(4):
            before = rt.backend.allocated
            g = rt.map(INVERSE if risky else EXP, (p,), (), 64)
            again = rt.map(SUM, (g, g), (), 64) if risky else g
            p = rt.map(update, (p, again), (0.01,), 64)
            del g, again
            rt.get(p, 0)
        assert rt.backend.allocated - before == (1 if risky else 0)
