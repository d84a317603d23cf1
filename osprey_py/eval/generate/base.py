"""The two ways to generate an expression, and operands in order.

Comes in: a Body and a Core expression. Goes out: Python. The families register themselves in VALUE (as a Python
expression) and TO (into a destination).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from osprey_py.check import core as c
from osprey_py.eval.body import Body, Dest
from osprey_py.eval.emit import P, moved

MAX_NEST = 40
MAX_INDENT = 60
MAX_BLOCKS = 14

VALUE: dict[type[c.Expr], Callable[[Body, Any], P]] = {}
TO: dict[type[c.Expr], Callable[[Body, Any, Dest], None]] = {}


def value(b: Body, e: c.Expr) -> P:
    """A Python expression for e; statements it needs are emitted before."""
    made = VALUE.get(type(e))
    if made is None:
        return through_name(b, e)
    if b.lines.indent > MAX_INDENT and isinstance(e, c.If | c.Logic):
        return through_name(b, e, outlined=True)
    p = made(b, e)
    if not p.stable and not p.moves and b.holds(e.type):
        p = replace(p, moves=True)
    return b.lines.spill(p) if p.nest > MAX_NEST else p


def through_name(b: Body, e: c.Expr, outlined: bool = False) -> P:
    """e by way of a temporary."""
    name = b.lines.temp()
    dest = Dest("name", name)
    if outlined:
        from osprey_py.eval.generate.calls import outline

        outline(b, e, dest)
    else:
        to(b, e, dest)
    return P(moved(name), nest=1, moves=True) if b.holds(e.type) else P(name, stable=True)


def to(b: Body, e: c.Expr, dest: Dest) -> None:
    """Evaluate e into a destination."""
    made = TO.get(type(e))
    if made is None:
        assert type(e) in VALUE, f"no rule for {type(e).__name__}"
        b.deliver(value(b, e), dest)
    elif b.lines.indent > MAX_INDENT or b.lines.blocks > MAX_BLOCKS:
        from osprey_py.eval.generate.calls import outline

        outline(b, e, dest)
    else:
        made(b, e, dest)


def branch(b: Body, e: c.Expr, dest: Dest) -> None:
    """`to` at the beginning of a branch: clears what is dead there."""
    b.clear(b.live.drops.get(e, ()))
    to(b, e, dest)


def indented(b: Body, e: c.Expr, dest: Dest) -> None:
    """A branch one level in."""
    b.lines.indent += 1
    begin = len(b.lines.out)
    branch(b, e, dest)
    if len(b.lines.out) == begin:
        b.emit("pass")
    b.lines.indent -= 1


def operands(b: Body, es: Sequence[c.Expr]) -> list[P]:
    """Evaluated in order: when a later one needs statements, earlier ones that could notice are kept in temporaries."""
    ps: list[P] = []
    for e in es:
        start = len(b.lines.out)
        p = value(b, e)
        if len(b.lines.out) > start:
            for k, q in enumerate(ps):
                if not q.stable:
                    ps[k] = b.lines.spill(q, start)
                    start += 1
        ps.append(p)
    return ps


def atom(b: Body, e: c.Expr) -> P:
    """Like value, but something that may be written down more than once."""
    p = value(b, e)
    return p if p.stable else b.lines.spill(replace(p, moves=False))


def nest(ps: Sequence[P]) -> int:
    return 1 + max((p.nest for p in ps), default=0)
