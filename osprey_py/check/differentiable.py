"""What a gradient can be asked of: floats, buffers of floats, and records, tuples and lists of these.

Comes in: a type that became known, and the `differentiable` need on it. Goes out: the same need on what is still open
in it, or a complaint that names the field. Spec: gradients G8.
"""

from __future__ import annotations

from dataclasses import replace

from osprey_py.check.context import Context
from osprey_py.check.infer_names import field_names, field_type
from osprey_py.check.showing import Shower
from osprey_py.check.terms import FLOAT, Need, TCon, Term, TRecord, TTuple, TVar, is_con, prune
from osprey_py.source.span import Span

CAN = "a gradient has floats, `GpuBuffer<float>`s, and records, tuples and lists of these"


def meet_differentiable(cx: Context, t: Term, need: Need) -> None:
    """`need` of a type whose head is known. The need's name is the path from what was given to the type."""
    whole = t
    seen: set[str] = set()
    todo: list[tuple[str, Term]] = [(need.name, t)]
    while todo:
        path, part = todo.pop()
        part = prune(part)
        inner = _inside(cx, path, part)
        if isinstance(part, TVar):
            cx.unifier.require(part, replace(need, name=path))
        elif is_con(part, "GpuBuffer") and isinstance(part, TCon):
            element = prune(part.args[0])
            if isinstance(element, TVar):
                cx.unifier.unify(element, FLOAT)
            elif not is_con(element, "float"):
                _tell(cx, whole, path, part, need)
        elif inner is None:
            _tell(cx, whole, path, part, need)
        elif isinstance(part, TCon) and part.name in cx.types:
            shown = Shower().show(part)
            if shown not in seen:
                seen.add(shown)
                todo.extend(reversed(inner))
        else:
            todo.extend(reversed(inner))


def _inside(cx: Context, path: str, t: Term) -> list[tuple[str, Term]] | None:
    """The parts of a type, with their paths; None when it is nothing that can be differentiated."""
    if isinstance(t, TTuple):
        return [(f"{path}.{k}", x) for k, x in enumerate(t.items)]
    if isinstance(t, TRecord):
        return [(f"{path}.{n}", x) for n, x in t.fields]
    if isinstance(t, TCon):
        if t.name == "float":
            return []
        if t.name == "List":
            return [(f"{path}[]", t.args[0])]
        if t.name in cx.types and len(cx.types[t.name].constructors) == 1:
            found = [(f"{path}.{n}", field_type(cx, t, n)) for n in field_names(cx, t)]
            return [(p, x) for p, x in found if x is not None]
    return None


def _tell(cx: Context, whole: Term, path: str, t: Term, need: Need) -> None:
    span, asked = (need.span, []) if need.use is None else (need.use, [(need.span, "asked for here")])
    asked = [(s, text) for s, text in asked if s != span]
    shown = Shower().show(t)
    place = path.removeprefix(".")
    arguments = cx.call_arguments.get(span, ())
    primary: Span = arguments[-1] if arguments else span
    cx.tell(
        "E0219",
        f"`{place}: {shown}` cannot be differentiated" if place else f"`{shown}` cannot be differentiated",
        primary,
        f"this is `{Shower().show(whole)}`" if place and need.name == "" else f"this holds `{shown}`" if place else "",
        asked,
        (CAN,),
        _help(t, place),
    )


def _help(t: Term, place: str) -> str:
    if place:
        return "keep it out of the parameters: the function can capture it, from a record of its own"
    if is_con(t, "int"):
        return "differentiate by a float: `toFloat(…)` makes one of an int"
    return "give it as a capture, and differentiate by the floats it is used with"
