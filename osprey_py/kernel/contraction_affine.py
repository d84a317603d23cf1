"""What the integers of a kernel are at one launch: sums of digits, with exact ranges.

Comes in: nodes of a lowered kernel, the slots' lengths, the uniforms and the number of elements, all known.
Goes out: for every node an `Affine` (a constant plus whole multiples of digits), True, False, or None where nothing is
known.

A *digit* is a part of an index: the launch index 0 … n-1, or a fold's, is cut into a mixed radix wherever the kernel
divides by a number that fits, so `i / w` and `i % w` become digits of their own. Cuts are found by need: a division
that no cut serves yet asks for one, and the evaluation starts again. Ranges are exact integers, so what is decided
here (no overflow, in range, a comparison) holds for every element of the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from osprey_py.kernel.ir import Bound, Node

LOW, HIGH = -(2**63), 2**63 - 1
MOST_CUTS = 24


@dataclass(frozen=True, slots=True)
class Digit:
    """(source // unit) % extent of the launch index (source None) or of a fold's index."""

    source: Bound | None
    unit: int
    extent: int

    def __hash__(self) -> int:
        return hash(self.source)


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + sum of multiple * digit. low, high: its exact least and greatest value."""

    constant: int
    terms: tuple[tuple[Digit, int], ...] = ()

    @property
    def low(self) -> int:
        found = self.constant
        for d, c in self.terms:
            if c < 0:
                found += c * (d.extent - 1)
        return found

    @property
    def high(self) -> int:
        found = self.constant
        for d, c in self.terms:
            if c > 0:
                found += c * (d.extent - 1)
        return found

    def times(self, factor: int) -> Affine:
        return Affine(self.constant * factor, tuple((d, c * factor) for d, c in self.terms)) if factor else Affine(0)

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        sums = dict(self.terms)
        for d, c in other.terms:
            sums[d] = sums.get(d, 0) + factor * c
        terms = tuple((d, c) for d, c in sums.items() if c)
        return Affine(self.constant + factor * other.constant, terms)


Known = Affine | bool | None


class Cut(Exception):
    """A digit has to be cut at a multiple of its unit; the evaluation starts again."""

    def __init__(self, source: Bound | None, unit: int) -> None:
        super().__init__()
        self.source = source
        self.unit = unit


@dataclass
class Facts:
    """The known values of nodes at one launch. counts: how long each fold is taken to be, by its index variable.
    assumed: booleans that are taken to hold, such as a fault flag that is down before the fold.
    Of a uniform given as None or as a float nothing is known."""

    lengths: Sequence[int]
    uniforms: Sequence[int | float | bool | None]
    n: int
    values: dict[Node, Known] = field(default_factory=dict)
    counts: dict[Bound, int] = field(default_factory=dict)
    assumed: dict[Bound, bool] = field(default_factory=dict)
    cuts: dict[Bound | None, list[int]] = field(default_factory=dict)

    def digits(self, source: Bound | None) -> tuple[Digit, ...]:
        """The digits of an index, least significant first, without those of extent 1."""
        whole = self.n if source is None else self.counts[source]
        units = self.cuts.setdefault(source, [1])
        found = (Digit(source, u, v // u) for u, v in zip(units, [*units[1:], whole], strict=True))
        return tuple(d for d in found if d.extent != 1)

    def learn(self, nodes: Sequence[Node]) -> bool:
        """Evaluate nodes, operands first. False when there would be too many cuts. All counts and n are positive."""
        for _ in range(MOST_CUTS):
            try:
                for node in nodes:
                    if node not in self.values:
                        self.values[node] = self.evaluate(node)
            except Cut as cut:
                self.cuts[cut.source] = sorted([*self.cuts.get(cut.source, [1]), cut.unit])
                self.values.clear()
            else:
                return True
        return False

    def evaluate(self, node: Node) -> Known:
        """What is known of a node whose operands have been evaluated. Raises Cut."""
        rule = _RULES.get(node.op)
        if rule is not None:
            return rule(*[self.values[a] for a in node.args])
        attr = node.attr
        match node.op, attr:
            case "const", bool() | int():
                return attr if isinstance(attr, bool) else Affine(attr)
            case "uniform", int():
                value = self.uniforms[attr]
                if value is None or isinstance(value, float):
                    return None
                return value if isinstance(value, bool) else Affine(value)
            case "index", _:
                return self._index(None)
            case "var", Bound():
                return self._index(attr) if attr in self.counts else self.assumed.get(attr)
            case "length", int():
                return Affine(self.lengths[attr])
            case "inrange", int():
                at = self.values[node.args[0]]
                return _within(at, 0, self.lengths[attr] - 1) if isinstance(at, Affine) else None
            case "select" | "rare", _:
                choice, a, b = (self.values[x] for x in node.args)
                return a if choice is True else b if choice is False else a if a == b else None
        return None

    def _index(self, source: Bound | None) -> Affine:
        return Affine(0, tuple((d, d.unit) for d in self.digits(source)))


def _within(x: Affine, low: int, high: int) -> bool | None:
    """Whether low <= x <= high: always, never, or None."""
    if low <= x.low and x.high <= high:
        return True
    return False if x.high < low or x.low > high else None


def _sum(a: Known, b: Known) -> Affine | None:
    return a.plus(b) if isinstance(a, Affine) and isinstance(b, Affine) else None


def _difference(a: Known, b: Known) -> Affine | None:
    return a.plus(b, -1) if isinstance(a, Affine) and isinstance(b, Affine) else None


def _product(a: Known, b: Known) -> Affine | None:
    if not (isinstance(a, Affine) and isinstance(b, Affine)):
        return None
    if a.terms and b.terms:
        return None
    return b.times(a.constant) if not a.terms else a.times(b.constant)


def _wrapped(exact: Callable[[Known, Known], Affine | None]) -> Callable[[Known, Known], Known]:
    """The operation, where it cannot leave 64 bits."""

    def rule(a: Known, b: Known) -> Known:
        value = exact(a, b)
        return value if value is not None and _within(value, LOW, HIGH) else None

    return rule


def _overflows(exact: Callable[[Known, Known], Affine | None]) -> Callable[[Known, Known], Known]:
    def rule(a: Known, b: Known) -> Known:
        value = exact(a, b)
        inside = None if value is None else _within(value, LOW, HIGH)
        return None if inside is None else not inside

    return rule


def _divided(a: Known, b: Known) -> tuple[Affine, Affine] | None:
    """(quotient, remainder) of something that is not negative by a positive number."""
    if not (isinstance(a, Affine) and isinstance(b, Affine)) or b.terms or b.constant <= 0 or a.low < 0:
        return None
    w = b.constant
    whole = tuple((d, c // w) for d, c in a.terms if c % w == 0)
    rest = Affine(a.constant % w, tuple((d, c) for d, c in a.terms if c % w))
    if _within(rest, 0, w - 1):
        return Affine(a.constant // w, whole), rest
    for d, c in rest.terms:
        step = w // c if c > 0 and w % c == 0 else 0
        if 1 < step < d.extent and d.extent % step == 0:
            raise Cut(d.source, d.unit * step)
    return None


def _quotient(a: Known, b: Known) -> Known:
    parts = _divided(a, b)
    return None if parts is None else parts[0]


def _remainder(a: Known, b: Known) -> Known:
    parts = _divided(a, b)
    return None if parts is None else parts[1]


def _less(a: Known, b: Known) -> Known:
    d = _difference(a, b)
    return None if d is None else True if d.high < 0 else False if d.low >= 0 else None


def _less_equal(a: Known, b: Known) -> Known:
    d = _difference(a, b)
    return None if d is None else True if d.high <= 0 else False if d.low > 0 else None


def _equal(a: Known, b: Known) -> Known:
    if isinstance(a, bool) and isinstance(b, bool):
        return a == b
    d = _difference(a, b)
    return None if d is None else _within(d, 0, 0) if d.low != d.high else d.low == 0


def _not(a: Known) -> Known:
    return not a if isinstance(a, bool) else None


def _and(a: Known, b: Known) -> Known:
    return False if a is False or b is False else True if a is True and b is True else None


def _smaller(a: Known, b: Known) -> Known:
    d = _difference(a, b)
    return None if d is None else a if d.high <= 0 else b if d.low >= 0 else None


def _larger(a: Known, b: Known) -> Known:
    d = _difference(a, b)
    return None if d is None else b if d.high <= 0 else a if d.low >= 0 else None


_RULES: dict[str, Callable[..., Known]] = {
    "wadd": _wrapped(_sum),
    "wsub": _wrapped(_difference),
    "wmul": _wrapped(_product),
    "addo": _overflows(_sum),
    "subo": _overflows(_difference),
    "mulo": _overflows(_product),
    "uquot": _quotient,
    "urem": _remainder,
    "imin": _smaller,
    "imax": _larger,
    "lt": _less,
    "le": _less_equal,
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "bnot": _not,
    "band": _and,
    "bor": lambda a, b: _not(_and(_not(a), _not(b))),
}
