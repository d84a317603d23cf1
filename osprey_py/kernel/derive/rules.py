"""What each operation passes back to its operands, bit for bit (spec/gradients, G4).

Comes in: an operation's adjoint, its operands and its result, as expressions that do not fault. Goes out: for each
operand a `Part`, or None where it gets nothing. Every operation of the IR is in exactly one of three tables: `RULES`,
`NONE` with the reason why it has no derivative, and `STRUCTURE`, whose derivative is a matter of what is executed
(kernel/derive/reverse.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from osprey_py.kernel.ir import BOOL, FLOAT, Node, const, select


@dataclass(frozen=True, slots=True)
class Part:
    """A contribution to an operand. when: the condition under which there is one; None: always."""

    value: Node
    when: Node | None = None


Parts = tuple[Part | None, ...]
Rule = Callable[[Node, tuple[Node, ...], Node], Parts]
"""(the adjoint of the result, the operands, the result) -> a part for each operand."""


def f(op: str, *args: Node) -> Node:
    return Node(op, FLOAT, args)


def negative(x: Node) -> Node:
    return f("fneg", x)


def less(a: Node, b: Node) -> Node:
    return Node("lt", BOOL, (a, b))


def _div(s: Node, args: tuple[Node, ...], y: Node) -> Parts:
    q = f("fdivi", s, args[1])
    return Part(q), Part(negative(f("fmul", q, y)))


def _mod(s: Node, args: tuple[Node, ...], y: Node) -> Parts:
    q = f("fdivi", *args)
    whole = select(less(q, const(0.0)), f("ceil", q), f("floor", q))
    return Part(s), Part(negative(f("fmul", s, whole)))


def _larger(s: Node, args: tuple[Node, ...], y: Node) -> Parts:
    second = less(args[0], args[1])
    return Part(s, Node("bnot", BOOL, (second,))), Part(s, second)


def _smaller(s: Node, args: tuple[Node, ...], y: Node) -> Parts:
    second = less(args[1], args[0])
    return Part(s, Node("bnot", BOOL, (second,))), Part(s, second)


RULES: dict[str, Rule] = {
    "fadd": lambda s, args, y: (Part(s), Part(s)),
    "fsub": lambda s, args, y: (Part(s), Part(negative(s))),
    "fmul": lambda s, args, y: (Part(f("fmul", s, args[1])), Part(f("fmul", s, args[0]))),
    "fdiv": _div,
    "fdivi": _div,
    "fmod": _mod,
    "fmodi": _mod,
    "fneg": lambda s, args, y: (Part(negative(s)),),
    "fabs": lambda s, args, y: (Part(select(less(args[0], const(0.0)), negative(s), s)),),
    "fmin": _smaller,
    "fmax": _larger,
    "sqrt": lambda s, args, y: (Part(f("fdivi", f("fmul", const(0.5), s), y)),),
    "exp": lambda s, args, y: (Part(f("fmul", s, y)),),
    "ln": lambda s, args, y: (Part(f("fdivi", s, args[0])),),
    "tanh": lambda s, args, y: (Part(f("fmul", s, f("fsub", const(1.0), f("fmul", y, y)))),),
}

_INT = "ints have no gradient (G9)"
_BOOL = "bools have no gradient (G9)"
_STEP = "constant but for jumps (G9)"

NONE: dict[str, str] = {
    "const": "reads no value",
    "uniform": "a scalar of the host: one that has a gradient is read from a buffer instead (G13)",
    **dict.fromkeys(("index", "length", "inrange"), _INT),
    "table": "its operand is an int (G9)",
    **dict.fromkeys(("add", "sub", "mul", "neg", "iabs", "quot", "rem", "shl", "shr", "shru"), _INT),
    **dict.fromkeys(("wadd", "wsub", "wmul", "uquot", "urem", "ushl", "ushr", "ushru", "mulhigh"), _INT),
    **dict.fromkeys(("and", "or", "xor", "inot", "imin", "imax"), _INT),
    **dict.fromkeys(("addo", "subo", "mulo"), _BOOL),
    **dict.fromkeys(("floor", "ceil", "round"), _STEP),
    "tofloat": "its operand is an int (G9)",
    **dict.fromkeys(("toint", "utoint", "floatbits", "ubits"), "gives an int (G9)"),
    "bitsfloat": "its operand is an int (G9)",
    **dict.fromkeys(("eq", "ne", "lt", "le", "band", "bor", "bnot"), _BOOL),
    "fault": "has no value",
    "stop": "is there to pass nothing on (G9)",
    **dict.fromkeys(("loop", "call"), "refused by name where a parameter's value reaches it (G10)"),
}

STRUCTURE = frozenset({"load", "var", "select", "rare", "recover", "seq", "fold", "proj"})
"""What is read and what is chosen, handed on as it is."""
