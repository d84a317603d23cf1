"""Every optimisation that has a switch, each off alone: for the table of ablations, and for the test that no byte depends
on one.

Comes in: a number of threads. Goes out: runtimes. Importable without the rest of bench/.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from osprey_py.backends.host import HostBackend
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.passes import Passes


@dataclass(frozen=True)
class Variant:
    """What is off. host, runtime: the arguments that say so; cold: the code cache is empty; threads: None for all."""

    name: str
    host: dict[str, Any] = field(default_factory=dict)
    runtime: dict[str, Any] = field(default_factory=dict)
    threads: int | None = None
    cold: bool = False

    def make(self, threads: int) -> Runtime:
        backend = HostBackend(self.threads or threads, **self.host)
        return Runtime(backend, **self.runtime)


VARIANTS = (
    Variant("everything on"),
    Variant("fusion", runtime={"fusion": False}),
    Variant("matrix kernels", host={"contractions": False}),
    Variant("loop nests, vectors with them", host={"nests": False}),
    Variant("vectors", host={"vectors": False}),
    Variant("passes on kernels", host={"passes": Passes(False, False, False, False)}),
    Variant("threads", threads=1),
    Variant("late recording", runtime={"plain_calls": 1}),
    Variant("replay", runtime={"replay": False}),
    Variant("plan cache", runtime={"plans": False}),
    Variant("replay and plan cache", runtime={"replay": False, "plans": False}),
    Variant("writing in place", runtime={"in_place": False}),
    Variant("repeated runs", runtime={"repeats": False}),
    Variant("recycled memory", host={"recycling": False}),
    Variant("code cache", cold=True),
)
"""The first is what all others are compared with."""
