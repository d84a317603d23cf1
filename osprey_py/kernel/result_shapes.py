"""The shape of a recursive function's result, which its calls need before its body has been seen.

Comes in: the result's type. Goes out: a `Shape`, and `fit`, which gives a value that shape (a variant that is known
becomes one that is chosen at run time, an absent value any value).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from osprey_py.check import core as c
from osprey_py.check.types import Named, RecordType, TupleType, Type, TypeVar
from osprey_py.eval.walk import walk
from osprey_py.kernel import symbols as s
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Node, const
from osprey_py.kernel.refusals import refuse_recursion
from osprey_py.source.span import Span

_SCALARS = {"int": INT, "float": FLOAT, "bool": BOOL}
_TEXT = s.Shape(("opaque", "an error's text"), keep=s.Opaque("an error's text"))


def result_shape(t: Type, known: Mapping[Type, s.Shape], function: c.Function, span: Span) -> s.Shape:
    """The shape of values of type t. known: of types that only this call tells (a generic function's variables)."""
    if t in known:
        return known[t]
    match t:
        case Named(name=name) if name in _SCALARS:
            return s.Shape((_SCALARS[name],))
        case Named(name="Unit"):
            return s.Shape(("tuple", 0))
        case Named(name="Result", args=(value, _)):
            of_value = result_shape(value, known, function, span)
            success = s.Shape(("case", c.SUCCESS, "value"), (of_value,))
            return s.Shape(("union",), (success, s.Shape(("case", c.ERROR, "message"), (_TEXT,))))
        case TupleType(items=items):
            return s.Shape(("tuple", len(items)), tuple(result_shape(i, known, function, span) for i in items))
        case RecordType(fields=fields):
            parts = tuple(result_shape(f, known, function, span) for _, f in fields)
            return s.Shape(("record", None, *(n for n, _ in fields)), parts)
        case Named():
            return _declared(t, known, function, span)
        case TypeVar():
            raise refuse_recursion("the type of its result shows only when it runs", span)
    raise refuse_recursion(f"its result is of type {t}", span)


def _declared(t: Type, known: Mapping[Type, s.Shape], function: c.Function, span: Span) -> s.Shape:
    """A declared record or union: of the constructors that the function itself makes."""
    made: dict[c.Constructor, c.RecordNew] = {}
    for e in walk(function.body):
        if isinstance(e, c.RecordNew) and e.type == t and e.constructor is not None:
            made.setdefault(e.constructor, e)
    if not made:
        raise refuse_recursion(f"its result is of type {t}, which it does not make itself", span)
    shapes = {}
    for constructor, e in made.items():
        types = dict(e.fields)
        parts = tuple(result_shape(types[n].type, known, function, span) for n in constructor.fields)
        shapes[constructor] = parts
    if len(shapes) == 1:
        ((constructor, parts),) = shapes.items()
        return s.Shape(("record", constructor, *constructor.fields), parts)
    return s.Shape(("union",), tuple(s.Shape(("case", k, *k.fields), parts) for k, parts in shapes.items()))


def fit(value: s.Value, shape: s.Shape) -> s.Value:
    """The value in the given shape; what it lacks is any value."""
    if isinstance(value, s.Absent):
        return s.with_leaves(shape, _anything(shape))
    match shape.tag:
        case ("union",) if isinstance(value, s.Record | s.Union):
            cases = s.cases(value)
            fitted: dict[c.Constructor, s.Case] = {}
            for part in shape.parts:
                _, constructor, *names = part.tag
                bit, fields = cases.get(constructor, (s.FALSE, {}))
                pairs = zip(names, part.parts, strict=True)
                fitted[constructor] = (bit, {n: fit(fields.get(n, s.ABSENT), p) for n, p in pairs})
            return s.Union(fitted)
        case ("tuple", *_) if isinstance(value, s.Tuple):
            return s.Tuple(tuple(fit(x, p) for x, p in zip(value.items, shape.parts, strict=True)))
        case ("record", _, *names) if isinstance(value, s.Record):
            pairs = zip(names, shape.parts, strict=True)
            return s.Record(value.constructor, {n: fit(value.fields[n], p) for n, p in pairs})
    return value


def _anything(shape: s.Shape) -> Iterator[Node]:
    return (const(s.ANYTHING[t]) for t in s.leaf_types(shape))
