"""Calls: of functions (tail calls into jumps or trampolines), of built-ins, and outlined pieces of deep code."""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.eval.body import RETURN, Body, Dest, local_name
from osprey_py.eval.emit import P
from osprey_py.eval.generate.base import TO, VALUE, nest, operands
from osprey_py.eval.generate.inline import INLINE
from osprey_py.eval.registry import BUILTINS


def _call(b: Body, e: c.Call) -> P:
    callee = e.callee
    if isinstance(callee, c.BuiltinRef):
        return _builtin_call(b, callee, e)
    if isinstance(callee, c.GlobalRef) and callee.name in b.unit.program.functions:
        ps = operands(b, e.args)
        return P(f"{b.instance(callee).name}({', '.join(p.text for p in ps)})", nest=nest(ps))
    ps = operands(b, (callee, *e.args))
    return P(f"{ps[0].text}({', '.join(p.text for p in ps[1:])})", nest=nest(ps))


def _builtin_call(b: Body, callee: c.BuiltinRef, e: c.Call) -> P:
    name = callee.name
    ps = operands(b, e.args)
    made = INLINE.get(name)
    if made is not None:
        p = made(b, e, ps)
        if p is not None:
            return p
    built = BUILTINS[name]
    args = ["W"] if built.world else []
    args += [p.text for p in ps]
    if built.span:
        args.append(b.unit.span(e.span))
    if built.typed:
        args.append(b.unit.constant("T", b.type_of(e)))
    return P(f"B_{name}({', '.join(args)})", nest=nest(ps))


def _call_to(b: Body, e: c.Call, dest: Dest) -> None:
    if dest is RETURN:
        callee = e.callee
        own = (
            isinstance(callee, c.GlobalRef) and callee.name == b.self_name and b.instance(callee).key == b.subst.key
        ) or (isinstance(callee, c.LocalRef) and callee.var is b.self_var)
        if own and b.loops:
            _jump(b, e)
            return
        if own and b.again:
            ps = operands(b, e.args)
            b.emit(f"return _TailCall(None, {', '.join(p.text for p in ps)})")
            return
        if isinstance(callee, c.GlobalRef) and callee.name in b.group:
            ps = operands(b, e.args)
            target = b.instance(callee).inner
            b.emit(f"return _TailCall({', '.join([target, *(p.text for p in ps)])})")
            return
    b.deliver(VALUE[c.Call](b, e), dest)


def _jump(b: Body, e: c.Call) -> None:
    """A self tail call: new values for the parameters, then the top of the loop. A parameter that is handed on as it is
    stays where it is, unless it was moved into a temporary because a later argument needs statements."""
    ps = operands(b, e.args)
    changed = [
        (v, p)
        for v, p, x in zip(b.params, ps, e.args, strict=True)
        if not (isinstance(x, c.LocalRef) and x.var is v and not v.mutable and local_name(v) in p.text)
    ]
    if changed:
        left = ", ".join(local_name(v) for v, _ in changed)
        b.emit(f"{left} = {', '.join(p.text for _, p in changed)}")
    b.emit("continue")


def outline(b: Body, e: c.Expr, dest: Dest) -> None:
    """Code nested deeper than Python allows becomes a function of its own, made and called here."""
    variables = b.unit.free.of(e)
    tail = dest is RETURN
    jumps = tail and (b.loops or b.again)
    maker = b.unit.part_maker(e, variables, b.subst, b if tail else None)
    args = ", ".join(b.name(v) for v in variables)
    call = f"{maker}({args})()" if variables else f"{maker}()"
    if not jumps:
        b.deliver(P(call), dest)
        return
    name = b.lines.temp()
    b.emit(f"{name} = {call}")
    if b.loops:
        b.emit(f"if {name}.__class__ is _TailCall and {name}.target is None:")
        b.lines.indent += 1
        left = "".join(f"{local_name(v)}, " for v in b.params)
        if left:
            b.emit(f"{left}= {name}.args")
        b.emit("continue")
        b.lines.indent -= 1
    b.deliver(P(name, stable=True), dest)


VALUE[c.Call] = _call
TO[c.Call] = _call_to
