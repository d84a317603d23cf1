"""Extraction: a function and its kernel agree on every value, every fault and its place.

spec/gpu-surface S1.2, S3.2-S3.4, S5.1, S6.1, S6.3.
"""

from __future__ import annotations

import pytest

from osprey_py.kernel.extract import Extractor
from osprey_py.kernel.ir import FLOAT, INT, walk
from osprey_py.source.diagnostic import OspreyError
from tests.kernel.extraction import Module, as_kernel, evaluated, launched, seen

ROWS = [
    (i, x)
    for i in (-7, -1, 0, 1, 2, 3, 10, 63, 64, 2**62, 2**63 - 1, -(2**63))
    for x in (0.0, -0.0, 2.5, -1e300, float("nan"))
]

PRELUDE = """
type P = { x: int, y: float }
type Shape = Circle { radius: float } | Box(int, int) | Nothing
type Deep = Leaf(int) | Pair(int, int)
let table = toGpu([1.5, 2.5, 3.5])
let numbers = toGpu([3, 0, 5])
let three = 3
let pair = (4, 0.5)
let point = P { x: 6, y: 0.25 }
let nested = { p: point, q: (7, table) }
let some: Result<int, Error> = Success { value: 9 }
fn half(n: int) -> int = intDiv(n, 2)
fn ignore(a: int, b: int) -> int = b
fn down(k: int) -> int = shiftLeft(1, k - 1)
fn five(k: int) -> int = intDiv(60, 5 - k)
fn last(a: int, b: int) -> int = b
fn twice(f: (int) -> int, n: int) -> int = f(f(n))
fn same<T>(n: T) -> T = n
fn inverse(n: int) -> Result<int, MathError> = intDiv(100, n)
fn shape(i: int, x: float) -> Shape = if i < 0 { Nothing } else { if i < 3 { Circle { radius: x } } else { Box(i, 2) } }
fn area(s: Shape) -> float = match s {
    Circle { radius } => radius * radius
    Box(w, h) => toFloat(w) * toFloat(h)
    Nothing => -1.0
}
fn gcd(a: int, b: int) -> int = if b == 0 { a } else { gcd(b, a % b) }
fn sum(n: int) -> int = if n <= 0 { 0 } else { n + sum(n - 1) }
fn fib(n: int) -> int = if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
fn even(n: int) -> bool = if n == 0 { true } else { odd(n - 1) }
fn odd(n: int) -> bool = if n == 0 { false } else { even(n - 1) }
fn ackermann(m: int, n: int) -> int =
    if m == 0 { n + 1 } else { if n == 0 { ackermann(m - 1, 1) } else { ackermann(m - 1, ackermann(m, n - 1)) } }
fn collatz(n: int, steps: int) -> int = match n {
    1 => steps
    m if m % 2 == 0 => collatz(intDiv(m, 2), steps + 1)
    m => collatz(3 * m + 1, steps + 1)
}
fn divmod(a: int, b: int) -> (int, int) = if a < b { (0, a) } else {
    let (q, r) = divmod(a - b, b)
    (q + 1, r)
}
fn find(n: int) -> Result<int, Error> =
    if n > 5 { Error { message: "far" } } else { if n == 5 { Success { value: n } } else { find(n + 1) } }
fn halves(n: int) -> Result<int, MathError> = if n == 0 { intDiv(1, n) } else { 1 + (halves(half(n)) ?: 10) }
fn apply(f: (int) -> int, n: int) -> int = if n <= 0 { f(n) } else { 1 + apply(f, n - 1) }
fn build(n: int) -> Deep = if n < 2 { Leaf(n) } else {
    match build(n - 1) { Leaf(a) => Pair(a, n)  Pair(a, b) => Leaf(a + b) } }
"""

