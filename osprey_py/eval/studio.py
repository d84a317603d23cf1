"""The program's module once more, with built-ins that know numbers which stand for others.

Comes in: a program's module. Goes out: a `Studio`: the same module over another world and runtime, in which a function
is recorded (eval/replay.py) or differentiated (eval/gradient.py). The numbers there are symbols (graph/symbols.py) and
floats on a tape (graph/stand_ins.py). Built-ins that only move values about are as they were, those that compute a
number of numbers are noted down, all others get the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as PyIterator
from contextlib import contextmanager
from dataclasses import replace
from types import CellType, FunctionType
from typing import Any

from osprey_py.eval import closures
from osprey_py.eval.closures import BuiltinFunction, core_of
from osprey_py.eval.leaves import attributes, calls, plain
from osprey_py.eval.library import scalars
from osprey_py.eval.prelude import PRELUDE
from osprey_py.eval.registry import BUILTINS
from osprey_py.eval.unit import Unit
from osprey_py.eval.values import Iterator as Pipeline
from osprey_py.eval.values import List, Map, Record, make_list, make_map
from osprey_py.eval.world import Cell, World
from osprey_py.graph.stand_ins import OPERATIONS, Operation, TapeFloat, number_of
from osprey_py.graph.symbols import Sym, SymInt, concrete

MOVERS = frozenset(
    "List listAppend listPrepend listConcat listReverse listLength forEachList map filter fold forEach toList toGpu "
    "gpuLength gpuIota gpuMap gpuZipWith gpuFilter gpuFold gpuScan gpuGet gpuMatMul gpuConcat gpuSlice gpuAccumulate "
    "fromGpu valueAndGradient gradient stopGradient buffersOf mapBuffers zipBuffers Map mapMerge mapKeys mapValues "
    "length isEmpty _make_list _drop_front _update _unwrap _evaluated _forced "
    "_find _run_handler".split()
)
"""Built-ins and helpers that look at no number, or let operators, the recording and the tape do it."""
PLACES = frozenset("listGet listSlice _list_item _index_list".split())
"""Those that want the numbers among their arguments, and only move what is in the lists."""
KEYED = frozenset("mapGet mapSet mapContains mapRemove _map_item _index_map _index_any".split())
"""Those that look at their second argument, a key, and only move the others."""
NUMERIC = frozenset(
    [name for name, b in BUILTINS.items() if getattr(b.call, "__module__", "") == scalars.__name__]
    + "exp ln tanh toFloat intDiv _remainder _int_div _float_remainder _modulo _add _subtract _multiply _divide".split()
    + ["_negate"]
)
"""Pure functions of numbers."""


class Studio:
    """Made when it is first needed: `module` is the program's module over `world`, whose runtime is whatever notes
    launches down at the moment."""

    def __init__(self, unit: Unit, plain_module: dict[str, Any], world: World) -> None:
        self.unit = unit
        self.plain = plain_module
        self.world = replace(world, runtime=None, studio=self)
        self._module: dict[str, Any] | None = None
        self._builtins: dict[int, BuiltinFunction] = {}

    @contextmanager
    def open(self, runtime: Any, caller: World) -> PyIterator[dict[str, Any]]:
        """The module, whose functions launch on this runtime now, with the file-scope values that there are by now."""
        if self._module is None:
            self._module = self._make()
        module, inner, move = self._module, self.world, _Move(self._module, self._builtins)
        lets = [name for name in self.unit.global_lets.values() if name in self.plain]
        for name in lets:
            module[name] = move.of(self.plain[name])
        inner.runtime, inner.extractor = runtime, caller.extractor
        inner.depth, inner.handlers = caller.depth, caller.handlers
        try:
            yield module
        finally:
            caller.extractor = inner.extractor
            inner.runtime = None
            for name in lets:
                module.pop(name, None)

    def moved(self, value: Any) -> Any:
        """The value with each function of the plain module as it is in the open one."""
        assert self._module is not None
        return _Move(self._module, self._builtins).of(value)

    # --- the module --------------------------------------------------------------------------------------------------

    def _make(self) -> dict[str, Any]:
        module = self.unit.instantiate(self.world)
        for name, built in BUILTINS.items():
            module[f"B_{name}"] = knowing(name, built.call, built.world)
        for name, helper in PRELUDE.items():
            if callable(helper) and not isinstance(helper, type):
                module[name] = knowing(name, helper, False)
        for name, value in list(module.items()):
            if isinstance(value, BuiltinFunction):
                module[name] = BuiltinFunction(value.name, knowing(value.name, value.call, False))
                self._builtins[id(self.plain[name])] = module[name]
        module["float"] = _float
        module[closures.HOME] = self.plain
        return module


class _Move:
    """One value on its way into a module. builtins: of the module, by the identity of the plain module's."""

    def __init__(self, module: dict[str, Any], builtins: dict[int, BuiltinFunction]) -> None:
        self.module = module
        self.builtins = builtins
        self.functions: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        kind = type(value)
        if core_of(value) is not None:
            return self._function(value)
        if kind is BuiltinFunction:
            return self.builtins.get(id(value), value)
        if kind is Pipeline:
            return Pipeline(self.of(value.source), tuple((k, self.of(f)) for k, f in value.stages))
        if not calls(value):
            return value
        if kind is tuple:
            return tuple(map(self.of, value))
        if kind is List:
            return make_list(list(map(self.of, value)))
        if kind is Map:
            return make_map([(k, self.of(v)) for _, k, v in value.entries()])
        if isinstance(value, Record):
            return kind(*[self.of(getattr(value, n)) for n in attributes(kind)])
        if kind is Cell:
            return Cell(self.of(value.v)) if calls(value.v) else value
        return value

    def _function(self, f: Any) -> Any:
        """The function over the module, with what it captured moved; one for each."""
        if f.__globals__ is self.module:
            return f
        made = self.functions.get(id(f))
        if made is None:
            old = f.__closure__ or ()
            cells = tuple(CellType() for _ in old)
            made = self.functions[id(f)] = FunctionType(f.__code__, self.module, f.__name__, None, cells)
            for cell, before in zip(cells, old, strict=True):
                cell.cell_contents = self.of(before.cell_contents)
        return made


def knowing(name: str, call: Callable[..., Any], world: bool) -> Callable[..., Any]:
    """A built-in that gets what it can deal with. world: its first argument is the World, which is left alone."""
    if name in MOVERS:
        return call
    if name in NUMERIC:
        return _numeric(call, OPERATIONS.get(name))
    if name in KEYED:
        return lambda xs, key, *rest: call(xs, plain(key), *rest)
    if name == "_make_map":
        return lambda pairs: call([(plain(k), v) for k, v in pairs])
    prepare = concrete if name in PLACES else plain
    if world:
        return lambda w, *args: call(w, *map(prepare, args))
    return lambda *args: call(*map(prepare, args))


def _numeric(call: Callable[..., Any], operation: Operation | None) -> Callable[..., Any]:
    """A function of numbers. operation: how a tape differentiates it; without, it passes nothing on (G9)."""

    def numeric(*args: Any) -> Any:
        if operation is not None:
            for a in args[: operation.operands]:
                if isinstance(a, TapeFloat):
                    return a.tape.operation(operation, args[: operation.operands], numeric, args[operation.operands :])
        numbers = tuple(map(number_of, args))
        for x in numbers:
            if isinstance(x, Sym):
                return x.ledger.call(call, numbers)
        return call(*numbers)

    return numeric


def _float(x: Any) -> Any:
    return x.ledger.scalar(f"float({x.name})", float(x.value)) if isinstance(x, SymInt) else float(x)
