"""Patterns: what is matched, the tests, the bindings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from osprey_py.check import core as c
from osprey_py.check.types import Type
from osprey_py.eval.body import Body, Dest
from osprey_py.eval.generate.base import operands, to, value
from osprey_py.eval.generate.expressions import constant
from osprey_py.eval.generate.lookups import lookup, total
from osprey_py.eval.generate.regions import fault_as_error, region
from osprey_py.eval.values import attribute


@dataclass(frozen=True, slots=True)
class Subject:
    """What patterns look at. items: the components of a tuple that is never built. temps: names to clear once the
    bindings are made. lookup: text is what a Success would hold, or ABSENT for an Error."""

    text: str
    items: tuple[Subject, ...] | None = None
    temps: tuple[str, ...] = ()
    lookup: bool = False

    def clear(self, b: Body) -> None:
        for name in self.temps:
            b.emit(f"{name} = None")


def subject_of(b: Body, e: c.Expr, recovers: bool = False) -> Subject:
    """Evaluate a scrutinee. recovers: a math fault in it is an Error."""
    if recovers and not total(b, e):
        name = b.lines.temp()
        region(b, e, lambda: to(b, e, Dest("name", name)), lambda: fault_as_error(b, name))
        return _owned(b, name, e.type)
    if isinstance(e, c.TupleNew):
        ps = operands(b, e.items)
        parts = []
        for p, x in zip(ps, e.items, strict=True):
            if p.stable or (isinstance(x, c.LocalRef) and x not in b.live.last and not x.var.mutable):
                parts.append(Subject(p.text))
                continue
            name = b.lines.temp()
            b.emit(f"{name} = {p.text}")
            parts.append(_owned(b, name, x.type))
        temps = tuple(n for part in parts for n in part.temps)
        return Subject(f"({', '.join(part.text for part in parts)},)", tuple(parts), temps)
    if isinstance(e, c.LocalRef) and not e.var.mutable and e not in b.live.last:
        return Subject(b.name(e.var))
    p = value(b, e)
    if p.stable:
        return Subject(p.text)
    name = b.lines.temp()
    b.emit(f"{name} = {p.text}")
    return _owned(b, name, e.type)


def lookup_subject(b: Body, e: c.Match) -> Subject | None:
    """For `match` on a lookup whose arms need no message: the value or ABSENT, without a Result in between."""
    found = lookup(b, e.scrutinee)
    if found is None or not all(_needs_no_message(arm.pattern) for arm in e.arms):
        return None
    call, args = found
    name = b.lines.temp()

    def look() -> None:
        ps = operands(b, args)
        b.emit(f"{name} = {call(ps)}")

    if e.recovers and not all(total(b, x) for x in args):
        region(b, e.scrutinee, look, lambda: b.emit(f"{name} = _ABSENT"))
    else:
        look()
    return replace(_owned(b, name, e.scrutinee.type), lookup=True)


def _needs_no_message(p: c.Pattern) -> bool:
    if isinstance(p, c.PConstructor):
        return p.constructor is c.SUCCESS or all(isinstance(q, c.PWild) for _, q in p.fields)
    return isinstance(p, c.PWild)


def _owned(b: Body, name: str, t: Type) -> Subject:
    return Subject(name, temps=(name,) if b.holds(t) else ())


def _inside(subject: Subject, p: c.Pattern) -> list[tuple[c.Pattern, Subject]]:
    """The sub-patterns of p with what they look at."""
    text = subject.text
    if subject.lookup:
        fields = p.fields if isinstance(p, c.PConstructor) and p.constructor is c.SUCCESS else ()
        return [(q, Subject(text)) for _, q in fields]
    match p:
        case c.PConstructor(fields=fields) | c.PRecord(fields=fields):
            return [(q, Subject(f"{text}.{attribute(n)}")) for n, q in fields]
        case c.PTuple(items=items):
            if subject.items is not None:
                return list(zip(items, subject.items, strict=True))
            return [(q, Subject(f"{text}[{k}]")) for k, q in enumerate(items)]
        case c.PList(items=items, rest=rest):
            inside = [(q, Subject(f"{text}.items[{text}.lo + {k}]")) for k, q in enumerate(items)]
            if rest is not None:
                inside.append((rest, Subject(f"_drop_front({text}, {len(items)})")))
            return inside
    return []


def matching(b: Body, p: c.Pattern, subject: Subject) -> list[str]:
    """The tests that say that p matches; none when it always does."""
    text = subject.text
    tests: list[str] = []
    match p:
        case c.PLiteral(value=v):
            if type(v) is bool:
                tests.append(text if v else f"not {text}")
            elif v != ():
                tests.append(f"{text} == {constant(v).text}")
        case c.PConstructor(constructor=constructor) if subject.lookup:
            tests.append(f"{text} is{' not' if constructor is c.SUCCESS else ''} _ABSENT")
        case c.PConstructor(constructor=constructor):
            if b.unit.siblings(constructor) > 1:
                tests.append(f"{text}.__class__ is {b.unit.class_name(constructor)}")
        case c.PList(items=items, rest=rest):
            if rest is None:
                tests.append(f"{text}.hi - {text}.lo == {len(items)}")
            elif items:
                tests.append(f"{text}.hi - {text}.lo >= {len(items)}")
    for q, part in _inside(subject, p):
        tests += matching(b, q, part)
    return tests


def bind(b: Body, p: c.Pattern, subject: Subject) -> None:
    """Bind the variables of a pattern that has matched."""
    if isinstance(p, c.PVar):
        if p.var in b.live.unused:
            return
        text = f"_Cell({subject.text})" if p.var.mutable else subject.text
        b.emit(f"{b.name(p.var)} = {text}")
    for q, part in _inside(subject, p):
        bind(b, q, part)
