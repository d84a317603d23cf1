"""A program as a module of functions that Python calls.

Comes in: a Program and the names of its functions that will be called. Goes out: a `Session`, whose `call` evaluates one
of them; a fault that nothing recovered is an OspreyError with its diagnostic (spec/evaluation V7).

Calls belong into `on_big_stack` (eval/run.py), as a whole program does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from typing import Any

from osprey_py.check.core import Program
from osprey_py.eval.replay import install
from osprey_py.eval.run import fault_diagnostic, strict
from osprey_py.eval.unit import Unit
from osprey_py.eval.world import World
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.fault import MathFault
from osprey_py.source.diagnostic import OspreyError


class Session:
    """The program's module on a runtime, its file-scope code run. `main` is not."""

    def __init__(self, program: Program, roots: Iterable[str], runtime: Runtime, *, folder: str = ".") -> None:
        self.runtime = runtime
        self._unit = Unit(replace(program, main=None), roots)
        self._world = World(runtime, sys.stdout, sys.stderr, StringIO())
        self._world.folder = folder
        self._namespace = self._unit.instantiate(self._world)
        install(self._unit, self._namespace, self._world)
        with self._told():
            self._namespace["startup"]()
            runtime.barrier()

    def call(self, name: str, *args: Any) -> Any:
        """The value of a function of the program. What it launched may still be pending."""
        function = self._namespace[self._unit.function_names[name]]
        with self._told():
            return function(*args)

    def settle(self, buffers: Iterable[Buffer]) -> None:
        """Run what these buffers need, and whatever else may fault."""
        with self._told():
            self.runtime.force([b.node for b in buffers])
            self.runtime.barrier()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with strict(self._unit, self._world):
                yield
        except MathFault as fault:
            raise OspreyError([fault_diagnostic(fault)]) from None
