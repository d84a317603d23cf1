"""Random differentiable programs, as text.

`programs()` draws `loss` and `point`: buffers, floats and lists of them as parameters, every launch of the surface, kernels
with branches, lets, gathers, folds, pipelines, closures, tuples, recovered faults; decimals that round in every sum,
so that another order gives other bytes. edges: 0.0, -0.0, inf, nan and huge numbers too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.gradient.literal_compare import program

HELPERS = """
type Pair = { u: float, v: float }
let fixed = toGpu([0.3, -1.1, 0.7])
let places = toGpu([2, 0, 1, 1])
fn mix(x: float, y: float) -> float = x * y + tanh(x)
fn twice(f: (float) -> float, x: float) -> float = f(f(x))
fn chosen(n: int, x: float, y: float) -> float = match n { 0 => x * 1.3
    1 => x
    _ => y - x }
fn swapped(q: Pair) -> Pair = Pair { u: q.v, v: q.u * q.u }
fn running(xs: List<float>, acc: float) -> float = match xs {
    [] => acc
    [x, ...more] => running(more, acc * 0.9 + x * acc)
}
"""
KIND = "{ a: GpuBuffer<float>, b: GpuBuffer<float>, s: float, t: (float, List<float>), ws: List<GpuBuffer<float>> }"

PLAIN = ["0.1", "0.7", "1.3", "(-0.3)", "2.0", "(-1.1)", "0.9"]
EDGES = [*PLAIN, "0.0", "(-0.0)", "inf", "nan", "1e17", "1e308", "5e-324"]


class Writer:
    """Draws text. floats, buffers: the names in scope of the host or the kernel."""

    def __init__(self, draw: Callable[..., Any], edges: bool) -> None:
        self.draw = draw
        self.literals = EDGES if edges else PLAIN
        self.names = 0
        self.floats = ["p.s", "x0"]
        self.buffers = ["p.a", "p.b", "w0", "fixed"]
        self.ints: list[str] = []

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def inside(self, write: Callable[[], str], floats: tuple[str, ...] = (), ints: tuple[str, ...] = ()) -> str:
        before = list(self.floats), list(self.ints)
        self.floats += floats
        self.ints += ints
        text = write()
        self.floats, self.ints = before
        return text

    def buffer_name(self) -> str:
        return str(self.pick(*self.buffers))

    # --- in kernels -------------------------------------------------------------------------------------------

    def int_(self) -> str:
        k = self.pick(*self.ints, "1")
        return str(self.pick(k, k, f"({k} % 2)", f"({k} - 1)", f"(2 - {k})", "0", f"(gpuGet(places, {k}) ?: 0)"))

    def bool_(self, d: int) -> str:
        a, b = self.kernel(d), self.kernel(d)
        n = self.int_()
        op = self.pick("<", ">=")
        return str(self.pick(f"{a} {op} {b}", f"{a} {op} {b}", f"{n} < 1", f"({a} > 0.0 && {n} == 1)", f"!({n} > 0)"))

    def kernel(self, d: int) -> str:
        """A float of a kernel."""
        if d <= 0:
            name = self.pick(*self.floats, self.floats[-1], self.floats[-1])
            return str(self.pick(name, name, name, *self.literals[:2], self.pick(*self.literals)))
        e = self.kernel
        d -= 1
        match self.pick(
            "op", "op", "op", "one", "if", "let", "gather", "gather", "fold", "fold", "call", "data", "pipe", "safe"
        ):
            case "op":
                a, b = e(d), e(d)
                op = self.pick("+", "-", "*", "*")
                return str(
                    self.pick(
                        f"({a} {op} {b})", f"({a} {op} {b})", f"max({a}, {b})", f"min({a}, {b})", f"ieeeDiv({a}, {b})"
                    )
                )
            case "one":
                f = self.pick(
                    "tanh({})", "sqrt(abs({}))", "exp(tanh({}))", "(-{})", "ln(1.5 + tanh({}))", "abs({})", "floor({})"
                )
                return str(f).format(e(d))
            case "if":
                return f"(if {self.bool_(0)} {{ {e(d)} }} else {{ {e(d)} }})"
            case "let":
                name = self.fresh()
                return f"({{ let {name} = {e(d)}\n{self.inside(lambda: e(d), (name,))} }})"
            case "gather":
                return f"at({self.buffer_name()}, {self.int_()})"
            case "fold":
                acc, k = self.fresh(), self.fresh()
                n = self.pick("2", "3", "0", *[f"({i} + 1)" for i in self.ints])
                start = self.pick("0.0", e(d), "(-inf)")
                step = self.step(acc, d, (k,))
                return f"gpuFold(gpuIota({n}), {start}, fn({acc}, {k}) => {step})"
            case "call":
                a, b, n = e(d), e(d), self.int_()
                name = self.fresh()
                body = self.inside(lambda: e(0), (name,))
                return str(
                    self.pick(f"mix({a}, {b})", f"chosen({n}, {a}, {b})", f"twice(fn({name}) => {name} * {body}, {a})")
                )
            case "data":
                x, y = self.fresh(), self.fresh()
                if self.pick(True, False):
                    rest = self.inside(lambda: e(d), (x, y))
                    return f"({{ let ({x}, {y}) = ({e(d)}, {e(d)})\n{rest} }})"
                rest = self.inside(lambda: e(d), (f"{x}.u", f"{x}.v"))
                return f"({{ let {x} = swapped(Pair {{ u: {e(d)}, v: {e(d)} }})\n{rest} }})"
            case "pipe":
                x, acc, y = self.fresh(), self.fresh(), self.fresh()
                stage = self.inside(lambda: e(d), (x,))
                source = f"gpuMap({self.buffer_name()}, fn({x}) => {stage})"
                if self.pick(True, False):
                    source = f"gpuFilter({source}, fn({y}) => {y} > {e(0)})"
                return f"gpuFold({source}, {e(0)}, fn({acc}, {y}) => {self.step(acc, d, (), (y,))})"
            case _:
                return f"(({e(d)} / {e(d)}) ?: {e(d)})"
        raise AssertionError

    def step(self, acc: str, d: int, ints: tuple[str, ...], floats: tuple[str, ...] = ()) -> str:
        """What a fold does with its accumulator."""
        term = self.inside(lambda: self.kernel(d), floats, ints)
        whole = self.inside(lambda: self.kernel(d), (*floats, acc), ints)
        more = self.inside(lambda: self.kernel(0), floats, ints)
        return str(
            self.pick(
                f"{acc} + {term}", f"{acc} + {term} * {more}", f"{term} + {acc}", f"{acc} * {term}",
                f"max({acc}, {term})", f"({{ let y = {term}\nif y > {acc} {{ y }} else {{ {acc} }} }})", whole,
            )
        )  # fmt: skip

    # --- on the host ---------------------------------------------------------------------------------------------

    def buffer(self, d: int) -> str:
        if d <= 0:
            return self.buffer_name()
        k, b = self.kernel, self.buffer
        x, y = self.fresh(), self.fresh()
        d -= 1
        match self.pick(
            "map", "iota", "iota", "zip", "scan", "concat", "slice", "filter", "matmul", "accumulate", "list"
        ):
            case "map":
                return f"gpuMap({b(d)}, fn({x}) => {self.inside(lambda: k(2), (x,))})"
            case "iota":
                return f"gpuMap(gpuIota({self.pick(1, 3, 4)}), fn({x}) => {self.inside(lambda: k(2), (), (x,))})"
            case "zip":
                return f"gpuZipWith({b(d)}, {b(d)}, fn({x}, {y}) => {self.inside(lambda: k(2), (x, y))})"
            case "scan":
                return f"gpuScan({b(d)}, {self.number(0)}, fn({x}, {y}) => {self.step(x, 1, (), (y,))})"
            case "concat":
                return f"gpuConcat({b(d)}, {b(d)})"
            case "slice":
                return f"(gpuSlice({b(d)}, {self.pick(0, 1)}, {self.pick(1, 2)}) ?: {b(0)})"
            case "filter":
                return f"gpuFilter({b(d)}, fn({x}) => {x} > {self.pick('0.0', '0.2')})"
            case "matmul":
                m, n, o = self.pick((1, 3, 1), (1, 1, 3), (3, 1, 1), (2, 1, 2))
                return f"(gpuMatMul({b(d)}, {b(d)}, {m}, {n}, {o}) ?: {b(0)})"
            case "accumulate":
                values = b(d)
                where = f"gpuMap(gpuIota(gpuLength({values})), fn(i) => i % 2)"
                return f"(gpuAccumulate(2, {where}, {values}) ?: {b(0)})"
        return f"toGpu([{', '.join(self.number(0) for _ in range(self.pick(1, 2, 3)))}])"

    def number(self, d: int) -> str:
        """A float of the host."""
        if d <= 0:
            return str(self.pick(*self.floats, *self.floats, self.pick(*self.literals)))
        n, b = self.number, self.buffer
        d -= 1
        match self.pick("fold", "fold", "get", "op", "op", "if", "list", "lists", "call"):
            case "fold":
                x, y = self.fresh(), self.fresh()
                return f"gpuFold({b(d)}, {n(0)}, fn({x}, {y}) => {self.step(x, 1, (), (y,))})"
            case "get":
                return f"(gpuGet({b(d)}, {self.pick(0, 1, 2)}) ?: {n(d)})"
            case "op":
                x, y = n(d), n(d)
                op = self.pick("+", "-", "*")
                return str(
                    self.pick(f"({x} {op} {y})", f"max({x}, {y})", f"tanh({x})", f"ieeeDiv({x}, {y})", f"(-{x})")
                )
            case "if":
                return f"(if {n(0)} > {n(0)} {{ {n(d)} }} else {{ {n(d)} }})"
            case "list":
                return f"(fromGpu({b(d)}) |> fold({n(0)}, fn(acc, x) => acc * 0.5 + x))"
            case "lists":
                return f"running({self.pick('rest', f'[{n(0)}, {n(0)}]')}, {n(d)})"
        return f"mix({n(d)}, {n(d)})"


@st.composite
def programs(draw: Callable[..., Any], edges: bool = False) -> str:
    w = Writer(draw, edges)
    lets = ["let (x0, rest) = p.t", "let w0 = listGet(p.ws, 0) ?: p.a"]
    for _ in range(draw(st.integers(1, 4))):
        name = w.fresh()
        if w.pick(True, True, False):
            lets.append(f"let {name} = {w.buffer(2)}")
            w.buffers += [name, name]
        else:
            lets.append(f"let {name} = {w.number(2)}")
            w.floats += [name, name]
    sums = " + ".join(f"total({b})" for b in dict.fromkeys(w.buffers) if b.startswith("v"))
    result = w.number(1) + (f" + {sums}" if sums else "")
    lines = "\n    ".join([*lets, result])
    body = f"{{\n    {lines}\n}}"

    def some(least: int, most: int) -> str:
        return ", ".join(draw(st.lists(st.sampled_from(w.literals), min_size=least, max_size=most)))

    ws = ", ".join(f"toGpu([{some(1, 3)}])" for _ in range(draw(st.integers(0, 2))))
    point = (
        f"{{ a: toGpu([{some(1, 4)}]), b: toGpu([{some(0, 3)}]), s: {some(1, 1)}, t: ({some(1, 1)}, [{some(1, 2)}]), "
        f"ws: {f'[{ws}]' if ws else 'List()'} }}"
    )
    return program(KIND, point, body, HELPERS)
