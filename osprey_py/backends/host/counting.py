"""The one loop that counts: from a first to a last number, the test at the end."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.backends.host.text import Scope, Value, literal
from osprey_py.kernel.ir import BOOL, INT


def counted(s: Scope, binds: int, first: Value, last: Value, step: int, body: Callable[[Scope, Value], None]) -> None:
    """body(scope, i) for i = first, first + step, … while i < last. binds: the variables that the body's scope changes."""
    f = s.function
    counter = f.slot(INT)
    counter.write(s, first)
    name, done = f.block("turn"), f.block("turned")
    inner = Scope(f, s, binds=binds, width=s.width, mask=s.mask, live=s.live, lane=s.lane)
    inner.open(name)
    i = counter.read(inner)
    body(inner, i)
    following = inner.define(INT, 1, f"add nsw i64 {i}, {literal(step)}")
    counter.write(inner, following)
    inner.branch(inner.define(BOOL, 1, f"icmp slt i64 {following}, {last}"), name, done)
    s.branch(s.define(BOOL, 1, f"icmp slt i64 {first}, {last}"), name, done)
    s.absorb(inner)
    s.label(done)
