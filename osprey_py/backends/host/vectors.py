"""A regular map in vectors: the innermost digit of the launch index in lanes, the others in a loop around it.

Comes in: the `Shape` of a launch (kernel/nest.py), expanded. Goes out: the module of its launch function.

A chunk lo … hi-1 is walked row by row: a row is what shares all digits but the innermost. In a row, whole vectors
first, where the body is light enough to be written twice, then vectors with a mask. Whatever depends only on a row
is computed once per row, whatever depends on no digit once per chunk. Lanes are different elements, so each keeps
the order of its own folds."""

from __future__ import annotations

from osprey_py.backends.host import control, memory
from osprey_py.backends.host.expression import Expressions
from osprey_py.backends.host.launch import HEAD, report
from osprey_py.backends.host.placement import INDEX, Placement
from osprey_py.backends.host.text import Function, Module, Scope, Slot, Value, lanes, literal
from osprey_py.backends.host.widths import Widths
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.ir import BOOL, INT
from osprey_py.kernel.nest import Extent, Number, Shape


def module_text(shape: Shape, kinds: tuple[Kind, ...], how: Widths) -> tuple[str, list[Number]]:
    """The module, and the numbers it reads after the uniforms."""
    kernel = shape.kernel
    module = Module()
    function = Function(module)
    entry = Scope(function)
    arguments = memory.Arguments(entry, kinds, kernel.uniforms)
    e = Expressions(
        function,
        Placement(kernel.roots, {}),
        arguments,
        lane_digit=shape.digits[0],
        in_range=shape.in_range,
        folds=shape.folds,
    )
    _Rows(e, shape, how).write(entry)
    entry.write("ret void")
    module.add(function.text(HEAD, entry))
    return module.text(), list(arguments.numbers)


class _Rows:
    """The loops over rows and columns."""

    def __init__(self, e: Expressions, shape: Shape, how: Widths) -> None:
        self.e = e
        self.shape = shape
        self.kernel = shape.kernel
        self.how = how
        self.faulted: Slot = e.function.slot(BOOL)

    def write(self, entry: Scope) -> None:
        self.faulted.write(entry, literal(False))
        if len(self.shape.digits) == 1:
            self._columns(entry, Value(INT, 1, "%lo"), Value(INT, 1, "%hi"), None)
        else:
            self._rows(entry)
        if self.kernel.fault is not None:
            report(entry, self.e.arguments.status, self.faulted.read(entry))

    def _rows(self, entry: Scope) -> None:
        e, f = self.e, self.e.function
        outer = self.shape.digits[1:]
        position = f.slot(INT)
        position.write(entry, Value(INT, 1, "%lo"))
        width = e.arguments.number(Extent(None, 0))
        s = Scope(f, entry, binds=e.placement.bound_bits(outer))
        s.open("row")
        at = position.read(s)
        rest = s.define(INT, 1, f"udiv i64 {at}, {width}")
        start = s.define(INT, 1, f"mul i64 {rest}, {width}")
        for k, digit in enumerate(outer, 1):
            if k == len(outer):
                s.variables[digit] = rest
                break
            extent = e.arguments.number(Extent(None, k))
            s.variables[digit] = s.define(INT, 1, f"urem i64 {rest}, {extent}")
            rest = s.define(INT, 1, f"udiv i64 {rest}, {extent}")
        first = s.define(INT, 1, f"sub i64 {at}, {start}")
        left = s.define(INT, 1, f"sub i64 %hi, {start}")
        last = s.define(INT, 1, f"call i64 @llvm.smin.i64(i64 {left}, i64 {width})")
        self._columns(s, first, last, start)
        following = s.define(INT, 1, f"add i64 {start}, {width}")
        position.write(s, following)
        s.branch(s.define(BOOL, 1, f"icmp slt i64 {following}, %hi"), "row", "end")
        entry.jump("row")
        entry.absorb(s)
        entry.label("end")

    def _columns(self, s: Scope, first: Value, last: Value, start: Value | None) -> None:
        """Columns first … last-1 of the row that begins at launch index `start`."""
        f = self.e.function
        column = f.slot(INT)
        column.write(s, first)
        if self.how.whole is not None:
            self._vectors(s, column, last, start, self.how.whole, masked=False)
        self._vectors(s, column, last, start, self.how.masked, masked=True)

    def _vectors(
        self, outer: Scope, column: Slot, last: Value, start: Value | None, width: int, *, masked: bool
    ) -> None:
        """While there are enough columns: one vector of them."""
        e, f = self.e, self.e.function
        body, done = f.block("vector"), f.block("vectors")
        digit = self.shape.digits[0]
        s = Scope(f, outer, binds=e.placement.bound_bits((digit,)) | INDEX, width=width)
        s.open(body)
        c = column.read(s)
        s.first = c
        wide = s.widen(c, width)
        s.variables[digit] = s.define(INT, width, f"add {wide.llvm} {wide}, {lanes(range(width))}")
        place = c if start is None else s.define(INT, 1, f"add i64 {start}, {c}")
        spread = s.widen(place, width)
        s.index = s.define(INT, width, f"add {spread.llvm} {spread}, {lanes(range(width))}")
        if masked:
            left = s.define(INT, 1, f"sub i64 {last}, {c}")
            s.live = s.define(INT, 1, f"call i64 @llvm.smin.i64(i64 {left}, i64 {width})")
            many = s.widen(left, width)
            s.mask = s.define(BOOL, width, f"icmp sgt {many.llvm} {many}, {lanes(range(width))}")
        self._element(s, place, width)
        following = s.define(INT, 1, f"add i64 {c}, {width}")
        column.write(s, following)

        def more(scope: Scope, at: Value) -> Value:
            if masked:
                return scope.define(BOOL, 1, f"icmp slt i64 {at}, {last}")
            end = scope.define(INT, 1, f"add i64 {at}, {width}")
            return scope.define(BOOL, 1, f"icmp sle i64 {end}, {last}")

        s.branch(more(s, following), body, done)
        outer.branch(more(outer, column.read(outer)), body, done)
        outer.absorb(s)
        outer.label(done)

    def _element(self, s: Scope, place: Value, width: int) -> None:
        e, kernel = self.e, self.kernel
        value = e.at_width(kernel.result, s, width)
        if kernel.fault is not None:
            bit = e.at_width(kernel.fault, s, width)
            if s.mask is not None:
                bit = s.define(BOOL, width, f"and {bit.llvm} {bit}, {s.mask}")
            before = self.faulted.read(s)
            self.faulted.write(s, s.define(BOOL, 1, f"or i1 {before}, {control.any_lane(s, bit)}"))
        memory.store(s, e.arguments.output, place, value)
