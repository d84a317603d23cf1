"""Short ways to write kernels by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from osprey_py.backends.oracle import OracleBackend, find_fault, run_step
from osprey_py.backends.protocol import KIND_OF, Kind, Step, Storage
from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import BOOL, FLOAT, INT, OPS, Kernel, Node, Site, Ty, const
from osprey_py.kernel.verify import SIGNATURES
from osprey_py.source.span import Source, Span

SOURCE = Source("kernel.osp", "k" * 1000)
COMPARISONS = ("eq", "ne", "lt", "le")


def site(at: int = 0) -> Site:
    return Site(Span(SOURCE, at, at + 1))


def op(name: str, *args: Node, at: int = 0) -> Node:
    """An op with one signature, or a comparison; a checked one at place `at`."""
    ty = BOOL if name in COMPARISONS else SIGNATURES[name][1]
    return Node(name, ty, args, None, site(at) if OPS[name].checked else None)


def recover(e: Node, d: Node) -> Node:
    return Node("recover", e.type, (e, d))


def storage(values: list[Any], kind: Kind) -> Storage:
    return Storage(kind, np.array(values, kind.dtype))


def launch(kernel: Kernel, inputs: list[Storage], uniforms: tuple[Any, ...] = (), n: int = 1, op: Any = "map") -> Step:
    kind = inputs[0].kind if op == "filter" else KIND_OF[kernel.type]
    output = OracleBackend().allocate(kind, n)
    compiled = OracleBackend().compile(op, kernel, tuple(s.kind for s in inputs))
    return Step(op, kernel, tuple(inputs), uniforms, n, output, compiled)


def elements(step: Step) -> list[Any]:
    """What the oracle makes of a launch; MathFault when it faults."""
    kept = run_step(step)
    return list(step.output.data[:kept].tolist())


def value(node: Node, *args: int | float | bool) -> Any:
    """The value of an expression of uniforms."""
    types: tuple[Ty, ...] = tuple(const(a).type for a in args)
    kernel = Kernel((), types, node)
    step = launch(kernel, [], args)
    (result,) = elements(step)
    return bool(result) if node.type is BOOL else result


def fault(step: Step) -> MathFault:
    found = find_fault(step)
    assert found is not None
    return found


__all__ = ["BOOL", "FLOAT", "INT", "elements", "fault", "launch", "op", "recover", "site", "storage", "value"]
