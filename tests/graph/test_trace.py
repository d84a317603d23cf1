"""The record of what was launched."""

from __future__ import annotations

import io

from osprey_py.backends.limits import Limits
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.report import report
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.trace import where
from osprey_py.kernel.ir import FLOAT, const
from tests.graph.support import Counting, elementwise, op, span

DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")
EXP = elementwise(lambda a: op("exp", a), FLOAT, name="exp")
SUM = elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum")


def test_a_profile_tells_kernels_places_and_reasons() -> None:
    rt = Runtime(Counting(), profile=True)
    assert rt.profile is not None
    ticks = iter(range(1000))
    rt.profile.clock = lambda: float(next(ticks))
    for _ in range(2):
        x = rt.from_list([0.0] * 4, FLOAT)
        e = rt.map(EXP, (x,), (), 4, span(10))
        a = rt.map(DOUBLE, (e,), (), 4, span(11))
        y = rt.map(SUM, (rt.map(DOUBLE, (e,), (), 4, span(12)), x), (), 4, span(13))
        del e
        rt.force([a.node, y.node])
        assert rt.read(y) == [2.0] * 4
        del a, y
    exp, double, both = rt.profile.records
    assert (exp.kernel, exp.runs, exp.elements, exp.bytes) == ("exp", 2, 8, 128)
    assert (exp.seconds, exp.making) == (2.0, 2.0), "a tick for each run and each preparation"
    assert (double.kernel, double.places) == ("double", (span(11),))
    assert (both.kernel, both.runs, both.elements, both.bytes) == ("double+sum", 2, 8, 192)
    assert both.places == (span(12), span(13))
    text = rt.plan_text()
    assert "kernels.osp:12, kernels.osp:13" in text and "6 launches of 3 kernels" in text
    assert "stored: exp (kernels.osp:10): 2 readers would do 21 units of work again to save 6" in text


def test_without_a_profile_there_is_nothing_to_tell() -> None:
    assert Runtime(Counting()).plan_text() == Runtime(Counting()).profile_text() == ""


def test_a_report_tells_where_the_time_went_and_how_near_the_limit_it_was() -> None:
    """exp: 2 runs of 4 elements, a second each. At 50 operations an element it is bound by arithmetic at 4 operations a
    second, so 2 * 50 of 2 seconds; the sum is bound by memory, at 16 bytes a second."""
    rt = Runtime(Counting(), profile=True)
    assert rt.profile is not None
    ticks = iter(range(1000))
    rt.profile.clock = lambda: float(next(ticks))
    rt.profile.begun = 0.0
    x = rt.from_list([0.0] * 4, FLOAT)
    for _ in range(2):
        e = rt.map(EXP, (x,), (), 4, span(10))
        assert rt.read(e) == [1.0] * 4
        del e
    assert rt.read(rt.map(SUM, (x, x), (), 4, span(13))) == [0.0] * 4
    limits = Limits(4.0, ((32, 64.0), (1 << 30, 16.0)), "a machine of paper")
    lines = report(rt.profile, limits).split("\n")
    assert "3.000 s in 3 launches of 2 kernels, 3.000 s making their code, 2.000 s planning" in lines[0]
    assert "a machine of paper" in lines[3]
    exp, both = lines[6:8]
    assert exp.split()[:3] == ["2000.000", "66.7", "2"]
    assert f"{100 * 50 * 8 / 4 / 2:.0f}% A" in exp
    assert "100% M" in both or "400% M" in both
    assert [line.split()[:3] for line in lines[10:12]] == [
        ["2000.000", "66.7", "kernels.osp:10"],
        ["1000.000", "33.3", "kernels.osp:13"],
    ]
    assert "at most" not in report(rt.profile, None), "of a device that says nothing"


def test_a_launch_in_a_library_is_told_by_the_function_that_it_was_given() -> None:
    """Two launches at one place, of functions at two, are two records; what is stored is told by its function."""
    text = """
fn vector(n, f) = gpuIota(n) |> gpuMap(fn(i) => f(i))
fn b() = {
    let a = vector(3, fn(i) => exp(toFloat(i)))
    vector(3, fn(i) => gpuFold(gpuIota(3), 0.0, fn(s, k) => s + exp(gpuGet(a, k) ?: 0.0)))
}
print(fromGpu(b()))
"""
    program, _ = check_source(text, "p.osp")
    assert program is not None
    rt = Runtime(Counting(), profile=True)
    assert run_program(program, runtime=rt, stdout=io.StringIO(), stderr=io.StringIO(), stdin=io.StringIO()) == 0
    assert rt.profile is not None
    assert [where(r.places) for r in rt.profile.records] == ["p.osp:2, p.osp:4", "p.osp:2, p.osp:5"]
    assert [where([s.place]) for s in rt.profile.stored] == ["p.osp:4"]
