"""`?:`, `match` over what may fault, and Attempt: regions that turn a math fault into a value (spec/evaluation V3.6).

A region notes where it began (launches, depth, handlers); its end sees to the launches made in it; a fault in it is
looked at by the runtime, which knows which fault strict order would have met first.
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.check import core as c
from osprey_py.eval.body import Body, Dest
from osprey_py.eval.emit import P
from osprey_py.eval.generate.base import TO, indented, operands, to, value
from osprey_py.eval.generate.lookups import lookup, total
from osprey_py.eval.values import VALUE as VALUE_FIELD


def region(b: Body, e: c.Expr, body: Callable[[], None], on_fault: Callable[[], None]) -> None:
    """Emit `body` so that a recoverable fault in it leads to `on_fault`, which may read `_f`, the fault. e: what body
    evaluates."""
    launches = b.unit.graph.may_launch(e)
    kept = [(b.lines.temp(), f"W.{part}") for part in b.unit.dynamic_state]
    for name, state in kept:
        b.emit(f"{name} = {state}")
    mark = "W.runtime.mark()"
    if launches:
        mark = b.lines.temp()
        b.emit(f"{mark} = W.runtime.mark()")
    b.emit("try:")
    b.lines.indent += 1
    b.lines.blocks += 1
    body()
    if launches:
        b.emit(f"W.runtime.settle({mark})")
    b.lines.indent -= 1
    b.emit("except _MathFault as _f:")
    b.lines.indent += 1
    for name, state in kept:
        b.emit(f"{state} = {name}")
    b.emit(f"_f = W.runtime.caught(_f, {mark})")
    on_fault()
    b.lines.indent -= 1
    b.lines.blocks -= 1


def fault_as_error(b: Body, name: str) -> None:
    b.emit(f"{name} = _Error(_f.message)")


def _recover_to(b: Body, e: c.Recover, dest: Dest) -> None:
    name = b.lines.temp()
    found = lookup(b, e.value) if e.kind == "result" else None
    if found is not None:
        call, args = found
        if all(total(b, x) for x in args):
            ps = operands(b, args)
            _choose(b, e, f"({name} := {call(ps)}) is not _ABSENT", name, dest, name)
            return

        def look() -> None:
            ps = operands(b, args)
            b.emit(f"{name} = {call(ps)}")

        region(b, e.value, look, lambda: b.emit(f"{name} = _ABSENT"))
        _choose(b, e, f"{name} is not _ABSENT", name, dest, name)
        return
    if total(b, e.value):
        to(b, e.value, Dest("name", name))
    else:
        region(b, e.value, lambda: to(b, e.value, Dest("name", name)), lambda: b.emit(f"{name} = _ABSENT"))
    if e.kind == "result":
        _choose(b, e, f"{name}.__class__ is _Success", f"{name}.{VALUE_FIELD}", dest, name)
    elif e.kind == "scalar":
        _choose(b, e, f"{name} is not _ABSENT", name, dest, name)
    else:
        b.emit(f"{name} = _unwrap({name})")
        _choose(b, e, f"{name} is not _ABSENT", name, dest, name)


def _choose(b: Body, e: c.Recover, test: str, result: str, dest: Dest, name: str) -> None:
    """The value where the test holds, otherwise the default, whose faults are outside."""
    default = e.default
    if isinstance(default, c.Literal) and not b.live.after.get(e) and not b.live.drops.get(default):
        b.deliver(P(f"({result} if {test} else {value(b, default).text})", nest=3), dest)
    else:
        b.emit(f"if {test}:")
        b.lines.indent += 1
        begin = len(b.lines.out)
        b.clear(b.live.after.get(e, ()))
        b.deliver(P(result), dest)
        if len(b.lines.out) == begin:
            b.emit("pass")
        b.lines.indent -= 1
        b.emit("else:")
        indented(b, default, dest)
    if dest.kind == "name" and dest.name != name and b.holds(e.type):
        b.emit(f"{name} = None")


def _attempt_to(b: Body, e: c.Attempt, dest: Dest) -> None:
    name = b.lines.temp()

    def body() -> None:
        to(b, e.value, Dest("name", name))
        if e.wraps:
            b.emit(f"{name} = _Success({name})")

    region(b, e.value, body, lambda: fault_as_error(b, name))
    b.deliver(P(name), dest)


TO.update({c.Recover: _recover_to, c.Attempt: _attempt_to})
