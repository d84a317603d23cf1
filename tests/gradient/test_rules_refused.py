"""G8, G9, G10: what cannot be differentiated is refused, by name; what looks like it and can be is not."""

from __future__ import annotations

from typing import Any

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source
from osprey_py.source.diagnostic import OspreyError
from tests.gradient.literal_compare import HEAD, HOST, bits, real

PRINTS = "fn(x: float) => { print(x)\nx }"
LOG = "effect Log { write: fn(float) -> Unit }\n"
ASK = "effect Ask { get: fn() -> float }\n"

WRONG_TYPES = {
    "n: int": "let g = gradient(fn(p: { a: float, n: int }) => p.a, { a: 1.0, n: 2 })",
    "blocks[].heads: int": """type B = { heads: int, w: float }
        type M = { blocks: List<B> }
        let g = gradient(fn(p: M) => 1.0, M { blocks: List() })""",
    "0.k: bool": "let g = gradient(fn(p: ({ k: bool }, float)) => 1.0, ({ k: true }, 1.0))",
    "GpuBuffer<int>": "let g = gradient(fn(p: GpuBuffer<int>) => 1.0, toGpu([1]))",
    "U": "type U = A(float) | B\nlet g = gradient(fn(p: U) => 1.0, A(1.0))",
    "Result<float, Error>": "fn f(p: Result<float, Error>) -> float = 1.0\nlet g = gradient(f, Success(1.0))",
    "Map<string, float>": "fn f(p: Map<string, float>) -> float = 1.0\nlet g = gradient(f, Map())",
    "h: (float) -> float": """fn f(p: { w: float, h: (float) -> float }) -> float = p.h(p.w)
        let g = gradient(f, { w: 1.0, h: fn(x: float) => x })""",
    "string": 'let g = gradient(fn(p: string) => 1.0, "a")',
    "Iterator<float>": "let g = gradient(fn(p: Iterator<float>) => 1.0, [1.0] |> map(fn(x) => x))",
    "int": "fn d(f, x) = gradient(f, x)\nlet g = d(fn(x: int) => 1.0, 1)",
    "w: int": "type P<T> = { w: T }\nfn f(p: P<int>) -> float = 1.0\nlet g = gradient(f, P { w: 1 })",
}


@pytest.mark.parametrize("named", WRONG_TYPES)
def test_a_type_that_cannot_be_differentiated(named: str) -> None:
    """G8"""
    program, told = check_source(WRONG_TYPES[named])
    assert program is None
    assert any(d.code == "E0219" and d.title == f"`{named}` cannot be differentiated" for d in told), told


EFFECTS = {
    "plainly": f"let g = gradient({PRINTS}, 1.0)",
    "in a field": f"""type C = {{ f: (float) -> float }}
        let c = C {{ f: {PRINTS} }}
        let g = gradient(fn(x: float) => c.f(x), 1.0)""",
    "in a list": f"let fs = [{PRINTS}]\nlet g = gradient(fn(x: float) => match fs {{ [f, ..._] => f(x)\n_ => x }}, 1.0)",
    "made by a function": f"fn mk() -> (float) -> float = {PRINTS}\nlet h = mk()\nlet g = gradient(h, 1.0)",
    "wrapped": f"""fn wrap(f: (float) -> float) -> (float) -> float = fn(x) => f(x)
        let g = gradient(wrap(wrap({PRINTS})), 1.0)""",
    "through a generic": f"fn d(f, x) = gradient(f, x)\nlet g = d({PRINTS}, 1.0)",
    "through recursion": f"""fn go(f: (float) -> float, n: int) -> float =
        if n <= 0 {{ gradient(f, 1.0) }} else {{ go(fn(x) => f(x), n - 1) }}
        let g = go({PRINTS}, 3)""",
    "gradient as a value": f"let ds = [gradient]\nlet g = match ds {{ [d, ..._] => d({PRINTS}, 1.0)\n_ => 0.0 }}",
    "in a pipeline": f"let g = [{PRINTS}] |> map(fn(f) => gradient(f, 1.0)) |> toList",
    "in a stage": f"let g = gradient(fn(x: float) => [x] |> map({PRINTS}) |> fold(0.0, fn(a, b) => a + b), 1.0)",
    "random": "let g = gradient(fn(x: float) => x * random(), 1.0)",
    "exit": "let g = gradient(fn(x: float) => if x > 0.0 { x } else { exit(1) }, 1.0)",
    "an effect": f"{LOG}let g = handle Log write v => () in gradient(fn(x: float) => {{ perform Log.write(x)\nx }}, 1.0)",
    "a cell around": f"""{ASK}mut n = 0.0
        fn f(x: float) -> float = handle Ask get => {{ n = n + x
        n }} in perform Ask.get()
        let g = gradient(f, 1.0)""",
}


