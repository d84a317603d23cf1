"""Programs in text, run on each backend; and what the host makes of their launches, as text that can be compared."""

from __future__ import annotations

import io
from collections.abc import Sequence

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host.gemm_launch import Contractions
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Backend, Kind, Report, Step
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import INT, Node, const, var
from osprey_py.kernel.nest import Nest, Number, Shape, Sum
from osprey_py.kernel.passes import prepared
from osprey_py.kernel.show import show_node
from osprey_py.kernel.substitute import rewrite
from osprey_py.source.render import render


def output(text: str, backend: Backend | None = None, *, fusion: bool = True) -> str:
    """What a program prints; it must end well."""
    program, told = check_source(text, "program.osp")
    assert program is not None and not told, "\n".join(map(render, told))
    out, error = io.StringIO(), io.StringIO()
    runtime = Runtime(backend or OracleBackend(), fusion=fusion)
    code = run_program(program, runtime=runtime, stdout=out, stderr=error, stdin=io.StringIO())
    assert (code, error.getvalue()) == (0, ""), error.getvalue()
    return out.getvalue()


def outputs(text: str) -> list[str]:
    """What a program prints: on the oracle, and on the host with one thread and two, with fusion and without."""
    hosts = [output(text, HostBackend(threads=n), fusion=fusion) for n in (1, 2) for fusion in (True, False)]
    return [output(text), *hosts]


class Watching(HostBackend):
    """Writes down what each step becomes."""

    begin = None  # type: ignore[assignment]  # steps come to `run`, all together

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.steps: list[str] = []

    def run(self, steps: Sequence[Step]) -> Report:
        self.steps += [becomes(step) for step in steps]
        return super().run(steps)


def launched(text: str) -> list[str]:
    """What the host makes of each step of a program."""
    host = Watching()
    output(text, host)
    return host.steps


def becomes(step: Step) -> str:
    """A step as the host sees it: the sums of products in it, then the loop nest around them, every integer resolved."""
    if step.kernel is None:
        return step.op
    kernel, kinds = prepared(step.kernel), tuple(s.kind for s in step.inputs)
    lengths = [s.length for s in step.inputs]
    lines = []
    while step.op == "map":
        found = Contractions(kernel, kinds, 1).find(lengths, step.uniforms, step.n)
        if found is None:
            break
        lines.append(repr(found.contraction))
        kernel, kinds, lengths = found.candidate.epilogue, (*kinds, Kind.F64), [*lengths, step.n]
    return "\n".join([*lines, f"{step.op} {step.n}", *_nest(kernel, lengths, step)])


def _nest(kernel: Lowered, lengths: Sequence[int], step: Step) -> list[str]:
    nest = Nest(kernel)
    facts = nest.facts(lengths, step.uniforms, step.n)
    shape: Shape = nest.shape(facts)

    def number(x: Number | None, default: int) -> int:
        return default if x is None else nest.numbers(facts, [x])[0]

    def resolved(node: Node, _: tuple[Node, ...]) -> Node | None:
        if node.op == "uniform" and isinstance(node.attr, int):
            return const(step.uniforms[node.attr])
        if not isinstance(node.attr, Sum):
            return None
        terms = [Node("mul", INT, (var(t.digit), const(number(t.multiple, 1)))) for t in node.attr.terms]
        return Node("sum", INT, (const(number(node.attr.constant, 0)), *terms))

    roots = (shape.kernel.result, *(() if shape.kernel.fault is None else (shape.kernel.fault,)))
    extents = [d.extent for d in facts.digits(None)]
    return [f"digits {extents}", *(show_node(rewrite(root, resolved, {})) for root in roots)]


def failure(text: str) -> str:
    """What a program that ends with a fault says about it."""
    program, told = check_source(text, "program.osp")
    assert program is not None and not told, "\n".join(map(render, told))
    error = io.StringIO()
    code = run_program(
        program, runtime=Runtime(OracleBackend()), stdout=io.StringIO(), stderr=error, stdin=io.StringIO()
    )
    assert code == 1
    return error.getvalue()
