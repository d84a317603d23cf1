"""`valueAndGradient gradient stopGradient` (spec/gradients)."""

from __future__ import annotations

from typing import Any

from osprey_py.eval.registry import builtin
from osprey_py.eval.world import World
from osprey_py.source.span import Span


@builtin("valueAndGradient", world=True, span=True)
def value_and_gradient(w: World, f: Any, at: Any, span: Span) -> tuple[Any, Any]:
    from osprey_py.eval import gradient

    return gradient.value_and_gradient(w, f, at, span)


@builtin("gradient", world=True, span=True)
def gradient_alone(w: World, f: Any, at: Any, span: Span) -> Any:
    from osprey_py.eval import gradient

    return gradient.gradient(w, f, at, span)


@builtin("stopGradient")
def stop_gradient(x: Any) -> Any:
    from osprey_py.eval import gradient

    return gradient.stopped(x)
