"""Can this launch fault? A cheap answer that may err to one side only.

Comes in: a kernel. Goes out: False when no element of any launch of it can fault, True when that is not known.
"""

from __future__ import annotations

from osprey_py.kernel.ir import OPS, Kernel, walk

_known: dict[Kernel, bool] = {}


def may_fault(kernel: Kernel) -> bool:
    """Whether a checked operation is left in the kernel that is not a division by a constant."""
    known = _known.get(kernel)
    if known is None:
        known = _known[kernel] = any(OPS[n.op].checked for n in walk(kernel.roots)) or bool(kernel.functions)
    return known
