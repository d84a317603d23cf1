"""A backend that lives in a package of its own: osprey finds it by its entry point. It runs steps as the oracle does, has
two devices, and refuses recursion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Capabilities, Kind, Refused, Report, Step, StepOp, Unusable
from osprey_py.kernel.ir import Kernel

DEVICES = ("thumb", "finger")


class CountingBackend(OracleBackend):
    """which: one of DEVICES. steps: how many it has run."""

    def __init__(self, which: str = "thumb") -> None:
        if which not in DEVICES:
            raise Unusable(f"it has no {which}", "count on what there is")
        self.name = "counting" if which == "thumb" else f"counting:{which}"
        self.capabilities = Capabilities(f"counts on its {which}", recursion=False)
        self.steps = 0

    @staticmethod
    def choices() -> tuple[str, ...]:
        return DEVICES

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step | None = None) -> Any:
        if kernel is not None and kernel.functions:
            raise Refused("it cannot count backwards")
        return super().compile(op, kernel, kinds, example)

    def run(self, steps: Sequence[Step]) -> Report:
        self.steps += len(steps)
        return super().run(steps)
