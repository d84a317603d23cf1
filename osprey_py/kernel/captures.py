"""What a kernel's closure captured: read once to extract the kernel, and at every launch to find its arguments.

Comes in: a run-time function. Goes out: symbolic values for what it captured (kernel/symbols.py), and a *binder*:
generated Python that takes another closure of the same code, checks that all that shaped the kernel is as it was, and
gives the buffers and scalars of this launch. Lengths and values are never looked at, so they are arguments; types,
record and variant classes, tuple sizes and the code of captured functions are, so they are guards.

A path is a Python expression over the closure cells `c` and constants of the binder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from osprey_py.check.core import Var
from osprey_py.eval.closures import GLOBALS, HOME, BuiltinFunction, ConstructorFunction, captured, core_of
from osprey_py.eval.values import Iterator, List, Map, Record, attribute
from osprey_py.eval.world import Cell
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.symbols import SymFloat, SymInt
from osprey_py.kernel import symbols as s
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Kernel, Ty, uniform
from osprey_py.source.span import Span

_SCALARS: dict[type, Ty] = {int: INT, float: FLOAT, bool: BOOL}
_TESTS = {
    INT: "type({0}) is int or isinstance({0}, SymInt)",
    FLOAT: "type({0}) is float or isinstance({0}, SymFloat)",
    BOOL: "type({0}) is bool",
}
"""What tells a scalar of a type; a symbol is as good as a number, for nothing here looks at it."""
Binder = Callable[[Any, tuple[Any, ...]], tuple[Kernel, tuple[Buffer, ...], tuple[Any, ...]] | None]


def scalar_type(value: Any) -> Ty | None:
    """Of a number, or of a symbol that stands for one; None of anything else."""
    found = _SCALARS.get(type(value))
    if found is None:
        found = INT if isinstance(value, SymInt) else FLOAT if isinstance(value, SymFloat) else None
    return found


class Captures:
    """Collects the slots and uniforms of one kernel as its captured values are looked at. Slots and uniforms that the
    launch itself gives come first: `given_slots` and `given_uniforms`. functions: where captured functions stand."""

    def __init__(self, given_slots: tuple[Ty, ...], given_uniforms: tuple[Ty, ...]) -> None:
        self.slots = list(given_slots)
        self.uniforms = list(given_uniforms)
        self.buffers: list[str] = []
        self.scalars: list[str] = []
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {"Buffer": Buffer, "SymInt": SymInt, "SymFloat": SymFloat}
        self.functions: list[Span] = []
        self.known: dict[str, s.Value] = {}
        self.names: dict[str, str] = {}

    # --- values ----------------------------------------------------------------------------------

    def root(self, f: Any) -> s.Value:
        """The kernel function itself."""
        return self._function(f, "f")

    def of_global(self, home: Any, name: str) -> s.Value:
        """What a GlobalRef in a function's code means. Functions never change; a `let` is read at every launch."""
        namespace = home.__globals__
        namespace = namespace.get(HOME, namespace)
        python_name = namespace[GLOBALS][name]
        value = namespace[python_name]
        if core_of(value) is not None:
            return self._function(value, self._constant(value))
        path = f"{self._constant(namespace)}[{python_name!r}]"
        return self._cell(value, path)

    def resolve(self, value: s.Value) -> s.Value:
        """What a captured value is; others are what they are."""
        if not isinstance(value, s.Captured):
            return value
        found = self.known.get(value.path)
        if found is None:
            found = self.known[value.path] = self._look(value.value, value.path)
        return found

    def _look(self, value: Any, path: str) -> s.Value:
        kind = type(value)
        name = self._read(path)
        scalar = scalar_type(value)
        if scalar is not None:
            self._guard(_TESTS[scalar].format(name))
            self.scalars.append(name)
            self.uniforms.append(scalar)
            return uniform(len(self.uniforms) - 1, scalar)
        if isinstance(value, Buffer):
            self._guard(f"isinstance({name}, Buffer) and {name}.type is {self._constant(value.type)}")
            self.buffers.append(name)
            self.slots.append(value.type)
            return s.Slot(len(self.slots) - 1, value.type)
        if kind is tuple:
            self._guard(f"type({name}) is tuple and len({name}) == {len(value)}")
            return s.Tuple(tuple(s.Captured(x, f"{name}[{k}]") for k, x in enumerate(value)))
        if isinstance(value, Record):
            self._guard(f"type({name}) is {self._constant(kind)}")
            return s.Record(value.constructor, {n: self._field(value, name, n) for n in value.fields})
        function = core_of(value)
        if function is not None:
            self._guard(f"getattr({name}, '__code__', None) is {self._constant(value.__code__)}")
            self.functions.append(function.span)
            return self._function(value, name)
        if isinstance(value, BuiltinFunction):
            self._guard(f"getattr({name}, 'name', None) == {value.name!r}")
            return s.Builtin(value.name)
        if isinstance(value, ConstructorFunction):
            self._guard(f"getattr({name}, 'constructor', None) is {self._constant(value.constructor)}")
            return s.Maker(value.constructor)
        self._guard(f"type({name}) is {self._constant(kind)}")
        return s.Opaque({str: "a string", List: "a list", Map: "a map", Iterator: "an iterator"}.get(kind, "a value"))

    def _field(self, value: Record, name: str, field: str) -> s.Captured:
        return s.Captured(getattr(value, attribute(field)), f"{name}.{attribute(field)}")

    def _function(self, f: Any, path: str) -> s.Closure:
        function = core_of(f)
        assert function is not None
        env: dict[Var, s.Value] = {}
        own = None
        cells = dict(zip(captured(f), zip(f.__code__.co_freevars, f.__closure__ or (), strict=True), strict=True))
        for position, (variable, (_, cell)) in enumerate(cells.items()):
            if cell.cell_contents is f:
                own = variable
            else:
                env[variable] = self._cell(cell.cell_contents, f"{path}.__closure__[{position}].cell_contents")
        return s.Closure(function, env, f, own)

    def _cell(self, value: Any, path: str) -> s.Captured:
        """A variable's value; of a `mut` cell, what it holds now."""
        if type(value) is not Cell:
            return s.Captured(value, path)
        return s.Captured(value.v, f"{path}.v")

    # --- the binder ------------------------------------------------------------------------------

    def _constant(self, value: Any) -> str:
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"K{len(self.constants)}"
        self.constants[name] = value
        return name

    def _read(self, path: str) -> str:
        """The local variable of the binder that holds what is at a path."""
        name = self.names.get(path)
        if name is None:
            name = self.names[path] = f"v{len(self.names)}"
            self.lines.append(f"{name} = {path}")
        return name

    def _guard(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def binder(self, kernel: Kernel) -> Binder:
        """binder(f, given) -> (kernel, captured buffers, given scalars and captured ones); None when f is not alike."""
        buffers = "".join(f"{name}, " for name in self.buffers)
        scalars = "".join(f", {name}" for name in self.scalars)
        body = [*self.lines, f"return KERNEL, ({buffers}), (*given{scalars},)"]
        source = "\n".join(["def bind(f, given):", *(f"    {line}" for line in body)]) + "\n"
        namespace = {**self.constants, "KERNEL": kernel}
        exec(compile(source, f"<binder of {kernel.name}>", "exec"), namespace)
        bind: Binder = namespace["bind"]
        return bind
