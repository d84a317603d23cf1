"""The scalar IR of one kernel: an immutable DAG of nodes, and the kernels made of it.

Comes in: nothing. Goes out: `Node`, `Kernel` and the table `OPS` that every pass and every backend reads.

A kernel describes one output element as a function of its index. Everything that may change between launches is an
argument: buffers are *slots*, captured scalars are *uniforms*, and slot lengths are read with `length`.
Node equality is identity: two written reads stay two nodes until the `share` pass, which runs after gradients
(spec/gradients, G1).

Faults. As extracted, `add sub mul neg iabs quot rem fdiv fmod toint shl shr shru` are *checked*: each carries a `Site`
and may fault. `select`, `recover` (`?:`), `fold` and `loop` evaluate only what they choose: an unchosen operand never
faults. Operands are evaluated left to right, a node once in its scope; `seq` evaluates what the program evaluated
before (an unused `let` that faults, say). The pass kernel/faults.py makes faults into values: afterwards only the
unchecked twins (OPS[...].checked is False; `call` apart) and boolean fault bits remain, `recover`, `fault`, `seq` and
`stop` are gone, and evaluating an unchosen operand is harmless, save that a `loop` or `call` in it may not end: branch
around those. The oracle interprets the form as extracted; compiled backends get the form after faults.py.

NaN: any NaN produced is one value; what is stored, returned or looked at (`floatbits`) is 0x7FF8000000000000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import count

from osprey_py.source.span import Span


class Ty(Enum):
    """The three scalar types: int64, binary64, bool."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"

    def __repr__(self) -> str:
        return self.value


INT, FLOAT, BOOL = Ty.INT, Ty.FLOAT, Ty.BOOL


@dataclass(frozen=True, slots=True)
class Site:
    """Where a node that can fault was written. Compared by value."""

    span: Span


_serials = count()


@dataclass(frozen=True, eq=False, slots=True)
class Bound:
    """A variable bound by a `fold` or `loop` (or a kernel function's parameter). Unique by identity.
    uid: when it was made, among nodes and variables: a fold's before what is written in its body."""

    type: Ty
    name: str = ""
    uid: int = field(default_factory=_serials.__next__)


Attr = object


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """op: a key of OPS. attr: what the op needs besides operands (see OPS). type: of the value; for `fold`, `loop` and
    `call`, whose results are read by `proj` only, the type of result 0.
    serial: nodes are numbered as they are made, and extraction makes them as the program evaluates them: the order that
    gradients follow (spec/gradients, G2). Nothing else reads it."""

    op: str
    type: Ty
    args: tuple[Node, ...] = ()
    attr: Attr = None
    site: Site | None = None
    serial: int = field(default_factory=_serials.__next__)


@dataclass(frozen=True, slots=True)
class FoldAttr:
    """index: counts 0 … n-1 ascending. accs: the accumulators.
    args of the node: (n, init_0 … init_k-1, next_0 … next_k-1); nexts read index and accs; results by `proj`.
    n <= 0 gives the inits. All nexts are computed from the old accs."""

    index: Bound
    accs: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class LoopAttr:
    """A while loop (tail recursion). vars: the state.
    args: (init_0 … init_k-1, condition, next_0 … next_k-1); results by `proj` are the state when condition is false."""

    vars: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class TableAttr:
    """A constant table of one type; args: (index,), always in range by construction."""

    values: tuple[int | float, ...]


@dataclass(frozen=True, slots=True)
class OpInfo:
    """What there is to know about an op. operands: a description for people. checked: it can fault and has a site.
    scalar: a pure function of its operands' values (no memory, no binding, no laziness)."""

    operands: str
    meaning: str
    checked: bool = False
    scalar: bool = True


def _op(operands: str, meaning: str, *, checked: bool = False, scalar: bool = True) -> OpInfo:
    return OpInfo(operands, meaning, checked, scalar)


