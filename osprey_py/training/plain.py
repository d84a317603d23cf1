"""Plain data: values of the language that can be kept in a file (spec/training TR2, TR16).

Comes in: a type of a checked program. Goes out: its `Schema`, by which values are taken apart into named leaves and put
together again, written as JSON and read back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from osprey_py.check.core import TypeInfo
from osprey_py.check.types import BOOL, FLOAT, INT, STRING, Named, RecordType, TupleType, Type, TypeVar
from osprey_py.eval.arithmetic import MAX, MIN
from osprey_py.eval.values import Map, Record, anonymous_class, class_of, field, make_list, make_map
from osprey_py.graph.buffer import Buffer

LEAVES = {INT: int, FLOAT: float, BOOL: bool, STRING: str}


class NotPlain(Exception):
    """Why a type is not plain. path: of the field; type: what was found there."""

    def __init__(self, path: str, type_: Type) -> None:
        super().__init__(f"{path}: {type_}")
        self.path = path
        self.type = type_


@dataclass(frozen=True, slots=True)
class Leaf:
    """int, float, bool or str."""

    kind: type


@dataclass(frozen=True, slots=True)
class BufferLeaf:
    """A buffer of ints, floats or bools."""

    element: type


@dataclass(frozen=True, slots=True)
class RecordOf:
    make: type[Record]
    fields: tuple[tuple[str, Schema], ...]


@dataclass(frozen=True, slots=True)
class TupleOf:
    items: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Schema


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Schema
    value: Schema


Schema = Leaf | BufferLeaf | RecordOf | TupleOf | ListOf | MapOf


def schema_of(
    t: Type, types: Mapping[str, TypeInfo], path: str, *, buffers: bool = False, maps: bool = False
) -> Schema:
    """The schema of a type; path names the value in what is said. Raises NotPlain."""
    return _Reader(types, buffers, maps).read(t, path, frozenset())


@dataclass(frozen=True, slots=True)
class _Reader:
    types: Mapping[str, TypeInfo]
    buffers: bool
    maps: bool

    def read(self, t: Type, path: str, inside: frozenset[Type]) -> Schema:
        """inside: the declared types around this one; a record in itself has no end."""
        kind = LEAVES.get(t) if isinstance(t, Named) else None
        if kind is not None:
            return Leaf(kind)
        match t:
            case RecordType(fields=fields):
                read = tuple((n, self.read(x, f"{path}.{n}", inside)) for n, x in fields)
                return RecordOf(anonymous_class(tuple(n for n, _ in fields)), read)
            case TupleType(items=items):
                return TupleOf(tuple(self.read(x, f"{path}.{i}", inside) for i, x in enumerate(items)))
            case Named(name="List", args=(item,)):
                return ListOf(self.read(item, f"{path}[]", inside))
            case Named(name="GpuBuffer", args=(Named() as item,)) if self.buffers and item in LEAVES:
                return BufferLeaf(LEAVES[item])
            case Named(name="Map", args=(key, value)) if self.maps:
                return MapOf(self.read(key, f"{path}{{}}", inside), self.read(value, f"{path}{{}}", inside))
            case Named(name=name) if name in self.types and t not in inside:
                return self._declared(t, self.types[name], path, inside | {t})
        raise NotPlain(path, t)

    def _declared(self, t: Named, info: TypeInfo, path: str, inside: frozenset[Type]) -> Schema:
        if len(info.constructors) != 1 or info.constructors[0].positional:
            raise NotPlain(path, t)
        constructor = info.constructors[0]
        given = dict(zip(info.params, t.args, strict=True))
        types = [_applied(x, given) for x in info.field_types[constructor.name]]
        fields = zip(constructor.fields, types, strict=True)
        return RecordOf(class_of(constructor), tuple((n, self.read(x, f"{path}.{n}", inside)) for n, x in fields))


def _applied(t: Type, given: Mapping[str, Type]) -> Type:
    """A type of a declaration with its parameters replaced."""
    match t:
        case TypeVar(name=name):
            return given.get(name, t)
        case Named(name=name, args=args) if args:
            return Named(name, tuple(_applied(a, given) for a in args))
        case TupleType(items=items):
            return TupleType(tuple(_applied(a, given) for a in items))
        case RecordType(fields=fields):
            return RecordType(tuple((n, _applied(a, given)) for n, a in fields))
    return t


# --- leaves ----------------------------------------------------------------------------------------------------------

Found = tuple[str, Leaf | BufferLeaf | ListOf, Any]


def leaves(schema: Schema, value: Any, path: str = "") -> Iterator[Found]:
    """(path, schema, value) of every leaf in order, and of every list, before its items, with its length."""
    match schema:
        case Leaf() | BufferLeaf():
            yield path, schema, value
        case RecordOf(fields=fields):
            for name, inner in fields:
                yield from leaves(inner, field(value, name), _joined(path, name))
        case TupleOf(items=items):
            for i, inner in enumerate(items):
                yield from leaves(inner, value[i], _joined(path, str(i)))
        case ListOf(item=item):
            yield path, schema, len(value)
            for i, x in enumerate(value):
                yield from leaves(item, x, _joined(path, str(i)))


def build(schema: Schema, take: Callable[[str, Leaf | BufferLeaf | ListOf], Any], path: str = "") -> Any:
    """The value whose leaves `take` gives, in the order of `leaves`."""
    match schema:
        case Leaf() | BufferLeaf():
            return take(path, schema)
        case RecordOf(make=make, fields=fields):
            return make(*[build(inner, take, _joined(path, name)) for name, inner in fields])
        case TupleOf(items=items):
            return tuple([build(inner, take, _joined(path, str(i))) for i, inner in enumerate(items)])
        case ListOf(item=item):
            return make_list([build(item, take, _joined(path, str(i))) for i in range(take(path, schema))])
    raise TypeError(schema)


def buffers_of(schema: Schema, value: Any) -> list[Buffer]:
    """The buffers of a value, in the order of `leaves`."""
    found: list[Buffer] = []
    _gather(schema, value, found)
    return found


def _gather(schema: Schema, value: Any, found: list[Buffer]) -> None:
    if isinstance(schema, BufferLeaf):
        found.append(value)
    elif isinstance(schema, RecordOf):
        for name, inner in schema.fields:
            if type(inner) is not Leaf:
                _gather(inner, field(value, name), found)
    elif isinstance(schema, TupleOf):
        for inner, x in zip(schema.items, value, strict=True):
            _gather(inner, x, found)
    elif isinstance(schema, ListOf):
        for x in value:
            _gather(schema.item, x, found)


def count_floats(schema: Schema, value: Any) -> int:
    """How many floats there are, on the host and in buffers."""
    return sum(1 if s == Leaf(float) else len(x) if s == BufferLeaf(float) else 0 for _, s, x in leaves(schema, value))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# --- JSON ------------------------------------------------------------------------------------------------------------


def to_json(schema: Schema, value: Any) -> Any:
    """What json.dumps takes. A float that JSON has not is its name."""
    match schema:
        case Leaf(kind=kind):
            return value if kind is not float or math.isfinite(value) else repr(value)
        case RecordOf(fields=fields):
            return {name: to_json(inner, field(value, name)) for name, inner in fields}
        case TupleOf(items=items):
            return [to_json(inner, x) for inner, x in zip(items, value, strict=True)]
        case ListOf(item=item):
            return [to_json(item, x) for x in value]
        case MapOf(key=key, value=held):
            assert isinstance(value, Map)
            return [[to_json(key, k), to_json(held, v)] for _, k, v in value.entries()]
    raise TypeError(schema)


def from_json(schema: Schema, data: Any) -> Any:
    """The value that to_json wrote. Raises ValueError for anything else."""
    match schema:
        case Leaf(kind=kind):
            return _scalar(kind, data)
        case RecordOf(make=make, fields=fields):
            if not isinstance(data, dict) or set(data) != {n for n, _ in fields}:
                raise ValueError("another record")
            return make(*[from_json(inner, data[name]) for name, inner in fields])
        case TupleOf(items=items):
            return tuple([from_json(s, x) for s, x in zip(items, _array(data, len(items)), strict=True)])
        case ListOf(item=item):
            return make_list([from_json(item, x) for x in _array(data)])
        case MapOf(key=key, value=held):
            pairs = [_array(pair, 2) for pair in _array(data)]
            return make_map([(from_json(key, k), from_json(held, v)) for k, v in pairs])
    raise TypeError(schema)


def _scalar(kind: type, data: Any) -> Any:
    if kind is float and data in ("inf", "-inf", "nan"):
        return float(data)
    if type(data) is not kind or (isinstance(data, int) and not MIN <= data <= MAX):
        raise ValueError(f"{data!r} is no {kind.__name__}")
    return data


def _array(data: Any, size: int | None = None) -> list[Any]:
    if not isinstance(data, list) or (size is not None and len(data) != size):
        raise ValueError("another array")
    return data
