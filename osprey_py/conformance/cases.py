"""The conformance launches: every op of the kernel IR over its edges, and every kind of launch over awkward sizes.

Goes out: `Case`s, in a fixed order, the same on every machine. A test fails when an op of `OPS` is in none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from osprey_py.backends.protocol import Kind, Scalar, StepOp, Storage
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    Bound,
    Kernel,
    KFunction,
    Node,
    Site,
    Ty,
    call,
    const,
    fold,
    index,
    inrange,
    length,
    load,
    loop,
    select,
    seq,
    uniform,
    var,
)
from osprey_py.kernel.verify import SIGNATURES
from osprey_py.source.span import NO_SPAN

SITE = Site(NO_SPAN)
MIN, MAX = -(1 << 63), (1 << 63) - 1
INF, NAN = float("inf"), float("nan")

INTS = (
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    10,
    62,
    63,
    64,
    65,
    1 << 31,
    -(1 << 31),
    (1 << 53) + 1,
    1 << 62,
    MAX - 1,
    MAX,
    MIN + 1,
    MIN,
)
_SIZES = (0.0, 0.1, 0.5, 1.0, 1.5, 2.5, 3.0, 22.7, 745.1, 2.0**52, 2.0**53 + 2, 2.0**63, 1e300, 1.7e308, 5e-324, INF)
_EDGES = (2.2250738585072014e-308, 2.0**-27, 0.9999999999999999, 1.0000000000000002, 709.782712893384, 19.0615)
FLOATS = (*(x for size in (*_SIZES, *_EDGES) for x in (size, -size)), NAN)
HARD = tuple(
    map(
        float.fromhex,
        (
            "-0x1.ed318efb627eap-27 0x1.83d4bcdebb3f4p+2 -0x1.9e9cbbfd6080bp-31 0x1.62a88613629b6p+678 "
            "0x1.c5ba1980d3174p+4 0x1.30587b18fbe5ep+2"
        ).split(),
    )
)
"""Arguments of exp, ln and tanh whose images lie closest to the middle of two doubles (spec N2)."""

EDGES: dict[Ty, tuple[Scalar, ...]] = {INT: INTS, FLOAT: FLOATS + HARD, BOOL: (False, True)}

GUARDED = frozenset("ushl ushr ushru uquot urem utoint ubits addo subo mulo fmodi rare table".split())
"""Ops that only the fault pass and the numerics make, on operands they have guarded: their checked twins, and exp, ln and
tanh, exercise them."""


@dataclass(frozen=True, slots=True)
class Case:
    """One launch. name: the op or what it is about, and a detail."""

    name: str
    op: StepOp
    kernel: Kernel | None
    inputs: tuple[Storage, ...]
    uniforms: tuple[Scalar, ...]
    n: int


def cases() -> Iterator[Case]:
    """Every case."""
    yield from operations()
    yield from storage_kinds()
    yield from structures()
    yield from launches()
    yield from reductions()


# --- ops --------------------------------------------------------------------------------------------------------


def storage(ty: Ty, values: list[Scalar] | tuple[Scalar, ...]) -> Storage:
    kind = {INT: Kind.I64, FLOAT: Kind.F64, BOOL: Kind.BOOL}[ty]
    return Storage(kind, np.array(values, dtype=kind.dtype))


def _overloads() -> Iterator[tuple[str, tuple[Ty, ...], Ty]]:
    for op, (operands, result) in SIGNATURES.items():
        if op not in GUARDED:
            yield op, operands, result
    for op in ("eq", "ne", "lt", "le"):
        for ty in (INT, FLOAT, BOOL) if op in ("eq", "ne") else (INT, FLOAT):
            yield op, (ty, ty), BOOL
    for ty in (INT, FLOAT, BOOL):
        yield "select", (BOOL, ty, ty), ty


def operations() -> Iterator[Case]:
    """Each op on all combinations of its operands' edges; of checked ops, also where they fault."""
    for op, operands, result in _overloads():
        columns: list[list[Scalar]] = [[] for _ in operands]
        for row in _product([EDGES[ty] for ty in operands]):
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        inputs = tuple(storage(ty, column) for ty, column in zip(operands, columns, strict=True))
        loads = tuple(load(k, ty, index()) for k, ty in enumerate(operands))
        n = inputs[0].length
        name = f"{op} of {', '.join(ty.value for ty in operands)}"
        checked = OPS[op].checked
        node = Node(op, result, loads, None, SITE if checked else None)
        if checked:
            default = {INT: const(77), FLOAT: const(77.0), BOOL: const(False)}[result]
            yield Case(name, "map", Kernel(operands, (), Node("recover", result, (node, default))), inputs, (), n)
            faults = Node("recover", BOOL, (seq((node,), const(False)), const(True)))
            yield Case(f"{name}, where it faults", "map", Kernel(operands, (), faults), inputs, (), n)
            yield Case(f"{name}, faulting", "map", Kernel(operands, (), node), inputs, (), n)
        else:
            yield Case(name, "map", Kernel(operands, (), node), inputs, (), n)
    yield from _transcendental()


