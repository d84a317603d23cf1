"""The built-ins that are no scalar operation, each executed where it stands: buffers, lists, pipelines.

Comes in: the walk, the call's expression, arguments. On the host a launch runs at once, element by element; in a kernel
a pipeline is a Pipe, whose stages are evaluated in each step of the fold that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from osprey_py.check import core as c
from osprey_py.kernel.scalars import NAN
from tests.gradient.literal import Captured, Launch, Lazy, Literal, error, success
from tests.gradient.literal_reach import reached
from tests.gradient.literal_tape import Buf, Val

BEFORE, PARAMETER, BODY, RESULT, STORE = -1, 0, 1, 2, 3
"""Places in a launch's element (or a fold), in order: the first accumulator and what was captured are read; the elements
are read, the function runs, a step's result is read; the element is stored."""


@dataclass(frozen=True, eq=False)
class Pipe:
    """A buffer made in a kernel. at: the element in step k, under a path; (value, kept)."""

    count: int
    at: Callable[[int, tuple[int, ...]], tuple[Any, bool]]


# --- launches on the host -----------------------------------------------------------------------------------------


class Running:
    """A launch: its kernel applied to elements."""

    def __init__(self, x: Literal, kind: str, f: Any, inputs: Sequence[Buf], first: Any = None) -> None:
        self.x, self.f = x, Captured(f, ("f",))
        order, self.leads = reached(x, kind, f, list(inputs), first)
        self.launch = Launch(x.tape.tick(), order)
        self.items: list[Any] = []

    def __enter__(self) -> Running:
        assert self.x.launch is None
        self.x.launch = self.launch
        return self

    def __exit__(self, *_: object) -> None:
        self.x.launch, self.x.path = None, ()

    def begin(self) -> None:
        """The next element."""
        self.launch.read = {}

    def read(self, op: str, v: Any, *place: int) -> Any:
        return self.x.tape.copy(op, v, (self.launch.time, place)) if isinstance(v, Val) else v

    def run(self, *args: Any) -> Any:
        self.x.path = (BODY,)
        return self.x.apply(self.f, list(args))

    def store(self, v: Any) -> Any:
        self.items.append(stored(self.read("store", v, STORE)))
        return self.items[-1]

    def result(self) -> Buf:
        """The buffer, told to all that has a way into it (G5)."""
        made = Buf(self.items)
        for source in self.leads:
            (source.launches if isinstance(source, Val) else source.readers).append(made)
        return self.x.tape.derived(made, *self.leads)


def stored(v: Any) -> Any:
    """A NaN that leaves a kernel is the one NaN."""
    if isinstance(v, Val) and v.value != v.value:
        v.value = NAN
    return v


def launch_map(x: Literal, f: Any, *inputs: Buf) -> Buf:
    with Running(x, "map", f, inputs) as r:
        for elements in zip(*(b.items for b in inputs), strict=False):
            r.begin()
            r.store(r.run(*[r.read("read", v, PARAMETER, k) for k, v in enumerate(elements)]))
    return r.result()


def gpu_map(x: Literal, e: c.Expr, b: Any, f: Any) -> Any:
    return launch_map(x, f, b) if x.launch is None else pipe_map(x, e, b, f)


def gpu_zip(x: Literal, e: c.Expr, a: Any, b: Any, f: Any) -> Any:
    return launch_map(x, f, a, b) if x.launch is None else pipe_zip(x, e, a, b, f)


def gpu_filter(x: Literal, e: c.Expr, b: Any, f: Any) -> Any:
    if x.launch is not None:
        return pipe_filter(x, e, b, f)
    kept = []
    with Running(x, "map", f, [b]) as r:
        for v in b.items:
            r.begin()
            if r.run(r.read("read", v, PARAMETER, 0)):
                kept.append(v)
    return moved(x, (kept, b))


def gpu_fold(x: Literal, e: c.Expr, b: Any, init: Any, f: Any) -> Any:
    if x.launch is not None:
        return pipe_fold(x, e, b, init, f)
    with Running(x, "fold", f, [b], init) as r:
        r.begin()
        acc = r.read("captured", init, BEFORE, 0)
        for v in b.items:
            acc = r.read("accumulator", r.run(acc, r.read("read", v, PARAMETER, 0)), RESULT)
        r.store(acc)
    return got(x, r.result(), 0)


def gpu_scan(x: Literal, e: c.Expr, b: Buf, init: Any, f: Any) -> Buf:
    with Running(x, "scan", f, [b], init) as r:
        before = init
        for k, v in enumerate(b.items):
            r.begin()
            acc = r.read("accumulator" if k else "captured", before, BEFORE, 0)
            before = r.store(r.run(acc, r.read("read", v, PARAMETER, 0)))
    return r.result()