BODIES = {
    "arithmetic": "i * 2 + 1",
    "float arithmetic": "toInt(x * 2.0 + 0.5)",
    "float division": "x / toFloat(i)",
    "float remainder": "(x % toFloat(i)) ?: 7.0",
    "negation": "-i",
    "remainder": "100 % i",
    "bits": "shiftLeft(bitXor(i, 5), 3) + shiftRight(i, i)",
    "min max abs": "min(i, 3) + max(i, -4) + abs(i)",
    "float min max": "max(min(x, 1.0), -0.0) + abs(x)",
    "constants": "if isNan(x) { inf } else { nan }",
    "an unused let faults": "{ let y = intDiv(1, i)  7 }",
    "an ignored argument faults": "ignore(intDiv(1, i), 5)",
    "a dropped field faults": "(P { x: intDiv(1, i), y: x }).y",
    "the first fault counts": "{ let a = 10 % i  let b = 9223372036854775807 + (1 - i)  b + a }",
    "let before if": "{ let a = intDiv(10, i)  if i > 1 { a } else { 0 } }",
    "a fault outside a recover": "{ let a = intDiv(10, i)\n(a + shiftLeft(1, i)) ?: -5 }",
    "nested recover": "(intDiv(10, i) ?: shiftLeft(1, i)) ?: 3",
    "the default's fault": "intDiv(10, i) ?: (1 % i)",
    "if": "if x > 1.0 { i + 1 } else { intDiv(6, i) }",
    "logic": "(i > 0 && intDiv(10, i) > 2) || x < 0.0",
    "not": "!(i == 0) && x != x",
    "match literals": "match i { 0 => 10  -1 => 20  n if n > 60 => n - 1  _ => half(i) }",
    "match bool": "match i > 0 { true => 1  false => intDiv(1, i) }",
    "match tuple": "match (i, x) { (0, _) => 1  (n, y) => if y > 0.0 { n } else { -n } }",
    "guards fault": "match i { n if intDiv(5, n) > 0 => 1  _ => 2 }",
    "records": "{ let p = P { x: i, y: x }  let q = p { x: p.x + 1 }  toFloat(q.x) + q.y }",
    "record pattern": "match (P { x: i, y: x }) { P { x: a, y: b } => toFloat(a) * b }",
    "anonymous": "{ let r = { b: i, a: x }  toFloat(r.b) + r.a }",
    "equality": "(P { x: i, y: x }) == (P { x: 1, y: x }) || (i, 2) == (2, 2)",
    "shapes": "area(shape(i, x))",
    "shape equality": "shape(i, 1.0) == shape(3, 1.0)",
    "captured scalars": "i + three",
    "captured structure": "{ let (a, b) = pair  toFloat(i + a) + point.y + b }",
    "higher order": "twice(fn(n) => n * three, i)",
    "closures": "{ let f = fn(n) => n + i  f(f(1)) }",
    "generic": "same(i) + toInt(same(1.5))",
    "a chosen result": "(if i > 2 { gpuGet(numbers, 0) } else { gpuGet(numbers, i) }) ?: -1",
    "gather": "gpuGet(table, i) ?: x",
    "gather of a faulting index": "gpuGet(numbers, intDiv(6, i)) ?: -1",
    "a matched gather": "match gpuGet(numbers, i) { Success { value } => intDiv(15, value)  Error { message } => -1 }",
    "a matched fault": "match inverse(i) { Success { value } => value  Error { message } => -3 }",
    "an annotated let": "{ let r: Result<int, MathError> = intDiv(100, i)  r ?: -9 }",
    "length": "gpuLength(table) + i",
    "captured result": "(some ?: 0) + i",
    "captured record of buffers": "{ let (n, b) = nested.q\n(gpuGet(b, i) ?: 0.0) + toFloat(nested.p.x + n) }",
    "fold": "gpuFold(gpuIota(i % 20), x, fn(a, k) => a * 0.5 + toFloat(k))",
    "a fold that faults": "gpuFold(numbers, i, fn(a, n) => a + intDiv(12, n))",
    "a recovered fold": "gpuFold(numbers, i, fn(a, n) => a + intDiv(12, n)) ?: -1",
    "recover in a fold": "gpuFold(numbers, i, fn(a, n) => a + (intDiv(12, n) ?: 1))",
    "pipeline": "gpuFold(gpuMap(gpuIota(5), fn(k) => k * i), 0, fn(a, b) => a + b)",
    "a pipeline that faults": "gpuFold(gpuMap(numbers, fn(k) => intDiv(i, k)), 0, fn(a, b) => a + b)",
    "both stages fault": "gpuFold(gpuMap(numbers, fn(k) => intDiv(30, k - 5)), i, fn(a, b) => a * b)",
    "two stages fault": "gpuIota(4) |> gpuMap(fn(k) => 10 % (k - 2)) |> gpuMap(down) |> gpuFold(0, last)",
    "zipped stages fault": "gpuZipWith(gpuMap(numbers, five), gpuMap(numbers, down), last) |> gpuFold(0, last)",
    "a filter faults": "gpuFilter(numbers, fn(k) => five(k) >= i) |> gpuMap(down) |> gpuFold(0, last)",
    "an unused pipeline": "{ let b = gpuMap(numbers, fn(k) => intDiv(i, k))  1 }",
    "zip": "gpuFold(gpuZipWith(numbers, gpuIota(i % 20), fn(a, b) => a * b), 0, fn(a, b) => a + b)",
    "filter": "gpuFold(gpuFilter(numbers, fn(k) => k > 0), i, fn(a, k) => a + intDiv(15, k))",
    "map after filter": "numbers |> gpuFilter(fn(k) => k > 0) |> gpuMap(fn(k) => 15 % k) |> gpuFold(i, fn(a, k) => a + k)",
    "length of a filter": "gpuLength(gpuFilter(numbers, fn(k) => k > i))",
    "length of a pipeline": "gpuLength(gpuMap(gpuIota(i % 9), fn(k) => k))",
    "length of a zip": "gpuLength(gpuZipWith(gpuIota(i % 9), numbers, fn(a, b) => a))",
    "local mutual recursion": "{ fn p(n: int) = n <= 0 ? 1 : q(n - 1)\nfn q(n: int) = n <= 0 ? i : p(n - 1)\np(i % 9) }",
    "nested folds": "gpuFold(gpuIota(4), 0, fn(a, k) => a + gpuFold(gpuIota(k), i, fn(b, j) => b + j * k))",
    "tail recursion": "gcd(i, 12)",
    "recursion": "sum(i % 50)",
    "tree recursion": "fib(i % 12)",
    "mutual tail recursion": "even(i % 100 + 100)",
    "both kinds": "ackermann(2, abs(i % 4))",
    "match and guards in a loop": "collatz(abs(i % 30) + 1, 0)",
    "tuple results": "{ let (q, r) = divmod(abs(i % 100), 7)  q * 10 + r }",
    "result of a loop": "find(i % 100) ?: -2",
    "recover in recursion": "halves(abs(i % 40)) ?: -4",
    "a function argument": "apply(fn(n) => n + i, abs(i % 5))",
    "a local function": "{ fn down(n: int) -> int = if n <= 0 { i } else { 1 + down(n - 1) }  down(i % 9) }",
    "union results": "match build(abs(i % 6)) { Leaf(a) => a  Pair(a, b) => a * 100 + b }",
    "recursion in a fold": "gpuFold(gpuIota(5), 0, fn(a, k) => a + sum(k))",
    "a fault in recursion": "{ fn f(n: int) -> int = n == 0 ? intDiv(1, n) : 1 + f(n - 1)\nf(abs(i % 4)) ?: -1 }",
}  # fmt: skip


