"""Functions of the host that launch much, traced once and replayed.

Comes in: a program's module as it is about to run. Goes out: the same module, in which every effect-free function
that may launch stands behind a `Replayer`: after a plain call that made many launches, the next call with arguments
of the same shape is recorded (graph/replay.py), and later ones replay the recording.

The shape of arguments: classes of records, sizes of lists and tuples, strings, bools, types of buffers. Ints, floats
and buffers are symbols. A function with other arguments (functions, maps), or that does what cannot be recorded, is
called as it is. To record, the program's module is made once more with built-ins that know symbols: those that only
move values about are as they were, those that compute numbers of numbers are noted down, all others get the numbers,
under guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from types import CellType, FunctionType
from typing import Any

from osprey_py.check import types
from osprey_py.eval.closures import BuiltinFunction, core_of
from osprey_py.eval.library import scalars
from osprey_py.eval.pipelines import elements
from osprey_py.eval.prelude import PRELUDE
from osprey_py.eval.registry import BUILTINS
from osprey_py.eval.unit import Unit
from osprey_py.eval.values import Iterator as Pipeline
from osprey_py.eval.values import List, Record, attribute, make_list
from osprey_py.eval.world import Cell, World
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.replay import Miss, Recording, Trace, TracedBuffer
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.symbols import Sym, SymFloat, SymInt, Unrecordable, seen
from osprey_py.kernel.fault import MathFault

WORTH_IT = 16
"""Launches of a call from which on it is recorded."""
MOST_SHAPES, MOST_TRACES, MOST_LEAVES, PATIENCE = 16, 4, 4096, 8
"""Shapes of arguments a function is recorded for; recordings of one shape (they differ in what they decide); numbers
and buffers in the arguments; calls in vain until a function is left alone."""

MOVERS = frozenset(
    "List listAppend listPrepend listConcat listReverse listLength forEachList map filter fold forEach toList toGpu "
    "gpuLength gpuIota gpuMap gpuZipWith gpuFilter gpuFold gpuScan gpuGet gpuMatMul gpuConcat gpuSlice gpuAccumulate "
    "fromGpu _make_list _drop_front _update _unwrap _evaluated _forced".split()
)
"""Built-ins and helpers that look at no number, or let the recording do it."""
PLACES = frozenset("listGet listSlice _list_item _index_list".split())
"""Those that want the numbers among their arguments, and only move what is in the lists."""
NUMERIC = frozenset(
    [name for name, b in BUILTINS.items() if getattr(b.call, "__module__", "") == scalars.__name__]
    + "exp ln tanh toFloat intDiv _remainder _int_div _float_remainder _add _subtract _multiply _divide _modulo".split()
    + ["_negate"]
)
"""Pure functions of numbers."""
EFFECTS = frozenset(["_find", "_Handler", "_run_handler", "_Resumption"])


def install(unit: Unit, namespace: dict[str, Any], world: World) -> None:
    """Put Replayers in the place of functions. Where a global may change, nothing is recorded."""
    if not isinstance(world.runtime, Runtime) or not world.runtime.replaying:
        return
    if any(v.mutable for v in unit.program.globals.values()):
        return
    studio = _Studio(unit, namespace, world)
    for name, f in unit.program.functions.items():
        t = f.type
        pure = isinstance(t, types.FunctionType) and not t.effects
        recursive = name in unit.graph.mutual or name in unit.graph.counted
        if pure and f.params and name in unit.graph.launches and not recursive:
            for python_name in unit.names_of(name):
                namespace[python_name] = Replayer(namespace[python_name], python_name, studio)


class Replayer:
    """A function of the program behind its recordings. To kernel extraction it looks like the function."""

    def __init__(self, plain: Any, name: str, studio: _Studio) -> None:
        self.plain = plain
        self.name = name
        self.studio = studio
        self.runtime: Runtime = studio.world.runtime
        self.traces: dict[tuple[Any, ...], list[Trace]] = {}
        self.vain = 0
        self.__code__ = plain.__code__
        self.__globals__ = plain.__globals__
        self.__closure__ = plain.__closure__
        self.__name__ = plain.__name__

    def __call__(self, *args: Any) -> Any:
        if self.vain > PATIENCE:
            return self.plain(*args)
        shape: list[Any] = []
        leaves: list[Any] = []
        try:
            _flatten(args, shape, leaves)
        except Unrecordable:
            self.vain = PATIENCE + 1
            return self.plain(*args)
        key = tuple(shape)
        traces = self.traces.get(key)
        if traces is None:
            return self._first(key, args)
        for at, trace in enumerate(traces):
            done, result = self._replay(trace, leaves)
            if done:
                self.vain = 0
                if at:
                    traces.insert(0, traces.pop(at))
                return result
        self.vain += 1
        if len(traces) >= MOST_TRACES:
            return self.plain(*args)
        return self._record(traces, args, leaves)

    def _first(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        """A plain call, to see whether there is enough to record."""
        before = self.runtime.stats.launches
        result = self.plain(*args)
        if self.runtime.stats.launches - before >= WORTH_IT and len(self.traces) < MOST_SHAPES:
            self.traces[key] = []
        else:
            self.vain += 1
        return result

    def _replay(self, trace: Trace, leaves: list[Any]) -> tuple[bool, Any]:
        mark = self.runtime.mark()
        try:
            result = trace(leaves)
        except (Miss, MathFault):
            self.runtime.forget(mark)
            return False, None
        self.runtime.stats.replays += 1
        return True, result

    def _record(self, traces: list[Trace], args: tuple[Any, ...], leaves: list[Any]) -> Any:
        mark, world = self.runtime.mark(), self.studio.world
        depth, handlers = world.depth, world.handlers
        try:
            trace, result = self.studio.record(self.name, args, leaves)
        except Exception:  # whatever it was, plain evaluation says it better
            world.depth, world.handlers = depth, handlers
            self.runtime.forget(mark)
            self.vain += 2
            return self.plain(*args)
        traces.insert(0, trace)
        return result


class _Studio:
    """Where recordings are made: the program's module with built-ins that know symbols. Made when first needed."""

    def __init__(self, unit: Unit, plain: dict[str, Any], world: World) -> None:
        self.unit = unit
        self.plain = plain
        self.world = world
        self.inner = replace(world, runtime=None)
        self.module: dict[str, Any] | None = None
        self.recording: Recording | None = None

    def record(self, name: str, args: tuple[Any, ...], leaves: Sequence[Any]) -> tuple[Trace, Any]:
        """(the trace, the result of this call)"""
        if self.module is None:
            self.module = self._make()
        module = self.module
        for python_name in self.unit.global_lets.values():
            module.pop(python_name, None)
            value = self.plain.get(python_name)
            if python_name in self.plain and not _calls(value):
                module[python_name] = value
        recording = self.recording = Recording(self.world.runtime)
        world = self.inner
        world.runtime, world.extractor = recording, _Extractor(self.world.extractor)
        world.depth, world.handlers = self.world.depth, None
        symbols = iter([recording.leaf(x) for x in leaves])
        result = module[name](*[_rebuilt(a, symbols) for a in args])
        text = _text(result, recording)
        return recording.finish(text), _rebuilt(result, map(_taken, _leaves_of(result)))

    def _make(self) -> dict[str, Any]:
        module = self.unit.instantiate(self.inner)
        for name, built in BUILTINS.items():
            module[f"B_{name}"] = self._knowing(name, built.call, built.world)
        for name, helper in PRELUDE.items():
            if callable(helper) and not isinstance(helper, type):
                module[name] = self._knowing(name, helper, name in EFFECTS)
        for name in EFFECTS:
            module[name] = _refuse
        for name, value in list(module.items()):
            if isinstance(value, BuiltinFunction):
                module[name] = BuiltinFunction(value.name, self._knowing(value.name, value.call, False))
        module["float"] = self._float
        return module

    def _float(self, x: Any) -> Any:
        assert self.recording is not None
        return self.recording.scalar(f"float({x.name})", float(x.value)) if isinstance(x, SymInt) else float(x)

    def _knowing(self, name: str, call: Callable[..., Any], world: bool) -> Callable[..., Any]:
        """A built-in that gets what it can deal with. world: its first argument is the World, which is left alone."""
        if name in MOVERS:
            return call
        if name in NUMERIC:

            def numeric(*args: Any) -> Any:
                if not any(isinstance(a, Sym) for a in args):
                    return call(*args)
                assert self.recording is not None
                return self.recording.call(call, args)

            return numeric
        prepare = _number if name in PLACES else _plain
        if world:
            return lambda w, *args: call(w, *map(prepare, args))
        return lambda *args: call(*map(prepare, args))