OPS: dict[str, OpInfo] = {
    # leaves
    "const": _op("", "attr: the int, float or bool", scalar=False),
    "uniform": _op("", "attr: k; the k-th captured scalar", scalar=False),
    "index": _op("", "the launch index, 0 … n-1", scalar=False),
    "var": _op("", "attr: a Bound", scalar=False),
    "length": _op("", "attr: slot; its length", scalar=False),
    # memory
    "load": _op("int", "attr: slot; the element at a place guarded to be in range; else any value", scalar=False),
    "inrange": _op("int", "attr: slot; 0 <= i < length", scalar=False),
    "table": _op("int", "attr: TableAttr"),
    # int, checked
    "add": _op("int int", "a + b; integer overflow", checked=True),
    "sub": _op("int int", "a - b; integer overflow", checked=True),
    "mul": _op("int int", "a * b; integer overflow", checked=True),
    "neg": _op("int", "-a; integer overflow", checked=True),
    "iabs": _op("int", "|a|; integer overflow", checked=True),
    "quot": _op("int int", "truncating a / b; division by zero, integer overflow", checked=True),
    "rem": _op("int int", "a - b * trunc(a / b), MIN % -1 = 0; division by zero", checked=True),
    "shl": _op("int int", "a << b; shift out of range unless 0 <= b <= 63", checked=True),
    "shr": _op("int int", "arithmetic a >> b; likewise", checked=True),
    "shru": _op("int int", "logical a >> b; likewise", checked=True),
    # int, unchecked
    "wadd": _op("int int", "a + b mod 2^64"),
    "wsub": _op("int int", "a - b mod 2^64"),
    "wmul": _op("int int", "a * b mod 2^64"),
    "uquot": _op("int int", "truncating quotient; b is neither 0 nor, with a = MIN, -1"),
    "urem": _op("int int", "remainder; likewise"),
    "ushl": _op("int int", "a << b; 0 <= b <= 63"),
    "ushr": _op("int int", "arithmetic a >> b; 0 <= b <= 63"),
    "ushru": _op("int int", "logical a >> b; 0 <= b <= 63"),
    "mulhigh": _op("int int", "the high 64 bits of the unsigned 128-bit product"),
    "addo": _op("int int", "bool: a + b overflows"),
    "subo": _op("int int", "bool: a - b overflows"),
    "mulo": _op("int int", "bool: a * b overflows"),
    "and": _op("int int", "bitwise"),
    "or": _op("int int", "bitwise"),
    "xor": _op("int int", "bitwise"),
    "inot": _op("int", "bitwise"),
    "imin": _op("int int", "the smaller"),
    "imax": _op("int int", "the larger"),
    # float
    "fadd": _op("float float", "rounded to nearest even; never contracted"),
    "fsub": _op("float float", "likewise"),
    "fmul": _op("float float", "likewise"),
    "fdiv": _op("float float", "a / b; division by zero when b is ±0.0", checked=True),
    "fmod": _op("float float", "C's fmod; division by zero when b is ±0.0", checked=True),
    "fdivi": _op("float float", "IEEE division; never faults"),
    "fmodi": _op("float float", "C's fmod; b = ±0.0 gives NaN"),
    "fneg": _op("float", "the sign flipped"),
    "fabs": _op("float", "the sign cleared"),
    "fmin": _op("float float", "IEEE 754-2019 minimum: NaN wins, -0.0 < 0.0"),
    "fmax": _op("float float", "IEEE 754-2019 maximum"),
    "floor": _op("float", "to an integral float"),
    "ceil": _op("float", "to an integral float"),
    "round": _op("float", "to an integral float, ties to even"),
    "sqrt": _op("float", "correctly rounded"),
    "exp": _op("float", "correctly rounded (spec/numerics)"),
    "ln": _op("float", "correctly rounded; ln(0) = -inf, ln(x < 0) = NaN"),
    "tanh": _op("float", "correctly rounded"),
    "stop": _op("float", "the operand; it passes no gradient on (spec/gradients, G9)"),
    # conversions and bits
    "tofloat": _op("int", "nearest, ties to even"),
    "toint": _op("float", "truncates; not an integer in range faults", checked=True),
    "utoint": _op("float", "truncates; the value is in range (else any value, no trap)"),
    "floatbits": _op("float", "the bits as int; NaN is canonical"),
    "ubits": _op("float", "the bits of a float that is no NaN (a NaN: any value)"),
    "bitsfloat": _op("int", "the float with these bits"),
    # comparisons (bool) on int, float; eq and ne also on bool
    "eq": _op("t t", "=="),
    "ne": _op("t t", "!="),
    "lt": _op("t t", "<"),
    "le": _op("t t", "<="),
    # bool (eager; `&&` is a select)
    "band": _op("bool bool", "both are evaluated"),
    "bor": _op("bool bool", "both are evaluated"),
    "bnot": _op("bool", "not"),
    # choice
    "select": _op("bool t t", "args (c, a, b): a if c else b; only the chosen one counts", scalar=False),
    "recover": _op("t t", "args (e, d): e, or d if e faults", scalar=False),
    "seq": _op("t …", "args (first …, last): all evaluated in this order; the value is the last", scalar=False),
    "fault": _op("", "attr: message; always faults, of any type", checked=True, scalar=False),
    "rare": _op("bool t t", "like select; c is almost never true: compiled as a branch around a", scalar=False),
    # binding
    "fold": _op("n inits nexts", "attr: FoldAttr; an ordered fold", scalar=False),
    "loop": _op("inits condition nexts", "attr: LoopAttr", scalar=False),
    "call": _op("t …", "attr: k, a Kernel.functions index; recursion that is no loop", checked=True, scalar=False),
    "proj": _op("fold|loop|call", "attr: j; the j-th result (result 0 too is read with proj)", scalar=False),
}

