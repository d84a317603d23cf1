"""What has no derivative as a kernel, as errors that name the launch and the remedy (spec/gradients, G10)."""

from __future__ import annotations

from osprey_py.kernel.ir import Kernel
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import NO_SPAN


def _refuse(kernel: Kernel, title: str, text: str, help_: str) -> OspreyError:
    span = kernel.sources[-1] if kernel.sources else NO_SPAN
    return OspreyError([Diagnostic("E0356", title, span, text, help=help_)])


def refuse_loop(kernel: Kernel) -> OspreyError:
    """Recursion, as a loop or as a function of the kernel."""
    return _refuse(
        kernel,
        "a gradient cannot go through recursion inside a kernel",
        "this kernel is recursive",
        "use gpuFold over gpuIota in its place, stopGradient on what it reads, or recursion on the host",
    )


def refuse_fold(kernel: Kernel) -> OspreyError:
    """A fold whose greatest number of steps cannot be told from lengths and captured ints."""
    return _refuse(
        kernel,
        "a gradient cannot go through a fold whose length the data decides",
        "this kernel folds over a range of unknown length",
        "fold over a range that covers all cases, and choose by `if` in its steps what counts",
    )


def refuse_circle(kernel: Kernel) -> OspreyError:
    """A fold of several accumulators that are made of each other."""
    return _refuse(
        kernel,
        "a gradient cannot go through accumulators that make each other",
        "this kernel folds with several accumulators",
        "fold once for each, or on the host",
    )