@pytest.mark.parametrize("how", EFFECTS)
def test_a_function_that_is_not_pure(how: str) -> None:
    """G8: however well it is hidden."""
    program, told = check_source(EFFECTS[how])
    assert program is None
    assert any(d.code == "E0311" for d in told), told


LOOPS = """
fn looped(x: float, n: int) -> float = if n <= 0 { x } else { looped(x * 2.0, n - 1) }
fn recursive(x: float, n: int) -> float = if n <= 0 { x } else { 1.0 + recursive(x * 2.0, n - 1) }
let c = toGpu([2.0])
"""
REFUSED = {
    "a loop": ("E0356", "gradient(fn(b: GpuBuffer<float>) => total(gpuMap(b, fn(v) => looped(v, 3))), c)"),
    "recursion": ("E0356", "gradient(fn(b: GpuBuffer<float>) => total(gpuMap(b, fn(v) => recursive(v, 3))), c)"),
    "captured": ("E0356", "gradient(fn(x: float) => total(gpuMap(c, fn(v) => looped(x, 3))), 1.0)"),
    "nested": ("E0357", "gradient(fn(x: float) => gradient(fn(y: float) => y * y, x), 1.0)"),
    "nested, of a constant": ("E0357", "gradient(fn(x: float) => gradient(fn(y: float) => y * y, 3.0) * x, 1.0)"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_where_it_runs(what: str) -> None:
    """G10"""
    code, ask = REFUSED[what]
    with pytest.raises(OspreyError) as refused:
        real(HEAD + LOOPS, OracleBackend(), ask=ask)
    assert [d.code for d in refused.value.diagnostics] == [code]


RIGHT: list[tuple[str, str, str, Any]] = [
    ("the same loop on the host", "", "valueAndGradient(fn(x: float) => looped(x, 3), 1.5)", (12.0, 8.0)),
    ("a loop of constants", "", "gradient(fn(x: float) => total(gpuMap(c, fn(v) => looped(v, 3))) * x, 3.0)", 16.0),
    ("one constructor", "type U = A(float)", "gradient(fn(u: U) => match u { A(x) => x * 3.0 }, A(1.0))", {"0": 3.0}),
    ("a tree", """type T = { w: float, kids: List<T> }
        fn f(t: T) -> float = t.kids |> fold(t.w * 2.0, fn(a, k) => a + f(k) * 3.0)""",
     "gradient(f, T { w: 1.0, kids: [T { w: 5.0, kids: List() }] })", {"w": 2.0, "kids": [{"w": 6.0, "kids": []}]}),
    ("a built-in", "", "gradient(sqrt, 4.0)", 0.25),
    ("as a value", "fn d(f, x) = gradient(f, x)", "d(fn(x: float) => x * x, 3.0)", 6.0),
    ("handled inside", ASK, "gradient(fn(x: float) => handle Ask get => x * 3.0 in perform Ask.get() * x, 2.0)", 12.0),
    ("resumed", ASK,
     "gradient(fn(x: float) => handle Ask get => resume(x * 3.0) * x in perform Ask.get() * 2.0, 2.0)", 24.0),
    ("a cell inside", ASK, """gradient(fn(x: float) => {
        mut n = 0.0
        handle Ask get => { n = n + x
        n } in perform Ask.get() * perform Ask.get() }, 2.0)""", 8.0),
    ("of nothing", "", "valueAndGradient(fn(p: List<float>) => 1.0, List())", (1.0, [])),
    ("a fault recovered around it", "", "gradient(fn(x: float) => x / (x - 1.0), 1.0) ?: 7.0", 7.0),
    ("a kernel's fault", "",
     "fromGpu(gradient(fn(b: GpuBuffer<float>) => total(gpuMap(b, fn(v) => v / (v - 2.0))), c) ?: toGpu([7.0]))", [7.0]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "helpers", "ask", "want"), RIGHT)
def test_what_is_not(what: str, helpers: str, ask: str, want: Any) -> None:
    """G8, G10"""
    for backend in (OracleBackend(), HOST):
        assert bits(real(HEAD + LOOPS + helpers, backend, ask=ask, times=2)) == bits(want), what
