"""Every operation of the kernel IR has code here (the checklist for adding one)."""

from __future__ import annotations

from osprey_py.backends.host.expression import STRUCTURE
from osprey_py.backends.host.operations import EMITTERS
from osprey_py.kernel.ir import OPS, PRIVATE
from osprey_py.numerics.expand import EXPANSIONS

REMOVED = {"recover", "fault", "seq", "stop"}
"""Gone after kernel/faults.py, as are the checked operations."""


def test_every_operation_is_emitted_or_expanded_or_lowered() -> None:
    covered = (set(EMITTERS) - set(PRIVATE)) | set(STRUCTURE) - {"affine"} | set(EXPANSIONS)
    assert set(PRIVATE) <= set(EMITTERS)
    wanted = {op for op, info in OPS.items() if not info.checked or op == "call"} - REMOVED
    assert covered == wanted
