"""Gradients of functions of the program: run once on a tape, then backwards.

Comes in: a function of the program, what it is differentiated at, the World of the call. Goes out: its value and the
gradient, whose buffers are pending. Spec: gradients G8, G10, G12.
"""

from __future__ import annotations

from typing import Any

from osprey_py.eval.leaves import leaves_of, rebuilt
from osprey_py.eval.world import World
from osprey_py.graph.backward import backward, gradient_of
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.entries import Value
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.stand_ins import TapeBuffer, TapeFloat, number_of
from osprey_py.graph.tape import Tape
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import Span


def value_and_gradient(w: World, f: Any, at: Any, span: Span) -> tuple[Any, Any]:
    """(f(at), the gradient, of at's shape). Raises what f raises, and OspreyError for what has no gradient."""
    value, found = _both(w, f, at, span)
    return number_of(value), found


def gradient(w: World, f: Any, at: Any, span: Span) -> Any:
    """The gradient alone: f's value is not asked for."""
    return _both(w, f, at, span)[1]


def _both(w: World, f: Any, at: Any, span: Span) -> tuple[Any, Any]:
    """(f's result, on the tape perhaps; the gradient)"""
    runtime = w.runtime
    if isinstance(runtime, Tape):
        raise OspreyError([_nested(span)])
    if isinstance(runtime, Runtime):
        runtime.stats.gradients += 1
    leaves = leaves_of(at)
    value, parameters = _differentiated(w, f, at, leaves)
    found = [
        gradient_of(runtime, p, x.length if isinstance(x, Buffer) else 1)
        for p, x in zip(parameters, leaves, strict=True)
    ]
    del parameters
    made = [g if isinstance(x, Buffer) else runtime.first(g) for g, x in zip(found, leaves, strict=True)]
    return value, rebuilt(at, iter(made))


def _differentiated(w: World, f: Any, at: Any, leaves: list[Any]) -> tuple[Any, list[Value]]:
    """The function's result, and the Values of the parameters with their adjoints."""
    tape = Tape(w.runtime)
    taped = [tape.parameter(x) for x in leaves]
    try:
        result = _on_tape(w, tape, f, rebuilt(at, iter(taped)))
        parameters = [x.value for x in taped]
        del taped
        if isinstance(result, TapeFloat) and result.value is not None:
            backward(tape.runtime, tape.entries, result.value)
        return result, parameters
    finally:
        tape.entries.clear()


def _on_tape(w: World, tape: Tape, f: Any, at: Any) -> Any:
    """f(at) with the tape in the runtime's place: in the studio, where the caller may be already."""
    studio = w.studio
    if w is not studio.world:
        with studio.open(tape, w):
            return studio.moved(f)(at)
    w.runtime = tape
    try:
        return f(at)
    finally:
        w.runtime = tape.runtime


def stopped(value: Any) -> Any:
    """The value, which passes no gradient on (G9)."""
    leaves = leaves_of(value)
    if not any(isinstance(x, TapeBuffer | TapeFloat) for x in leaves):
        return value
    return rebuilt(value, iter([_stopped(x) for x in leaves]))


def _stopped(leaf: Any) -> Any:
    if isinstance(leaf, TapeBuffer):
        return leaf.real
    return leaf.stopped() if isinstance(leaf, TapeFloat) else leaf


def _nested(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0357",
        "a gradient inside a gradient",
        span,
        "this is evaluated while a function that calls it is differentiated",
        help="take the inner gradient outside of the function, and capture it",
    )
