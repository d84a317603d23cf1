"""Run-time data: records, variants, Results, persistent lists and maps, lazy pipelines.

Comes in: constructors of the typed program (check/core.py). Goes out: the Python classes that generated code, built-ins
and kernel extraction share (spec/evaluation V2). Scalars, strings, tuples and Unit are Python's own.

A record is an object with one slot a field; the slot's name is `attribute(field)`. Read fields of any record with
`field(record, name)`. `List` and `Map` are persistent: an append or a set on the newest version costs O(1) amortised
and leaves every older version as it was (spec/library B3.1, B4.1).
"""

from __future__ import annotations

from collections.abc import Iterator as PyIterator
from typing import Any, ClassVar

from osprey_py.check.core import ERROR, SUCCESS, Constructor

Value = Any
"""Any run-time value of the language."""


def attribute(field_name: str) -> str:
    """The Python attribute that holds a field: no field name can clash with a keyword or a method."""
    return f"f_{field_name}"


class Record:
    """A declared record, a variant, or (constructor None) an anonymous record. fields: names in declaration order,
    sorted when anonymous."""

    __slots__ = ()
    constructor: ClassVar[Constructor | None] = None
    fields: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        from osprey_py.eval.formatting import to_string

        return to_string(self)


def _record_class(name: str, constructor: Constructor | None, fields: tuple[str, ...]) -> type[Record]:
    slots = tuple(map(attribute, fields))
    lines = [f"def __init__(self, {', '.join(slots)}):" if slots else "def __init__(self):"]
    lines += [f"    self.{s} = {s}" for s in slots] or ["    pass"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    body = {"__slots__": slots, "__init__": namespace["__init__"], "constructor": constructor, "fields": fields}
    return type(name, (Record,), body)


_declared: dict[Constructor, type[Record]] = {}
_anonymous: dict[tuple[str, ...], type[Record]] = {}


def class_of(constructor: Constructor) -> type[Record]:
    """The one class of a constructor; arguments of the class are its fields in declaration order."""
    found = _declared.get(constructor)
    if found is None:
        found = _declared[constructor] = _record_class(constructor.name, constructor, constructor.fields)
    return found


def anonymous_class(names: tuple[str, ...]) -> type[Record]:
    """The one class of anonymous records with these fields (any order; the class takes them sorted)."""
    fields = tuple(sorted(names))
    found = _anonymous.get(fields)
    if found is None:
        found = _anonymous[fields] = _record_class("record", None, fields)
    return found


Success: Any = class_of(SUCCESS)
Error: Any = class_of(ERROR)
VALUE = attribute("value")
MESSAGE = attribute("message")


def field(record: Record, name: str) -> Value:
    """The field called `name`; positional payloads are called "0", "1", …"""
    return getattr(record, attribute(name))


def update(record: Record, **changes: Value) -> Record:
    """A copy with some attributes (mangled names) replaced."""
    cls = type(record)
    return cls(*[changes[a] if a in changes else getattr(record, a) for a in map(attribute, cls.fields)])


class _Free:
    """Marks unused room before the first element of a list's backing."""


FREE = _Free()


class List:
    """items[lo:hi] of a backing that versions share. Room past hi is written only by the version that ends where the
    backing ends, room before lo (marked FREE) only by the one that begins there: no version sees another's growth."""

    __slots__ = ("hi", "items", "lo")

    def __init__(self, items: list[Value], lo: int, hi: int) -> None:
        self.items = items
        self.lo = lo
        self.hi = hi

    def __len__(self) -> int:
        return self.hi - self.lo

    def __iter__(self) -> PyIterator[Value]:
        return iter(self.items[self.lo : self.hi])

    def __repr__(self) -> str:
        return f"List({self.items[self.lo : self.hi]!r})"


def make_list(items: list[Value]) -> List:
    """A List that owns a Python list from now on."""
    return List(items, 0, len(items))


def append(xs: List, x: Value) -> List:
    """xs with x at its end; O(1) amortised on the newest version, a copy on an older one."""
    items = xs.items
    hi = xs.hi
    if hi == len(items):
        items.append(x)
        return List(items, xs.lo, hi + 1)
    fresh = items[xs.lo : hi]
    fresh.append(x)
    return List(fresh, 0, len(fresh))


def prepend(xs: List, x: Value) -> List:
    """xs with x before its first; O(1) amortised on the newest version."""
    items, lo, hi = xs.items, xs.lo, xs.hi
    if lo > 0 and items[lo - 1] is FREE:
        items[lo - 1] = x
        return List(items, lo - 1, hi)
    room = hi - lo + 4
    fresh: list[Value] = [FREE] * room
    fresh.append(x)
    fresh += items[lo:hi]
    return List(fresh, room, len(fresh))


def concat(a: List, b: List) -> List:
    """a then b; costs only b when a is the newest version of its backing."""
    if a.hi == a.lo:
        return b
    tail = b.items[b.lo : b.hi]
    if a.hi == len(a.items):
        a.items.extend(tail)
        return List(a.items, a.lo, len(a.items))
    return make_list(a.items[a.lo : a.hi] + tail)


def drop_front(xs: List, n: int) -> List:
    """xs without its first n <= len(xs) elements: a view."""
    return List(xs.items, xs.lo + n, xs.hi)


class Map:
    """A persistent map in insertion order (Baker's rerooting). One version of a family holds the dict; every other says
    how it differs from the next one on the way there, and turns that way round when it is looked at.

    table: canonical key -> (serial, key, value), or None when this is not the root. Order is that of the serials;
    sorted_: the dict already runs in that order. serial: the next one of this version.
    """

    __slots__ = ("change", "next_", "serial", "sorted_", "table")

    def __init__(self, table: dict[Value, tuple[int, Value, Value]] | None, serial: int, sorted_: bool = True) -> None:
        self.table = table
        self.serial = serial
        self.sorted_ = sorted_
        self.change: tuple[Value, tuple[int, Value, Value] | None] | None = None
        self.next_: Map | None = None

    def __len__(self) -> int:
        return len(self.table if self.table is not None else _reroot(self))

    def entries(self) -> list[tuple[int, Value, Value]]:
        """(serial, key, value) in order."""
        table = self.table if self.table is not None else _reroot(self)
        found = list(table.values())
        if not self.sorted_:
            found.sort(key=lambda e: e[0])
        return found

    def __repr__(self) -> str:
        return "Map({" + ", ".join(f"{k!r}: {v!r}" for _, k, v in self.entries()) + "})"


def _reroot(m: Map) -> dict[Value, tuple[int, Value, Value]]:
    """Bring the dict to this version, turning each link on the way round. Iterative: a chain may be long."""
    chain = []
    at = m
    while at.table is None:
        chain.append(at)
        assert at.next_ is not None
        at = at.next_
    table, ordered = at.table, at.sorted_
    for version in reversed(chain):
        assert version.change is not None
        k, entry = version.change
        undone = table.get(k)
        if entry is None:
            del table[k]
        else:
            if undone is None:
                ordered = False
            table[k] = entry
        at.table, at.change, at.next_ = None, (k, undone), version
        version.table, version.change, version.next_ = table, None, None
        at = version
    m.sorted_ = ordered
    return table


def key(k: Value) -> Value:
    """What stands for a key in a dict, so that dict equality is the language's ==: a NaN equals nothing, 0.0 is -0.0."""
    t = type(k)
    if t is str or t is int or t is bool:
        return k
    if t is float:
        return k if k == k else _Free()
    return _structural_key(k)


def _structural_key(root: Value) -> Value:
    """A flat tuple that is equal for equal data. Iterative, as data may be deep."""
    parts: list[Value] = []
    todo = [root]
    while todo:
        v = todo.pop()
        t = type(v)
        if t is float and v != v:
            parts.append(_Free())
        elif t is tuple:
            parts.append(len(v))
            todo.extend(v)
        elif t is List:
            parts.append(v.hi - v.lo)
            todo.extend(v.items[v.lo : v.hi])
        elif t is Map:
            parts.append(frozenset((key(k), key(x)) for _, k, x in v.entries()))
        elif isinstance(v, Record):
            parts.append(t)
            todo.extend(getattr(v, attribute(n)) for n in t.fields)
        else:
            parts.append(v)
    return tuple(parts)


def empty_map() -> Map:
    return Map({}, 0)


def map_set(m: Map, k: Value, v: Value) -> Map:
    """m with k bound to v; an existing key keeps its place."""
    t = type(k)
    c = k if t is str or t is int else key(k)
    table = m.table
    if table is None:
        table = _reroot(m)
    old = table.get(c)
    if old is None:
        serial = m.serial
        table[c] = (serial, k, v)
        fresh = Map(table, serial + 1, m.sorted_)
    else:
        table[c] = (old[0], old[1], v)
        fresh = Map(table, m.serial, m.sorted_)
    m.table = None
    m.change = (c, old)
    m.next_ = fresh
    return fresh


def map_remove(m: Map, k: Value) -> Map:
    """m without k; m itself when it has no k."""
    c = key(k)
    table = m.table if m.table is not None else _reroot(m)
    old = table.get(c)
    if old is None:
        return m
    del table[c]
    fresh = Map(table, m.serial, m.sorted_)
    m.table, m.change, m.next_ = None, (c, old), fresh
    return fresh


def map_entry(m: Map, k: Value) -> tuple[int, Value, Value] | None:
    """(serial, key, value) of k, or None."""
    t = type(k)
    table = m.table
    if table is None:
        table = _reroot(m)
    return table.get(k if t is str or t is int else key(k))


def make_map(pairs: list[tuple[Value, Value]]) -> Map:
    """A later equal key replaces the value and keeps the place."""
    m = empty_map()
    for k, v in pairs:
        m = map_set(m, k, v)
    return m


class Iterator:
    """A lazy pipeline: a source (Python range, or List) and stages (kind "m" or "f", function). Pure: consuming it
    runs the stages again."""

    __slots__ = ("source", "stages")

    def __init__(self, source: range | List, stages: tuple[tuple[str, Value], ...] = ()) -> None:
        self.source = source
        self.stages = stages
