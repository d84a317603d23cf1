"""Can this launch fault? A cheap answer that may err to one side only.

Comes in: a kernel. Goes out: False when no element of any launch of it can fault, True when that is not known.
"""

from __future__ import annotations

from osprey_py.kernel import faults
from osprey_py.kernel.ir import Kernel

_known: dict[Kernel, bool] = {}


def may_fault(kernel: Kernel) -> bool:
    """Whether a fault bit is left when faults are made into values. A kernel is looked at once."""
    known = _known.get(kernel)
    if known is None:
        known = _known[kernel] = faults.may_fault(kernel)
    return known
