"""What is said when two types differ.

Comes in: a failed unification and where both sides came from. Goes out: one diagnostic with both sides labelled, and the
hint that fits the pair. Spec: types-and-effects L4.2 (Results), L6.1, L6.10.
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.check.context import Context
from osprey_py.check.showing import Shower, an, show_kind
from osprey_py.check.terms import ELEMENT, Kind, TCon, Term, TFun, TRecord, TVar, head, is_con, prune
from osprey_py.check.unify import Mismatch
from osprey_py.source.span import Span

Because = Sequence[tuple[Span, str]]


def expect(cx: Context, actual: Term, wanted: Term, span: Span, what: str = "", because: Because = ()) -> bool:
    """The expression at `span` must have type `wanted`. what: what it is (`the condition`); because: where `wanted` comes
    from. False when it has not, which is told."""
    cx.unifier.where = span
    try:
        cx.unifier.unify(wanted, actual)
    except Mismatch as m:
        tell_mismatch(cx, m, actual, wanted, span, what, because)
        return False
    return True


def restrict(cx: Context, t: Term, kind: Kind, span: Span, what: str) -> bool:
    """The type at `span` must be one of `kind`; what: what is done there (``+` adds`)."""
    cx.unifier.where = span
    try:
        cx.unifier.restrict(t, kind)
    except Mismatch:
        sh = Shower()
        shown = sh.show(t)
        if is_con(t, "Result"):
            cx.tell(
                "E0203", f"{what} a value, and this is a Result", span, f"this is `{shown}`", help=result_help(t, sh)
            )
        else:
            cx.tell("E0204", f"{what} {show_kind(kind)}, not `{shown}`", span, f"this is `{shown}`")
        return False
    return True


def result_help(result: Term, sh: Shower) -> str:
    """How to get at the value of a Result."""
    t = prune(result)
    inner = prune(t.args[0]) if isinstance(t, TCon) and t.args else t
    default = {"int": "0", "float": "0.0", "bool": "false", "string": '""', "List": "[]"}.get(head(inner), "default")
    return (
        f"give a value for the failure, `(… ?: {default})`, or match it: "
        "`match … { Success { value } => value  Error { message } => … }`"
    )


def tell_mismatch(
    cx: Context, m: Mismatch, actual: Term, wanted: Term, span: Span, what: str, because: Because
) -> None:
    sh = Shower()
    a, w = sh.show(actual), sh.show(wanted)
    labels = [*because, *origins(actual, span, sh)]
    subject = f"{what} is" if what else "this is"
    actual, wanted = prune(actual), prune(wanted)
    if m.why == "occurs":
        cx.tell("E0206", "this type would contain itself", span, f"it is `{a}`, and also `{w}`", labels)
        return
    open_kind = isinstance(wanted, TVar) and (wanted.kind is None or is_element(m))
    if is_con(actual, "Result") and not is_con(wanted, "Result") and not open_kind:
        title = f"{an(w)} is needed here, and {subject.removesuffix(' is')} is a Result"
        cx.tell("E0203", title, span, f"this is `{a}`", labels, help=result_help(actual, sh))
        return
    if m.why == "rigid":
        names = [t.name for t in (prune(m.left), prune(m.right) if m.right else None) if isinstance(t, TVar) and t.name]
        title = f"`{names[0]}` stands for any type, and here it would have to be `{_other(m, names[0], sh)}`"
        cx.tell("E0207", title, span, f"{subject} `{a}`, expected `{w}`", labels)
        return
    if is_element(m):
        left = m.right if isinstance(prune(m.left), TVar) and m.right is not None else m.left
        cx.tell(
            "E0209",
            f"a GPU buffer cannot hold `{sh.show(left)}`",
            span,
            f"{subject} `{a}`, expected `{w}`",
            labels,
            help="an element is int, float or bool",
        )
        return
    notes: list[str] = []
    inner = _inner_pair(m, actual, wanted, sh)
    if inner:
        notes.append(inner)
    help = hint(actual, wanted, sh)
    if what.startswith("argument") and head(actual) == "string" and head(wanted) in ("int", "float"):
        help = f"a number is read from text with `parse{head(wanted).capitalize()}(…)`, which gives a Result"
    cx.tell("E0201", f"expected `{w}`, found `{a}`", span, f"{subject} `{a}`", labels, notes, help)


def is_element(m: Mismatch) -> bool:
    """A type that no buffer can hold met one that a buffer holds."""
    return m.why == "kind" and m.kind is not None and m.kind <= ELEMENT and "bool" in m.kind


def _other(m: Mismatch, name: str, sh: Shower) -> str:
    left = sh.show(m.left)
    return left if left != name else sh.show(m.right) if m.right is not None else left


def _inner_pair(m: Mismatch, actual: Term, wanted: Term, sh: Shower) -> str:
    """The innermost difference, where it is not the whole."""
    if m.right is None or m.why not in ("types", "kind", "count"):
        return ""
    left, right = prune(m.left), prune(m.right)
    if {id(left), id(right)} == {id(actual), id(wanted)}:
        return ""
    if m.why == "count" and isinstance(left, TFun) and isinstance(right, TFun):
        return f"one takes {len(left.params)} arguments, the other {len(right.params)}"
    return f"`{sh.show(left)}` and `{sh.show(right)}` differ"


def origins(t: Term, span: Span, sh: Shower) -> list[tuple[Span, str]]:
    """Where inference decided what a variable is."""
    where: Span | None = None
    while isinstance(t, TVar) and t.ref is not None:
        where = t.where or where
        t = t.ref
    if where is None or (where.start <= span.start and span.end <= where.end):
        return []
    return [(where, f"it is `{sh.show(t)}` because of this")]


def hint(actual: Term, wanted: Term, sh: Shower) -> str:
    """What a person probably meant."""
    a, w = head(actual), head(wanted)
    if (a, w) == ("int", "float"):
        return "convert it with `toFloat(…)`, or write a float literal: `1.0`"
    if (a, w) == ("float", "int"):
        return "convert it with `toInt(…)`, which truncates"
    if w == "string" and a in ("int", "float", "bool"):
        return 'convert it with `toString(…)`, or write it inside a string: `"${…}"`'
    if w == "Result" and a != "Result":
        return "wrap it: `Success { value: … }`"
    if a == "function" and w != "function":
        return "this is a function; call it with `(…)`"
    if a == "List" and w == "GpuBuffer":
        return "make it a buffer with `toGpu(…)`"
    if a == "GpuBuffer" and (w == "List" or (isinstance(wanted, TVar) and "List" in (wanted.kind or ()))):
        return "bring it back with `fromGpu(…)`"
    if a == "Iterator" and w == "List":
        return "make it a list with `toList(…)`"
    if (a, w) == ("Unit", "Map"):
        return "an empty map is `Map()`; `{}` is an empty block"
    if isinstance(actual, TRecord) and w == "Map":
        return 'this is a record; the keys of a map are values: `{ "a": 1 }`'
    return ""
