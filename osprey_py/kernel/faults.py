"""Faults become values: the pass that every compiled backend's kernels go through first.

Comes in: a `Kernel` as extracted. Goes out: a `Lowered` kernel, in which no operation faults, every operand may be
evaluated, and one boolean says whether the element faulted; its value is then arbitrary (spec/gpu-surface, S3).

Each node becomes a pair (value, fault bit). A checked op becomes its unchecked twin, given a divisor or shift amount
that cannot trap, and a bit computed from its operands; `recover` becomes a select; a fold that can fault carries its
bit in one more accumulator, a loop ends when its bit is up, and a recursive function returns its bit as one more
result.

What is evaluated whatever the data (the operands on the way to the result that no select, recover or fold may skip)
is *certain*: its bits go straight into the kernel's, and everywhere else it counts as sound, for once the flag is up
no value matters. That keeps the bit of a shared index out of every gather that uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    Bound,
    FoldAttr,
    Kernel,
    KFunction,
    LoopAttr,
    Node,
    Ty,
    const,
    fold_parts,
    loop_parts,
    rebuild,
    select,
    var,
    walk,
)

MIN = -(2**63)
Bit = Node | None
"""A fault bit; None is a bit that is known to be false."""


@dataclass(frozen=True, eq=False, slots=True)
class Lowered(Kernel):
    """A kernel without faults. fault: the element faulted; None when it cannot. A function that can fault returns its
    bit as its last result. Too deep recursion is no part of any bit: the backend counts frames and stops. A scan of a
    general kernel stops at the first fault, for what follows might not end."""

    fault: Bit = None

    @property
    def roots(self) -> tuple[Node, ...]:
        return tuple(n for n in (self.result, self.init, self.fault) if n is not None)


def lower(kernel: Kernel) -> Lowered:
    """The kernel with faults as values. O(nodes), but for recursive functions that call each other."""
    faulty = [False] * len(kernel.functions)
    while True:
        functions = tuple(_lower_function(f, kernel.functions, faulty) for f in kernel.functions)
        found = [len(g.results) > len(f.results) for f, g in zip(kernel.functions, functions, strict=True)]
        if found == faulty:
            break
        faulty = found
    lowering = _Lowering(kernel.roots, kernel.functions, faulty, _certain(kernel))
    fault = lowering.bit(kernel.result)
    for node in lowering.certain:
        fault = either(fault, lowering.all[node])
    return Lowered(
        kernel.slots,
        kernel.uniforms,
        lowering.values[kernel.result],
        functions,
        kernel.acc,
        None if kernel.init is None else lowering.values[kernel.init],
        kernel.name,
        kernel.sources,
        fault,
    )


def taken_apart(kernel: Kernel) -> tuple[dict[Node, Node], dict[Node, Bit]]:
    """Of every node of a kernel without functions: its value where it does not fault, and the bit that it, or an
    operand, faulted; nothing counts as certain."""
    lowering = _Lowering(kernel.roots, (), (), {})
    return lowering.values, lowering.all


@lru_cache(maxsize=4096)
def may_fault(kernel: Kernel) -> bool:
    """False when no value of slots and uniforms makes an element fault, as far as the nodes themselves show."""
    return bool(kernel.functions) or lower(kernel).fault is not None


# --- bits ---------------------------------------------------------------------------------------


def _is(node: Bit, value: object) -> bool:
    return node is not None and node.op == "const" and node.attr is value


def either(a: Bit, b: Bit) -> Bit:
    if a is None or b is None or a is b or _is(a, True):
        return b if a is None else a
    return b if _is(b, True) else Node("bor", BOOL, (a, b))


def both(a: Bit, b: Bit) -> Bit:
    if a is None or b is None:
        return None
    if _is(a, True) or a is b:
        return b
    return a if _is(b, True) else Node("band", BOOL, (a, b))


def known_false(c: Node, when: bool) -> set[Node]:
    """Nodes that are false whenever c is `when`."""
    out: set[Node] = set()
    stack = [(c, when)]
    while stack:
        node, truth = stack.pop()
        if not truth:
            out.add(node)
        match node.op, truth:
            case ("band", True) | ("bor", False):
                stack.extend((x, truth) for x in node.args)
            case "bnot", _:
                stack.append((node.args[0], not truth))
            case ("select", True) if _is(node.args[1], False):
                stack.extend(((node.args[0], False), (node.args[2], True)))
    return out


def without(bit: Bit, falsehoods: set[Node]) -> Bit:
    """The bit, or a simpler one that equals it when all of falsehoods are false."""
    if bit is None:
        return None
    done: dict[Node, Bit] = {}
    stack = [bit]
    while stack:
        node = stack[-1]
        if node in falsehoods:
            done[node] = None
        elif node.op != "bor":
            done[node] = node
        elif not all(x in done for x in node.args):
            stack.extend(x for x in node.args if x not in done)
            continue
        else:
            a, b = (done[x] for x in node.args)
            done[node] = node if (a, b) == node.args else either(a, b)
        stack.pop()
    return done[bit]


def chosen(c: Node, a: Bit, b: Bit, *, lazy: bool) -> Bit:
    """The bit a if c else b. In a gather, c says that the index is sound, and so a, the index's bit, goes away.
    lazy: keep it a select, because the bit not chosen may not end."""
    a = a and without(a, known_false(c, True))
    b = b and without(b, known_false(c, False))
    if a is b or _is(c, True):
        return a
    if _is(c, False):
        return b
    if lazy:
        return select(c, a or const(False), b or const(False))
    if b is None:
        return both(c, a)
    if a is None:
        return both(Node("bnot", BOOL, (c,)), b)
    return either(c, b) if _is(a, True) else select(c, a, b)


def zero(ty: Ty) -> Node:
    """Any value of a type."""
    return const({INT: 0, FLOAT: 0.0, BOOL: False}[ty])


def _op(op: str, ty: Ty, *args: Node) -> Node:
    return Node(op, ty, args)


def _compare(op: str, a: Node, b: Node) -> Bit:
    """A comparison of ints, decided when both are constants."""
    if a.op == b.op == "const":
        x, y = a.attr, b.attr
        assert isinstance(x, int) and isinstance(y, int)
        return const(True) if {"eq": x == y, "lt": x < y}[op] else None
    return _op(op, BOOL, a, b)


# --- checked ops --------------------------------------------------------------------------------


def _unchecked(op: str, args: Sequence[Node]) -> tuple[Node, Bit]:
    """(value, bit) of a checked scalar op on sound operands."""
    a = args[0]
    match op:
        case "add" | "sub" | "mul":
            b = args[1]
            return _op("w" + op, INT, a, b), _op(op + "o", BOOL, a, b)
        case "neg":
            return _op("wsub", INT, const(0), a), _compare("eq", a, const(MIN))
        case "iabs":
            negative = _op("lt", BOOL, a, const(0))
            return select(negative, _op("wsub", INT, const(0), a), a), _compare("eq", a, const(MIN))
        case "quot":
            b = args[1]
            zero_divisor = _compare("eq", b, const(0))
            overflow = both(_compare("eq", b, const(-1)), _compare("eq", a, const(MIN)))
            bit = either(zero_divisor, overflow)
            return _op("uquot", INT, a, _safe(bit, const(1), b)), bit
        case "rem":
            b = args[1]
            bit = _compare("eq", b, const(0))
            # a % 1 is 0, as a % -1 is, which the machine may trap on.
            return _op("urem", INT, a, _safe(either(bit, _compare("eq", b, const(-1))), const(1), b)), bit
        case "shl" | "shr" | "shru":
            b = args[1]
            bit = either(_compare("lt", b, const(0)), _compare("lt", const(63), b))
            return _op("u" + op, INT, a, b if bit is None else _op("and", INT, b, const(63))), bit
        case "fdiv" | "fmod":
            b = args[1]
            if b.op == "const":
                return _op(op + "i", FLOAT, a, b), const(True) if b.attr == 0.0 else None
            return _op(op + "i", FLOAT, a, b), _op("eq", BOOL, b, const(0.0))
        case "toint":
            low, high = _op("le", BOOL, const(-(2.0**63)), a), _op("lt", BOOL, a, const(2.0**63))
            return _op("utoint", INT, a), _op("bnot", BOOL, _op("band", BOOL, low, high))
    raise ValueError(op)


def _safe(bit: Bit, instead: Node, value: Node) -> Node:
    """value where the bit is down."""
    if bit is None:
        return value
    return instead if _is(bit, True) else select(bit, instead, value)


# --- the pass -----------------------------------------------------------------------------------


def _certain(kernel: Kernel) -> dict[Node, None]:
    """The nodes evaluated for every element, in some order. Of a general kernel none, and never the operands of a
    fold's count: where a value must not be arbitrary, lest something run without end, its bit has to be seen."""
    if kernel.general:
        return {}
    counts = [n.args[0] for n in walk((kernel.result,)) if n.op == "fold"]
    bounded = set(walk(counts))
    certain: dict[Node, None] = {}
    stack = [kernel.result]
    while stack:
        node = stack.pop()
        if node in certain:
            continue
        if node not in bounded:
            certain[node] = None
        match node.op:
            case "select" | "rare":
                stack.append(node.args[0])
            case "recover":
                pass
            case "fold":
                stack.extend(node.args[: 1 + (len(node.args) - 1) // 2])
            case _:
                stack.extend(node.args)
    return dict(reversed(certain.items()))


def _lower_function(function: KFunction, functions: Sequence[KFunction], faulty: Sequence[bool]) -> KFunction:
    lowering = _Lowering(function.results, functions, faulty, {})
    values, bit = lowering.together(function.results)
    return KFunction(function.name, function.params, values if bit is None else (*values, bit))


class _Lowering:
    """values: what each node became. all: the bit that it, or an operand that is not certain, faulted."""

    def __init__(
        self,
        roots: Iterable[Node],
        functions: Sequence[KFunction],
        faulty: Sequence[bool],
        certain: dict[Node, None],
    ) -> None:
        self.functions = functions
        self.faulty = faulty
        self.certain = certain
        self.values: dict[Node, Node] = {}
        self.all: dict[Node, Bit] = {}
        self.endless: set[Node] = set()
        for node in walk(roots):
            if node.op in ("loop", "call") or not self.endless.isdisjoint(node.args):
                self.endless.add(node)
            self.values[node], below, own = self._node(node)
            self.all[node] = either(below, own)

    def bit(self, node: Node) -> Bit:
        """The bit of a node where something uses it."""
        return None if node in self.certain else self.all[node]

    def together(self, nodes: Sequence[Node]) -> tuple[tuple[Node, ...], Bit]:
        """The values of nodes evaluated one after the other, and the bit that one of them faulted. What may not end is
        evaluated only when nothing before it faulted."""
        values: list[Node] = []
        so_far: Bit = None
        for node in nodes:
            value, bit = self.values[node], self.bit(node)
            if so_far is not None and node in self.endless:
                value = select(so_far, zero(node.type), value)
                bit = chosen(so_far, None, bit, lazy=True)
            values.append(value)
            so_far = either(so_far, bit)
        return tuple(values), so_far

    def _node(self, node: Node) -> tuple[Node, Bit, Bit]:
        """(value, the operands' bit, the node's own bit)."""
        op, args = node.op, node.args
        match op:
            case "select" | "rare":
                c, a, b = (self.values[x] for x in args)
                own = chosen(c, self.bit(args[1]), self.bit(args[2]), lazy=node in self.endless)
                return rebuild(node, (c, a, b)), self.bit(args[0]), own
            case "recover":
                (e, d), (fe, fd) = ([self.values[x] for x in args], [self.bit(x) for x in args])
                own = None if fe is None else chosen(fe, fd, None, lazy=args[1] in self.endless)
                return _safe(fe, d, e), None, own
            case "seq":
                values, bit = self.together(args)
                return values[-1], bit, None
            case "stop":
                return self.values[args[0]], self.bit(args[0]), None
            case "fault":
                return zero(node.type), None, const(True)
            case "fold":
                return self._fold(node)
            case "loop":
                return self._loop(node)
            case "call":
                return self._call(node)
            case "proj":
                return self._proj(node)
        values, bit = self.together(args)
        if OPS[op].checked:
            value, own = _unchecked(op, values)
            return value, bit, own
        return rebuild(node, values), bit, None

    def _fold(self, node: Node) -> tuple[Node, Bit, Bit]:
        n, inits, nexts, attr = fold_parts(node)
        (count, *starts), below = self.together((n, *inits))
        count = _safe(self.bit(n), const(0), count)
        steps, inside = self.together(nexts)
        if inside is None:
            return rebuild(node, (count, *starts, *steps)), below, None
        flag = Bound(BOOL, "fault")
        if any(x.op in ("fold", "loop", "call") for x in walk(nexts)):
            # An accumulator that means nothing must not decide how long something inside runs.
            steps = tuple(select(var(flag), var(a), s) for a, s in zip(attr.accs, steps, strict=True))
            inside = chosen(var(flag), None, inside, lazy=not self.endless.isdisjoint(nexts))
        raised = either(var(flag), inside)
        assert raised is not None
        folded = Node(
            "fold",
            node.type,
            (count, *starts, const(False), *steps, raised),
            FoldAttr(attr.index, (*attr.accs, flag)),
        )
        return folded, below, Node("proj", BOOL, (folded,), len(attr.accs))

    def _loop(self, node: Node) -> tuple[Node, Bit, Bit]:
        inits, condition, nexts, attr = loop_parts(node)
        starts, below = self.together(inits)
        go_on, stuck = self.values[condition], self.bit(condition)
        steps, inside = self.together(nexts)
        if below is None and stuck is None and inside is None:
            return rebuild(node, (*starts, go_on, *steps)), None, None
        flag = Bound(BOOL, "fault")
        if stuck is not None:
            # A condition that faults asks for one more turn, which changes nothing but the flag.
            go_on = Node("bor", BOOL, (stuck, go_on))
            steps = tuple(select(stuck, var(v), s) for v, s in zip(attr.vars, steps, strict=True))
            inside = chosen(stuck, const(True), inside, lazy=not self.endless.isdisjoint(nexts))
        go_on = select(var(flag), const(False), go_on)
        raised = either(var(flag), inside)
        assert raised is not None
        looped = Node(
            "loop",
            node.type,
            (*starts, below or const(False), go_on, *steps, raised),
            LoopAttr((*attr.vars, flag)),
        )
        return looped, None, Node("proj", BOOL, (looped,), len(attr.vars))

    def _call(self, node: Node) -> tuple[Node, Bit, Bit]:
        """The call itself; `_proj` sees to it that it is reached only where the operands are sound."""
        values, below = self.together(node.args)
        called = Node("call", node.type, values, node.attr, node.site)
        k = node.attr
        assert isinstance(k, int)
        raised = Node("proj", BOOL, (called,), len(self.functions[k].results)) if self.faulty[k] else None
        return called, below, chosen(below, None, raised, lazy=True) if below is not None else raised

    def _proj(self, node: Node) -> tuple[Node, Bit, Bit]:
        of = node.args[0]
        value = rebuild(node, (self.values[of],))
        if of.op == "call":
            _, below = self.together(of.args)
            value = _safe(below, zero(node.type), value)
        return value, self.bit(of), None
