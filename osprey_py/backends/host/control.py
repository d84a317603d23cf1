"""Folds, loops, branches and calls: the operations that need control flow.

Each opens a scope, writes into it, and is appended to the scope it was met in. State lives in stack slots, which
SROA makes registers. An ordered fold is a loop, whatever runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from osprey_py.backends.host import outline, rows
from osprey_py.backends.host.counting import counted
from osprey_py.backends.host.operations import choose
from osprey_py.backends.host.text import Scope, Slot, Value, literal, llvm_type, suffix
from osprey_py.kernel.ir import BOOL, FLOAT, INT, MAX_DEPTH, Bound, Node, Ty, fold_parts, loop_parts
from osprey_py.kernel.nest import Extent

if TYPE_CHECKING:
    from osprey_py.backends.host.expression import Expressions

ZERO: dict[Ty, Value] = {INT: literal(0), FLOAT: literal(0.0), BOOL: literal(False)}


def fold(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """An ordered fold. In vector code each lane has its own accumulators; where the lanes' counts differ, a lane
    that is done keeps its state."""
    count, inits, nexts, attr = fold_parts(node)
    if width > 1:
        e.lane_bits |= e.placement.bound_bits(attr.accs)
    f = e.function
    n = e.value(count, s)
    if n.width > 1 and s.mask is not None:
        n = choose(s, s.mask, n, literal(0, n.width))
    last = n if n.width == 1 else s.define(INT, 1, f"call i64 @llvm.vector.reduce.smax.v{n.width}i64({n.llvm} {n})")
    accs = [f.slot(a.type, width) for a in attr.accs]
    for acc, init in zip(accs, inits, strict=True):
        acc.write(s, e.at_width(init, s, width))
    bits = e.placement.bound_bits((attr.index, *e.folds.get(attr.index, ()), *attr.accs))

    def turn(inner: Scope, i: Value) -> None:
        inner.variables[attr.index] = i
        _cut(e, attr.index, inner, i)
        for bound, acc in zip(attr.accs, accs, strict=True):
            inner.variables[bound] = acc.read(inner)
        values = [e.at_width(x, inner, width) for x in nexts]
        if n.width > 1:
            wide = inner.widen(i, width)
            live = inner.define(BOOL, width, f"icmp slt {n.llvm} {wide}, {n}")
            values = [choose(inner, live, v, inner.variables[b]) for v, b in zip(values, attr.accs, strict=True)]
        for acc, v in zip(accs, values, strict=True):
            acc.write(inner, v)

    together = rows.along(e, s, nexts, attr.index) if width > 1 else []
    if together:
        rows.blocks(e, s, bits, last, together, width, turn)
    else:
        counted(s, bits, literal(0), last, 1, turn)
    return _results(s, node, accs)


def _cut(e: Expressions, index: Bound, s: Scope, i: Value) -> None:
    """The digits of a fold's index."""
    digits = e.folds.get(index, ())
    rest = i
    for k, digit in enumerate(digits):
        if k == len(digits) - 1:
            s.variables[digit] = rest
            return
        extent = e.arguments.number(Extent(index, k))
        s.variables[digit] = s.define(INT, 1, f"urem i64 {rest}, {extent}")
        rest = s.define(INT, 1, f"udiv i64 {rest}, {extent}")


def _results(s: Scope, node: Node, slots: list[Slot]) -> Value:
    s.results[node] = tuple(slot.read(s) for slot in slots)
    return s.results[node][0]


