"""The runtime's promises that do not depend on fusion: values, laziness, order of faults, memory."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest

from osprey_py.backends.protocol import Kind, Storage
from osprey_py.graph.runtime import BACKLOG, Runtime
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import FLOAT, INT, Kernel, const, index, load
from tests.graph.support import Counting, elementwise, gather, op, running, span, total

DOUBLE = elementwise(lambda a: op("fmul", a, const(2.0)), FLOAT, name="double")
INVERSE = elementwise(lambda a: op("fdiv", const(1.0), a, line=3), FLOAT, name="inverse")
REMAINDER = elementwise(lambda a, u: op("rem", a, u, line=5), INT, uniforms=(INT,), name="remainder")
SUM = elementwise(lambda a, b: op("fadd", a, b), FLOAT, FLOAT, name="sum")
POSITIVE = elementwise(lambda a: op("lt", const(0.0), a), FLOAT, name="positive")


@pytest.fixture(params=[True, False], ids=["fused", "unfused"])
def rt(request: pytest.FixtureRequest) -> Runtime:
    return Runtime(Counting(), fusion=request.param)


def backend(rt: Runtime) -> Counting:
    assert isinstance(rt.backend, Counting)
    return rt.backend


def test_launches_give_their_values(rt: Runtime) -> None:
    """S2.2, S2.3, S2.4, S2.5, S2.8, S2.9."""
    x = rt.from_list([1.0, -2.0, 3.0], FLOAT)
    assert rt.read(rt.map(DOUBLE, (x,), (), 3)) == [2.0, -4.0, 6.0]
    assert rt.fold(total(), (x,), ()) == 2.0
    assert rt.read(rt.scan(running(), (x,), (), 3)) == [1.0, -1.0, 2.0]
    kept = rt.filter(POSITIVE, (x,), ())
    assert len(kept) == 2 and rt.read(kept) == [1.0, 3.0]
    assert rt.read(rt.concat(x, rt.map(DOUBLE, (kept,), (), 2))) == [1.0, -2.0, 3.0, 2.0, 6.0]
    assert rt.read(rt.iota(4)) == [0, 1, 2, 3] and rt.read(rt.iota(-3)) == []
    places = rt.from_list([2, 0, 2], INT)
    assert rt.read(rt.accumulate(4, places, x)) == [-2.0, 0.0, 4.0, 0.0]
    assert rt.out_of_range(places, 3) is None and rt.out_of_range(places, 2) == 0
    assert rt.get(x, 2) == 3.0 and rt.get(x, 3) is None and rt.get(x, -1) is None


def test_slices_are_views_of_what_is_there_and_launches_of_what_is_not(rt: Runtime) -> None:
    x = rt.from_list([float(k) for k in range(10)], FLOAT)
    view = rt.slice(rt.slice(x, 2, 9), 1, 4)
    assert rt.read(view) == [3.0, 4.0, 5.0]
    pending = rt.slice(rt.map(DOUBLE, (x,), (), 10), 4, 6)
    assert rt.read(pending) == [8.0, 10.0]
    assert rt.slice(x, 0, 10) is x and rt.read(rt.slice(x, 3, 3)) == []
    del x
    again = rt.map(DOUBLE, (view,), (), 3)
    assert rt.read(again) == [6.0, 8.0, 10.0] and rt.read(view) == [3.0, 4.0, 5.0]


def test_narrow_storage_is_read_where_it_lies(rt: Runtime) -> None:
    """S4.2."""
    bits = np.array([0x3F80, 0xC000, 0x7FC1], "<u2")
    x = rt.data(Storage(Kind.BF16, bits))
    values = rt.read(x)
    assert values[:2] == [1.0, -2.0] and math.isnan(values[2])
    assert rt.read(rt.concat(x, x))[:2] == [1.0, -2.0]
    assert rt.read(rt.slice(x, 1, 2)) == [-2.0]


def test_stored_nan_is_canonical(rt: Runtime) -> None:
    """S4.1."""
    odd = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
    x = rt.from_list([odd, 1.0], FLOAT)
    assert rt.storage(x).data.view(np.uint64)[0] == 0x7FF8000000000000


def test_nothing_runs_before_it_is_asked_for(rt: Runtime) -> None:
    x = rt.from_list([1.0], FLOAT)
    y = rt.map(DOUBLE, (x,), (), 1)
    rt.barrier()
    assert backend(rt).ran == []
    assert rt.read(y) == [2.0] and backend(rt).ran == ["double"]
    assert rt.read(y) == [2.0] and backend(rt).ran == ["double"]


def test_a_dead_launch_that_may_fault_still_runs_before_an_effect(rt: Runtime) -> None:
    """S1.1, S3.1."""
    x = rt.from_list([1.0, 0.0, 0.0], FLOAT)
    rt.map(DOUBLE, (x,), (), 3)
    rt.map(INVERSE, (x,), (), 3, span(9))
    with pytest.raises(MathFault) as caught:
        rt.barrier()
    assert (caught.value.message, caught.value.element) == ("division by zero", 1)
    assert caught.value.span == span(3) and caught.value.launch == span(9)
    assert "double" not in backend(rt).ran


def test_the_first_launch_that_faults_wins_even_when_a_later_one_is_read(rt: Runtime) -> None:
    """S1.3."""
    zero = rt.from_list([1.0, 0.0], FLOAT)
    first = rt.map(INVERSE, (zero,), (), 2, span(11))
    ints = rt.from_list([1, 2], INT)
    second = rt.map(REMAINDER, (ints,), (0,), 2, span(12))
    with pytest.raises(MathFault) as caught:
        rt.read(second)
    assert caught.value.launch == span(11) and caught.value.element == 1
    del first


def test_reading_what_is_proven_does_not_run_earlier_launches(rt: Runtime) -> None:
    zero = rt.from_list([0.0], FLOAT)
    rt.map(INVERSE, (zero,), (), 1)
    assert rt.read(rt.map(DOUBLE, (zero,), (), 1)) == [0.0]
    with pytest.raises(MathFault):
        rt.barrier()


def test_an_empty_launch_cannot_fault(rt: Runtime) -> None:
    rt.map(REMAINDER, (rt.from_list([], INT),), (0,), 0)
    rt.barrier()
    assert backend(rt).ran == []


def test_a_region_recovers_its_own_launches_only(rt: Runtime) -> None:
    """S3.2, V3.6, V3.7."""
    zero = rt.from_list([0.0], FLOAT)
    mark = rt.mark()
    bad = rt.map(INVERSE, (zero,), (), 1, span(20))
    rt.map(INVERSE, (bad,), (), 1, span(21))
    with pytest.raises(MathFault) as caught:
        rt.settle(mark)
    assert rt.caught(caught.value, mark).launch == span(20)
    rt.barrier()  # the region's launches are forgotten

    outer = rt.map(INVERSE, (zero,), (), 1, span(22))
    mark = rt.mark()
    rt.map(INVERSE, (zero,), (), 1, span(23))
    with pytest.raises(MathFault) as caught:
        rt.settle(mark)
    with pytest.raises(MathFault) as again:
        rt.caught(caught.value, mark)
    assert again.value.launch == span(22)
    del outer


def test_a_host_fault_comes_after_the_launches_before_it(rt: Runtime) -> None:
    """V3.7."""
    zero = rt.from_list([0.0], FLOAT)
    host = MathFault("integer overflow", span(1))
    mark = rt.mark()
    assert rt.caught(host, mark) is host
    mark = rt.mark()
    rt.map(INVERSE, (zero,), (), 1, span(30))
    assert rt.caught(host, mark).launch == span(30)
    rt.map(INVERSE, (zero,), (), 1, span(31))
    with pytest.raises(MathFault) as caught:
        rt.caught(host, rt.mark())
    assert caught.value.launch == span(31)


def test_a_settled_region_stays_pending_when_it_cannot_fault(rt: Runtime) -> None:
    x = rt.from_list([1.0], FLOAT)
    mark = rt.mark()
    y = rt.map(DOUBLE, (x,), (), 1)
    rt.settle(mark)
    assert backend(rt).ran == []
    assert rt.read(y) == [2.0]


def test_one_plan_for_all_lengths_and_uniforms(rt: Runtime) -> None:
    for n in range(1, 25):
        ints = rt.iota(n)
        y = rt.map(REMAINDER, (ints,), (n,), n)
        assert rt.read(y) == list(range(n))
        del y, ints
    assert rt.stats.planned == 1 and rt.stats.forces == 24


def test_dead_buffers_are_freed_and_memory_stays_flat(rt: Runtime) -> None:
    x = rt.from_list([1.0] * 100, FLOAT)
    seen = set()
    for _ in range(20):
        y = rt.map(DOUBLE, (x,), (), 100)
        z = rt.map(SUM, (x, y), (), 100)
        del y
        x = rt.map(DOUBLE, (z,), (), 100)
        del z
        rt.get(x, 0)
        seen.add(backend(rt).live_bytes)
    assert seen == {800}
    del x
    assert backend(rt).live_bytes == 0


def test_appending_grows_in_place(rt: Runtime) -> None:
    cache = rt.from_list([0.0] * 3, FLOAT)
    places = set()
    for k in range(1, 100):
        row = rt.map(DOUBLE, (rt.from_list([float(k)], FLOAT),), (), 1)
        old = cache
        cache = rt.concat(cache, row)
        rt.get(cache, 0)
        places.add(rt.storage(cache).address)
        assert rt.read(old) == rt.read(cache)[:-1]
        del row
    assert len(places) < 10
    assert rt.read(cache) == [0.0] * 3 + [2.0 * k for k in range(1, 100)]


def test_two_appends_to_one_buffer_do_not_meet(rt: Runtime) -> None:
    one, two = rt.from_list([1.0], FLOAT), rt.from_list([2.0], FLOAT)
    base = rt.concat(one, two)
    base = rt.concat(base, two)
    rt.get(base, 0)
    left, right = rt.concat(base, one), rt.concat(base, two)
    assert rt.read(left) == [1.0, 2.0, 2.0, 1.0] and rt.read(right) == [1.0, 2.0, 2.0, 2.0]
    assert rt.read(base) == [1.0, 2.0, 2.0]
    assert rt.read(rt.map(DOUBLE, (left,), (), 4)) == [2.0, 4.0, 4.0, 2.0]
    assert rt.read(left) == [1.0, 2.0, 2.0, 1.0]


def test_what_an_append_shares_is_not_overwritten(rt: Runtime) -> None:
    """The append fills the block to its end, and its result dies in the next launch; its left side lives."""
    one = rt.from_list([1.0], FLOAT)
    base = rt.concat(one, one)
    rt.get(base, 0)
    base = rt.concat(base, one)
    rt.get(base, 0)
    room = len(base.node.memory.storage.data) - 3 if base.node.memory is not None else 0
    assert room == 3
    grown = rt.concat(base, rt.from_list([2.0] * room, FLOAT))
    doubled = rt.map(DOUBLE, (grown,), (), 6)
    del grown
    assert rt.read(doubled) == [2.0] * 3 + [4.0] * 3
    assert rt.read(base) == [1.0] * 3


def test_a_plan_for_equal_lengths_is_not_used_for_others(rt: Runtime) -> None:
    places = Kernel((INT, FLOAT), (), gather(1, load(0, INT, index()), const(-1.0)), name="at")
    for n, m in ((3, 3), (3, 2), (2, 3), (4, 4), (4, 1)):
        value = rt.map(DOUBLE, (rt.from_list([1.0] * m, FLOAT),), (), m)
        out = rt.map(places, (rt.iota(n), value), (), n)
        del value
        assert rt.read(out) == [2.0] * min(n, m) + [-1.0] * (n - m)
        del out


def test_a_backlog_is_bounded(rt: Runtime) -> None:
    x = rt.from_list([1.0], FLOAT)
    half = elementwise(lambda a: op("fmul", a, const(0.5)), FLOAT, name="half")
    for _ in range(BACKLOG + 10):
        x = rt.map(half, (x,), (), 1)
    assert rt.stats.forces == 1
    assert rt.read(x) == [0.0]


def test_an_accumulate_goes_into_its_base_when_that_dies(rt: Runtime) -> None:
    x = rt.from_list([1.0, 2.0, 3.0], FLOAT)
    places = rt.from_list([2, -1, 2], INT)
    base = rt.map(DOUBLE, (x,), (), 3)
    kept = rt.accumulate(3, places, x, base=base)
    before = backend(rt).allocated
    assert rt.read(kept) == [2.0, 4.0, 10.0]
    assert backend(rt).allocated == before + 2
    assert rt.read(base) == [2.0, 4.0, 6.0]
    del base, kept
    dying = rt.map(DOUBLE, (x,), (), 3)
    gone = rt.accumulate(3, places, x, base=dying)
    del dying
    before = backend(rt).allocated
    assert rt.read(gone) == [2.0, 4.0, 10.0]
    assert backend(rt).allocated == before + 1


def test_a_backend_without_bases_adds_two_launches() -> None:
    plain = Counting()
    plain.capabilities = replace(plain.capabilities, bases=False)  # type: ignore[misc]
    rt, onto = Runtime(plain), Runtime(Counting())
    read = []
    for r in (rt, onto):
        x, places = r.from_list([0.1, 0.2, 0.3], FLOAT), r.from_list([2, -1, 2], INT)
        read.append(r.read(r.accumulate(3, places, x, base=r.map(DOUBLE, (x,), (), 3))))
    assert read[0] == read[1]
    assert backend(rt).ran[-1] == "double+adjoint" and backend(onto).ran[-1] == "accumulate"


SUMS = [0.1, -0.0, 0.0, math.nan, math.inf, 5e-324, -1.0, 1e308]
"""What is added to; -0.0 plus the 0.0 of a place without values is 0.0."""
ADDED = [-0.0, 0.2, -math.inf, 1.0, 0.3, 1e308, -0.0]
PLACES = [0, 0, 4, 6, 0, 7, 1]


@pytest.mark.parametrize("swapped", [False, True])
def test_sums_by_place_go_onto_what_they_are_added_to(rt: Runtime, swapped: bool) -> None:
    """The same bytes as the sum of two buffers, and without a buffer of zeros."""
    x, places, values = rt.from_list(SUMS, FLOAT), rt.from_list(PLACES, INT), rt.from_list(ADDED, FLOAT)
    sums = rt.accumulate(8, places, values)
    added = rt.map(SUM, (sums, x) if swapped else (x, sums), (), 8)
    del sums
    found = rt.storage(added).data.copy()
    by_place = np.array(rt.read(rt.accumulate(8, places, values)))
    with np.errstate(all="ignore"):
        expected = np.array(SUMS) + by_place
    expected[expected != expected] = math.nan
    assert found.tobytes() == expected.tobytes()
    assert backend(rt).ran[:2] == (["adjoint", "accumulate"] if rt.fuser.enabled else ["accumulate", "sum"])


def test_sums_by_place_that_somebody_holds_are_there_too(rt: Runtime) -> None:
    x, places = rt.from_list([1.0, 2.0, 3.0], FLOAT), rt.from_list([2, -1, 2], INT)
    sums = rt.accumulate(3, places, x)
    added = rt.map(SUM, (x, sums), (), 3)
    twice = rt.map(SUM, (sums, sums), (), 3)
    assert rt.read(added) == [1.0, 2.0, 7.0] and rt.read(twice) == [0.0, 0.0, 8.0]
    assert rt.read(sums) == [0.0, 0.0, 4.0] and rt.read(x) == [1.0, 2.0, 3.0]
    assert rt.read(rt.map(SUM, (x, sums), (), 3)) == [1.0, 2.0, 7.0]


def test_sums_by_place_of_another_length_are_added_as_they_are(rt: Runtime) -> None:
    values = rt.from_list([1.0, 2.0], FLOAT)
    for n, m in ((3, 5), (5, 3), (4, 4)):
        sums = rt.accumulate(n, rt.from_list([n - 1, 0], INT), values)
        least = min(n, m)
        added = rt.map(SUM, (sums, rt.from_list([1.0] * m, FLOAT)), (), least)
        onto = rt.fuser.enabled and n <= m
        assert rt.read(added) == [3.0, *[1.0] * (n - 2), 2.0][:least]
        assert backend(rt).ran.count("accumulate") == 1 and backend(rt).ran.pop() == ("accumulate" if onto else "sum")
        backend(rt).ran.clear()


def test_only_a_plain_sum_takes_them_in(rt: Runtime) -> None:
    x, places = rt.from_list([1.0, 2.0, 3.0], FLOAT), rt.from_list([2, 0, 2], INT)
    less = elementwise(lambda a, b: op("fsub", a, b), FLOAT, FLOAT, name="less")
    doubled = elementwise(lambda a, b: op("fadd", a, a), FLOAT, FLOAT, name="doubled")
    crossed = Kernel((FLOAT, FLOAT), (), op("fadd", load(0, FLOAT, index()), load(1, FLOAT, const(2))), name="crossed")
    for kernel, expected in ((less, [-1.0, 2.0, -1.0]), (doubled, [2.0, 4.0, 6.0]), (crossed, [5.0, 6.0, 7.0])):
        assert rt.read(rt.map(kernel, (x, rt.accumulate(3, places, x)), (), 3)) == expected
