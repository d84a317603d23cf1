"""Random programs that pass a function around in every way the language has, and then use it.

Comes in: a hypothesis draw. Goes out: text of a program whose `k` is the function, and whether a noisy function is in it.
"""

from __future__ import annotations

from hypothesis import strategies as st

HELPERS = """
effect Log { write: fn(string) -> Unit }
effect Other { ask: fn() -> int }
effect Give { pick: fn() -> ((int) -> int) }
type Box<T> = { content: T }
type Tools = { run: (int) -> int, spare: (int) -> int, size: int }
type Chain = Done | Link { f: (int) -> int, next: Chain }
type Knot = { step: (Knot, int) -> int }
type Kernel = (int) -> int
fn inc(x: int) = x + 1
fn twice(x) = x * 2
fn shout(x: int) = { perform Log.write("x")  x + 1 }
fn quietly(f) = fn(x) => handle Log write m => () in f(x)
fn otherwise(f) = fn(x) => handle Other ask => 3 in f(x)
fn same<T>(x: T) -> T = x
fn compose(f, g) = fn(x) => g(f(x))
fn apply(f, x) = f(x)
fn open(box) = box.content
fn choose(c: bool, f, g) = if c { f } else { g }
fn matched(n: int, f, g) = match n { 0 => f  _ => g }
fn typed(f: Kernel) -> Kernel = f
fn lastOf(c: Chain, d: Kernel) -> Kernel = match c { Done => d  Link { f, next } => lastOf(next, f) }
fn runKnot(k: Knot, n: int) -> int = k.step(k, n)
fn unused(f, g) = f
fn swapped(t: Tools, f: Kernel) = t { run: f }
fn local(f) = { fn inner(x) = if x <= 0 { f(0) } else { inner(x - 1) + 0 }  inner }
fn ignore(f: Kernel) = 0
"""

_LEAVES = ("inc", "twice", "fn(x) => x - 3", "bitNot", "shout", "fn(y) => shout(y)")
_ONE = (
    "same({})",
    "quietly({})",
    "otherwise({})",
    "open(Box {{ content: {} }})",
    "typed({})",
    "local({})",
    "(fn(x) => ({})(x))",
    "(fn(x) => apply({}, x))",
    "(fn(x) => {{ let f = {}  x |> f }})",
    "(Tools {{ run: {}, spare: inc, size: 1 }}).run",
    "(Tools {{ run: inc, spare: {}, size: 1 }}).run",
    "({{ f: {}, g: 1 }}).f",
    "[{}][0] ?: inc",
    '{{ "a": {} }}["a"] ?: twice',
    "lastOf(Link {{ f: {}, next: Done }}, inc)",
    "(handle Give pick => {} in perform Give.pick())",
    "(handle Give pick => resume({}) in {{ let g = perform Give.pick()  g }})",
    "{{ let f = {}  f }}",
    "{{ let g = fn(x) => apply({}, x)  same(g) }}",
    "{{ let (a, b) = ({}, inc)  a }}",
    "{{ mut cell = {}  cell }}",
    "(match [{}] {{ [h, ..._] => h  [] => inc }})",
    "(fn(x) => runKnot(Knot {{ step: fn(k, n) => n <= 0 ? apply({}, n) : k.step(k, n - 1) }}, x))",
    "(fold([{}], inc, fn(a, f) => compose(a, f)))",
    "(listGet(toList(map([{}], same)), 0) ?: inc)",
    "swapped(Tools {{ run: inc, spare: inc, size: 1 }}, {}).run",
)
_TWO = (
    "compose({}, {})",
    "choose(true, {}, {})",
    "choose(false, {}, {})",
    "matched(1, {}, {})",
    "([{}, {}][1] ?: inc)",
    "unused({}, {})",
    "{{ let (a, b) = ({}, {})  compose(a, b) }}",
    "(Tools {{ run: {}, spare: {}, size: 1 }}).spare",
    "{{ let t = Tools {{ run: {}, spare: inc, size: 1 }}  (t {{ run: {} }}).run }}",
    "lastOf(Link {{ f: {}, next: Link {{ f: {}, next: Done }} }}, inc)",
    "(fn(x) => x > 100 ? ({})(x) : ({})(x))",
    "{{ let n = ignore({})\n{} }}",
)


@st.composite
def function(draw: st.DrawFn, depth: int) -> str:
    """An expression of type (int) -> int."""
    arity = draw(st.integers(0, 2)) if depth > 0 else 0
    if arity == 0:
        return f"({draw(st.sampled_from(_LEAVES))})"
    shape = draw(st.sampled_from(_ONE if arity == 1 else _TWO))
    parts = [draw(function(depth - 1)) for _ in range(arity)]
    return f"({shape.format(*parts)})"


def called(f: str) -> str:
    """A program that calls the function on the host, and says so when it performs."""
    return f'{HELPERS}\nhandle Log write m => print("noisy") in {{ let k = {f}  print(k(2)) }}\n'


def launched(f: str) -> str:
    """A program that uses the function as a kernel."""
    return (
        f'{HELPERS}\nhandle Log write m => print("noisy") in '
        f"{{ let k = {f}  print(fromGpu(toGpu([2]) |> gpuMap(k))) }}\n"
    )
