"""Do the arms of a `match` cover everything, and is every arm reached?

Comes in: typed patterns. Goes out: errors that name a missing case as code, and arms that nothing reaches. Arms with guards
do not count as covering. The method is Maranget's usefulness: a row of patterns is useful to a matrix of rows if some
value matches it and none of them. Spec: types-and-effects L6.13, L6.14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osprey_py.check.context import ConstructorDef, Context
from osprey_py.check.terms import TCon, Term, TRecord, TVar, prune
from osprey_py.syntax import ast


@dataclass(frozen=True, slots=True)
class Head:
    """What a pattern tests first. fields: names of its parts (positions for tuples); form: how it is written.
    siblings: the names of all heads of its type, itself included; None when there are too many to count."""

    name: object
    form: str
    fields: tuple[str, ...]
    siblings: tuple[Sibling, ...] | None


@dataclass(frozen=True, slots=True)
class Sibling:
    name: object
    form: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Simple:
    """A pattern for the algorithm: head None is a wildcard."""

    head: Head | None
    args: tuple[Simple, ...] = ()


WILD = Simple(None)
Row = tuple[Simple, ...]
_BUDGET = 2_000_000


class _TooMany(Exception):
    pass


def check_match(cx: Context, expr: ast.Match, met: Term) -> None:
    """Tells a missing case or an unreachable arm of a match on values of type `met`."""
    rows: list[Row] = []
    budget = [_BUDGET]
    try:
        for arm in expr.arms:
            row = (simple(cx, arm.pattern),)
            if useful(rows, row, budget) is None:
                cx.tell(
                    "E0402",
                    "this arm is never reached",
                    arm.pattern.span,
                    "the arms above match everything that it does",
                    help="remove it, or move it up",
                )
            if arm.guard is None:
                rows.append(row)
        missing = None if (WILD,) in rows else useful(rows, (WILD,), budget)
    except _TooMany:
        cx.tell(
            "E0404",
            "this `match` is too complicated to check",
            expr.span,
            "too many combinations of patterns",
            help="split it into nested matches, or end it with `_ => …`",
        )
        return
    if missing is not None:
        case = show(missing[0])
        guarded = any(a.guard is not None for a in expr.arms)
        notes = ("an arm with a guard does not count: its guard may be false",) if guarded else ()
        cx.tell(
            "E0401",
            f"this `match` does not cover {'every value' if case == '_' else f'`{case}`'}",
            expr.scrutinee.span,
            f"`{case}` is not matched" if case != "_" else "other values are not matched",
            notes=notes,
            help=f"add an arm: `{case} => …`",
        )


def check_irrefutable(cx: Context, pattern: ast.Pattern) -> None:
    """A `let` pattern must match every value."""
    if isinstance(pattern, (ast.NamePattern, ast.WildPattern)) and pattern not in cx.side.constructors:
        return
    missing = useful([(simple(cx, pattern),)], (WILD,), [_BUDGET])
    if missing is not None:
        case = show(missing[0])
        cx.tell(
            "E0403",
            "this `let` pattern may not match",
            pattern.span,
            f"`{case}` does not match" if any(c.isalnum() or c == "[" for c in case) else "some values do not match",
            help="use `match`, with an arm for every case",
        )


# --- patterns -------------------------------------------------------------------------------------------------------


def simple(cx: Context, p: ast.Pattern) -> Simple:
    side = cx.side
    match p:
        case ast.WildPattern():
            return WILD
        case ast.NamePattern():
            found = side.constructors.get(p)
            return WILD if found is None else Simple(_declared_head(found))
        case ast.LiteralPattern(kind="unit"):
            return Simple(_single("()", "()", ()))
        case ast.LiteralPattern(kind="bool", value=value):
            forms = tuple(Sibling(b, "true" if b else "false", ()) for b in (True, False))
            return Simple(Head(value, "true" if value else "false", (), forms))
        case ast.LiteralPattern(value=value):
            return Simple(Head(value, p.span.text, (), None))
        case ast.TuplePattern(items=items):
            names = tuple(str(i) for i in range(len(items)))
            return Simple(_single("tuple", "tuple", names), tuple(simple(cx, q) for q in items))
        case ast.ListPattern(items=items, rest=rest):
            tail = Simple(_list_head("nil")) if rest is None else simple(cx, rest)
            for q in reversed(items):
                tail = Simple(_list_head("cons"), (simple(cx, q), tail))
            return tail
        case ast.RecordPattern(fields=fields):
            head = _record_head(cx, p)
            return _with_fields(cx, head, fields)
        case ast.ConstructorPattern(positional=positional, named=named):
            found = side.constructors.get(p)
            head = _result_head(p.path[-1].text) if found is None else _declared_head(found)
            if positional is not None:
                return Simple(head, tuple(simple(cx, q) for q in positional))
            return _with_fields(cx, head, named or ())
    raise TypeError(p)


def _with_fields(cx: Context, head: Head, fields: Sequence[tuple[ast.Name, ast.Pattern]]) -> Simple:
    given = {n.text: simple(cx, q) for n, q in fields}
    return Simple(head, tuple(given.get(n, WILD) for n in head.fields))


def _single(name: str, form: str, fields: tuple[str, ...]) -> Head:
    return Head(name, form, fields, (Sibling(name, form, fields),))


def _declared_head(found: ConstructorDef) -> Head:
    siblings = tuple(
        Sibling(c.core.name, f"{'' if not c.core.positional else '()'}{c.core.name}", c.core.fields)
        for c in found.type.constructors.values()
    )
    own = next(s for s in siblings if s.name == found.core.name)
    return Head(own.name, own.form, own.fields, siblings)


def _result_head(name: str) -> Head:
    siblings = (Sibling("Success", "Success", ("value",)), Sibling("Error", "Error", ("message",)))
    own = siblings[0] if name == "Success" else siblings[1]
    return Head(own.name, own.form, own.fields, siblings)


def _list_head(name: str) -> Head:
    siblings = (Sibling("nil", "nil", ()), Sibling("cons", "cons", ("0", "1")))
    own = siblings[0] if name == "nil" else siblings[1]
    return Head(own.name, own.form, own.fields, siblings)


def _record_head(cx: Context, p: ast.RecordPattern) -> Head:
    t = prune(cx.side.types[p])
    if isinstance(t, TCon) and t.name in cx.types:
        return _declared_head(next(iter(cx.types[t.name].constructors.values())))
    names: tuple[str, ...] = tuple(sorted(n.text for n, _ in p.fields))
    if isinstance(t, TRecord):
        names = tuple(n for n, _ in t.fields)
    elif isinstance(t, TVar) and t.needs:
        names = tuple(sorted(name for kind, name in t.needs if kind == "field"))
    return _single("record", "record", names)


# --- usefulness -----------------------------------------------------------------------------------------------------


def useful(rows: list[Row], row: Row, budget: list[int]) -> Row | None:
    """A row of values (as patterns) that `row` matches and no row of the matrix does; None if there is none."""
    budget[0] -= 1 + len(rows)
    if budget[0] < 0:
        raise _TooMany
    if not row:
        return None if rows else ()
    first = row[0]
    if first.head is not None:
        found = useful(_specialise(rows, first.head), (*first.args, *row[1:]), budget)
        return None if found is None else _rebuild(first.head, found)
    heads = {r[0].head.name: r[0].head for r in rows if r[0].head is not None}
    siblings = next((h.siblings for h in heads.values()), None)
    if siblings is not None and len(heads) == len(siblings):
        for s in siblings:
            head = heads[s.name]
            found = useful(_specialise(rows, head), (*[WILD] * len(head.fields), *row[1:]), budget)
            if found is not None:
                return _rebuild(head, found)
        return None
    found = useful([r[1:] for r in rows if r[0].head is None], row[1:], budget)
    if found is None:
        return None
    if siblings is None:
        return (WILD, *found)
    missing = next(s for s in siblings if s.name not in heads)
    return (Simple(Head(missing.name, missing.form, missing.fields, siblings), (WILD,) * len(missing.fields)), *found)


def _specialise(rows: list[Row], head: Head) -> list[Row]:
    out: list[Row] = []
    for r in rows:
        if r[0].head is None:
            out.append((*[WILD] * len(head.fields), *r[1:]))
        elif r[0].head.name == head.name:
            out.append((*r[0].args, *r[1:]))
    return out


def _rebuild(head: Head, found: Row) -> Row:
    n = len(head.fields)
    return (Simple(head, found[:n]), *found[n:])


# --- showing --------------------------------------------------------------------------------------------------------


def show(p: Simple) -> str:
    """The pattern as it is written in code."""
    h = p.head
    if h is None:
        return "_"
    parts = [show(a) for a in p.args]
    if h.form == "tuple":
        return f"({', '.join(parts)})"
    if h.form in ("nil", "cons"):
        return _show_list(p)
    fields = ", ".join(n if s == "_" else f"{n}: {s}" for n, s in zip(h.fields, parts, strict=True))
    if h.form == "record":
        return f"{{ {fields} }}"
    if h.form.startswith("()") and h.form != "()":
        return f"{h.form[2:]}({', '.join(parts)})"
    return f"{h.form} {{ {fields} }}" if h.fields else h.form


def _show_list(p: Simple) -> str:
    items: list[str] = []
    while p.head is not None and p.head.form == "cons":
        items.append(show(p.args[0]))
        p = p.args[1]
    if p.head is None:
        items.append("..._")
    return f"[{', '.join(items)}]"
