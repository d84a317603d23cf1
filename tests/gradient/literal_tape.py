"""Every float of a run, who read it, and the slow gradient: spec/gradients G1-G7 and G12, word for word.

Comes in: operations as they are executed, each with the place of its sites. Goes out: adjoints.
Nothing is shared with osprey_py but what a scalar operation computes (kernel/scalars.py).

A site is a tuple that sorts by evaluation: (time of the host operation or launch, (place in the text, … , operand)).
Executions of a site are noted as they happen, which is the ascending order of G3.
"""

from __future__ import annotations

from typing import Any

from osprey_py.kernel.scalars import NAN, SCALARS

Key = tuple[int, tuple[int, ...]]

COPIES = frozenset({"read", "store", "accumulator", "captured", "move"})
"""Operations that give their operand: what each one passes on is its adjoint."""


class Val:
    """One float: an element of a buffer (buffer is the Buf it is in) or a float of a kernel or of the host.
    active: computed from a parameter. op, args: what made it. reads: (site, what was computed, which operand), as
    executed. launches: results of launches whose text reads this float of the host."""

    __slots__ = ("active", "adjoint", "args", "buffer", "launches", "op", "reads", "value")

    def __init__(self, value: float, active: bool = False, op: str = "", args: tuple[Val, ...] = ()) -> None:
        self.value = value
        self.active = active
        self.op = op
        self.args = args
        self.reads: list[tuple[Key, Val, int]] = []
        self.adjoint: float | None = None
        self.buffer: Buf | None = None
        self.launches: list[Buf] = []


class Buf:
    """A buffer: Vals, ints or bools. active: by what the program's text says, whatever was executed, it is computed from
    a parameter. readers: what was made by reading it, buffers and floats of the host."""

    __slots__ = ("active", "items", "known", "readers")

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.readers: list[Buf | Val] = []
        self.known: bool | None = None
        self.active = any(isinstance(v, Val) and v.active for v in items)
        for v in items:
            if isinstance(v, Val):
                v.buffer = self

    @property
    def has_adjoint(self) -> bool:
        """Whether some reader that has an adjoint can read it (G5)."""
        if self.known is None:
            self.known = any(r.has_adjoint if isinstance(r, Buf) else r.adjoint is not None for r in self.readers)
        return self.known


class Tape:
    """The floats of a run that depend on a parameter, as made."""

    def __init__(self) -> None:
        self.made: list[Val] = []
        self.time = 0

    def tick(self) -> int:
        self.time += 1
        return self.time

    def parameter(self, value: float) -> Val:
        v = Val(value, True, "parameter")
        self.made.append(v)
        return v

    def note(self, op: str, value: float, args: tuple[Val, ...], sites: tuple[Key, ...]) -> Val:
        """The result of an operation on args, one site for each."""
        if not any(a.active for a in args):
            return Val(value)
        made = Val(value, True, op, args)
        for k, (a, site) in enumerate(zip(args, sites, strict=True)):
            if a.active:
                a.reads.append((site, made, k))
        self.made.append(made)
        return made

    def derived(self, made: Buf, *sources: Buf | Val) -> Buf:
        """A buffer whose text reads the sources: its elements have adjoints even where no parameter came into them."""
        if any(source.active for source in sources):
            made.active = True
            for v in made.items:
                if isinstance(v, Val) and not v.active:
                    v.active = True
                    self.made.append(v)
        return made

    def copy(self, op: str, v: Val, site: Key) -> Val:
        return self.note(op, v.value, (v,), (site,))

    def backward(self, result: Val) -> None:
        """Adjoints of everything, the last made first (G2)."""
        for v in reversed(self.made):
            v.adjoint = 1.0 if v is result else adjoint(v)


def adjoint(v: Val) -> float | None:
    """0.0 plus the subtotals of the sites, the site evaluated last first; None when nothing contributed (G2, G3, G5)."""
    by_site: dict[Key, list[tuple[Val, int]]] = {}
    for site, made, k in v.reads:
        by_site.setdefault(site, []).append((made, k))
    total = None
    for site in sorted(by_site, reverse=True):
        subtotal = None
        for made, k in by_site[site]:
            if made.adjoint is None:
                continue
            c = contribution(made, k, made.adjoint)
            if c is not None:
                subtotal = (0.0 if subtotal is None else subtotal) + c
        if subtotal is not None:
            total = (0.0 if total is None else total) + subtotal
    if total is None:
        there = v.buffer.has_adjoint if v.buffer is not None else any(b.has_adjoint for b in v.launches)
        return 0.0 if there else None
    return total


def contribution(made: Val, k: int, g: float) -> float | None:
    """What an operation with adjoint g gives to operand k (G4); None when nothing."""
    y = made.value
    a = made.args[0].value
    b = made.args[-1].value
    divide = SCALARS["fdivi"]
    match made.op:
        case "fadd":
            return g
        case "fsub":
            return g if k == 0 else -g
        case "fmul":
            return g * b if k == 0 else g * a
        case "fdiv" | "fdivi":
            q: float = divide(g, b)
            return q if k == 0 else -(q * y)
        case "fneg":
            return -g
        case "fmod":
            return g if k == 0 else -(g * toward_zero(divide(a, b)))
        case "sqrt":
            return float(divide(0.5 * g, y))
        case "exp":
            return g * y
        case "ln":
            return float(divide(g, a))
        case "tanh":
            return g * (1.0 - y * y)
        case "fabs":
            return -g if a < 0.0 else g
        case "fmax":
            return g if (k == 1) == (a < b) else None
        case "fmin":
            return g if (k == 1) == (b < a) else None
        case "floor" | "ceil" | "round":
            return None
        case op if op in COPIES:
            return g
    raise AssertionError(made.op)


def toward_zero(q: float) -> float:
    return float(SCALARS["ceil" if q < 0.0 else "floor"](q))


def gradient_of(v: Val) -> float:
    """An element of the answer: never -0.0, and one NaN (G12)."""
    found = 0.0 + (v.adjoint or 0.0)
    return NAN if found != found else found