def _product(columns: list[tuple[Scalar, ...]]) -> Iterator[tuple[Scalar, ...]]:
    if not columns:
        yield ()
        return
    for rest in _product(columns[1:]):
        for value in columns[0]:
            yield (value, *rest)


def _transcendental() -> Iterator[Case]:
    """exp, ln and tanh where models use them, and across all magnitudes."""
    rng = random.Random(20)
    near = [rng.uniform(-30.0, 30.0) for _ in range(1500)]
    wide = [rng.choice((1.0, -1.0)) * rng.uniform(1.0, 2.0) * 2.0 ** rng.randrange(-1022, 1023) for _ in range(500)]
    around_one = [1.0 + rng.uniform(-0.05, 0.05) for _ in range(500)]
    points = storage(FLOAT, [*near, *wide, *around_one])
    for op in ("exp", "ln", "tanh"):
        kernel = Kernel((FLOAT,), (), Node(op, FLOAT, (load(0, FLOAT, index()),)))
        yield Case(f"{op} at random", "map", kernel, (points,), (), points.length)


# --- storage ------------------------------------------------------------------------------------------------------


def storage_kinds() -> Iterator[Case]:
    """Every kind widens exactly: all 65,536 patterns of the 16-bit ones, and a view that is not aligned."""
    kernel = Kernel((FLOAT,), (), load(0, FLOAT, index()))
    patterns = np.arange(1 << 16, dtype=np.uint16)
    yield Case("reading f16", "map", kernel, (Storage(Kind.F16, patterns.view(Kind.F16.dtype)),), (), 1 << 16)
    yield Case("reading bf16", "map", kernel, (Storage(Kind.BF16, patterns),), (), 1 << 16)
    spread = (np.arange(1 << 15, dtype=np.uint64) * 131_071 + 7).astype(np.uint32)
    yield Case("reading f32", "map", kernel, (Storage(Kind.F32, spread.view(Kind.F32.dtype)),), (), 1 << 15)
    raw = np.zeros(8 * 100 + 3, dtype=np.uint8)
    raw[3:] = np.frombuffer(np.arange(100, dtype=np.float64).tobytes(), dtype=np.uint8)
    unaligned = np.frombuffer(raw.data, dtype=Kind.F64.dtype, offset=3)
    yield Case("reading what is not aligned", "map", kernel, (Storage(Kind.F64, unaligned),), (), 100)


# --- structures ------------------------------------------------------------------------------------------------------


def _numbers(n: int, seed: int) -> Storage:
    rng = random.Random(seed)
    return storage(FLOAT, [rng.uniform(-1.0, 1.0) * 2.0 ** rng.randrange(-8, 8) for _ in range(n)])


def _sum_of(count: Node, term: Callable[[Node], Node]) -> Node:
    """0.0 + term(0) + term(1) + …, left to right."""
    at, acc = Bound(INT, "k"), Bound(FLOAT, "sum")
    body = Node("fadd", FLOAT, (var(acc), term(var(at))))
    return fold(count, at, (acc,), (const(0.0),), (body,))[0]


def _int(op: str, a: Node, b: Node) -> Node:
    return Node(op, INT, (a, b), None, SITE if OPS[op].checked else None)


