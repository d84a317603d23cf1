"""Built-ins that are written in place rather than called."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.check import core as c
from osprey_py.check.types import INT, STRING
from osprey_py.eval.body import Body
from osprey_py.eval.emit import P
from osprey_py.eval.generate.arithmetic import truncating
from osprey_py.eval.generate.base import nest
from osprey_py.eval.generate.expressions import text_of

Maker = Callable[[Body, c.Call, list[P]], P | None]


def _template(text: str) -> Maker:
    """Text with {0}, {1} for the operands, each used once."""
    return lambda b, e, ps: P(text.format(*(p.text for p in ps)), all(p.stable for p in ps), nest(ps) + 3)


def _wrapping(op: str) -> Maker:
    return _template("((({0} " + op + " {1}) + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000)")


def _list_length(b: Body, e: c.Call, ps: list[P]) -> P | None:
    if not ps[0].stable:
        return P(f"len({ps[0].text})", nest=nest(ps))
    return P(f"({ps[0].text}.hi - {ps[0].text}.lo)", stable=True, nest=nest(ps))


def _length(b: Body, e: c.Call, ps: list[P]) -> P | None:
    if b.type_of(e.args[0]) == STRING:
        return P(f"len({ps[0].text})", ps[0].stable, nest(ps))
    return None


def _to_string(b: Body, e: c.Call, ps: list[P]) -> P | None:
    return P(text_of(ps[0], b.type_of(e.args[0])), ps[0].stable, nest(ps) + 1)


def _int_div(b: Body, e: c.Call, ps: list[P]) -> P | None:
    return truncating(b, "//", ps[0], ps[1], e.args[1], e.span, nest(ps))


def _extreme(op: str) -> Maker:
    def made(b: Body, e: c.Call, ps: list[P]) -> P | None:
        if b.type_of(e) != INT:
            return None
        a, d = ps[0].text, ps[1].text
        if all(p.stable for p in ps):
            return P(f"({a} if {a} {op} {d} else {d})", stable=True, nest=nest(ps))
        t, u = b.lines.temp(), b.lines.temp()
        return P(f"({t} if ({t} := {a}) {op} ({u} := {d}) else {u})", nest=nest(ps) + 1)

    return made


INLINE: dict[str, Maker] = {
    "listLength": _list_length,
    "length": _length,
    "toString": _to_string,
    "intDiv": _int_div,
    "wrapAdd": _wrapping("+"),
    "wrapSub": _wrapping("-"),
    "wrapMul": _wrapping("*"),
    "bitAnd": _template("({0} & {1})"),
    "bitOr": _template("({0} | {1})"),
    "bitXor": _template("({0} ^ {1})"),
    "bitNot": _template("(~{0})"),
    "toFloat": _template("float({0})"),
    "min": _extreme("<="),
    "max": _extreme(">="),
}
