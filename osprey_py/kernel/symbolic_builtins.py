"""Built-ins inside kernels: scalar functions, reads of buffers, and pipelines that end in a fold.

Comes in: a name and symbolic arguments, already evaluated. Goes out: a symbolic value. The list is
check/builtins.py's; a name without a rule here is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from osprey_py.kernel import symbols as s
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, FoldAttr, Node, Ty, const, inrange, length, load, var
from osprey_py.kernel.refusals import refuse, refuse_builtin, refuse_pipeline
from osprey_py.kernel.regions import sequenced
from osprey_py.source.span import Span

if TYPE_CHECKING:
    from osprey_py.kernel.symbolic import Evaluator

SCALARS: dict[str, tuple[str, Ty]] = {
    "sqrt": ("sqrt", FLOAT),
    "exp": ("exp", FLOAT),
    "ln": ("ln", FLOAT),
    "tanh": ("tanh", FLOAT),
    "floor": ("floor", FLOAT),
    "ceil": ("ceil", FLOAT),
    "round": ("round", FLOAT),
    "toFloat": ("tofloat", FLOAT),
    "toInt": ("toint", INT),
    "intDiv": ("quot", INT),
    "ieeeDiv": ("fdivi", FLOAT),
    "wrapAdd": ("wadd", INT),
    "wrapSub": ("wsub", INT),
    "wrapMul": ("wmul", INT),
    "mulHigh": ("mulhigh", INT),
    "bitAnd": ("and", INT),
    "bitOr": ("or", INT),
    "bitXor": ("xor", INT),
    "bitNot": ("inot", INT),
    "shiftLeft": ("shl", INT),
    "shiftRight": ("shr", INT),
    "shiftRightLogical": ("shru", INT),
    "floatBits": ("floatbits", INT),
    "floatFromBits": ("bitsfloat", FLOAT),
}
"""Built-ins that are one op: (op, type of the result)."""

BY_TYPE = {
    ("min", INT): "imin",
    ("min", FLOAT): "fmin",
    ("max", INT): "imax",
    ("max", FLOAT): "fmax",
    ("abs", INT): "iabs",
    ("abs", FLOAT): "fabs",
}
"""Built-ins whose op depends on the type of the operands."""

PIPELINES = frozenset({"gpuIota", "gpuMap", "gpuZipWith", "gpuFilter", "gpuFold", "gpuLength", "gpuGet"})
_OUT_OF_BOUNDS = s.Opaque("an error's text")


def call_builtin(x: Evaluator, name: str, args: list[s.Value], span: Span) -> s.Value:
    args = [x.captures.resolve(a) for a in args]
    if name in PIPELINES:
        return _pipeline(x, name, args, span)
    if name == "stopGradient":
        return _stopped(x, args[0], span)
    if name == "isNan" and isinstance(args[0], Node):
        return Node("ne", BOOL, (args[0], args[0]))
    nodes = [a for a in args if isinstance(a, Node)]
    if len(nodes) != len(args) or not nodes:
        if name in SCALARS or any(name == n for n, _ in BY_TYPE):
            raise refuse(next(a for a in args if not isinstance(a, Node)), span)
        raise refuse_builtin(name, span)
    if name in SCALARS:
        op, ty = SCALARS[name]
        return x.op(op, ty, *nodes, span=span)
    by_type = BY_TYPE.get((name, nodes[0].type))
    if by_type is None:
        raise refuse_builtin(name, span)
    return x.op(by_type, nodes[0].type, *nodes, span=span)


def _stopped(x: Evaluator, value: s.Value, span: Span) -> s.Value:
    """Each float in a value, stopped."""
    nodes, shape = s.leaves(x.settled(value))
    if not all(t is FLOAT for t in s.leaf_types(shape)) or not nodes:
        raise refuse_builtin("stopGradient", span)
    return s.with_leaves(shape, iter([Node("stop", FLOAT, (n,)) for n in nodes]))


# --- buffers ------------------------------------------------------------------------------------


def _pipeline(x: Evaluator, name: str, args: list[s.Value], span: Span) -> s.Value:
    match name, args:
        case "gpuIota", [Node() as n]:
            return s.Pipe(n, lambda k: (k, None))
        case "gpuGet", [s.Slot(number=number, type=ty), Node() as place]:
            return s.result(inrange(number, place), load(number, ty, place), _OUT_OF_BOUNDS)
        case "gpuGet", [s.Pipe(), _]:
            raise refuse_pipeline(name, span)
        case "gpuLength", [s.Slot(number=number)]:
            return length(number)
        case "gpuLength", [s.Pipe() as pipe]:
            return _count(x, pipe)
        case "gpuMap", [s.Slot() | s.Pipe() as buffer, f]:
            return _stage(x, _map(x, _pipe(buffer), f, span), _pipe(buffer))
        case "gpuZipWith", [s.Slot() | s.Pipe() as a, s.Slot() | s.Pipe() as b, f]:
            return _stage(x, _zip(x, _pipe(a), _pipe(b), f, span), _pipe(a), _pipe(b))
        case "gpuFilter", [s.Slot() | s.Pipe() as buffer, f]:
            return _stage(x, _filter(x, _pipe(buffer), f, span), _pipe(buffer))
        case "gpuFold", [s.Slot() | s.Pipe() as buffer, init, f]:
            return _fold(x, _pipe(buffer), init, f, span)
    raise refuse(args[0], span)


def _pipe(buffer: s.Slot | s.Pipe) -> s.Pipe:
    if isinstance(buffer, s.Pipe):
        return buffer
    return s.Pipe(length(buffer.number), lambda k: (load(buffer.number, buffer.type, k), None))


def _map(x: Evaluator, pipe: s.Pipe, f: s.Value, span: Span) -> s.Pipe:
    def at(k: Node) -> tuple[s.Value, Node | None]:
        value, kept = pipe.at(k)
        if kept is None:
            return x.apply(f, [value], span), None
        # What a filter drops is not mapped, so its faults are not met.
        with x.apart() as region:
            mapped = x.apply(f, [value], span)
        if region.may_fault:
            x.region.ran(Node("select", BOOL, (kept, sequenced(region.effects, s.TRUE), s.TRUE)))
        return mapped, kept

    return s.Pipe(pipe.count, at)


def _zip(x: Evaluator, a: s.Pipe, b: s.Pipe, f: s.Value, span: Span) -> s.Pipe:
    def at(k: Node) -> tuple[s.Value, Node | None]:
        (left, kept), (right, also) = a.at(k), b.at(k)
        if kept is not None or also is not None:
            raise refuse_pipeline("gpuZipWith", span)
        return x.apply(f, [left, right], span), None

    return s.Pipe(Node("imin", INT, (a.count, b.count)), at)


def _filter(x: Evaluator, pipe: s.Pipe, f: s.Value, span: Span) -> s.Pipe:
    def at(k: Node) -> tuple[s.Value, Node | None]:
        value, kept = pipe.at(k)
        if kept is None:
            keep = x.apply(f, [value], span)
        else:
            keep = x.branch(kept, lambda: x.apply(f, [value], span), lambda: s.FALSE, span)
        assert isinstance(keep, Node)
        return value, keep

    return s.Pipe(pipe.count, at)


def _fold(x: Evaluator, pipe: s.Pipe, init: s.Value, f: s.Value, span: Span) -> s.Value:
    """An ordered fold. Its accumulators are the leaves of init."""
    starts, shape = s.leaves(x.stored(init))
    if not starts:
        raise refuse(init, span)
    accs = tuple(Bound(t, "acc") for t in s.leaf_types(shape))
    k = Bound(INT, "k")
    with x.apart() as elements:
        value, kept = pipe.at(var(k))
    with x.apart() as region:
        region.effects += elements.effects
        state = s.with_leaves(shape, map(var, accs))
        step = (
            x.apply(f, [state, value], span)
            if kept is None
            else x.branch(kept, lambda: x.apply(f, [state, value], span), lambda: state, span)
        )
        nexts, found = s.leaves(x.stored(step))
    if found != shape:
        raise refuse(step, span)
    early = pipe.early
    if early is not None and region.effects == elements.effects and x.region.effects[-1:] == [early]:
        x.region.effects.pop()
    steps = (sequenced(region.effects, nexts[0]), *nexts[1:])
    node = Node("fold", accs[0].type, (pipe.count, *starts, *steps), FoldAttr(k, accs))
    if region.may_fault:
        x.region.ran(node)
    return s.with_leaves(shape, (Node("proj", a.type, (node,), j) for j, a in enumerate(accs)))


def _count(x: Evaluator, pipe: s.Pipe) -> Node:
    k, acc = Bound(INT, "k"), Bound(INT, "count")
    with x.apart():
        _, kept = pipe.at(var(k))
    if kept is None:
        return Node("imax", INT, (pipe.count, const(0)))
    step = Node("select", INT, (kept, Node("wadd", INT, (var(acc), const(1))), var(acc)))
    return Node("proj", INT, (Node("fold", INT, (pipe.count, const(0), step), FoldAttr(k, (acc,))),), 0)


def _stage(x: Evaluator, pipe: s.Pipe, *below: s.Pipe) -> s.Pipe:
    """A launch in the kernel: strictly, all its elements are evaluated where it stands. If it adds what can fault to
    the stages below, a fold that keeps nothing does that, unless the next thing is a fold over the pipeline that
    cannot fault by itself."""
    k, acc = Bound(INT, "k"), Bound(INT, "nothing")
    with x.apart() as before:
        for stage in below:
            stage.at(var(k))
    with x.apart() as region:
        pipe.at(var(k))
    if len(region.effects) == len(before.effects):
        # Of two stages below that may fault, one has to be over before the other begins.
        early = [stage.early for stage in below if stage.early is not None]
        return s.Pipe(pipe.count, pipe.at, early[0] if len(early) == 1 else None)
    step = sequenced(region.effects, var(acc))
    early_fold = Node("fold", INT, (pipe.count, const(0), step), FoldAttr(k, (acc,)))
    x.region.ran(early_fold)
    return s.Pipe(pipe.count, pipe.at, early_fold)