@pytest.fixture(scope="module")
def module() -> Module:
    functions = [f"fn k{k}(i: int, x: float) = {body}" for k, body in enumerate(BODIES.values())]
    return Module(PRELUDE + "\n".join(functions))


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_is_its_function(module: Module, name: str) -> None:
    f = module.function(f"k{list(BODIES).index(name)}")
    wanted = [evaluated(module, f, row) for row in ROWS]
    assert launched(f, (INT, FLOAT), ROWS) == wanted


def test_tail_recursion_needs_no_frames() -> None:
    """S5.1."""
    text = "fn k(n: int, a: int) -> int = if n == 0 { a } else { k(n - 1, a + 1) }"
    f = Module(text).function("k")
    assert launched(f, (INT, INT), [(300_000, 0)]) == [("int", 300_000)]


def test_recursion_has_a_limit_that_nothing_recovers() -> None:
    """S5.2."""
    module = Module(
        "fn sum(n: int) -> int = if n <= 0 { 0 } else { 1 + sum(n - 1) }\nfn k(n: int) -> int = sum(n) ?: -1"
    )
    rows = [(99_999,), (100_000,)]
    fine, deep = launched(module.function("k"), (INT,), rows)
    assert fine == ("int", 99_999)
    assert deep[0] == "recursion too deep"


def test_equal_code_is_one_kernel() -> None:
    """S6.2: new values of captures, of other lengths, give the same kernel object; other functions another."""
    module = Module(
        "fn k_scaled(by: float, b: GpuBuffer<float>) = fn(i: int) => by * (gpuGet(b, i) ?: 0.0)\n"
        "fn chosen(f: (float) -> float) = fn(i: int) => f(toFloat(i))\n"
        "fn k_root() = chosen(sqrt)\nfn k_power() = chosen(exp)\n"
    )
    scaled = module.function("k_scaled")
    short, long = (module.runtime.from_list(xs, FLOAT) for xs in ([1.0], [1.0, 2.0]))
    extractor = Extractor()
    first, buffers, scalars = extractor.map(scaled(2.0, short), (INT,))
    second, others, more = extractor.map(scaled(-3.0, long), (INT,))
    assert first is second
    assert scalars == (2.0,)
    assert more == (-3.0,)
    assert buffers[0] is short
    assert others[0] is long
    root, power, same = (extractor.map(module.function(n)(), (INT,))[0] for n in ("k_root", "k_power", "k_root"))
    assert root is same
    assert root is not power


