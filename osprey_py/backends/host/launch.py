"""Whole functions: one for each kind of step, all of one signature.

    void launch(ptr args, i64 lo, i64 hi, ptr scratch)

computes the elements lo … hi-1 of a launch (lo < hi). args: see memory.py. A map may be cut into any chunks; scan,
filter and accumulate run as one. The status word is set to 1 when an element faulted; what is stored then does not
count."""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.backends.host import control, memory
from osprey_py.backends.host.expression import Expressions
from osprey_py.backends.host.placement import INDEX, Placement
from osprey_py.backends.host.text import Function, Module, Scope, Slot, Value, literal, llvm_type
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import BOOL, INT, Bound, KFunction, Ty
from osprey_py.kernel.nest import Extent, Number, Shape

HEAD = "define void @launch(ptr noalias %args, i64 %lo, i64 %hi, ptr noalias %scratch)"


def module_text(
    op: str, kernel: Lowered, kinds: tuple[Kind, ...], shape: Shape | None = None
) -> tuple[str, list[Number]]:
    """The module of one launch function in scalar code, and the numbers it reads after the uniforms. shape: of the
    launch, where it is known."""
    module = Module()
    bits: dict[Bound, int] = {}
    for k, f in enumerate(kernel.functions):
        _function(module, k, f, kernel, kinds, bits)
    function = Function(module)
    entry = Scope(function)
    arguments = memory.Arguments(entry, kinds, kernel.uniforms)
    e = Expressions(function, Placement(kernel.roots, bits), arguments, signatures(kernel))
    digits: tuple[Bound, ...] = ()
    if shape is not None:
        e.in_range, e.folds, digits = shape.in_range, shape.folds, shape.digits
    _BODIES[op](e, kernel, entry, digits)
    entry.write("ret void")
    module.add(function.text(HEAD, entry))
    return module.text(), list(arguments.numbers)


def signatures(kernel: Lowered) -> tuple[tuple[Ty, ...], ...]:
    """The result types of the kernel's functions."""
    return tuple(tuple(r.type for r in f.results) for f in kernel.functions)


def _function(
    module: Module, k: int, f: KFunction, kernel: Lowered, kinds: tuple[Kind, ...], bits: dict[Bound, int]
) -> None:
    """One recursive helper: (args, depth, parameters) -> results."""
    function = Function(module)
    entry = Scope(function)
    arguments = memory.Arguments(entry, kinds, kernel.uniforms)
    e = Expressions(function, Placement(f.results, bits), arguments, signatures(kernel))
    e.depth = Value(INT, 1, "%depth")
    for j, p in enumerate(f.params):
        entry.variables[p] = Value(p.type, 1, f"%p{j}")
    entry.binds = e.placement.bound_bits(f.params)
    types = tuple(r.type for r in f.results)
    control.too_deep(entry, arguments.status, "%depth", types, function.block("run"))
    struct = "{" + ", ".join(llvm_type(t) for t in types) + "}"
    whole = "poison"
    for j, r in enumerate(f.results):
        v = e.at_width(r, entry, 1)
        whole = entry.raw(f"insertvalue {struct} {whole}, {v.llvm} {v}, {j}")
    entry.write(f"ret {struct} {whole}")
    params = ", ".join(["ptr %args", "i64 %depth", *(f"{llvm_type(p.type)} %p{j}" for j, p in enumerate(f.params))])
    module.add(function.text(f"define internal {struct} @function{k}({params})", entry))


@dataclass(frozen=True, slots=True)
class _Loop:
    """The ascending loop over lo … hi-1 while it is written. s: its body."""

    s: Scope
    index: Value
    counter: Slot
    faulted: Slot


