"""One program, judged: the gradient by the book against valueAndGradient on each backend, by bytes.

Comes in: a body, a type, a point. Goes out: the gradient by the book, once all agree.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.eval.replay import install
from osprey_py.eval.run import on_big_stack
from osprey_py.eval.unit import Unit
from osprey_py.eval.values import List, Record, attribute
from osprey_py.eval.world import World
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from tests.gradient.literal import checked, literal

HEAD = """
fn at(b: GpuBuffer<float>, i: int) -> float = gpuGet(b, i) ?: 0.0
fn total(b: GpuBuffer<float>) -> float = gpuFold(b, 0.0, fn(a, v) => a + v)
"""

HOST = HostBackend(threads=1)


def program(kind: str, point: str, body: str, helpers: str = "") -> str:
    """A text with `loss` and `point`. kind: the type of the parameters, called p in the body."""
    return f"{HEAD}{helpers}\nfn loss(p: {kind}) -> float = {body}\nlet point: {kind} = {point}\n"


def bits(v: Any) -> Any:
    """Plain data with every float as its bits; a NaN is one."""
    match v:
        case float():
            return "nan" if math.isnan(v) else v.hex()
        case dict():
            return {n: bits(x) for n, x in v.items()}
        case list():
            return [bits(x) for x in v]
        case tuple():
            return tuple(bits(x) for x in v)
    return v


def plain(v: Any, runtime: Runtime) -> Any:
    """What the evaluator gives, as plain data."""
    if isinstance(v, Buffer):
        return list(runtime.read(v))
    if isinstance(v, Record):
        return {n: plain(getattr(v, attribute(n)), runtime) for n in type(v).fields}
    if isinstance(v, List):
        return [plain(x, runtime) for x in v]
    if isinstance(v, tuple):
        return tuple(plain(x, runtime) for x in v)
    return v


ASK = "valueAndGradient(loss, point)"


def real(
    text: str, backend: Any, *, fusion: bool = True, ask: str = ASK, folder: Path | None = None, times: int = 1
) -> Any:
    """What the language itself answers. times: how often it is asked; recorded and replayed from the second time on
    where it launches much. The answers have to be one."""
    compiled = checked(f"{text}\nfn answer() = {ask}\nlet kept = answer", folder)
    runtime = Runtime(backend, fusion=fusion)
    world = World(runtime, io.StringIO(), io.StringIO(), io.StringIO(""))
    unit = Unit(compiled)

    def run() -> Any:
        namespace = unit.instantiate(world)
        install(unit, namespace, world)
        namespace["startup"]()
        answers = []
        for _ in range(times):
            answers.append(plain(namespace[unit.function_names["answer"]](), runtime))
            runtime.barrier()
        assert all(bits(a) == bits(answers[0]) for a in answers), text
        return answers[0]

    return on_big_stack(run)


def judged(text: str, folder: Path | None = None) -> tuple[float, Any]:
    """(value, gradient) by the book, once the oracle and the host, fused or not, give the same bytes."""
    want = literal(text, "loss", "point", folder)
    for backend, fusion, times in ((OracleBackend(), True, 1), (OracleBackend(), False, 1), (HOST, True, 3)):
        got = real(text, backend, fusion=fusion, folder=folder, times=times)
        assert bits(got) == bits(want), f"{type(backend).__name__} {fusion=}: {got}, not {want}, of {text}"
    return want
