"""Kernels that are matrix products, as extraction writes them: checked index arithmetic and guarded reads."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.kernel.ir import (
    FLOAT,
    INT,
    Bound,
    Kernel,
    Node,
    Site,
    const,
    fold,
    index,
    inrange,
    load,
    select,
    uniform,
    var,
)
from osprey_py.source.span import Span

SITE = Site(Span("test.osp", 0, 1))


def checked(op: str, *args: Node) -> Node:
    return Node(op, INT if op in ("add", "sub", "mul", "quot", "rem") else FLOAT, args, None, SITE)


def add(a: Node, b: Node) -> Node:
    return checked("add", a, b)


def mul(a: Node, b: Node) -> Node:
    return checked("mul", a, b)


def div(a: Node, b: Node) -> Node:
    return checked("quot", a, b)


def mod(a: Node, b: Node) -> Node:
    return checked("rem", a, b)


def f(op: str, *args: Node) -> Node:
    return Node(op, FLOAT, args)


def get(slot: int, at: Node) -> Node:
    """gpuGet(b, i) ?: 0.0"""
    return select(inrange(slot, at), load(slot, FLOAT, at), const(0.0))


def u(k: int) -> Node:
    return uniform(k, INT)


def total(n: Node, body: Callable[[Node, Node], Node], seed: Node | None = None) -> Node:
    """gpuFold(gpuIota(n), seed, fn(acc, k) => body)"""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    return fold(n, k, (acc,), (const(0.0) if seed is None else seed,), (body(var(acc), var(k)),))[0]


def kernel(result: Node, slots: int = 2, uniforms: int = 3) -> Kernel:
    return Kernel((FLOAT,) * slots, (INT,) * uniforms, result)


def matmul() -> Kernel:
    """gpuMatMul(a, b, m, k, n) with uniforms (m, k, n)."""
    i = index()
    r, c = div(i, u(2)), mod(i, u(2))
    return kernel(
        total(
            u(1), lambda acc, k: f("fadd", acc, f("fmul", get(0, add(mul(r, u(1)), k)), get(1, add(mul(k, u(2)), c))))
        )
    )


def attention_scores() -> Kernel:
    """Scores [heads, rows, total] of queries [rows, width] and keys [total, width]; uniforms (rows, total, size,
    width)."""
    i = index()
    rows, cols, size, width = u(0), u(1), u(2), u(3)
    query = add(mul(mod(div(i, cols), rows), width), mul(div(i, mul(cols, rows)), size))
    key = add(mul(mod(i, cols), width), mul(div(i, mul(cols, rows)), size))
    dot = total(size, lambda acc, d: f("fadd", acc, f("fmul", get(0, add(query, d)), get(1, add(key, d)))))
    return Kernel((FLOAT, FLOAT), (INT, INT, INT, INT, FLOAT), checked("fdiv", dot, uniform(4, FLOAT)))


def mix(causal: bool) -> Kernel:
    """Weights [heads, rows, total] times values [total, width]; uniforms (rows, total, size, width)."""
    i = index()
    rows, cols, size, width = u(0), u(1), u(2), u(3)
    r, c = div(i, width), mod(i, width)
    row = mul(add(mul(div(c, size), rows), r), cols)
    count = add(add(checked("sub", cols, rows), r), const(1)) if causal else cols
    return kernel(
        total(count, lambda acc, j: f("fadd", acc, f("fmul", get(0, add(row, j)), get(1, add(mul(j, width), c))))), 2, 4
    )
