"""Functions of a source text, run by the evaluator and, as kernels, by the oracle: two ways to one answer."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from osprey_py.backends.oracle import OracleBackend, evaluate_element
from osprey_py.backends.protocol import KIND_OF, Step, Storage
from osprey_py.check import check_source
from osprey_py.eval.run import on_big_stack
from osprey_py.eval.unit import Unit
from osprey_py.eval.world import World
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.extract import Extractor
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import Kernel, Ty
from osprey_py.kernel.scalars import floatbits
from osprey_py.kernel.verify import verify
from osprey_py.source.render import render


class Module:
    """A loaded program: `module.function("k")` of its functions called k…, `module.value("x")`."""

    def __init__(self, text: str) -> None:
        # Only what the program can reach is there to be asked for.
        for name in dict.fromkeys(re.findall(r"^fn (k\w*)\(", text, re.MULTILINE)):
            text += f"\nlet {name}_kept = {name}"
        program, diagnostics = check_source(text)
        assert program is not None, "\n".join(render(d) for d in diagnostics)
        self.runtime = Runtime(OracleBackend())
        self.world = World(self.runtime, io.StringIO(), io.StringIO(), io.StringIO(""))
        self.unit = Unit(program)
        self.namespace = self.unit.instantiate(self.world)
        self.namespace["startup"]()

    def function(self, name: str) -> Any:
        return self.namespace[self.unit.function_names[name]]

    def value(self, name: str) -> Any:
        found = next(v for k, v in self.unit.global_lets.items() if k.name == name)
        value = self.namespace[found]
        return value.v if type(value).__name__ == "Cell" else value


def seen(value: Any) -> object:
    """A scalar as what can be told of it."""
    return floatbits(value) if type(value) is float else (type(value).__name__, value)


def evaluated(module: Module, f: Any, args: tuple[Any, ...]) -> object:
    """What the evaluator gives: a scalar, or (message, place) of a fault."""

    def run() -> object:
        module.world.depth = 0
        mark = module.runtime.mark()
        try:
            value = f(*args)
            module.runtime.settle(mark)
            return seen(value)
        except MathFault as fault:
            found = module.runtime.caught(fault, mark) if fault.recoverable else fault
            return found.message, found.span.place

    return on_big_stack(run)


def as_kernel(extractor: Extractor, f: Any, types: tuple[Ty, ...]) -> tuple[Kernel, tuple[Storage, ...], Any]:
    """(kernel, captured storage, scalars), verified."""
    kernel, buffers, scalars = extractor.map(f, types)
    verify(kernel)
    return kernel, tuple(b.node.storage for b in buffers), scalars


def launched(
    f: Any, types: tuple[Ty, ...], rows: list[tuple[Any, ...]], extractor: Extractor | None = None
) -> list[object]:
    """What the kernel of f gives for each row of arguments: a scalar, or (message, place) of a fault."""
    kernel, captured, scalars = as_kernel(extractor or Extractor(), f, types)
    columns = [Storage(KIND_OF[t], np.array([r[k] for r in rows], KIND_OF[t].dtype)) for k, t in enumerate(types)]
    output = OracleBackend().allocate(KIND_OF[kernel.type], len(rows))
    inputs = (*columns, *captured)
    compiled = OracleBackend().compile("map", kernel, tuple(s.kind for s in inputs))
    step = Step("map", kernel, inputs, scalars, len(rows), output, compiled)
    results: list[object] = []
    for i in range(len(rows)):
        try:
            results.append(seen(evaluate_element(step, i)))
        except MathFault as fault:
            assert fault.element == i
            results.append((fault.message, fault.span.place))
    return results