PRIVATE: dict[str, OpInfo] = {
    "muladd": _op("float float float", "a * b + c, rounded once or twice, as the target likes best"),
    "residue": _op("float float float", "a * b + c that cancels (numerics/build.py); the product's error is not lost"),
}
"""What the expansions of exp, ln and tanh may hold besides: operations whose bytes are no contract. No kernel holds one
before backends/prepare.py."""

MESSAGES = {
    "add": "integer overflow",
    "sub": "integer overflow",
    "mul": "integer overflow",
    "neg": "integer overflow",
    "iabs": "integer overflow",
    "shl": "shift out of range",
    "shr": "shift out of range",
    "shru": "shift out of range",
    "fdiv": "division by zero",
    "fmod": "division by zero",
    "toint": "not an integer in range",
    "call": "recursion too deep",
}
"""The message of each checked op (quot and rem: `division by zero` for b = 0, else `integer overflow`)."""

MAX_DEPTH = 100_000
"""Frames of recursion that is no tail call, in a kernel as on the host; beyond is the fault `recursion too deep`, which
nothing recovers."""


@dataclass(frozen=True, eq=False, slots=True)
class KFunction:
    """A recursive helper of a general kernel. It reads its params, uniforms and slots, not `index`.
    results: one or more; a `call` gives them by `proj` (after faults.py the last may be a fault bit)."""

    name: str
    params: tuple[Bound, ...]
    results: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """result: the element at `index`. A `scan` kernel also reads the accumulator: acc is its Bound, init the value
    before element 0 (an expression of uniforms that cannot fault), and the launch stores each next acc.
    name and sources: for people. sources: where its function stands, and those that the function captured; of a fused
    kernel, those of all its parts, oldest first."""

    slots: tuple[Ty, ...]
    uniforms: tuple[Ty, ...]
    result: Node
    functions: tuple[KFunction, ...] = ()
    acc: Bound | None = None
    init: Node | None = None
    name: str = "kernel"
    sources: tuple[Span, ...] = ()

    @property
    def type(self) -> Ty:
        return self.result.type

    @property
    def roots(self) -> tuple[Node, ...]:
        """The result and, of a scan, the init; the bodies of functions are not among them."""
        return (self.result,) if self.init is None else (self.result, self.init)

    @property
    def general(self) -> bool:
        """True when it has loops of unknown length or recursion: it runs scalar."""
        return bool(self.functions) or any(n.op == "loop" for n in walk(self.roots))


