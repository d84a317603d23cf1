"""The record of what was launched."""

from __future__ import annotations

from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import FLOAT, const
from tests.graph.support import Counting, elementwise, op, span

DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")
EXP = elementwise(lambda a: op("exp", a), FLOAT, name="exp")
SUM = elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum")


def test_a_profile_tells_kernels_places_and_reasons() -> None:
    rt = Runtime(Counting(), profile=True)
    assert rt.profile is not None
    ticks = iter(range(100))
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
    assert (exp.kernel, exp.runs, exp.elements, exp.bytes, exp.seconds) == ("exp", 2, 8, 128, 2.0)
    assert (double.kernel, double.places) == ("double", (span(11),))
    assert (both.kernel, both.runs, both.elements, both.bytes) == ("double+sum", 2, 8, 192)
    assert both.places == (span(12), span(13))
    text = rt.profile_text()
    assert "kernels.osp:12, kernels.osp:13" in text and "6 launches" in text
    assert "stored: exp (kernels.osp:10): 2 readers would do 21 units of work again to save 6" in text


def test_without_a_profile_there_is_nothing_to_tell() -> None:
    assert Runtime(Counting()).profile_text() == ""