def _open(e: Expressions, entry: Scope, digits: tuple[Bound, ...]) -> _Loop:
    """digits: of the launch index, where code asks for them."""
    f = e.function
    counter, faulted = f.slot(INT), f.slot(BOOL)
    counter.write(entry, Value(INT, 1, "%lo"))
    faulted.write(entry, literal(False))
    s = Scope(f, entry, binds=INDEX | e.placement.bound_bits(digits))
    s.open("element")
    s.index = rest = counter.read(s)
    for k, digit in enumerate(digits):
        if k == len(digits) - 1:
            s.variables[digit] = rest
            break
        extent = e.arguments.number(Extent(None, k))
        s.variables[digit] = s.define(INT, 1, f"urem i64 {rest}, {extent}")
        rest = s.define(INT, 1, f"udiv i64 {rest}, {extent}")
    return _Loop(s, s.index, counter, faulted)


def _note_fault(e: Expressions, kernel: Lowered, loop: _Loop) -> None:
    if kernel.fault is not None:
        bit = e.at_width(kernel.fault, loop.s, 1)
        before = loop.faulted.read(loop.s)
        loop.faulted.write(loop.s, loop.s.define(BOOL, 1, f"or i1 {before}, {bit}"))


def _close(e: Expressions, entry: Scope, loop: _Loop, until_fault: bool = False) -> None:
    """until_fault: the first fault ends the loop."""
    s = loop.s
    following = s.define(INT, 1, f"add nsw i64 {loop.index}, 1")
    loop.counter.write(s, following)
    more = s.define(BOOL, 1, f"icmp slt i64 {following}, %hi")
    if until_fault:
        sound = s.define(BOOL, 1, f"xor i1 {loop.faulted.read(s)}, true")
        more = s.define(BOOL, 1, f"and i1 {more}, {sound}")
    s.branch(more, "element", "end")
    entry.jump("element")
    entry.absorb(s)
    entry.label("end")
    report(entry, e.arguments.status, loop.faulted.read(entry))


def report(s: Scope, status: str, faulted: Value) -> None:
    """Raise the step's flag if the bit is set."""
    s.branch(faulted, "fault", "leave")
    s.label("fault")
    s.write(f"store atomic i64 1, ptr {status} monotonic, align 8")
    s.jump("leave")
    s.label("leave")


def _map(e: Expressions, kernel: Lowered, entry: Scope, digits: tuple[Bound, ...]) -> None:
    loop = _open(e, entry, digits)
    value = e.at_width(kernel.result, loop.s, 1)
    _note_fault(e, kernel, loop)
    memory.store(loop.s, e.arguments.output, loop.index, value)
    _close(e, entry, loop)


def _scan(e: Expressions, kernel: Lowered, entry: Scope, digits: tuple[Bound, ...]) -> None:
    assert kernel.acc is not None and kernel.init is not None
    acc = e.function.slot(kernel.acc.type)
    acc.write(entry, e.at_width(kernel.init, entry, 1))
    loop = _open(e, entry, digits)
    loop.s.binds |= e.placement.bit(kernel.acc)
    loop.s.variables[kernel.acc] = acc.read(loop.s)
    value = e.at_width(kernel.result, loop.s, 1)
    _note_fault(e, kernel, loop)
    acc.write(loop.s, value)
    memory.store(loop.s, e.arguments.output, loop.index, value)
    # What follows a fault in a general kernel might not end.
    _close(e, entry, loop, until_fault=kernel.general)


def _filter(e: Expressions, kernel: Lowered, entry: Scope, digits: tuple[Bound, ...]) -> None:
    """Keeps inputs[0][i]; the kept elements are counted at the address in word KEPT. Each element is stored at the
    end of what is kept so far, where the next one overwrites it unless it counts."""
    kept = e.function.slot(INT)
    kept.write(entry, literal(0))
    loop = _open(e, entry, digits)
    s = loop.s
    wanted = e.at_width(kernel.result, s, 1)
    _note_fault(e, kernel, loop)
    kind = e.arguments.kinds[0]
    at = kept.read(s)
    memory.store(s, e.arguments.output, at, memory.element(e, 0, kind, s, loop.index))
    one = s.define(INT, 1, f"zext i1 {wanted} to i64")
    kept.write(s, s.define(INT, 1, f"add nsw i64 {at}, {one}"))
    _close(e, entry, loop)
    entry.write(f"store i64 {kept.read(entry)}, ptr {e.arguments.kept}, align 8")


_BODIES = {"map": _map, "scan": _scan, "filter": _filter}
