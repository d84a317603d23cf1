"""What a value of the language is while a kernel is being extracted.

Comes in: IR nodes. Goes out: the symbolic values that kernel/symbolic.py computes with. A scalar is its `Node`;
structure is Python structure, so that records, tuples, Results and functions leave no trace in the kernel.

`leaves` takes a value apart into its nodes and a `shape` that tells how; `with_leaves` puts it together again. Two
values of one shape can be chosen between node by node: that is what `if`, loops and recursive functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from osprey_py.check.core import ERROR, SUCCESS, Constructor, Function, Var
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Node, Ty, const, select


class Sym:
    """A value that is no scalar."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Tuple(Sym):
    """`()` is Unit."""

    items: tuple[Value, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Record(Sym):
    """A declared record, a variant that is known, or (constructor None) an anonymous record."""

    constructor: Constructor | None
    fields: Mapping[str, Value]


@dataclass(frozen=True, eq=False, slots=True)
class Union(Sym):
    """A variant that is chosen at run time. cases: of each constructor it may be, the bit that it is that one, and
    its fields, which mean something only then. Just one bit is true."""

    cases: Mapping[Constructor, tuple[Node, Mapping[str, Value]]]


@dataclass(frozen=True, eq=False, slots=True)
class Closure(Sym):
    """A function of the program. env: what its free variables are. home: a run-time function whose namespace its
    GlobalRefs mean. own: the variable by which a local recursive function knows itself."""

    function: Function
    env: dict[Var, Value]
    home: Any
    own: Var | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Builtin(Sym):
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Maker(Sym):
    """A positional variant as a function."""

    constructor: Constructor


@dataclass(frozen=True, eq=False, slots=True)
class Slot(Sym):
    """A buffer that the launch reads."""

    number: int
    type: Ty


@dataclass(frozen=True, eq=False, slots=True)
class Pipe(Sym):
    """A buffer that exists only inside the kernel: `count` elements (none when it is negative), of which the k-th is
    at(k). at gives the value and whether a filter keeps it (None: always). early: the node that makes its elements'
    faults happen where the pipeline stands, to be dropped when the fold that consumes it does so."""

    count: Node
    at: Callable[[Node], tuple[Value, Node | None]]
    early: Node | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Opaque(Sym):
    """What a kernel can hold and hand on, but not look at: text, say. what: for the error when it does."""

    what: str


class Absent(Sym):
    """What a branch that goes on with a tail call has in place of a value: the other branch decides."""

    __slots__ = ()


ABSENT = Absent()


@dataclass(frozen=True, eq=False, slots=True)
class Captured(Sym):
    """A run-time value that was captured and not looked at yet. path: how a launch finds it again
    (kernel/captures.py)."""

    value: Any
    path: str


Value = Node | Sym
Case = tuple[Node, Mapping[str, Value]]
"""(the bit, the fields) of a case of a Union."""

TRUE, FALSE = const(True), const(False)
ANYTHING: dict[Ty, int | float | bool] = {INT: 0, FLOAT: 0.0, BOOL: False}
UNIT = Tuple(())


def truth(node: Node) -> bool | None:
    """The value of a constant bool, None of others."""
    return node.attr if node.op == "const" and isinstance(node.attr, bool) else None


def negation(node: Node) -> Node:
    known = truth(node)
    if known is not None:
        return FALSE if known else TRUE
    return node.args[0] if node.op == "bnot" else Node("bnot", BOOL, (node,))


def choice(c: Node, a: Node, b: Node) -> Node:
    """a if c else b, where that needs a node at all."""
    known = truth(c)
    if known is not None:
        return a if known else b
    if a is b or (a.op == b.op == "const" and same_constant(a, b)):
        return a
    if truth(a) is True and truth(b) is False:
        return c
    if truth(a) is False and truth(b) is True:
        return negation(c)
    return select(c, a, b)


def same_constant(a: Node, b: Node) -> bool:
    """Equal to the last bit; -0.0 is not 0.0."""
    return a.type is b.type and repr(a.attr) == repr(b.attr)


def cases(value: Value) -> Mapping[Constructor, Case]:
    """Of a record or variant: the constructors it may have, each with its bit and its fields."""
    if isinstance(value, Union):
        return value.cases
    assert isinstance(value, Record) and value.constructor is not None
    return {value.constructor: (TRUE, value.fields)}


def result(ok: Node, value: Value, message: Value) -> Union:
    """`Success { value }` when ok, else `Error { message }`."""
    return Union({SUCCESS: (ok, {"value": value}), ERROR: (negation(ok), {"message": message})})


# --- shapes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a value that is no node. tag: what it is; parts: of what it has, in order. Compared by value."""

    tag: tuple[Any, ...]
    parts: tuple[Shape, ...] = ()
    keep: Sym | None = field(default=None, compare=False)
    """What has no leaves is kept as it is."""


def leaves(value: Value) -> tuple[tuple[Node, ...], Shape]:
    """(the nodes, in order, and the shape). Captured values have to be resolved before."""
    found: list[Node] = []
    shape = _take(value, found)
    return tuple(found), shape


def _take(value: Value, out: list[Node]) -> Shape:
    match value:
        case Node():
            out.append(value)
            return Shape((value.type,))
        case Tuple(items=items):
            return Shape(("tuple", len(items)), tuple(_take(x, out) for x in items))
        case Record(constructor=constructor, fields=fields):
            return Shape(("record", constructor, *fields), tuple(_take(x, out) for x in fields.values()))
        case Union(cases=cases):
            shapes = []
            for constructor, (bit, fields) in cases.items():
                out.append(bit)
                parts = tuple(_take(x, out) for x in fields.values())
                shapes.append(Shape(("case", constructor, *fields), parts))
            return Shape(("union",), tuple(shapes))
        case Closure(function=function, env=env):
            return Shape(("closure", function, *env), tuple(_take(x, out) for x in env.values()), value)
        case Slot(number=number):
            return Shape(("slot", number), keep=value)
        case Builtin(name=name):
            return Shape(("builtin", name), keep=value)
        case Maker(constructor=constructor):
            return Shape(("maker", constructor), keep=value)
        case Opaque(what=what):
            return Shape(("opaque", what), keep=value)
    return Shape(("unique", value), keep=value if isinstance(value, Sym) else None)


def with_leaves(shape: Shape, nodes: Iterator[Node]) -> Value:
    """The value of a shape with other nodes."""
    match shape.tag:
        case (Ty(),):
            return next(nodes)
        case ("tuple", *_):
            return Tuple(tuple(with_leaves(p, nodes) for p in shape.parts))
        case ("record", constructor, *names):
            return Record(constructor, {n: with_leaves(p, nodes) for n, p in zip(names, shape.parts, strict=True)})
        case ("union",):
            cases = {}
            for case in shape.parts:
                _, constructor, *names = case.tag
                bit = next(nodes)
                cases[constructor] = (
                    bit,
                    {n: with_leaves(p, nodes) for n, p in zip(names, case.parts, strict=True)},
                )
            return Union(cases)
        case ("closure", function, *variables):
            assert isinstance(shape.keep, Closure)
            env = {v: with_leaves(p, nodes) for v, p in zip(variables, shape.parts, strict=True)}
            return Closure(function, env, shape.keep.home, shape.keep.own)
    assert shape.keep is not None
    return shape.keep


def leaf_types(shape: Shape) -> tuple[Ty, ...]:
    """The types of the nodes that `with_leaves` takes."""
    match shape.tag:
        case (Ty() as ty,):
            return (ty,)
        case ("case", *_):
            return (BOOL, *(t for p in shape.parts for t in leaf_types(p)))
    return tuple(t for p in shape.parts for t in leaf_types(p))


def shielded(value: Value) -> Value:
    """The value with the fields of each variant made harmless where it is another variant: what is put into a loop's
    state or a function's result is evaluated there, and a field may be a read out of range, or fault."""
    match value:
        case Tuple(items=items):
            return Tuple(tuple(map(shielded, items)))
        case Record(constructor=constructor, fields=fields):
            return Record(constructor, {n: shielded(x) for n, x in fields.items()})
        case Union():
            return Union({k: (bit, {n: _where(bit, x) for n, x in f.items()}) for k, (bit, f) in value.cases.items()})
    return value


def _where(bit: Node, value: Value) -> Value:
    """The value where the bit is true, anything where it is not."""
    nodes, shape = leaves(shielded(value))
    return with_leaves(shape, (choice(bit, n, const(ANYTHING[n.type])) for n in nodes))


# --- choosing -----------------------------------------------------------------------------------


class NoChoice(Exception):
    """Two values that cannot be one at run time: different functions or buffers. what: for the error."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.what = {Slot: "a buffer", Pipe: "a buffer", Opaque: "text or a list"}.get(type(value), "a function")


def chosen(c: Node, a: Value, b: Value) -> Value:
    """a if c else b, node by node. Raises NoChoice."""
    match a, b:
        case Node(), Node():
            return choice(c, a, b)
        case Tuple(items=xs), Tuple(items=ys) if len(xs) == len(ys):
            return Tuple(tuple(chosen(c, x, y) for x, y in zip(xs, ys, strict=True)))
        case Record(constructor=k, fields=xs), Record(constructor=j, fields=ys) if k is j and xs.keys() == ys.keys():
            return Record(k, {name: chosen(c, x, ys[name]) for name, x in xs.items()})
        case ((Record() | Union()), (Record() | Union())):
            mine, theirs = cases(a), cases(b)
            return Union({k: _case(c, mine.get(k), theirs.get(k)) for k in dict.fromkeys((*mine, *theirs))})
        case Closure(function=f, env=xs), Closure(function=g, env=ys) if f is g and xs.keys() == ys.keys():
            return Closure(f, {v: chosen(c, x, ys[v]) for v, x in xs.items()}, a.home, a.own)
        case Opaque(what=x), Opaque(what=y) if x == y:
            return a
    if isinstance(a, Absent):
        return b
    if a is b or isinstance(b, Absent) or leaves(a) == leaves(b):
        return a
    raise NoChoice(a)


def _case(c: Node, a: Case | None, b: Case | None) -> Case:
    if a is None or b is None:
        bit, fields = a or b or (FALSE, {})
        return (choice(c, bit, FALSE) if b is None else choice(c, FALSE, bit)), fields
    return choice(c, a[0], b[0]), {name: chosen(c, x, b[1][name]) for name, x in a[1].items()}
