"""Functions of the host that launch much, traced once and replayed.

Comes in: a program's module as it is about to run. Goes out: the same module, in which every effect-free function
that may launch stands behind a `Replayer`: after plain calls that made many launches (one, where something was
differentiated), the next call with arguments of the same shape is recorded (graph/replay.py), and later ones replay
the recording.

The shape of arguments: classes of records, sizes of lists and tuples, strings, bools, types of buffers. Ints, floats
and buffers are symbols. A function with other arguments (functions, maps), or that does what cannot be recorded, is
called as it is. It is recorded in the program's studio (eval/studio.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osprey_py.check import types
from osprey_py.eval.leaves import attributes, flatten, is_leaf, leaves_of, rebuilt
from osprey_py.eval.studio import Studio
from osprey_py.eval.unit import Unit
from osprey_py.eval.values import List, Record, make_list
from osprey_py.eval.world import World
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.replay import Miss, Recording, Trace, TracedBuffer
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.symbols import Unrecordable, seen
from osprey_py.kernel.fault import MathFault

WORTH_IT = 16
"""Launches of a call from which on it is recorded."""
MOST_SHAPES, MOST_TRACES, PATIENCE = 16, 4, 8
"""Shapes of arguments a function is recorded for; recordings of one shape (they differ in what they decide);
calls in vain until a function is left alone."""


def install(unit: Unit, namespace: dict[str, Any], world: World) -> None:
    """Put Replayers in the place of functions. Where a global may change, nothing is recorded."""
    studio = world.studio = Studio(unit, namespace, world)
    if not isinstance(world.runtime, Runtime) or not world.runtime.replaying:
        return
    if any(v.mutable for v in unit.program.globals.values()):
        return
    for name, f in unit.program.functions.items():
        t = f.type
        pure = isinstance(t, types.FunctionType) and not t.effects
        recursive = name in unit.graph.mutual or name in unit.graph.counted
        if pure and f.params and name in unit.graph.launches and not recursive:
            for python_name in unit.names_of(name):
                namespace[python_name] = Replayer(namespace[python_name], python_name, studio, world)


class Replayer:
    """A function of the program behind its recordings. To kernel extraction it looks like the function."""

    def __init__(self, plain: Any, name: str, studio: Studio, world: World) -> None:
        self.plain = plain
        self.name = name
        self.studio = studio
        self.world = world
        self.runtime: Runtime = world.runtime
        self.traces: dict[tuple[Any, ...], list[Trace]] = {}
        self.calls: dict[tuple[Any, ...], int] = {}
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
            flatten(args, shape, leaves)
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
        """A plain call, to see whether there is enough to record, and it is called often enough."""
        stats = self.runtime.stats
        launches, gradients = stats.launches, stats.gradients
        result = self.plain(*args)
        known = self.calls.get(key, 0)
        if stats.launches - launches < WORTH_IT or (not known and len(self.calls) >= MOST_SHAPES):
            self.vain += 1
            return result
        self.calls[key] = known + 1
        if known + 1 >= self.runtime.plain_calls or stats.gradients > gradients:
            self.traces[key] = []
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
        mark, world = self.runtime.mark(), self.world
        depth, handlers = world.depth, world.handlers
        try:
            trace, result = _record(self.studio, world, self.name, args, leaves)
        except Exception:  # whatever it was, plain evaluation says it better
            world.depth, world.handlers = depth, handlers
            self.runtime.forget(mark)
            self.vain += 2
            return self.plain(*args)
        traces.insert(0, trace)
        return result


def _record(studio: Studio, world: World, name: str, args: tuple[Any, ...], leaves: Sequence[Any]) -> tuple[Trace, Any]:
    """(the trace of a function of the program, the result of this call)"""
    recording = Recording(world.runtime)
    symbols = iter([recording.leaf(x) for x in leaves])
    with studio.open(recording, world) as module:
        result = module[name](*[rebuilt(a, symbols) for a in args])
    text = _text(result, recording)
    return recording.finish(text), rebuilt(result, map(_taken, leaves_of(result)))


def _taken(leaf: Any) -> Any:
    """What the caller gets for a leaf of a recorded result."""
    return Buffer(leaf.node) if isinstance(leaf, TracedBuffer) else seen(leaf)


def _text(value: Any, recording: Recording) -> str:
    """The expression that makes a result."""
    if is_leaf(value) or type(value) is str or type(value) is bool:
        return recording.name(value)
    kind = type(value)
    if kind is tuple:
        return f"({''.join(f'{_text(x, recording)}, ' for x in value)})"
    if kind is List:
        return f"{recording.constant(make_list)}([{', '.join(_text(x, recording) for x in value)}])"
    if isinstance(value, Record):
        fields = ", ".join(_text(getattr(value, name), recording) for name in attributes(kind))
        return f"{recording.constant(kind)}({fields})"
    raise Unrecordable("the result holds a function, a map or a pipeline")
