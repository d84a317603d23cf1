"""The passes of a kernel, in their order, each with a switch.

Comes in: a kernel as extracted and a `Passes` configuration. Goes out: the `Lowered` kernel that a compiled backend
starts from. Switching a pass off changes no byte (tested); only `faults` has no switch, because it is a change of
form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from osprey_py.kernel.faults import Lowered, lower
from osprey_py.kernel.ir import Kernel
from osprey_py.kernel.share import share
from osprey_py.kernel.simplify import simplify
from osprey_py.kernel.verify import verify


@dataclass(frozen=True, slots=True)
class Passes:
    """Which passes run. verify: check the IR's rules before the first and after every one."""

    simplify_extracted: bool = True
    share_extracted: bool = True
    simplify_lowered: bool = True
    share_lowered: bool = True
    verify: bool = False


BEFORE: tuple[tuple[str, Callable[[Kernel], Kernel]], ...] = (
    ("simplify_extracted", simplify),
    ("share_extracted", share),
)
AFTER: tuple[tuple[str, Callable[[Kernel], Kernel]], ...] = (
    ("simplify_lowered", simplify),
    ("share_lowered", share),
)
"""(switch, pass), in order: before and after faults become values."""

ALL = Passes()


def prepared(kernel: Kernel, passes: Passes = ALL) -> Lowered:
    """The kernel with faults as values, after the passes that are on."""
    if passes.verify:
        verify(kernel)
    for switch, run in BEFORE:
        kernel = _pass(kernel, run, passes) if getattr(passes, switch) else kernel
    lowered: Kernel = _pass(kernel, lower, passes)
    for switch, run in AFTER:
        lowered = _pass(lowered, run, passes) if getattr(passes, switch) else lowered
    assert isinstance(lowered, Lowered)
    return lowered


def _pass(kernel: Kernel, run: Callable[[Kernel], Kernel], passes: Passes) -> Kernel:
    kernel = run(kernel)
    if passes.verify:
        verify(kernel)
    return kernel
