"""Requirements on types that became known: fields, elements, indexing, equality.

Comes in: a known type and a `Need`. Goes out: the field's type, or a complaint. Spec: types-and-effects L6.5, L6.6, L6.15.
"""

from __future__ import annotations

from osprey_py.check.builtins import SIGNATURES
from osprey_py.check.context import Context
from osprey_py.check.infer_names import field_names, field_type, loosen
from osprey_py.check.mismatch import is_element, origins, result_help
from osprey_py.check.showing import Shower
from osprey_py.check.terms import Need, TCon, Term, TVar, head, is_con, prune
from osprey_py.check.unify import Mismatch
from osprey_py.check.written_types import tell_element
from osprey_py.source.span import Span
from osprey_py.source.suggest import did_you_mean


def read_field(cx: Context, t: Term, need: Need) -> Term | None:
    """The type of the field that `need` names; None after telling that there is none. What is read may be loosened (L5.3);
    what is put in may not: it must reach every reader."""
    found = field_type(cx, t, need.name)
    if found is not None:
        return found if need.kind == "put" else loosen(cx, found)
    span, asked = _places(need)
    sh = Shower()
    shown = sh.show(t)
    names = field_names(cx, t)
    if is_con(t, "Result"):
        cx.tell(
            "E0203",
            f"`.{need.name}` needs a value, and this is a Result",
            span,
            f"read from `{shown}`",
            asked,
            help=result_help(t, sh),
        )
        return None
    hint = did_you_mean(need.name, names)
    if not hint and names:
        hint = "its fields are " + ", ".join(f"`{n}`" for n in names)
    t = prune(t)
    if isinstance(t, TCon) and t.name in cx.types and len(cx.types[t.name].constructors) > 1:
        hint = f"`{shown}` has several variants; read their fields with `match`"
    elif ")" in SIGNATURES.get(need.name, ""):
        hint = f"`{need.name}` is a function: call it with `….{need.name}()` or `{need.name}(…)`"
    elif is_con(t, "Map"):
        hint = f'a key is read with `[…]`: `["{need.name}"]`'
    cx.tell("E0210", f"`{shown}` has no field `{need.name}`", span, "no such field", asked, help=hint)
    return None


def _places(need: Need) -> tuple[Span, list[tuple[Span, str]]]:
    """Where to tell it: at the use of a generic function, with the place in it that asks, or at that place."""
    if need.use is None:
        return need.span, []
    return need.use, [(need.span, "asked for here")]


def tell_need(cx: Context, t: Term, need: Need, m: Mismatch | None) -> None:
    """A known type does not meet a requirement."""
    span, asked = _places(need)
    sh = Shower()
    shown = sh.show(t)
    if need.kind == "instance":
        cx.tell(
            "E0305",
            f"one effect is used at two types: `{shown}` and `{sh.show(need.types[0])}`",
            span,
            "the types differ here",
            [*origins(t, span, sh), *origins(need.types[0], span, sh)],
        )
    elif m is not None and is_element(m):
        met = m.right if isinstance(prune(m.left), TVar) and m.right is not None else m.left
        tell_element(cx, met, span, "GpuBuffer")
    elif m is not None:
        left = sh.show(m.left)
        right = sh.show(m.right) if m.right is not None else shown
        what = f"`{need.name}`" if need.name else "this"
        cx.tell("E0201", f"expected `{right}`, found `{left}`", span, f"{what} is `{left}`", asked)
    elif need.kind == "element":
        cx.tell("E0204", f"`{shown}` is no list", span, "a List or an Iterator is needed", asked)
    elif need.kind == "index":
        help = result_help(t, sh) if is_con(t, "Result") else "a List, a Map or a string can be indexed"
        if is_con(t, "GpuBuffer"):
            help = "read an element of a buffer with `gpuGet(b, i)`"
        elif is_con(t, "Iterator"):
            help = "make it a list first, with `toList(…)`"
        cx.tell("E0204", f"`{shown}` cannot be indexed", span, "this index reads nothing", asked, help=help)
    elif need.kind == "equal":
        names = {"GpuBuffer": "buffers", "function": "functions"}
        what = names.get(head(t), f"values of `{shown}`")
        cx.tell(
            "E0218",
            f"{what} cannot be compared",
            span,
            f"this compares `{shown}`",
            asked,
            help="compare what `fromGpu` gives" if what == "buffers" else "",
            notes=() if what in names.values() else ("it holds a function or a buffer",),
        )
