"""Constants computed, and the identities of single ops.

Comes in: one node. Goes out: a simpler node that means the same bit for bit, or None. kernel/simplify.py applies them.
Of float identities only those are here that hold for NaN, -0.0 and infinities: x·1, x/1, x - 0.0, x + -0.0, -(-x).
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import BOOL, FLOAT, INT, OPS, Node, TableAttr, const
from osprey_py.kernel.scalars import NAN, SCALARS


def known(node: Node) -> int | float | bool | None:
    """The value of a constant."""
    value = node.attr
    return value if node.op == "const" and isinstance(value, int | float) else None


def is_constant(node: Node, value: int | float) -> bool:
    """A constant of exactly this value and type; 0.0 is not -0.0, 1 is not True."""
    return node.op == "const" and type(node.attr) is type(value) and repr(node.attr) == repr(value)


def value_of(node: Node) -> int | float | bool:
    value = known(node)
    assert value is not None
    return value


def folded(node: Node) -> Node | None:
    """The constant that an op on constants gives; None when it faults."""
    values = [known(a) for a in node.args]
    if any(v is None for v in values):
        return None
    if isinstance(node.attr, TableAttr):
        return const(node.attr.values[int(value_of(node.args[0]))])
    if OPS[node.op].checked:
        try:
            found = SCALARS[node.op](*values, node.site)
        except MathFault:
            return None
    elif node.op in _TRAPPING and not _sound(node):
        return None
    else:
        found = SCALARS[node.op](*values)
    return const(NAN) if found != found else const(found)


_TRAPPING = frozenset({"uquot", "urem", "ushl", "ushr", "ushru"})


def _sound(node: Node) -> bool:
    """The operands of an unchecked op are among those that it is meant for."""
    a, b = (value_of(x) for x in node.args)
    if node.op in ("uquot", "urem"):
        return b != 0 and not (b == -1 and a == -(2**63))
    return 0 <= b <= 63


def negated(a: Node) -> Node | None:
    match a.op:
        case "bnot":
            return a.args[0]
        case "lt" | "le" if a.args[0].type is INT:
            return Node("le" if a.op == "lt" else "lt", BOOL, (a.args[1], a.args[0]))
        case "eq" | "ne":
            return Node("ne" if a.op == "eq" else "eq", BOOL, a.args)
    return None


def _neutral(left: int | float | None, right: int | float | None) -> Callable[[Node], Node | None]:
    """The other operand, where one is neutral on its side."""

    def rule(node: Node) -> Node | None:
        a, b = node.args
        if right is not None and is_constant(b, right):
            return a
        return b if left is not None and is_constant(a, left) else None

    return rule


def _same(node: Node) -> Node | None:
    """An op of a thing with itself gives that thing."""
    return node.args[0] if node.args[0] is node.args[1] else None


def _either(*rules: Callable[[Node], Node | None]) -> Callable[[Node], Node | None]:
    def rule(node: Node) -> Node | None:
        return next((found for r in rules if (found := r(node)) is not None), None)

    return rule


def _double(op: str) -> Callable[[Node], Node | None]:
    return lambda node: node.args[0].args[0] if node.args[0].op == op else None


def _compare_bool(node: Node) -> Node | None:
    a, b = node.args
    if a.type is not BOOL:
        return None
    wanted = node.op == "eq"
    for x, y in ((a, b), (b, a)):
        decided = known(y)
        if decided is not None:
            return x if bool(decided) is wanted else Node("bnot", BOOL, (x,))
    return None


_KEEPING: dict[str, Callable[[Node], Node | None]] = {
    "add": _neutral(0, 0),
    "wadd": _neutral(0, 0),
    "sub": _neutral(None, 0),
    "wsub": _neutral(None, 0),
    "mul": _neutral(1, 1),
    "wmul": _neutral(1, 1),
    "quot": _neutral(None, 1),
    "uquot": _neutral(None, 1),
    "shl": _neutral(None, 0),
    "shr": _neutral(None, 0),
    "shru": _neutral(None, 0),
    "ushl": _neutral(None, 0),
    "ushr": _neutral(None, 0),
    "ushru": _neutral(None, 0),
    "and": _either(_neutral(-1, -1), _same),
    "or": _either(_neutral(0, 0), _same),
    "xor": _neutral(0, 0),
    "imin": _same,
    "imax": _same,
    "inot": _double("inot"),
    "fmul": _neutral(1.0, 1.0),
    "fdiv": _neutral(None, 1.0),
    "fdivi": _neutral(None, 1.0),
    "fsub": _neutral(None, 0.0),
    "fadd": _neutral(-0.0, -0.0),
    "fneg": _double("fneg"),
    "band": _either(_neutral(True, True), _same),
    "bor": _either(_neutral(False, False), _same),
    "eq": _compare_bool,
    "ne": _compare_bool,
}
"""Rules that keep every operand that is not a constant."""


_OF_ITSELF: dict[str, int | bool] = {
    "sub": 0,
    "wsub": 0,
    "xor": 0,
    "eq": True,
    "le": True,
    "ne": False,
    "lt": False,
    "subo": False,
}
"""What an op of an int or bool with itself gives."""

_WITH_CONSTANT: dict[str, tuple[tuple[int | bool | None, int | bool | None, int | bool], ...]] = {
    "mul": ((0, 0, 0),),
    "wmul": ((0, 0, 0),),
    "and": ((0, 0, 0),),
    "or": ((-1, -1, -1),),
    "band": ((False, False, False),),
    "bor": ((True, True, True),),
    "rem": ((None, 1, 0), (None, -1, 0)),
    "urem": ((None, 1, 0), (None, -1, 0)),
    "addo": ((0, 0, False),),
    "subo": ((None, 0, False),),
    "mulo": ((0, 0, False), (1, 1, False)),
}
"""Of an op: (left, right, result) where a constant operand on its side decides the result."""


def dropping(node: Node) -> Node | None:
    """The constant that an op gives whatever one operand is; the operand is dropped, so it must be harmless."""
    args = node.args
    if len(args) != 2:
        return None
    if args[0] is args[1] and args[0].type is not FLOAT and node.op in _OF_ITSELF:
        return const(_OF_ITSELF[node.op])
    for left, right, result in _WITH_CONSTANT.get(node.op, ()):
        if (left is not None and is_constant(args[0], left)) or (right is not None and is_constant(args[1], right)):
            return const(result)
    return None


def keeping(node: Node) -> Node | None:
    """A simpler node with all operands of the op that are no constants; None when there is none."""
    rule = _KEEPING.get(node.op)
    return None if rule is None else rule(node)