def structures() -> Iterator[Case]:
    """Folds, gathers, loops, recursion, and how faults travel through them."""
    # A product is rounded before it is added, wherever both stand.
    one, two = load(0, FLOAT, index()), load(1, FLOAT, index())
    squares = Node("fsub", FLOAT, (Node("fmul", FLOAT, (one, one)), Node("fmul", FLOAT, (two, two))))
    both = Node("fadd", FLOAT, (Node("fmul", FLOAT, (one, two)), squares))
    yield Case(
        "multiply and add", "map", Kernel((FLOAT, FLOAT), (), both), (_numbers(500, 8), _numbers(500, 9)), (), 500
    )

    # A matrix product as written with index arithmetic: [m, k] by [k, n], sizes that fill no tile.
    for m, k, n in ((1, 1, 1), (1, 37, 70), (7, 5, 9), (13, 64, 17), (6, 0, 8), (24, 33, 40)):
        cols, inner = uniform(0, INT), uniform(1, INT)
        row, col = _int("quot", index(), cols), _int("rem", index(), cols)

        def product(at: Node, row: Node = row, col: Node = col, cols: Node = cols, inner: Node = inner) -> Node:
            a = load(0, FLOAT, _int("wadd", _int("wmul", row, inner), at))
            b = load(1, FLOAT, _int("wadd", _int("wmul", at, cols), col))
            return Node("fmul", FLOAT, (a, b))

        kernel = Kernel((FLOAT, FLOAT), (INT, INT), _sum_of(inner, product))
        yield Case(f"product {m}x{k}x{n}", "map", kernel, (_numbers(m * k, 1), _numbers(k * n, 2)), (n, k), m * n)

    # Rows of different lengths, summed each in its own order.
    triangle = Kernel((FLOAT,), (), _sum_of(_int("wadd", index(), const(1)), lambda at: load(0, FLOAT, at)))
    yield Case("triangular sums", "map", triangle, (_numbers(70, 3),), (), 70)

    # An index counted from the end.
    backward = load(0, FLOAT, _int("sub", _int("sub", length(0), const(1)), index()))
    yield Case("reversed by its length", "map", Kernel((FLOAT,), (), backward), (_numbers(41, 6),), (), 41)

    # A gather that misses at both ends.
    place = _int("wsub", _int("wmul", index(), const(3)), const(10))
    gather = select(inrange(0, place), load(0, FLOAT, place), const(-1.0))
    for n in (0, 1, 5, 64):
        yield Case(f"gather beyond the ends, {n}", "map", Kernel((FLOAT,), (), gather), (_numbers(33, 4),), (), n)

    # Places that differ beyond 32 bits.
    place = _int("wadd", _int("wmul", index(), const(1 << 32)), const(2))
    gather = select(inrange(0, place), load(0, FLOAT, place), const(-1.0))
    yield Case("gather beyond 32 bits", "map", Kernel((FLOAT,), (), gather), (_numbers(33, 4),), (), 5)
    place = _int("wsub", const((1 << 33) + 7), _int("wadd", index(), const(1 << 33)))
    gather = select(inrange(0, place), load(0, FLOAT, place), const(-1.0))
    yield Case("gather from beyond 32 bits", "map", Kernel((FLOAT,), (), gather), (_numbers(33, 4),), (), 9)

    # Two accumulators that read each other: Fibonacci, until it overflows; recovered, and not.
    at, a, b = Bound(INT, "k"), Bound(INT, "a"), Bound(INT, "b")
    inits, nexts = (const(0), const(1)), (var(b), _int("add", var(a), var(b)))
    fibonacci = fold(index(), at, (a, b), inits, nexts)[0]
    recovered = Node("recover", INT, (fibonacci, const(-1)))
    yield Case("a fold that overflows, recovered", "map", Kernel((), (), recovered), (), (), 120)
    yield Case("a fold that overflows", "map", Kernel((), (), fibonacci), (), (), 120)
    yield Case("a fold that does not overflow", "map", Kernel((), (), fibonacci), (), (), 92)

    # A loop of unknown length: steps of the Collatz sequence.
    x, steps = Bound(INT, "x"), Bound(INT, "steps")
    even = Node("eq", BOOL, (_int("rem", var(x), const(2)), const(0)))
    half, up = _int("quot", var(x), const(2)), _int("add", _int("mul", var(x), const(3)), const(1))
    running = Node("lt", BOOL, (const(1), var(x)))
    following = (select(even, half, up), _int("add", var(steps), const(1)))
    collatz = loop((x, steps), (_int("add", index(), const(1)), const(0)), running, following)[1]
    yield Case("a loop", "map", Kernel((), (), collatz), (), (), 300)

    # Recursion that is no loop.
    p = Bound(INT, "n")
    deeper = call(0, (_int("sub", var(p), const(1)),), (INT,), SITE)[0]
    body = select(Node("le", BOOL, (var(p), const(0))), const(0), _int("add", var(p), deeper))
    recursive = call(0, (index(),), (INT,), SITE)[0]
    yield Case("recursion", "map", Kernel((), (), recursive, (KFunction("sum", (p,), (body,)),)), (), (), 200)

    # NaN with a payload and a sign, stored, folded and looked at: one value.
    odd = np.array([0xFFF8000000000001, 0x7FF0000000000001, 0xFFF0DEADBEEF0000], dtype=np.uint64).view(np.float64)
    loaded = load(0, FLOAT, index())
    for label, node in (
        ("stored", loaded),
        ("negated", Node("fneg", FLOAT, (loaded,))),
        ("looked at", Node("floatbits", INT, (loaded,))),
        ("summed", _sum_of(const(3), lambda at: load(0, FLOAT, at))),
    ):
        yield Case(f"NaN {label}", "map", Kernel((FLOAT,), (), node), (Storage(Kind.F64, odd),), (), 3)

    # An unused value that faults is a fault; one that is not chosen is none.
    bad = _int("quot", const(1), index())
    yield Case("a fault whose value is not used", "map", Kernel((), (), seq((bad,), const(1))), (), (), 3)
    chosen = select(Node("eq", BOOL, (index(), const(0))), const(0), bad)
    yield Case("a fault that is not chosen", "map", Kernel((), (), chosen), (), (), 9)
    always = Node("fault", INT, (), "integer overflow", SITE)
    yield Case("a fault, recovered", "map", Kernel((), (), Node("recover", INT, (always, const(5)))), (), (), 3)


