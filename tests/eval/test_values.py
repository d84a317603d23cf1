"""Persistent lists and maps against plain models; text of values; equality; keys."""

from __future__ import annotations

import math

from core_build import (
    c,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.eval import values as v
from osprey_py.eval.equality import equal
from osprey_py.eval.formatting import to_string
from osprey_py.eval.values import Error, Success, make_list, make_map

FEW = settings(max_examples=50, deadline=None)
STEPS = st.lists(st.tuples(st.sampled_from("apcsdr"), st.integers(0, 30), st.integers(0, 9)), max_size=40)


@FEW
@given(STEPS)
def test_lists_are_persistent(steps):
    """B3.1: every version stays what it was, whatever is done to others."""
    versions = [(v.List([], 0, 0), [])]
    for kind, which, x in steps:
        xs, model = versions[which % len(versions)]
        other, other_model = versions[x % len(versions)]
        if kind == "a":
            versions.append((v.append(xs, x), [*model, x]))
        elif kind == "p":
            versions.append((v.prepend(xs, x), [x, *model]))
        elif kind == "c":
            versions.append((v.concat(xs, other), model + other_model))
        elif kind == "s" and model:
            versions.append((v.drop_front(xs, 1), model[1:]))
        elif kind == "d":
            cut = min(x, len(model))
            versions.append((v.List(xs.items, xs.lo, xs.lo + cut), model[:cut]))
        for made, want in versions:
            assert list(made) == want and len(made) == len(want)


@FEW
@given(STEPS)
def test_maps_are_persistent_and_ordered(steps):
    """B4.1, B4.2"""
    versions = [(v.empty_map(), {})]
    for n, (kind, which, x) in enumerate(steps):
        m, model = versions[which % len(versions)]
        if kind == "r":
            versions.append((v.map_remove(m, x), {k: y for k, y in model.items() if k != x}))
        else:
            versions.append((v.map_set(m, x, n), {**model, x: n}))
        for made, want in versions:
            assert [(k, y) for _, k, y in made.entries()] == list(want.items())
            assert len(made) == len(want)
            for k in range(10):
                found = v.map_entry(made, k)
                assert (found[2] if found else None) == want.get(k)


def test_appending_costs_no_copies():
    xs = v.List([], 0, 0)
    for k in range(100_000):
        xs = v.append(xs, k)
    for k in range(100_000):
        xs = v.prepend(xs, k)
    m = v.empty_map()
    for k in range(100_000):
        m = v.map_set(m, k, k)
    assert len(xs) == 200_000 and len(m) == 100_000


def test_texts_of_values():
    """B1.1"""
    point = v.class_of(c.Constructor("a::Point", "Point", ("x", "y")))
    square = v.class_of(c.Constructor("S", "Square", ("0",), positional=True))
    empty = v.class_of(c.Constructor("S", "Empty", ()))
    for value, want in (
        ("a\nb", "a\nb"),
        (1e-05, "1e-05"),
        (1.0, "1.0"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (True, "true"),
        ((), "()"),
        ((1, "a"), '(1, "a")'),
        (make_list([1, 2]), "[1, 2]"),
        (make_list(["${x} $"]), '["\\${x} $"]'),
        (make_list(['a"\n\x1b\x00\x07']), '["a\\"\\n\\e\\0\\u{7}"]'),
        (make_map([("a", 1), ("b", 2)]), '{ "a": 1, "b": 2 }'),
        (make_map([]), "Map()"),
        (point(1.0, "q"), 'Point { x: 1.0, y: "q" }'),
        (square(2), "Square(2)"),
        (empty(), "Empty"),
        (v.anonymous_class(("b", "a"))(1, 2), "{ a: 1, b: 2 }"),
        (Success(42), "Success(42)"),
        (Success("text"), "Success(text)"),
        (Error("no such key"), "Error(no such key)"),
        (make_list([Error("e")]), "[Error(e)]"),
        (v.Iterator(range(3)), "[0, 1, 2]"),
    ):
        assert to_string(value) == want


def test_deep_values():
    """V2.4: a list of a million cells is compared, written and freed without a deep stack."""
    cons = v.class_of(c.Constructor("L", "Cons", ("0", "1"), positional=True))
    nil = v.class_of(c.Constructor("L", "Nil", ()))

    def chain():
        xs = nil()
        for k in range(200_000):
            xs = cons(k, xs)
        return xs

    a, b = chain(), chain()
    assert equal(a, b)
    assert to_string(a).startswith("Cons(199999, Cons(199998, ")


def test_equality():
    """V3.1"""
    assert not equal((math.nan,), (math.nan,))
    same = (math.nan, 1.0)
    assert not equal(same, same)
    assert equal(make_list([0.0]), make_list([-0.0]))
    assert equal(make_map([("a", 1), ("b", 2)]), make_map([("b", 2), ("a", 1)]))
    assert not equal(Success(1), Error("1"))
    assert not equal(make_list([1, 2]), make_list([1]))


def test_keys():
    """B4.3: keys are the same when they are equal."""
    m = make_map([((1, "a"), 1), ((1, "b"), 2), ((1, "a"), 3)])
    assert [(k, x) for _, k, x in m.entries()] == [((1, "a"), 3), ((1, "b"), 2)]
    m = make_map([(math.nan, 1), (math.nan, 2), (0.0, 3), (-0.0, 4)])
    assert len(m) == 3
    assert v.map_entry(m, math.nan) is None
    assert v.map_entry(m, 0.0)[2] == 4
