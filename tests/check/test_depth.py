"""Nothing is too deep to check, and what is long takes time in proportion: L6.16, L5.8."""

from __future__ import annotations

import time

import pytest

from osprey_py.check import check_source
from osprey_py.check.core import Program

DEEP = {
    "sum": "let x = " + " + ".join(["1"] * 2000),
    "text": "let x = " + " + ".join(['"a"'] * 2000),
    "and": "let x = " + " && ".join(["true"] * 2000),
    "brackets": "let x = " + "(" * 2000 + "1" + ")" * 2000,
    "not": "let x = " + "!" * 2000 + "true",
    "if": "let x = " + "if true { 1 } else { " * 2000 + "2" + " }" * 2000,
    "blocks": "let x = " + "{ let a = 1  " * 2000 + "a" + " }" * 2000,
    "calls": "fn f(x) = x\nlet x = " + "f(" * 2000 + "1" + ")" * 2000,
    "pipes": "fn f(x) = x\nlet x = 1" + " |> f" * 2000,
    "matches": "let x = " + "match 1 { _ => " * 2000 + "1" + " }" * 2000,
    "lists": "let x = " + "[" * 1000 + "1" + "]" * 1000,
    "lambdas": "let x = " + "fn(a) => " * 1000 + "1",
    "recover": "let x = " + " ?: ".join(["(1 + 1)"] * 1500),
    "patterns": "let x = match 1 { " + " ".join(f"{i} => {i}" for i in range(1000)) + " _ => 0 }",
    "statements": "fn f() = { " + " ".join(f"let a{i} = {i}" for i in range(2000)) + " a7 }",
}


def timed(text: str) -> tuple[Program | None, float]:
    start = time.perf_counter()
    program, told = check_source(text)
    assert program is not None, [d.title for d in told][:3]
    return program, time.perf_counter() - start


@pytest.mark.parametrize("name", DEEP)
def test_deep(name: str) -> None:
    timed(DEEP[name])


CHAINS = {
    "callers": ("fn h0(k, x) = k(k(x))\n", "fn h{i}(k, x) = h{j}(k, h{j}(k, x))\n"),
    "kernels": ("fn h0(b, k) = gpuMap(gpuMap(b, k), k)\n", "fn h{i}(b, k) = h{j}(h{j}(b, k), k)\n"),
    "composers": ("fn h0(f, g) = fn(x) => g(f(x))\n", "fn h{i}(f, g) = h{j}(h{j}(f, g), h{j}(g, f))\n"),
    "records": ("fn h0(r, x) = r.f(x)\n", "fn h{i}(r, x) = h{j}(r, h{j}(r, x))\n"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_generic_chains_do_not_double(name: str) -> None:
    """L5.8: a chain of generic helpers, each using the one before twice, forty deep."""
    first, then = CHAINS[name]
    _, seconds = timed(first + "".join(then.format(i=i, j=i - 1) for i in range(1, 41)))
    assert seconds < 1.0
