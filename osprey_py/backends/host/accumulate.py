"""Accumulate steps as code: values added at places, one after the other.

Comes in: the kinds of the inputs: indices, values and, where there is one, the base; then a fourth that the backend
adds, sums that are all zero before and after. Goes out: a module with the function `launch`; lo … hi-1 are the places of
the output that a chunk is about. It walks all values and takes those that fall into its places, so that chunks may run
at once. An index of -1 falls into nobody's.
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.backends.host import memory
from osprey_py.backends.host.expression import Expressions
from osprey_py.backends.host.launch import HEAD
from osprey_py.backends.host.placement import Placement
from osprey_py.backends.host.text import Function, Module, Scope, Value, literal
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.ir import BOOL, FLOAT, INT

BASE, SUMS = 2, 3
"""The slots of a step with a base behind indices and values."""

Body = Callable[[Scope, Value], None]


def module_text(kinds: tuple[Kind, ...]) -> str:
    """output[t] = 0.0 + the values of t, in their order; with a base, base[t] + that, where t has values."""
    module = Module()
    function = Function(module)
    entry = Scope(function)
    arguments = memory.Arguments(entry, kinds, ())
    e = Expressions(function, Placement((), {}), arguments)
    if len(kinds) == 2:
        _places(function, entry, "clear", lambda s, t: memory.store(s, arguments.output, t, literal(0.0)))
        _values(e, entry, "add", lambda s, t, j: _add(e, s, arguments.output, t, memory.element(e, 1, kinds[1], s, j)))
    else:
        sums = arguments.bases[SUMS]

        def hand_on(s: Scope, t: Value, j: Value) -> None:
            """The second value of a place finds 0.0, which changes nothing there."""
            _add(e, s, arguments.output, t, memory.element(e, SUMS, Kind.F64, s, t))
            memory.store(s, sums, t, literal(0.0))

        same = entry.define(BOOL, 1, f"icmp eq ptr {arguments.output}, {arguments.bases[BASE]}")
        entry.branch(same, "copied", "copying")
        entry.label("copying")
        copied = lambda s, t: memory.store(s, arguments.output, t, memory.element(e, BASE, kinds[BASE], s, t))  # noqa: E731
        _places(function, entry, "copy", copied)
        entry.jump("copied")
        entry.label("copied")
        _values(e, entry, "sum", lambda s, t, j: _add(e, s, sums, t, memory.element(e, 1, kinds[1], s, j)))
        _values(e, entry, "hand_on", hand_on)
    entry.write("ret void")
    module.add(function.text(HEAD, entry))
    return module.text()


def _places(function: Function, entry: Scope, name: str, body: Body) -> None:
    """body(scope, place) for each place of the chunk."""
    counter = function.slot(INT)
    counter.write(entry, Value(INT, 1, "%lo"))
    s = Scope(function, entry)
    s.open(name)
    t = counter.read(s)
    body(s, t)
    following = s.define(INT, 1, f"add nsw i64 {t}, 1")
    counter.write(s, following)
    s.branch(s.define(BOOL, 1, f"icmp slt i64 {following}, %hi"), name, f"{name}_end")
    entry.jump(name)
    entry.absorb(s)
    entry.label(f"{name}_end")


def _values(e: Expressions, entry: Scope, name: str, body: Callable[[Scope, Value, Value], None]) -> None:
    """body(scope, place, j) for each j, ascending, whose place is the chunk's."""
    function, arguments = e.function, e.arguments
    counter = function.slot(INT)
    counter.write(entry, literal(0))
    lengths = arguments.lengths
    length = arguments.entry.define(INT, 1, f"call i64 @llvm.smin.i64(i64 {lengths[0]}, i64 {lengths[1]})")
    entry.branch(entry.define(BOOL, 1, f"icmp sgt i64 {length}, 0"), name, f"{name}_end")
    s = Scope(function, entry)
    s.open(name)
    j = counter.read(s)
    t = memory.element(e, 0, arguments.kinds[0], s, j)
    above = s.define(BOOL, 1, f"icmp sge i64 {t}, %lo")
    below = s.define(BOOL, 1, f"icmp slt i64 {t}, %hi")
    s.branch(s.define(BOOL, 1, f"and i1 {above}, {below}"), f"{name}_mine", f"{name}_next")
    s.label(f"{name}_mine")
    body(s, t, j)
    s.jump(f"{name}_next")
    s.label(f"{name}_next")
    following = s.define(INT, 1, f"add nsw i64 {j}, 1")
    counter.write(s, following)
    s.branch(s.define(BOOL, 1, f"icmp slt i64 {following}, {length}"), name, f"{name}_end")
    entry.absorb(s)
    entry.label(f"{name}_end")


def _add(e: Expressions, s: Scope, base: str, at: Value, value: Value) -> None:
    """base[at] = base[at] + value"""
    place = memory.address(s, base, Kind.F64, at)
    before = s.define(FLOAT, 1, f"load double, ptr {place}, align 8")
    memory.store(s, base, at, s.define(FLOAT, 1, f"fadd double {before}, {value}"))