def test_captures_are_read_at_each_launch() -> None:
    """S6.2."""
    module = Module(
        "type P = { a: int, b: float }\nfn k_make(a: int, b: float) = { let p = P { a: a, b: b }\n"
        "fn(i: int) => toFloat(i + p.a) + p.b }"
    )
    make, extractor = module.function("k_make"), Extractor()
    assert launched(make(1, 0.5), (INT,), [(1,)], extractor) == [seen(2.5)]
    assert launched(make(2, 0.25), (INT,), [(1,)], extractor) == [seen(3.25)]
    assert extractor.map(make(3, 0.0), (INT,))[0] is extractor.map(make(4, 1.0), (INT,))[0]


def test_another_structure_is_another_kernel() -> None:
    """S6.2: variants, Results, the code of functions and buffers' types are guards; going back finds the kernel
    again."""
    module = Module(
        "type S = One(int) | Two { a: int, b: int }\n"
        "fn value(s: S) -> int = match s { One(n) => n  Two { a, b } => a * 10 + b }\n"
        "fn k_union(n: int) = { let s = if n > 0 { One(n) } else { Two { a: n, b: 1 } }\nfn(i: int) => value(s) + i }\n"
        "fn k_result(n: int) = { let r: Result<int, MathError> = intDiv(12, n)\nfn(i: int) => (r ?: 100) + i }\n"
        "fn k_code(n: int) = {\nlet f = if n > 0 { fn(x: int) => x + n } else { fn(x: int) => x * n }\n"
        "fn(i: int) => f(i) }\n"
        "fn k_cell(n: int) = {\nmut c = n\nfn(i: int) => c + i }\n"
    )
    for name in ("k_union", "k_result", "k_code", "k_cell"):
        extractor, make = Extractor(), module.function(name)
        for n in (3, 0, -2, 5, 0):
            f = make(n)
            assert launched(f, (INT,), [(7,)], extractor) == [evaluated(module, f, (7,))]
        first, other, again = (extractor.map(make(n), (INT,))[0] for n in (3, 0, 5))
        assert first is again
        assert (first is other) == (name == "k_cell")


REFUSED = {
    "a list": ("E0351", "listLength([i])"),
    "text": ("E0352", 'length("a")'),
    "indexing": ("E0351", "[1, 2][i] ?: 0"),
    "a buffer of its own": ("E0354", "gpuGet(gpuMap(gpuIota(3), fn(k) => k), i) ?: 0"),
    "a scan": ("E0352", "gpuLength(gpuScan(gpuIota(3), 0, fn(a, k) => a + k))"),
    "a pipeline for a recursive function": ("E0355", "r(gpuIota(i), i)"),
    "data that grows": ("E0355", "grow(i, E)"),
    "data that grows in calls that are no tail calls": ("E0355", "pile(i, E)"),
    "a function that changes": ("E0355", "swap(i, fn(n) => n, fn(n) => n + i)"),
    "a choice of functions": ("E0353", "{ let f = if i > 0 { fn(n: int) => n } else { fn(n: int) => n + 1 }  f(i) }"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_kernel_cannot_hold_is_named(name: str) -> None:
    """S6.3, S6.4."""
    code, body = REFUSED[name]
    recursive = "fn r(b: GpuBuffer<int>, n: int) -> int = if n <= 0 { gpuLength(b) } else { 1 + r(b, n - 1) }"
    recursive += """
type L = E | K { h: int, t: L }
fn grow(n: int, l: L) -> int = if n <= 0 { match l { E => 0 K { h, t: _ } => h } } else { grow(n - 1, K { h: n, t: l }) }
fn pile(n: int, l: L) -> int = if n <= 0 { n } else { 1 + pile(n - 1, K { h: n, t: l }) }
fn swap(n: int, f: (int) -> int, g: (int) -> int) -> int = if n <= 0 { f(n) } else { swap(n - 1, g, f) }"""
    module = Module(f"{recursive}\nfn k(i: int) -> int = {body}")
    with pytest.raises(OspreyError) as caught:
        Extractor().map(module.function("k"), (INT,))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.span.source.path == "test.osp"


def test_faultless_reads_leave_no_fault_bit() -> None:
    """Index arithmetic that may fault is outside of nothing: `at(x, i)` itself is no fault and no recover."""
    module = Module("let b = toGpu([1.0])\nfn k(i: int) -> float = gpuGet(b, i) ?: 0.0")
    kernel, _, _ = as_kernel(Extractor(), module.function("k"), (INT,))
    assert not any(n.op == "recover" for n in walk(kernel.roots))