def _refuse(*_: Any) -> Any:
    raise Unrecordable("effects")


# --- extraction of kernels whose closures hold symbols -------------------------------------------------------------


class _Extractor:
    """Extraction reads types and never values, so it is given unlikely numbers in the place of symbols, and what it
    says of these numbers is true of the symbols."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def map(self, k: Any, slots: Any) -> Any:
        twins = _Twins()
        return twins.back(self.real.map(twins.of(k), slots))

    def fold(self, k: Any, ty: Any, init: Any) -> Any:
        twins = _Twins()
        return twins.back(self.real.fold(twins.of(k), ty, twins.of(init)))

    def scan(self, k: Any, ty: Any, init: Any) -> Any:
        twins = _Twins()
        return twins.back(self.real.scan(twins.of(k), ty, twins.of(init)))

    def matmul(self, m: Any, k: Any, n: Any) -> Any:
        return self.real.matmul(m, k, n)


UNLIKELY = 0x5EED_0000_0000


class _Twins:
    """Plain values that stand for traced ones, and the way back."""

    def __init__(self) -> None:
        self.numbers: dict[int | float, Sym] = {}
        self.buffers: dict[int, tuple[Buffer, Buffer]] = {}
        self.functions: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, Sym):
            stand_in: int | float = UNLIKELY + len(self.numbers)
            if isinstance(value, SymFloat):
                stand_in = float(stand_in)
            self.numbers[stand_in] = value
            return stand_in
        if isinstance(value, TracedBuffer):
            twin = Buffer(value.node)
            self.buffers[id(twin)] = (twin, value)
            return twin
        kind = type(value)
        if kind is int or kind is float:
            if UNLIKELY <= value < UNLIKELY + MOST_LEAVES * 16:
                raise Unrecordable("an unlikely number")
            return value
        if kind is tuple:
            return tuple(map(self.of, value))
        if isinstance(value, Record):
            return kind(*[self.of(getattr(value, attribute(n))) for n in kind.fields])
        if kind is Cell:
            return Cell(self.of(value.v))
        if isinstance(value, FunctionType) and core_of(value) is not None:
            return self._function(value)
        return value

    def _function(self, f: FunctionType) -> Any:
        if not f.__closure__:
            return f
        known = self.functions.get(id(f))
        if known is None:
            cells = tuple(CellType() for _ in f.__closure__)
            known = self.functions[id(f)] = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, cells)
            for cell, old in zip(cells, f.__closure__, strict=True):
                cell.cell_contents = self.of(old.cell_contents)
        return known

    def back(self, found: Any) -> Any:
        kernel, buffers, numbers = found
        traced = tuple([self.buffers[id(b)][1] if id(b) in self.buffers else b for b in buffers])
        return kernel, traced, tuple([self.numbers.get(x, x) if type(x) is not bool else x for x in numbers])


# --- values taken apart --------------------------------------------------------------------------------------------


def _flatten(value: Any, shape: list[Any], leaves: list[Any]) -> None:
    """The shape of a value, and its numbers and buffers in order."""
    kind = type(value)
    if kind is int or kind is float:
        shape.append(kind)
        leaves.append(value)
    elif kind is Buffer:
        shape.append(value.type)
        leaves.append(value)
    elif kind is tuple:
        shape.append(len(value))
        for x in value:
            _flatten(x, shape, leaves)
    elif kind is List:
        shape.append(kind)
        shape.append(value.hi - value.lo)
        if len(leaves) + value.hi - value.lo > MOST_LEAVES:
            raise Unrecordable("too many numbers")
        for x in islice(value.items, value.lo, value.hi):
            _flatten(x, shape, leaves)
    elif kind is str or kind is bool:
        shape.append(kind)
        shape.append(value)
    elif isinstance(value, Record):
        shape.append(kind)
        for name in _attributes(kind):
            _flatten(getattr(value, name), shape, leaves)
    else:
        raise Unrecordable("a function, a map or a pipeline")


_known_attributes: dict[type, tuple[str, ...]] = {}


def _attributes(kind: type[Record]) -> tuple[str, ...]:
    known = _known_attributes.get(kind)
    if known is None:
        known = _known_attributes[kind] = tuple(map(attribute, kind.fields))
    return known


def _is_leaf(value: Any) -> bool:
    return isinstance(value, Sym | Buffer) or type(value) is int or type(value) is float


def _rebuilt(value: Any, leaves: Iterator[Any]) -> Any:
    """The value with other numbers and buffers."""
    if _is_leaf(value):
        return next(leaves)
    kind = type(value)
    if kind is tuple:
        return tuple([_rebuilt(x, leaves) for x in value])
    if kind is List:
        return make_list([_rebuilt(x, leaves) for x in value])
    if isinstance(value, Record):
        return kind(*[_rebuilt(getattr(value, name), leaves) for name in _attributes(kind)])
    return value


def _leaves_of(value: Any) -> list[Any]:
    if _is_leaf(value):
        return [value]
    if isinstance(value, tuple | List):
        return [leaf for x in value for leaf in _leaves_of(x)]
    if isinstance(value, Record):
        return [leaf for name in _attributes(type(value)) for leaf in _leaves_of(getattr(value, name))]
    if type(value) is str or type(value) is bool:
        return []
    raise Unrecordable("the result holds a function, a map or a pipeline")


def _taken(leaf: Any) -> Any:
    """What the caller gets for a leaf of a recorded result."""
    return Buffer(leaf.node) if isinstance(leaf, TracedBuffer) else seen(leaf)


def _text(value: Any, recording: Recording) -> str:
    """The expression that makes a result."""
    if _is_leaf(value) or type(value) is str or type(value) is bool:
        return recording.name(value)
    kind = type(value)
    if kind is tuple:
        return f"({''.join(f'{_text(x, recording)}, ' for x in value)})"
    if kind is List:
        return f"{recording.constant(make_list)}([{', '.join(_text(x, recording) for x in value)}])"
    if isinstance(value, Record):
        fields = ", ".join(_text(getattr(value, name), recording) for name in _attributes(kind))
        return f"{recording.constant(kind)}({fields})"
    raise Unrecordable("the result holds a function, a map or a pipeline")


def _number(value: Any) -> Any:
    return value.concrete() if isinstance(value, Sym) else value


def _plain(value: Any) -> Any:
    """The value with numbers in the place of symbols, each under its guard."""
    kind = type(value)
    if isinstance(value, Sym):
        return value.concrete()
    if kind is tuple:
        return tuple(map(_plain, value))
    if kind is List:
        return make_list(list(map(_plain, value)))
    if kind is Pipeline:
        return Pipeline(make_list(list(map(_plain, elements(value)))))
    if isinstance(value, Record):
        return kind(*[_plain(getattr(value, name)) for name in _attributes(kind)])
    return value


def _calls(value: Any) -> bool:
    """Whether there is a function in a value, or what may hold one."""
    kind = type(value)
    if kind is tuple or kind is List:
        return any(map(_calls, value))
    if isinstance(value, Record):
        return any(_calls(getattr(value, name)) for name in _attributes(kind))
    return kind not in (int, float, bool, str, Buffer)
