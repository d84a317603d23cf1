"""Random functions of the host over numbers and buffers, called many times: replayed or not, they print the same."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime, Stats

HEAD = """
fn at(b: GpuBuffer<float>, i: int) -> float = gpuGet(b, i) ?: 0.0
fn long(x: GpuBuffer<float>, n: int) -> GpuBuffer<float> =
    if n == 0 { x } else { long(gpuMap(x, fn(v) => v * 0.5 + 1.0), n - 1) }
fn show(x: GpuBuffer<float>) -> string = "${fromGpu(x)}"
"""


class Writer:
    """Draws expressions. names: variables by type (i, f, b)."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.names: dict[str, list[str]] = {"i": ["n", "m"], "f": ["k"], "b": ["x", "y"]}
        self.lines: list[str] = []

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def name(self, kind: str) -> str:
        name: str = self.pick(*self.names[kind])
        return name

    def int(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(self.name("i"), self.name("i"), str(self.pick(0, 1, 2, 3, 7, 1000003)))
        a, b = self.int(depth - 1), self.int(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} % {b})",
            f"intDiv({a}, {b})",
            f"(intDiv({a}, {b}) ?: {b})",
            f"min({a}, {b})",
            f"abs({a})",
            f"bitAnd({a}, {b})",
            f"wrapMul({a}, {b})",
            f"gpuLength({self.name('b')})",
            f"(if {self.condition()} {{ {a} }} else {{ {b} }})",
            f"toInt({self.name('f')})",
        )

    def float(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(self.name("f"), self.name("f"), str(self.pick(0.5, 1.0, -2.0, 0.0)))
        a, b = self.float(depth - 1), self.float(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"max({a}, {b})",
            f"toFloat({self.int(depth - 1)})",
            f"exp(min({a}, 1.0))",
            f"gpuFold({self.name('b')}, {a}, fn(s, v) => s * 0.5 + v)",
            f"at({self.name('b')}, {self.name('i')})",
            f"(if {self.condition()} {{ {a} }} else {{ {b} }})",
        )

    def condition(self) -> str:
        kind = self.pick("i", "f")
        make = self.int if kind == "i" else self.float
        return f"{make(0)} {self.pick('<', '<=', '==', '!=')} {make(0)}"

    def buffer(self, depth: int) -> str:
        b, c, f, i = self.name("b"), self.name("b"), self.float(0), self.int(0)
        return self.pick(
            f"gpuMap({b}, fn(v) => v * {f} + {self.float(0)})",
            f"gpuMap({b}, fn(v) => toFloat({i}) / v)",
            f"(gpuIota(bitAnd({self.int(depth - 1)}, 7)) |> gpuMap(fn(j) => at({b}, j * 2 - {i}) * {f}))",
            f"gpuZipWith({b}, {c}, fn(v, w) => v - w * {f})",
            f"gpuConcat(gpuMap({b}, fn(v) => v), (gpuSlice({c}, 0, 1) ?: {b}))",
            f"(gpuSlice({b}, bitAnd({i}, 1), gpuLength({b}) - 1) ?: {c})",
            f"(gpuSlice(gpuMap({b}, fn(v) => {f} / v), 0, 1) ?: {c})",
            f"toGpu([{f}, {self.float(0)}])",
            f"gpuScan({b}, {f}, fn(s, v) => s + v)",
            f"gpuFilter({b}, fn(v) => v > {f})",
            f"(if {self.condition()} {{ {b} }} else {{ {c} }})",
            f"(gpuMatMul({b}, {c}, 1, gpuLength({b}), 1) ?: {c})",
        )

    def statement(self, at: int) -> None:
        kind = self.pick("i", "f", "b", "b", "b")
        made = {"i": self.int, "f": self.float, "b": self.buffer}[kind](2)
        name = f"{kind}{at}"
        self.lines.append(f"    let {name} = {made}")
        self.names[kind].append(name)


@st.composite
def programs(draw: Callable[..., Any]) -> str:
    w = Writer(draw)
    for at in range(draw(st.integers(2, 9))):
        w.statement(at)
    body = "\n".join(w.lines)
    result = f"({w.names['b'][-1]}, {w.names['i'][-1]}, [{w.names['f'][-1]}, k], x)"
    calls = []
    for _ in range(draw(st.integers(5, 9))):
        n, m = draw(st.sampled_from([0, 1, 2, 3, 3, 4])), draw(st.sampled_from([1, 2, 2, 5]))
        k = draw(st.sampled_from([0.5, 1.0, -3.0, 0.0, 1e30]))
        calls.append(f"    print(told({n}, {m}, {k!r}, toGpu([1.0, {k!r}, {float(n)!r}]), toGpu([2.0, {float(m)!r}])))")
    return f"""{HEAD}
fn work(n: int, m: int, k: float, x: GpuBuffer<float>, y0: GpuBuffer<float>) = {{
    let y = long(y0, 18)
{body}
    {result}
}}
fn tried(n: int, m: int, k: float, x: GpuBuffer<float>, y: GpuBuffer<float>) -> Result<string, MathError> = {{
    let (b, i, fs, same) = work(n, m, k, x, y)
    "${{show(b)}} ${{i}} ${{fs}} ${{show(same)}}"
}}
fn told(n: int, m: int, k: float, x: GpuBuffer<float>, y: GpuBuffer<float>) -> string =
    match tried(n, m, k, x, y) {{
        Success {{ value }} => value
        Error {{ message }} => "fault: ${{message}}"
    }}
fn main() -> Unit = {{
{chr(10).join(calls)}
}}
"""


def run(text: str, *, replay: bool) -> tuple[str, str, Stats]:
    program, diagnostics = check_source(text)
    assert program is not None, [d.title for d in diagnostics]
    out, err = io.StringIO(), io.StringIO()
    rt = Runtime(OracleBackend(), replay=replay)
    run_program(program, runtime=rt, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue(), rt.stats


@settings(max_examples=30, deadline=None)
@given(programs())
def test_replayed_or_not(text: str) -> None:
    out, err, _ = run(text, replay=True)
    assert (out, err) == run(text, replay=False)[:2]
