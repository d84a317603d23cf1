"""A proof about a launch's integers, written down once and checked for other integers.

Comes in: a computation on integers that decides something about them, run once on recorded ones. Goes out: a `Proof`:
the arithmetic that led to each comparison and how that came out, without the computation's own data structures. For
other integers the arithmetic is done again. Where every comparison comes out as it did, the computation would go the
same way, so its result has the same form, with the numbers that the same arithmetic gives. Where one does not, nothing
is known, and the computation has to be run itself. Nothing is carried over unproven.

A recorded integer stands for an int: + - * // % >> and unary minus make another one; a comparison, and the question
whether it is zero, is answered with a bool and written down. All else (hashing, indexing, other arithmetic) is a
TypeError, so no decision slips through.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

Operation = Callable[[int, int], int]
PLAIN = 2
"""How often a computation is run as it is before it is recorded: most launches are of few lengths."""

MOST_PROOFS = 8
"""Proofs of one computation that are kept. When none of them says anything, it is run as it is."""

Line = tuple[Operation, int, int]
"""An operation and the places of its operands."""


class Recorder:
    """One computation while it is recorded."""

    def __init__(self, inputs: Sequence[int]) -> None:
        """`inputs` of the same values are recorded; of a bool it is written down that it is this one."""
        self.given = tuple(int(x) for x in inputs)
        self._constants: dict[int, Recorded] = {}
        self._lines: dict[Line, Recorded] = {}
        self._answers: dict[Line, bool] = {}
        self._places = len(self.given)
        found = [Recorded(self, place, value) for place, value in enumerate(self.given)]
        for x, value in zip(found, inputs, strict=True):
            if isinstance(value, bool):
                self.compare(operator.eq, x, value)
        self.inputs = [v if isinstance(v, bool) else cast(int, x) for x, v in zip(found, inputs, strict=True)]

    def operand(self, x: int | Recorded) -> Recorded:
        if isinstance(x, Recorded):
            return x
        found = self._constants.get(x)
        if found is None:
            found = self._constants[x] = Recorded(self, self._place(), x)
        return found

    def _place(self) -> int:
        self._places += 1
        return self._places - 1

    def compute(self, operation: Operation, a: int | Recorded, b: int | Recorded) -> Recorded:
        a, b = self.operand(a), self.operand(b)
        line = (operation, a.place, b.place)
        found = self._lines.get(line)
        if found is None:
            found = self._lines[line] = Recorded(self, self._place(), operation(a.value, b.value))
        return found

    def compare(self, operation: Operation, a: int | Recorded, b: int | Recorded) -> bool:
        a, b = self.operand(a), self.operand(b)
        if a is b:
            return operation(0, 0) != 0
        line = (operation, a.place, b.place)
        found = self._answers.get(line)
        if found is None:
            found = self._answers[line] = bool(operation(a.value, b.value))
        return found

    def proof(self, result: T) -> Proof[T]:
        """What has been recorded. result: made of recorded integers in tuples and dataclasses, and of what is no
        recorded integer and so is the same in every check."""
        shown: list[Recorded] = []
        make = _maker(result, shown)
        needed = {x.place for x in shown}
        needed.update(*(line[1:] for line in self._answers))
        lines = []
        for line, x in reversed(self._lines.items()):
            if x.place in needed:
                needed.update(line[1:])
                lines.append((line, x.place))
        lines = [((_product if f is operator.mul else f, a, b), place) for (f, a, b), place in reversed(lines)]
        places = {place: place for place in range(len(self.given))}
        constants = [(x.place, value) for value, x in self._constants.items() if x.place in needed]
        for place in (*(p for p, _ in constants), *(p for _, p in lines)):
            places[place] = len(places)
        return Proof(
            tuple(value for _, value in constants),
            tuple((f, places[a], places[b]) for (f, a, b), _ in lines),
            tuple((f, places[a], places[b]) for f, a, b in self._answers),
            list(self._answers.values()),
            tuple(places[x.place] for x in shown),
            make,
        )


class Recorded:
    """An integer whose uses are recorded. place: among all values of the recorder."""

    __slots__ = ("place", "recorder", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, place: int, value: int) -> None:
        self.recorder = recorder
        self.place = place
        self.value = value

    def __add__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 0) else self.recorder.compute(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 0) else self.recorder.compute(operator.sub, self, other)

    def __rsub__(self, other: int) -> Recorded:
        return self.recorder.compute(operator.sub, other, self)

    def __mul__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 1) else self.recorder.compute(operator.mul, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Recorded) -> Recorded:
        return self if _is(other, 1) else self.recorder.compute(operator.floordiv, self, other)

    def __rfloordiv__(self, other: int) -> Recorded:
        return self.recorder.compute(operator.floordiv, other, self)

    def __mod__(self, other: int | Recorded) -> Recorded:
        return self.recorder.compute(operator.mod, self, other)

    def __rmod__(self, other: int) -> Recorded:
        return self.recorder.compute(operator.mod, other, self)

    def __rshift__(self, other: int | Recorded) -> Recorded:
        return self.recorder.compute(operator.rshift, self, other)

    def __rrshift__(self, other: int) -> Recorded:
        return self.recorder.compute(operator.rshift, other, self)

    def __neg__(self) -> Recorded:
        return self.recorder.compute(operator.sub, 0, self)

    def __bool__(self) -> bool:
        return not self.recorder.compare(operator.eq, self, 0)

    def __lt__(self, other: int | Recorded) -> bool:
        return self.recorder.compare(operator.lt, self, other)

    def __le__(self, other: int | Recorded) -> bool:
        return self.recorder.compare(operator.le, self, other)

    def __gt__(self, other: int | Recorded) -> bool:
        return not self.recorder.compare(operator.le, self, other)

    def __ge__(self, other: int | Recorded) -> bool:
        return not self.recorder.compare(operator.lt, self, other)

    def __eq__(self, other: object) -> bool:
        return self.recorder.compare(operator.eq, self, other) if isinstance(other, int | Recorded) else NotImplemented


def _product(a: int, b: int) -> int:
    """a * b in a check. Where a comparison once kept the computation from squaring on and on, the check, which compares
    at the end, must not. Operands of so many bits come from no proof about ints of 64."""
    if max(a.bit_length(), b.bit_length()) > 512:
        raise ValueError
    return a * b


def _is(x: int | Recorded, value: int) -> bool:
    return not isinstance(x, Recorded) and x == value


class Proof(Generic[T]):
    """constants: the values after the inputs. lines: what makes the values after these. comparisons, answers: what has
    to come out. shown: the values that the result is made of."""

    def __init__(
        self,
        constants: tuple[int, ...],
        lines: tuple[Line, ...],
        comparisons: tuple[Line, ...],
        answers: list[bool],
        shown: tuple[int, ...],
        make: Callable[[Sequence[int]], Any],
    ) -> None:
        self._constants = constants
        self._lines = lines
        self._comparisons = comparisons
        self._answers = answers
        self._shown = shown
        self._make = make

    def check(self, inputs: Sequence[int]) -> tuple[T] | None:
        """(the computation's result,) for these inputs; None where the proof says nothing about them."""
        values = [*inputs, *self._constants]
        keep = values.append
        try:
            for operation, a, b in self._lines:
                keep(operation(values[a], values[b]))
        except (ZeroDivisionError, ValueError):  # a comparison that comes out otherwise kept the computation from it
            return None
        if [operation(values[a], values[b]) for operation, a, b in self._comparisons] != self._answers:
            return None
        return (self._make([values[place] for place in self._shown]),)


def _maker(result: object, shown: list[Recorded]) -> Callable[[Sequence[int]], Any]:
    """Makes the like of the result out of the values of the integers in it, which are added to `shown`."""
    if isinstance(result, Recorded):
        shown.append(result)
        return operator.itemgetter(len(shown) - 1)
    before = len(shown)
    if isinstance(result, tuple):
        items = [_maker(x, shown) for x in result]
        if len(shown) > before:
            return lambda values: tuple([item(values) for item in items])
    elif is_dataclass(result) and not isinstance(result, type):
        made = type(result)
        parts = [_maker(getattr(result, field.name), shown) for field in fields(result)]
        if len(shown) > before:
            return lambda values: made(*[part(values) for part in parts])
    return lambda values: result


class Proofs(Generic[T]):
    """A computation on integers and what has been proven of it."""

    def __init__(self, compute: Callable[[Sequence[int]], T]) -> None:
        """compute: a function of the integers alone, and equal results for equal ones."""
        self._compute = compute
        self._runs = 0
        self._proofs: list[Proof[T]] = []

    def of(self, inputs: Sequence[int]) -> T:
        """The computation's result."""
        proofs = self._proofs
        for k, proof in enumerate(proofs):
            found = proof.check(inputs)
            if found is not None:
                if k:
                    proofs.insert(0, proofs.pop(k))
                return found[0]
        self._runs += 1
        if self._runs <= PLAIN or len(proofs) == MOST_PROOFS:
            return self._compute(inputs)
        recorder = Recorder(inputs)
        new = recorder.proof(self._compute(recorder.inputs))
        found = new.check(inputs)
        if found is None:
            return self._compute(inputs)
        proofs.insert(0, new)
        return found[0]