def gpu_mat_mul(x: Literal, e: c.Expr, a: Buf, b: Buf, m: int, k: int, n: int) -> Any:
    if min(m, k, n) < 0 or len(a.items) != m * k or len(b.items) != k * n:
        return error("gpuMatMul")
    time = x.tape.tick()
    items = []
    note = x.tape.note
    for i in range(m):
        for j in range(n):
            acc = Val(0.0)
            for t in range(k):
                left = x.tape.copy("read", a.items[i * k + t], (time, (0,)))
                right = x.tape.copy("read", b.items[t * n + j], (time, (1,)))
                product = note("fmul", left.value * right.value, (left, right), ((time, (2,)), (time, (3,))))
                total = note("fadd", acc.value + product.value, (acc, product), ((time, (4,)), (time, (5,))))
                acc = x.tape.copy("accumulator", total, (time, (6,)))
            items.append(stored(x.tape.copy("store", acc, (time, (7,)))))
    result = Buf(items)
    a.readers.append(result)
    b.readers.append(result)
    return success(x.tape.derived(result, a, b))


# --- data that moves (G11) --------------------------------------------------------------------------------------


def moved(x: Literal, *pieces: tuple[list[Any], Buf]) -> Buf:
    """Elements of buffers, in a new one; a site for each piece."""
    time = x.tape.tick()
    made = Buf(
        [
            x.tape.copy("move", v, (time, (k,))) if isinstance(v, Val) else v
            for k, (values, _) in enumerate(pieces)
            for v in values
        ]
    )
    for _, source in pieces:
        source.readers.append(made)
    return x.tape.derived(made, *(source for _, source in pieces))


def gpu_concat(x: Literal, e: c.Expr, a: Buf, b: Buf) -> Buf:
    return moved(x, (a.items, a), (b.items, b))


def gpu_slice(x: Literal, e: c.Expr, b: Buf, begin: int, end: int) -> Any:
    return success(moved(x, (b.items[begin:end], b))) if 0 <= begin <= end <= len(b.items) else error("gpuSlice")


def gpu_accumulate(x: Literal, e: c.Expr, n: int, indices: Buf, values: Buf) -> Any:
    if n < 0 or len(indices.items) != len(values.items) or not all(0 <= i < n for i in indices.items):
        return error("gpuAccumulate")
    site = (x.tape.tick(), (0,))
    into: list[list[Val]] = [[] for _ in range(n)]
    sums = [0.0] * n
    for i, v in zip(indices.items, values.items, strict=True):
        into[i].append(v)
        sums[i] += v.value
    made = Buf([stored(x.tape.note("move", s, tuple(vs), (site,) * len(vs))) for s, vs in zip(sums, into, strict=True)])
    values.readers.append(made)
    return success(x.tape.derived(made, values))


def to_gpu(x: Literal, e: c.Expr, xs: Any) -> Buf:
    values = list(xs)
    site = (x.tape.tick(), (0,))
    return Buf([stored(x.tape.copy("move", v, site)) if isinstance(v, Val) else v for v in values])


def from_gpu(x: Literal, e: c.Expr, b: Buf) -> list[Any]:
    site = (x.tape.tick(), (0,))
    values = [x.tape.copy("move", v, site) if isinstance(v, Val) else v for v in b.items]
    b.readers += [v for v in values if isinstance(v, Val)]
    return values


def got(x: Literal, b: Buf, i: int) -> Any:
    """Element i on the host."""
    v = b.items[i]
    if not isinstance(v, Val):
        return v
    made = x.tape.copy("move", v, (x.tape.tick(), (0,)))
    b.readers.append(made)
    return made


def gpu_get(x: Literal, e: c.Expr, b: Buf, i: int) -> Any:
    if not 0 <= i < len(b.items):
        return error("gpuGet: index out of bounds")
    if x.launch is None:
        return success(got(x, b, i))
    return success(read_in_kernel(x, b, i, (*x.path, x.place(e), 0)))


def read_in_kernel(x: Literal, b: Buf, i: int, place: tuple[int, ...]) -> Any:
    v = b.items[i]
    assert x.launch is not None
    return x.tape.copy("read", v, (x.launch.time, place)) if isinstance(v, Val) else v


# --- pipelines in a kernel --------------------------------------------------------------------------------------


def pipe(x: Literal, b: Any) -> Pipe:
    if isinstance(b, Pipe):
        return b
    return Pipe(len(b.items), lambda k, path: (read_in_kernel(x, b, k, (*path, 0)), True))


def under(x: Literal, path: tuple[int, ...], f: Any, *args: Any) -> Any:
    before, x.path = x.path, path
    try:
        return x.apply(f, list(args))
    finally:
        x.path = before


def pipe_map(x: Literal, e: c.Expr, b: Any, f: Any) -> Pipe:
    below = pipe(x, b)

    def at(k: int, path: tuple[int, ...]) -> tuple[Any, bool]:
        v, kept = below.at(k, (*path, 0))
        return (under(x, (*path, 1), f, v), True) if kept else (None, False)

    return Pipe(below.count, at)


