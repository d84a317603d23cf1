"""Literals, variables, data, text: the expressions that are Python expressions."""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.check.types import INT, STRING, Named, RecordType
from osprey_py.eval.body import Body, local_name
from osprey_py.eval.emit import UNIT, P, moved
from osprey_py.eval.generate.base import VALUE, atom, nest, operands, value
from osprey_py.eval.values import anonymous_class, attribute, class_of


def constant(v: int | float | bool | str | tuple[()]) -> P:
    if v == () and type(v) is tuple:
        return UNIT
    if type(v) is float:
        if v != v:
            return P("_nan", stable=True)
        if v in (float("inf"), float("-inf")):
            return P("_inf" if v > 0 else "_minus_inf", stable=True)
    text = repr(v)
    return P(f"({text})" if text.startswith("-") else text, stable=True)


def _literal(b: Body, e: c.Literal) -> P:
    return constant(e.value)


def _local(b: Body, e: c.LocalRef) -> P:
    name = b.name(e.var)
    if e.var.mutable:
        return P(f"{name}.v")
    if e in b.live.last:
        return P(moved(name), nest=1)
    return P(name, stable=not b.live.tracks(e.var))


def _global(b: Body, e: c.GlobalRef) -> P:
    unit = b.unit
    v = unit.program.globals.get(e.name)
    if v is None:
        return P(b.instance(e).name, stable=True)
    name = unit.global_lets[v]
    return P(f"{name}.v") if v.mutable else P(name, stable=True)


def _field(b: Body, e: c.Field) -> P:
    p = value(b, e.record)
    return P(f"{p.text}.{attribute(e.name)}", stable=p.stable, nest=p.nest)


def _tuple(b: Body, e: c.TupleNew) -> P:
    ps = operands(b, e.items)
    return P(f"({', '.join(p.text for p in ps)},)", nest=nest(ps))


def _list(b: Body, e: c.ListNew) -> P:
    ps = operands(b, e.items)
    return P(f"_make_list([{', '.join(p.text for p in ps)}])", nest=nest(ps) + 1)


def _map(b: Body, e: c.MapNew) -> P:
    ps = operands(b, [x for pair in e.entries for x in pair])
    pairs = ", ".join(f"({k.text}, {v.text})" for k, v in zip(ps[::2], ps[1::2], strict=True))
    return P(f"_make_map([{pairs}])", nest=nest(ps) + 2)


def _record(b: Body, e: c.RecordNew) -> P:
    names = [n for n, _ in e.fields]
    cls = class_of(e.constructor) if e.constructor is not None else anonymous_class(tuple(names))
    if not cls.fields:
        return P(b.unit.shared(f"K_{cls.__name__}", cls, cls), stable=True)
    made = b.unit.constant("C", cls)
    ps = operands(b, [x for _, x in e.fields])
    if tuple(names) == cls.fields:
        args = [p.text for p in ps]
    elif all(p.stable for p in ps):
        by_name = dict(zip(names, ps, strict=True))
        args = [by_name[n].text for n in cls.fields]
    else:
        args = [f"{attribute(n)}={p.text}" for n, p in zip(names, ps, strict=True)]
    return P(f"{made}({', '.join(args)})", nest=nest(ps))


def _update(b: Body, e: c.RecordUpdate) -> P:
    cls = None
    if isinstance(e.type, RecordType):
        cls = anonymous_class(tuple(n for n, _ in e.type.fields))
    elif isinstance(e.type, Named):
        info = b.unit.program.types.get(e.type.name)
        if info is not None and len(info.constructors) == 1:
            cls = class_of(info.constructors[0])
    changed = [n for n, _ in e.fields]
    if cls is None:
        ps = operands(b, [e.record, *(x for _, x in e.fields)])
        new = [f"{attribute(n)}={p.text}" for n, p in zip(changed, ps[1:], strict=True)]
        return P(f"_update({', '.join([ps[0].text, *new])})", nest=nest(ps))
    record = atom(b, e.record)
    ps = operands(b, [x for _, x in e.fields])
    by_name = dict(zip(changed, ps, strict=True))
    if [n for n in cls.fields if n in by_name] != changed:
        ps = [p if p.stable else b.lines.spill(p) for p in ps]
        by_name = dict(zip(changed, ps, strict=True))
    args = [by_name[n].text if n in by_name else f"{record.text}.{attribute(n)}" for n in cls.fields]
    return P(f"{b.unit.constant('C', cls)}({', '.join(args)})", nest=nest(ps))


def text_of(p: P, t: object) -> str:
    """A value written as text, by its static type."""
    if t == STRING:
        return p.text
    return f"str({p.text})" if t == INT else f"_to_string({p.text})"


def _interpolate(b: Body, e: c.Interpolate) -> P:
    inner = [x for x in e.parts if not isinstance(x, str)]
    ps = operands(b, inner)
    made = iter(zip(ps, inner, strict=True))
    texts = []
    for part in e.parts:
        if isinstance(part, str):
            if part:
                texts.append(repr(part))
        else:
            p, x = next(made)
            texts.append(text_of(p, b.type_of(x)))
    if not texts:
        return P("''", stable=True)
    if len(texts) == 1:
        return P(texts[0], nest=nest(ps) + 1)
    return P(f"''.join(({', '.join(texts)}))", nest=nest(ps) + 3)


def _lambda(b: Body, e: c.Lambda) -> P:
    return closure(b, b.unit.lambda_maker(e.function, b.subst), b.unit.free.of_function(e.function), e)


def closure(b: Body, maker: str, variables: tuple[c.Var, ...], key: object) -> P:
    """A call of a factory with what it captures; what dies here is moved into it."""
    if not variables:
        return P(maker, stable=True)
    dying = b.live.captured.get(key, frozenset())
    args = [moved(local_name(v)) if v in dying else b.name(v) for v in variables]
    return P(f"{maker}({', '.join(args)})", nest=2)


def _constructor(b: Body, e: c.ConstructorRef) -> P:
    return P(b.unit.constructor_function(e.constructor), stable=True)


def _builtin(b: Body, e: c.BuiltinRef) -> P:
    return P(b.unit.builtin_value(e, b.type_of(e)), stable=True)


VALUE.update(
    {
        c.Literal: _literal,
        c.LocalRef: _local,
        c.GlobalRef: _global,
        c.Field: _field,
        c.TupleNew: _tuple,
        c.ListNew: _list,
        c.MapNew: _map,
        c.RecordNew: _record,
        c.RecordUpdate: _update,
        c.Interpolate: _interpolate,
        c.Lambda: _lambda,
        c.ConstructorRef: _constructor,
        c.BuiltinRef: _builtin,
    }
)
