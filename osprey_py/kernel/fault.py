"""The exception that a math fault is while it travels (spec/language, section Failure)."""

from __future__ import annotations

from osprey_py.source.span import Span


class MathFault(Exception):
    """message: `integer overflow`, `division by zero`, …; span: the operation; element: the launch index it happened
    at, None outside kernels; launch: the span of the launching call, None outside kernels;
    recoverable: False for `recursion too deep`, which `?:` and `match` let pass."""

    def __init__(
        self,
        message: str,
        span: Span,
        element: int | None = None,
        launch: Span | None = None,
        recoverable: bool = True,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.element = element
        self.launch = launch
        self.recoverable = recoverable
