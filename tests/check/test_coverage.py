"""Match coverage against counting: L6.13. On a type with few values, a match is covered when every value meets an arm, and
an arm is reached when some value meets it first."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.check import check_source, coverage

HEADER = """
type Inner = P | Q(bool)
type Outer = A | B(bool, Inner) | C { x: bool, y: Inner }
"""
BOOLS = ("true", "false")
INNER = ("P", *(("Q", b) for b in BOOLS))
OUTER = ("A", *(("B", b, i) for b, i in product(BOOLS, INNER)), *(("C", b, i) for b, i in product(BOOLS, INNER)))
VALUES = {"bool": BOOLS, "Inner": INNER, "Outer": OUTER, "pair": tuple(product(OUTER, BOOLS))}
PARTS = {"B": ("bool", "Inner"), "C": ("bool", "Inner"), "Q": ("bool",), "pair": ("Outer", "bool")}


@st.composite
def pattern(draw: st.DrawFn, of: str) -> object:
    """None is a wildcard; else a value whose parts are patterns."""
    if draw(st.integers(0, 3)) == 0:
        return None
    if of == "bool":
        return draw(st.sampled_from(BOOLS))
    if of == "pair":
        return ("pair", draw(pattern("Outer")), draw(pattern("bool")))
    head = draw(st.sampled_from(("P", "Q") if of == "Inner" else ("A", "B", "C")))
    return (head, *(draw(pattern(p)) for p in PARTS[head])) if head in PARTS else head


def matches(p: object, value: object) -> bool:
    if p is None or isinstance(p, str):
        return p is None or p == value
    assert isinstance(p, tuple) and isinstance(value, (tuple, str))
    if p[0] == "pair":
        return all(map(matches, p[1:], value))
    return value[0] == p[0] and all(map(matches, p[1:], value[1:]))


def written(p: object) -> str:
    if p is None or isinstance(p, str):
        return p or "_"
    assert isinstance(p, tuple)
    parts = [written(q) for q in p[1:]]
    if p[0] == "pair":
        return f"({', '.join(parts)})"
    if p[0] == "C":
        return f"C {{ x: {parts[0]}, y: {parts[1]} }}"
    return f"{p[0]}({', '.join(parts)})"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(VALUES)).flatmap(
        lambda of: st.tuples(st.just(of), st.lists(st.tuples(pattern(of), st.booleans()), min_size=1, max_size=7))
    )
)
def test_against_counting(case: tuple[str, list[tuple[object, bool]]]) -> None:
    of, arms = case
    shown = {"pair": "(Outer, bool)"}.get(of, of)
    lines = [f"    {written(p)}{' if g' if guarded else ''} => {k}" for k, (p, guarded) in enumerate(arms)]
    text = HEADER + f"fn f(v: {shown}, g: bool) = match v {{\n" + "\n".join(lines) + "\n}\n"
    _, told = check_source(text)
    left = set(VALUES[of])
    unreached = 0
    for p, guarded in arms:
        met = {v for v in left if matches(p, v)}
        unreached += not met
        if not guarded:
            left -= met
    codes = [d.code for d in told]
    assert codes.count("E0402") == unreached
    assert codes.count("E0401") == bool(left)
    assert len(codes) == unreached + bool(left)


def test_too_many_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has a bound; beyond it the match is refused, not looked at for ever."""
    monkeypatch.setattr(coverage, "_BUDGET", 20)
    arms = "\n".join(f"    ({', '.join('true' if j == i else '_' for j in range(8))}) => {i}" for i in range(8))
    _, told = check_source(f"fn f(t) = match t {{\n{arms}\n    _ => 9\n}}")
    assert [d.code for d in told] == ["E0404"]


def test_an_arm_for_the_rest_is_never_too_complicated() -> None:
    """What E0404 advises: what covers everything by itself is not searched."""
    arms = "\n".join(
        f"    ({', '.join(m if j // 2 == i else '_' for j in range(24))}) => {i}" for i in range(12) for m in "RPS"
    )
    _, told = check_source(f"type Move = R | P | S\nfn f(t) = match t {{\n{arms}\n    _ => 99\n}}")
    assert not told
