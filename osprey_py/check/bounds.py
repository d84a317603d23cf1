"""What reached a bound that does not admit it, told with the chain of calls.

Comes in: the context's refused labels. Goes out: diagnostics about kernels, declared rows, undischarged operations.
Spec: types-and-effects L5.4 to L5.6, L5.11.
"""

from __future__ import annotations

from collections.abc import Iterator

from osprey_py.check.context import Context
from osprey_py.check.effects import ASSIGN, IO, Label, Reason, Sink
from osprey_py.source.span import NO_SPAN, Span

Mark = tuple[Span, str]


def tell_refused(cx: Context) -> None:
    for sink, label, reason in cx.refused:
        root = sink
        while root.origin is not None:
            root = root.origin
        if root.what.startswith("kernel "):
            _kernel(cx, sink, root, label, reason)
        elif root.what.startswith("differentiated "):
            _differentiated(cx, sink, root, label, reason)
        elif root.what in ("top", "main"):
            _unhandled(cx, root, label, reason)
        elif root.what.startswith("argument "):
            _argument(cx, sink, root, label, reason)
        else:
            _row(cx, root, label, reason)


def does(label: Label, reason: Reason) -> str:
    """`performs Log.write`, `performs IO (print)`, `assigns n`."""
    if label == IO:
        return f"performs IO (`{last(reason).callee}`)"
    return f"assigns `{label.operation.split('#')[0]}`" if label.effect == ASSIGN else f"performs {label.text}"


def last(reason: Reason) -> Reason:
    for r in reason.chain():
        reason = r
    return reason


def chain_marks(label: Label, reason: Reason, skip: Span | None = None) -> Iterator[Mark]:
    """Each call on the way, then the operation."""
    for r in reason.chain():
        if r.span is NO_SPAN or r.span == skip:
            continue
        if r.cause is None:
            yield r.span, f"{does(label, r)} here"
        elif r.cause.span is NO_SPAN:
            yield r.span, f"calls `{r.callee}`, which {does(label, r.cause)}" if label != IO else f"calls `{r.callee}`"
        else:
            yield r.span, f"calls `{r.callee}`"


def chain_text(start: str, label: Label, reason: Reason) -> str:
    """`kernel → helper → Log.write`."""
    names = [start]
    for r in reason.chain():
        if r.cause is not None and r.span is not NO_SPAN:
            names.append(r.callee)
    if label != IO:
        names.append(label.text)
    return " → ".join(names)


def uses(sink: Sink) -> list[tuple[Span, str]]:
    """From the outermost use of a function that hands its parameter on, to the built-in."""
    found = []
    at: Sink | None = sink
    while at is not None and at.use is not None:
        found.append((at.use.span, at.use.callee))
        at = at.origin
    return found


def _kernel(cx: Context, sink: Sink, root: Sink, label: Label, reason: Reason) -> None:
    steps = uses(sink)
    span, _ = steps[0] if steps else (last(reason).span, "")
    arguments = cx.call_arguments.get(span, ())
    primary = arguments[-1] if arguments and len(steps) == 1 else span
    builtin = root.what.removeprefix("kernel ")
    text = f"`{steps[0][1]}` makes its argument a kernel" if len(steps) > 1 else f"a kernel of `{builtin}`"
    marks = [(s, f"`{c}` is given it here") for s, c in steps[1:]]
    marks.extend(chain_marks(label, reason, primary))
    cx.tell(
        "E0301",
        f"GPU kernel must be pure; it {does(label, reason)}",
        primary,
        text,
        marks,
        (f"the chain: {chain_text(_called(primary) if len(steps) == 1 else 'kernel', label, reason)}",),
        "do it outside the kernel: compute first, then act on the result",
    )


def _differentiated(cx: Context, sink: Sink, root: Sink, label: Label, reason: Reason) -> None:
    steps = uses(sink)
    span = steps[0][0] if steps else last(reason).span
    arguments = cx.call_arguments.get(span, ())
    primary = arguments[0] if arguments and len(steps) == 1 else span
    builtin = root.what.removeprefix("differentiated ")
    marks = [(s, f"`{c}` is given it here") for s, c in steps[1:]]
    marks.extend(chain_marks(label, reason, primary))
    cx.tell(
        "E0311",
        f"a function is differentiated only when it is pure; it {does(label, reason)}",
        primary,
        f"`{builtin}` differentiates this",
        marks,
        (f"the chain: {chain_text('the function', label, reason)}",),
        "do it outside: before, or with the value that comes back",
    )


def _called(span: Span) -> str:
    """The name of a kernel, where it is a name."""
    return span.text if span.text.isidentifier() else "kernel"


def _unhandled(cx: Context, root: Sink, label: Label, reason: Reason) -> None:
    operation = last(reason)
    effect = label.effect.rsplit("::", 1)[-1]
    where = "main" if root.what == "main" else "the top level"
    cx.tell(
        "E0303",
        f"no handler discharges {label.text}",
        operation.span,
        f"performs {label.text} here",
        [m for m in chain_marks(label, reason) if m[0] != operation.span],
        (f"the chain: {chain_text(where, label, reason)}",),
        f"put a handler around the call: `handle {effect} {label.operation} … => … in …`",
    )


def _argument(cx: Context, sink: Sink, root: Sink, label: Label, reason: Reason) -> None:
    builtin = root.what.removeprefix("argument ")
    steps = uses(sink)
    span = steps[0][0] if steps else last(reason).span
    arguments = cx.call_arguments.get(span, ())
    cx.tell(
        "E0303",
        f"no handler discharges {label.text} in what is given to `{builtin}`",
        arguments[-1] if arguments else span,
        f"it {does(label, reason)}",
        list(chain_marks(label, reason)),
        help="handle it inside the function",
    )


def _row(cx: Context, root: Sink, label: Label, reason: Reason) -> None:
    effect = label.effect.rsplit("::", 1)[-1]
    cx.tell(
        "E0304",
        f"{root.what} {does(label, reason)}, which its row does not allow",
        root.span,
        "the row bounds what it may perform",
        list(chain_marks(label, reason)),
        (f"the chain: {chain_text(root.what.strip('`'), label, reason)}",),
        f"add `{effect}` to the row, or handle it inside",
    )
