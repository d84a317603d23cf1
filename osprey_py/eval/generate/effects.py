"""`perform`, `handle`, `resume` (spec/evaluation V6)."""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.check.types import Named
from osprey_py.eval.body import RETURN, Body, Dest, local_name
from osprey_py.eval.emit import P
from osprey_py.eval.generate.base import TO, operands, to, value
from osprey_py.eval.generate.expressions import closure
from osprey_py.eval.walk import RESUME, resumes


def _perform_to(b: Body, e: c.Perform, dest: Dest) -> None:
    ps = [p if p.stable else b.lines.spill(p) for p in operands(b, e.args)]
    handlers, name = b.lines.temp(), b.lines.temp()
    b.emit(f"{handlers} = W.handlers")
    arm = f"_find(W, {e.effect!r}, {e.operation!r}, {b.unit.span(e.span)})"
    b.emit(f"{name} = {arm}({', '.join(p.text for p in ps)})")
    b.emit(f"W.handlers = {handlers}")
    b.deliver(P(name, stable=True), dest)


def _handle_to(b: Body, e: c.Handle, dest: Dest) -> None:
    entries = []
    for arm in e.arms:
        made = closure(b, b.unit.arm_maker(arm, b.subst), b.unit.free.of_arm(arm), arm)
        entries.append(f"{arm.operation!r}: ({made.text}, {arm.resumes})")
    arms = "{" + ", ".join(entries) + "}"
    name = b.lines.temp()
    if resumes(e):
        body = closure(b, b.unit.part_maker(e.body, b.unit.free.of(e.body), b.subst, None), b.unit.free.of(e.body), e)
        forced = f"_forced({body.text})" if _lazy(e) else body.text
        b.emit(f"{name} = _run_handler(W, {e.effect!r}, {arms}, {forced}, {b.unit.span(e.span)})")
    else:
        handlers = b.lines.temp()
        b.emit(f"{handlers} = W.handlers")
        b.emit(f"W.handlers = _Handler({e.effect!r}, {arms}, {handlers})")
        to(b, e.body, Dest("name", name))
        if _lazy(e):
            b.emit(f"{name} = _evaluated({name})")
        b.emit(f"W.handlers = {handlers}")
    b.deliver(P(name, stable=True), dest)


def _lazy(e: c.Handle) -> bool:
    """The handled value is a pipeline whose stages may perform: it is evaluated before the handler is gone."""
    return isinstance(e.body.type, Named) and e.body.type.name == "Iterator"


def _resume_to(b: Body, e: c.Resume, dest: Dest) -> None:
    p = value(b, e.value)
    if dest is RETURN and b.arm:
        b.emit(f"return _Resumption({p.text})")
        return
    b.deliver(P(f"{local_name(RESUME)}({p.text})"), dest)


TO.update({c.Perform: _perform_to, c.Handle: _handle_to, c.Resume: _resume_to})