# --- building -----------------------------------------------------------------------------------------------


def const(value: int | float | bool) -> Node:
    ty = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
    return Node("const", ty, (), value)


def var(b: Bound) -> Node:
    return Node("var", b.type, (), b)


def uniform(k: int, ty: Ty) -> Node:
    return Node("uniform", ty, (), k)


def index() -> Node:
    return Node("index", INT)


def load(slot: int, ty: Ty, at: Node) -> Node:
    return Node("load", ty, (at,), slot)


def inrange(slot: int, at: Node) -> Node:
    return Node("inrange", BOOL, (at,), slot)


def length(slot: int) -> Node:
    return Node("length", INT, (), slot)


def select(c: Node, a: Node, b: Node) -> Node:
    return Node("select", a.type, (c, a, b))


def seq(first: Iterable[Node], last: Node) -> Node:
    """last, after all of first have been evaluated; just last when there are none."""
    args = (*first, last)
    return Node("seq", last.type, args) if len(args) > 1 else last


def fold(
    n: Node, index_var: Bound, accs: tuple[Bound, ...], inits: tuple[Node, ...], nexts: tuple[Node, ...]
) -> tuple[Node, ...]:
    """The results of a fold, one `proj` for each accumulator."""
    node = Node("fold", accs[0].type, (n, *inits, *nexts), FoldAttr(index_var, accs))
    return tuple(Node("proj", a.type, (node,), j) for j, a in enumerate(accs))


def loop(
    vars_: tuple[Bound, ...], inits: tuple[Node, ...], condition: Node, nexts: tuple[Node, ...]
) -> tuple[Node, ...]:
    node = Node("loop", vars_[0].type, (*inits, condition, *nexts), LoopAttr(vars_))
    return tuple(Node("proj", a.type, (node,), j) for j, a in enumerate(vars_))


def call(k: int, args: tuple[Node, ...], types: tuple[Ty, ...], site: Site | None) -> tuple[Node, ...]:
    """The results of a call of Kernel.functions[k], one `proj` each."""
    node = Node("call", types[0], args, k, site)
    return tuple(Node("proj", t, (node,), j) for j, t in enumerate(types))


def fold_parts(n: Node) -> tuple[Node, tuple[Node, ...], tuple[Node, ...], FoldAttr]:
    """(count, inits, nexts, attr) of a fold node."""
    attr = n.attr
    assert isinstance(attr, FoldAttr)
    k = len(attr.accs)
    return n.args[0], n.args[1 : 1 + k], n.args[1 + k :], attr


def loop_parts(n: Node) -> tuple[tuple[Node, ...], Node, tuple[Node, ...], LoopAttr]:
    """(inits, condition, nexts, attr) of a loop node."""
    attr = n.attr
    assert isinstance(attr, LoopAttr)
    k = len(attr.vars)
    return n.args[:k], n.args[k], n.args[k + 1 :], attr


# --- reading ------------------------------------------------------------------------------------------------


def walk(roots: Iterable[Node]) -> Iterator[Node]:
    """Every node reachable from the roots once, operands before users. Needs no Python stack."""
    seen: set[Node] = set()
    for root in roots:
        # None: the operands of the node below it are done.
        stack: list[Node | None] = [root]
        while stack:
            node = stack.pop()
            if node is None:
                below = stack.pop()
                assert below is not None
                yield below
            elif node not in seen:
                seen.add(node)
                if node.args:
                    stack += (node, None, *reversed(node.args))
                else:
                    yield node


def rebuild(node: Node, args: tuple[Node, ...]) -> Node:
    """The node with other operands; the same object when nothing changed."""
    if args == node.args:  # nodes are equal to themselves only
        return node
    return Node(node.op, node.type, args, node.attr, node.site)
