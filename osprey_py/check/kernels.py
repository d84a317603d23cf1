"""What a kernel holds must be something a device can run.

Comes in: the typed program. Goes out: errors for kernels that use text, lists, maps, iterators, handlers or interpolation,
in themselves or in functions they call by name. What only shows at run time is refused there, by name.
Spec: types-and-effects L5.12.
"""

from __future__ import annotations

from osprey_py.check import core
from osprey_py.check.context import Context


def check_kernels(cx: Context, program: core.Program) -> None:
    """Tells what is visible now."""