# --- launches ------------------------------------------------------------------------------------------------------


def launches() -> Iterator[Case]:
    """Scan, filter and accumulate, and maps of awkward lengths."""
    acc = Bound(FLOAT, "acc")
    following = Node("fadd", FLOAT, (Node("fmul", FLOAT, (var(acc), const(0.7))), load(0, FLOAT, index())))
    scan = Kernel((FLOAT,), (FLOAT,), following, acc=acc, init=uniform(0, FLOAT))
    total = Bound(INT, "total")
    added = _int("add", var(total), load(0, INT, index()))
    checked = Kernel((INT,), (), added, acc=total, init=const(0))
    positive = Kernel((FLOAT,), (), Node("lt", BOOL, (const(0.0), load(0, FLOAT, index()))))
    double = Kernel((FLOAT,), (FLOAT,), Node("fmul", FLOAT, (load(0, FLOAT, index()), uniform(0, FLOAT))))
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 100, 1000, 4099):
        numbers = _numbers(n, n)
        yield Case(f"map of {n}", "map", double, (numbers,), (1.1,), n)
        yield Case(f"scan of {n}", "scan", scan, (numbers,), (0.3,), n)
        yield Case(f"filter of {n}", "filter", positive, (numbers,), (), n)
        places = storage(INT, [(k * k * 7 + 3) % (n // 2 + 1) for k in range(n)])
        some = storage(INT, [k % 3 - 1 for k in range(n)])
        yield Case(f"accumulate of {n}, some left out", "accumulate", None, (some, numbers), (), 2)
        yield Case(f"accumulate of {n} onto a base", "accumulate", None, (some, numbers, _numbers(3, n + 1)), (), 3)
        yield Case(f"accumulate of {n}", "accumulate", None, (places, numbers), (), n // 2 + 1)
        some = storage(INT, [-1 if k % 3 == 1 else k // 2 for k in range(n)])
        yield Case(f"accumulate of some of {n}", "accumulate", None, (some, numbers), (), n // 2 + 1)
    yield Case("a scan that overflows", "scan", checked, (storage(INT, [MAX - 3, 1, 1, 1, 1, 1]),), (), 6)


# --- folds and scans of a whole buffer -----------------------------------------------------------------------------

LONG = 5000
"""Enough terms for a device to share them out where that is exact."""


def reductions() -> Iterator[Case]:
    """What may be taken in any order (N15), what may not, and what seems to: a sum of ints whose prefix overflows."""
    small = [(k * 7919) % 1009 - 500 for k in range(LONG)]
    numbers = list(_numbers(LONG, 12).data.tolist())
    swinging = [MAX if k % 2 == 0 else -MAX for k in range(LONG)]
    bits = [(k * 2_654_435_761 & 0xFFFFFFFF) << 20 for k in range(LONG)]
    whole: tuple[tuple[str, str, Ty, Scalar, Sequence[Scalar]], ...] = (
        ("sum of ints", "add", INT, 5, small),
        ("sum of ints that comes back from the edge", "add", INT, 0, swinging),
        ("sum of ints that overflows", "add", INT, 0, [*small, MAX, 1000]),
        ("sum of ints that overflows before its end", "add", INT, 0, [*small, MAX, 1000, -MAX, -1000]),
        ("sum of ints that begins at the edge", "add", INT, MIN, [*small, -1000, MAX]),
        ("sum of ints with the least", "add", INT, 0, [*small, MIN]),
        ("sum of floats", "fadd", FLOAT, 0.5, numbers),
        ("product of floats", "fmul", FLOAT, 3.0, [1.0 + x * 2.0**-12 for x in numbers]),
        ("smallest int", "imin", INT, MAX, small),
        ("largest int", "imax", INT, MIN, small),
        ("smallest float", "fmin", FLOAT, INF, numbers),
        ("largest float", "fmax", FLOAT, -INF, numbers),
        ("smallest float, NaN among them", "fmin", FLOAT, INF, [*numbers, NAN, -INF]),
        ("largest float, NaN at first", "fmax", FLOAT, -INF, [NAN, *numbers]),
        ("smallest of zeros", "fmin", FLOAT, INF, [0.0, -0.0] * (LONG // 2)),
        ("largest of zeros", "fmax", FLOAT, -INF, [-0.0] * LONG),
        ("bits of all", "and", INT, -1, [b | 1 << 50 for b in bits]),
        ("bits of any", "or", INT, 0, bits),
        ("all", "band", BOOL, True, [True] * LONG),
        ("any", "bor", BOOL, False, [False] * (LONG - 1) + [True]),
        ("none", "bor", BOOL, False, [False] * LONG),
    )
    for name, op, ty, start, values in whole:
        inputs = (storage(ty, list(values)),)
        yield Case(f"fold: {name}", "map", _folded(op, ty, partial(load, 0, ty)), inputs, (start,), 1)
        acc = Bound(ty, "acc")
        step = Node(op, ty, (var(acc), load(0, ty, index())), None, SITE if OPS[op].checked else None)
        scan = Kernel((ty,), (ty,), step, acc=acc, init=uniform(0, ty))
        yield Case(f"scan: {name}", "scan", scan, inputs, (start,), len(values))

    # Terms that are computed: counted where they are positive, divided by what is zero once, near the end.
    numbers_in, ints = storage(FLOAT, numbers), (storage(INT, [abs(x) + 1 for x in small]),)
    once = (storage(INT, [*(abs(x) + 1 for x in small), 0, 3]),)
    acc, at = Bound(INT, "n"), Bound(INT, "k")
    more = _int("add", var(acc), const(1))
    chosen = select(Node("lt", BOOL, (const(0.0), load(0, FLOAT, var(at)))), more, var(acc))
    counted = Kernel((FLOAT,), (INT,), fold(length(0), at, (acc,), (uniform(0, INT),), (chosen,))[0])
    yield Case("fold: how many are positive", "map", counted, (numbers_in,), (0,), 1)
    quotients = _folded("add", INT, lambda at: _int("quot", const(100_000), load(0, INT, at)))
    yield Case("fold: sum of quotients", "map", quotients, ints, (0,), 1)
    yield Case("fold: sum of quotients, one of them none", "map", quotients, once, (0,), 1)
    largest = _folded("fmax", FLOAT, lambda at: Node("exp", FLOAT, (load(0, FLOAT, at),)))
    yield Case("fold: largest exp", "map", largest, (numbers_in,), (-INF,), 1)
    best = Bound(INT, "best")
    better = Node("lt", BOOL, (load(0, FLOAT, var(best)), load(0, FLOAT, var(at))))
    argmax = fold(length(0), at, (best,), (const(0),), (select(better, var(at), var(best)),))[0]
    yield Case("fold: where the largest is", "map", Kernel((FLOAT,), (), argmax), (numbers_in,), (), 1)
    positive = Kernel((FLOAT,), (), Node("lt", BOOL, (const(0.0), load(0, FLOAT, index()))))
    for n in (16_384, 16_385, 40_000):
        yield Case(f"filter of {n}", "filter", positive, (_numbers(n, n),), (), n)


def _folded(op: str, ty: Ty, term: Callable[[Node], Node]) -> Kernel:
    """gpuFold(slot 0, uniform 0, op) of terms."""
    acc, at = Bound(ty, "acc"), Bound(INT, "k")
    step = Node(op, ty, (var(acc), term(var(at))), None, SITE if OPS[op].checked else None)
    return Kernel((ty,), (ty,), fold(length(0), at, (acc,), (uniform(0, ty),), (step,))[0])