def pipe_zip(x: Literal, e: c.Expr, a: Any, b: Any, f: Any) -> Pipe:
    left, right = pipe(x, a), pipe(x, b)

    def at(k: int, path: tuple[int, ...]) -> tuple[Any, bool]:
        v, w = left.at(k, (*path, 0))[0], right.at(k, (*path, 1))[0]
        return under(x, (*path, 2), f, v, w), True

    return Pipe(min(left.count, right.count), at)


def pipe_filter(x: Literal, e: c.Expr, b: Any, f: Any) -> Pipe:
    below = pipe(x, b)

    def at(k: int, path: tuple[int, ...]) -> tuple[Any, bool]:
        v, kept = below.at(k, (*path, 0))
        return v, kept and under(x, (*path, 1), f, v)

    return Pipe(below.count, at)


def pipe_fold(x: Literal, e: c.Expr, b: Any, init: Any, f: Any) -> Any:
    """A fold in a kernel: its first accumulator is read before its steps, a step's result last in the step."""
    assert x.launch is not None
    time = x.launch.time
    base = (*x.path, x.place(e))
    over = pipe(x, b)

    def copied(v: Any, place: int) -> Any:
        return x.tape.copy("accumulator", v, (time, (*base, place))) if isinstance(v, Val) else v

    acc = copied(init, BEFORE)
    for k in range(over.count):
        v, kept = over.at(k, (*base, PARAMETER))
        acc = copied(under(x, (*base, BODY), f, acc, v) if kept else acc, RESULT)
    return acc


def gpu_length(x: Literal, e: c.Expr, b: Any) -> int:
    if isinstance(b, Pipe):
        return sum(b.at(k, (*x.path, 0))[1] for k in range(b.count))
    return len(b.items)


def gpu_iota(x: Literal, e: c.Expr, n: int) -> Any:
    n = max(n, 0)
    return Buf(list(range(n))) if x.launch is None else Pipe(n, lambda k, path: (k, True))


# --- lists and pipelines on the host ----------------------------------------------------------------------------


def host_fold(x: Literal, e: c.Expr, xs: Any, init: Any, f: Any) -> Any:
    acc = init
    for v in xs:
        acc = x.apply(f, [acc, v])
    return acc


def list_get(x: Literal, e: c.Expr, xs: list[Any], i: int) -> Any:
    return success(xs[i]) if 0 <= i < len(xs) else error("listGet")


def list_slice(x: Literal, e: c.Expr, xs: list[Any], begin: int, end: int) -> list[Any]:
    begin = min(max(begin, 0), len(xs))
    return xs[begin : min(max(end, begin), len(xs))]


def frozen(v: Any) -> Any:
    """The value, from which nothing goes back."""
    from tests.gradient.literal import Rec

    match v:
        case Val():
            return Val(v.value)
        case Buf():
            return Buf([Val(u.value) if isinstance(u, Val) else u for u in v.items])
        case Rec():
            return Rec(v.constructor, {n: frozen(u) for n, u in v.fields.items()})
        case list():
            return [frozen(u) for u in v]
        case tuple():
            return tuple(frozen(u) for u in v)
    return v


def deep(x: Literal, v: Any) -> Any:
    """With everything captured looked at."""
    from tests.gradient.literal import Rec

    v = x.resolve(v)
    if isinstance(v, Rec):
        return Rec(v.constructor, {n: deep(x, u) for n, u in v.fields.items()})
    return tuple(deep(x, u) for u in v) if isinstance(v, tuple) else v


SURFACE: dict[str, Callable[..., Any]] = {
    "toGpu": to_gpu,
    "fromGpu": from_gpu,
    "gpuLength": gpu_length,
    "gpuIota": gpu_iota,
    "gpuMap": gpu_map,
    "gpuZipWith": gpu_zip,
    "gpuFilter": gpu_filter,
    "gpuFold": gpu_fold,
    "gpuScan": gpu_scan,
    "gpuGet": gpu_get,
    "gpuMatMul": gpu_mat_mul,
    "gpuConcat": gpu_concat,
    "gpuSlice": gpu_slice,
    "gpuAccumulate": gpu_accumulate,
    "stopGradient": lambda x, e, v: frozen(deep(x, v)),
    "isNan": lambda x, e, v: v.value != v.value,
    "List": lambda x, e: [],
    "listGet": list_get,
    "listLength": lambda x, e, xs: len(xs),
    "listAppend": lambda x, e, xs, v: [*xs, v],
    "listPrepend": lambda x, e, xs, v: [v, *xs],
    "listConcat": lambda x, e, xs, ys: [*xs, *ys],
    "listReverse": lambda x, e, xs: xs[::-1],
    "listSlice": list_slice,
    "range": lambda x, e, a, b: Lazy(range(a, b)),
    "map": lambda x, e, xs, f: Lazy(xs, "map", f, x),
    "filter": lambda x, e, xs, f: Lazy(xs, "filter", f, x),
    "fold": host_fold,
    "toList": lambda x, e, xs: list(xs),
    "length": lambda x, e, xs: len(list(xs)),
}
