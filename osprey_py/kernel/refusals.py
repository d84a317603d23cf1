"""What a kernel cannot hold, as errors that name it and its place.

Comes in: a Core expression or a symbolic value that extraction has no IR for. Goes out: an OspreyError
(spec/gpu-surface, S6).
"""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.kernel import symbols as s
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import Span

_HELP = (
    "kernels compute with int, float and bool, with records, tuples and variants of them, and read buffers by gpuGet"
)


def error(code: str, title: str, span: Span, text: str, help_: str = _HELP) -> OspreyError:
    return OspreyError([Diagnostic(code, title, span, text, help=help_)])


def refuse(what: object, span: Span) -> OspreyError:
    """E0351: text, a list, a map, … where a kernel would have to compute with it."""
    name = _name(what)
    return error("E0351", f"{name} cannot be used inside a kernel", span, f"{name} here")


def refuse_builtin(name: str, span: Span, help_: str = _HELP) -> OspreyError:
    """E0352: a built-in that kernels cannot call."""
    return error("E0352", f"`{name}` cannot be used inside a kernel", span, "called in a kernel", help_)


def refuse_choice(what: str, span: Span) -> OspreyError:
    """E0353: a branch that would choose between buffers or functions."""
    return error(
        "E0353",
        f"a kernel cannot choose {what} at run time",
        span,
        "which one this is depends on the element",
        "choose between what they give instead",
    )


def refuse_pipeline(name: str, span: Span) -> OspreyError:
    """E0354: a buffer made inside a kernel that does not end in a gpuFold."""
    return error(
        "E0354",
        "a buffer made inside a kernel must end in a gpuFold",
        span,
        f"`{name}` of a buffer that the kernel makes",
        "a kernel gives one scalar; fold the buffer, or make it in a launch of its own before",
    )


def refuse_recursion(reason: str, span: Span) -> OspreyError:
    """E0355: recursion that cannot be a loop or a function of the kernel."""
    return error("E0355", "this recursion cannot run inside a kernel", span, reason, "")


def _name(what: object) -> str:
    match what:
        case s.Opaque(what=name):
            return name
        case s.Slot() | s.Pipe():
            return "a buffer as a value"
        case s.Closure() | s.Builtin() | s.Maker():
            return "a function as a value"
        case s.Tuple(items=()):
            return "()"
        case s.Tuple():
            return "a tuple as a scalar"
        case s.Record() | s.Union():
            return "a record as a scalar"
        case c.ListNew():
            return "a list"
        case c.MapNew():
            return "a map"
        case c.Index():
            return "indexing"
        case c.Interpolate():
            return "text"
        case c.Perform():
            return f"`perform {what.effect.rsplit('::', 1)[-1]}.{what.operation}`"
        case c.Handle() | c.Resume():
            return "a handler"
        case c.Assign():
            return "an assignment"
    return "this"