def loop(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """A loop of unknown length; scalar code only."""
    inits, condition, nexts, attr = loop_parts(node)
    assert width == 1
    f = e.function
    state = [f.slot(v.type) for v in attr.vars]
    for slot, init in zip(state, inits, strict=True):
        slot.write(s, e.at_width(init, s, 1))
    head, body, done = f.block("loop"), f.block("step"), f.block("looped")
    inner = Scope(f, s, binds=e.placement.bound_bits(attr.vars), width=s.width, mask=s.mask, live=s.live, lane=s.lane)
    inner.open(head)
    for bound, slot in zip(attr.vars, state, strict=True):
        inner.variables[bound] = slot.read(inner)
    inner.branch(e.at_width(condition, inner, 1), body, done)
    inner.label(body)
    values = [e.at_width(x, inner, 1) for x in nexts]
    for slot, v in zip(state, values, strict=True):
        slot.write(inner, v)
    inner.jump(head)
    s.jump(head)
    s.absorb(inner)
    s.label(done)
    return _results(s, node, state)


def once(e: Expressions, node: Node, s: Scope, emit: Callable[[Expressions, Node, Scope, int], Value]) -> Value:
    """A loop or call met inside a branch: other branches may want it too, so the first to come computes it."""
    outer = s
    while outer.arm is not None and outer.parent is not None:
        outer = outer.parent
    if outer is s:
        return emit(e, node, s, 1)
    f = e.function
    if node not in outer.once:
        known = f.slot(BOOL)
        known.clear(outer)
        outer.once[node] = known, [f.slot(t) for t in e.result_types(node)]
    known, slots = outer.once[node]
    compute, have = f.block("once"), f.block("have")
    inner = Scope(f, s, arm=s.arm, width=s.width, mask=s.mask, live=s.live, lane=s.lane)
    inner.open(compute)
    emit(e, node, inner, 1)
    for slot, value in zip(slots, inner.results[node], strict=True):
        slot.write(inner, value)
    known.write(inner, literal(True))
    inner.jump(have)
    s.branch(known.read(s), have, compute)
    s.absorb(inner)
    s.label(have)
    return _results(s, node, slots)


def projection(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """One result of a fold, loop or call."""
    (source,) = node.args
    assert isinstance(node.attr, int)
    here: Scope | None = s
    while here is not None:
        if source in here.results:
            value = here.results[source][node.attr]
            return extract(s, value) if value.width > s.width else value
        here = here.parent
    raise KeyError(source)


def branch(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """A select or a rare path whose arms are worth a branch. One lane jumps; many lanes enter an arm when one of them
    chooses it, and a rare path is walked by the lanes that need it, one by one."""
    condition = e.at_width(node.args[0], s, width if e.varies(node.args[0]) else 1)
    if condition.width == 1:
        return _branch_uniform(e, node, s, condition, width)
    if node.op == "rare":
        return _branch_lanes(e, node, s, condition)
    taken = [condition, s.define(BOOL, width, f"xor {condition.llvm} {condition}, {literal(True, width)}")]
    values = []
    for i, wanted in enumerate(taken):
        result = e.function.slot(node.type, width)
        result.write(s, s.widen(ZERO[node.type], width))
        some = any_lane(s, wanted if s.mask is None else _both(s, wanted, s.mask))
        _arm(e, node, i + 1, s, some, result)
        values.append(result.read(s))
    return choose(s, condition, values[0], values[1])


def _both(s: Scope, a: Value, b: Value) -> Value:
    return s.define(BOOL, a.width, f"and {a.llvm} {a}, {b}")


def any_lane(s: Scope, condition: Value) -> Value:
    """True when it holds in some lane."""
    if condition.width == 1:
        return condition
    name = f"llvm.vector.reduce.or.{suffix(BOOL, condition.width)}"
    return s.define(BOOL, 1, f"call i1 @{name}({condition.llvm} {condition})")


def _inner_arm(e: Expressions, node: Node, i: int, s: Scope, width: int) -> Scope:
    return Scope(e.function, s, arm=(node, i), width=width, mask=s.mask, live=s.live, lane=s.lane)


def _arm(e: Expressions, node: Node, i: int, s: Scope, when: Value, result: Slot) -> None:
    """`if when: result = operand i`."""
    f = e.function
    inside, after = f.block("arm"), f.block("after")
    inner = _inner_arm(e, node, i, s, s.width)
    inner.open(inside)
    result.write(inner, e.at_width(node.args[i], inner, result.width))
    inner.jump(after)
    s.branch(when, inside, after)
    s.absorb(inner)
    s.label(after)


def _branch_uniform(e: Expressions, node: Node, s: Scope, condition: Value, width: int) -> Value:
    f = e.function
    result = f.slot(node.type, width)
    names = [f.block("then"), f.block("else")]
    after = f.block("after")
    arms = []
    for i, name in enumerate(names):
        inner = _inner_arm(e, node, i + 1, s, s.width)
        inner.open(name)
        rare = node.op == "rare" and i == 0 and width == 1
        result.write(inner, outline.rare(e, node, inner) if rare else e.at_width(node.args[i + 1], inner, width))
        inner.jump(after)
        arms.append(inner)
    s.branch(condition, *names)
    for inner in arms:
        s.absorb(inner)
    s.label(after)
    return result.read(s)


def _branch_lanes(e: Expressions, node: Node, s: Scope, condition: Value) -> Value:
    """The rare operand, computed in scalar code for each lane that wants it."""
    f = e.function
    width = condition.width
    usual = e.at_width(node.args[2], s, width)
    wanted = condition if s.mask is None else _both(s, condition, s.mask)
    bits = s.raw(f"bitcast {wanted.llvm} {wanted} to i{width}")
    result = f.slot(node.type, width)
    result.write(s, usual)
    left = f.slot(INT)
    left.write(s, s.define(INT, 1, f"zext i{width} {bits} to i64" if width < 64 else f"add i64 {bits}, 0"))
    inside, after = f.block("lane"), f.block("lanes")
    inner = _inner_arm(e, node, 1, s, 1)
    inner.open(inside)
    set_bits = left.read(inner)
    inner.lane = inner.define(INT, 1, f"call i64 @llvm.cttz.i64(i64 {set_bits}, i1 true)")
    value = outline.rare(e, node, inner)
    before = result.read(inner)
    result.write(
        inner,
        inner.define(node.type, width, f"insertelement {before.llvm} {before}, {value.llvm} {value}, i64 {inner.lane}"),
    )
    less = inner.define(INT, 1, f"add i64 {set_bits}, -1")
    rest = inner.define(INT, 1, f"and i64 {set_bits}, {less}")
    left.write(inner, rest)
    inner.branch(inner.define(BOOL, 1, f"icmp ne i64 {rest}, 0"), inside, after)
    s.branch(s.define(BOOL, 1, f"icmp ne i{width} {bits}, 0"), inside, after)
    s.absorb(inner)
    s.label(after)
    return result.read(s)


def extract(s: Scope, value: Value) -> Value:
    """The current lane of a vector, in code that goes lane by lane."""
    assert s.lane is not None
    return s.define(value.type, 1, f"extractelement {value.llvm} {value}, i64 {s.lane}")


def launch_index(e: Expressions, s: Scope) -> Value:
    """The launch index, as the scope that binds it left it."""
    here: Scope | None = s
    while here is not None:
        if here.index is not None:
            return here.index
        here = here.parent
    raise KeyError("index")


def call(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    """A call of one of the kernel's functions: its depth is counted, and past MAX_DEPTH the launch has faulted."""
    assert width == 1 and isinstance(node.attr, int)
    results = e.signatures[node.attr]
    deeper = s.define(INT, 1, f"add i64 {e.depth}, 1")
    operands = [e.at_width(a, s, 1) for a in node.args]
    texts = ["ptr %args", f"i64 {deeper}", *(f"{a.llvm} {a}" for a in operands)]
    struct = "{" + ", ".join(llvm_type(t) for t in results) + "}"
    whole = s.raw(f"call {struct} @function{node.attr}({', '.join(texts)})")
    s.results[node] = tuple(s.define(t, 1, f"extractvalue {struct} {whole}, {j}") for j, t in enumerate(results))
    return s.results[node][0]


def too_deep(s: Scope, status: str, depth: str, results: tuple[Ty, ...], function_block: str) -> None:
    """At a function's start: past MAX_DEPTH raise the fault flag; once it is up, every call returns at once."""
    deep = s.define(BOOL, 1, f"icmp sgt i64 {depth}, {MAX_DEPTH}")
    flag = s.define(INT, 1, f"load atomic i64, ptr {status} monotonic, align 8")
    up = s.define(BOOL, 1, f"icmp ne i64 {flag}, 0")
    leave = s.define(BOOL, 1, f"or i1 {deep}, {up}")
    out = s.function.block("deep")
    s.branch(leave, out, function_block)
    s.label(out)
    s.write(f"store atomic i64 1, ptr {status} monotonic, align 8")
    struct = "{" + ", ".join(llvm_type(t) for t in results) + "}"
    s.write(f"ret {struct} zeroinitializer")
    s.label(function_block)
