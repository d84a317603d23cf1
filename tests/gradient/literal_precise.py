"""The same walk in 60 decimal digits, and derivatives by central differences of it.

Comes in: a program and a point. Goes out: the slope in each of its floats, exact to about 1e-30 relative to the third
derivative: good enough to judge formulas, never bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
from mpmath import mpf

from osprey_py.eval.run import on_big_stack
from osprey_py.kernel.scalars import SCALARS
from tests.gradient.literal import Closure, Literal, Rec, checked, global_named
from tests.gradient.literal_tape import Buf, Val

DIGITS = 60
STEP = mpf("1e-20")


def _divide(a: mpf, b: mpf, *_: object) -> mpf:
    if b == 0 or mpmath.isnan(a) or mpmath.isnan(b):
        return SCALARS["fdivi"](float(a), float(b))
    return a / b


def _remainder(a: mpf, b: mpf, *_: object) -> mpf:
    return a - b * (mpmath.floor(a / b) if a / b >= 0 else mpmath.ceil(a / b))


PRECISE: dict[str, Callable[..., Any]] = {
    **SCALARS,
    "fdiv": _divide,
    "fdivi": _divide,
    "fmod": _remainder,
    "sqrt": lambda a: mpmath.sqrt(a) if a >= 0 else mpf("nan"),
    "exp": mpmath.exp,
    "ln": lambda a: mpmath.log(a) if a > 0 else mpf("-inf" if a == 0 else "nan"),
    "tanh": mpmath.tanh,
    "fmin": lambda a, b: a if a < b else b,
    "fmax": lambda a, b: a if a > b else b,
    "floor": mpmath.floor,
    "ceil": mpmath.ceil,
    "round": mpmath.nint,
    "tofloat": mpf,
    "toint": lambda a, *_: int(a),
}


class Precise(Literal):
    scalars = PRECISE


def floats(v: Any) -> Iterator[Val]:
    """Every float of a point, in order."""
    match v:
        case Val():
            yield v
        case Buf():
            yield from (x for x in v.items if isinstance(x, Val))
        case Rec():
            for x in v.fields.values():
                yield from floats(x)
        case list() | tuple():
            for x in v:
                yield from floats(x)


def flat(v: Any) -> list[float]:
    """The floats of plain data, in the same order."""
    if isinstance(v, float):
        return [v]
    return [x for part in (v.values() if isinstance(v, dict) else v) for x in flat(part)]


def slopes(text: str, function: str, point: str, step: mpf = STEP) -> list[mpf]:
    """d f / d x for every float x of the point; NaN where left and right slopes differ: there is none."""
    program = checked(f"{text}\nlet {function}_kept = {function}")

    def run() -> list[mpf]:
        with mpmath.workdps(DIGITS):
            machine = Precise(program)
            at = global_named(machine, point)
            variables = list(floats(at))
            f = Closure(program.functions[function], {})

            def value() -> mpf:
                return mpf(machine.apply(f, [at]).value)

            for v in variables:
                v.value = mpf(v.value)
            middle = value()
            found = []
            for v in variables:
                x = v.value
                v.value = x + step
                up = (value() - middle) / step
                v.value = x - step
                down = (middle - value()) / step
                v.value = x
                smooth = abs(up - down) <= mpf("1e-12") * (1 + abs(up) + abs(down))
                found.append((up + down) / 2 if smooth else mpf("nan"))
            return found

    return on_big_stack(run)
