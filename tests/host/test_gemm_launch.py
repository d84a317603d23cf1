"""Contractions through the whole host backend, against the oracle, byte for byte (spec/contractions)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host.compiled import Compiled
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import KIND_OF, Kind, Report, Scalar, Step, Storage
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Kernel, Node, const, index, load
from tests.kernel.products import add, attention_scores, checked, div, f, get, kernel, matmul, mix, mod, mul, total, u

HOSTS = {threads: HostBackend(threads) for threads in (1, 2)}


def store(rng: np.random.Generator, n: int, kind: Kind = Kind.F64) -> Storage:
    x = rng.standard_normal(n)
    if kind is Kind.BF16:
        return Storage(kind, (x.astype("<f4").view("<u4") >> 16).astype("<u2"))
    return Storage(kind, x.astype(kind.dtype))


def run(
    backend: HostBackend | OracleBackend,
    k: Kernel,
    inputs: list[Storage],
    uniforms: tuple[Scalar, ...],
    n: int,
    over: int | None = None,
) -> tuple[Report, bytes, Step]:
    """over: the input that the output lies on."""
    output = backend.allocate(KIND_OF[k.type], n)
    if over is not None:
        output.data[:] = inputs[over].data
        inputs = [output if j == over else s for j, s in enumerate(inputs)]
    example = Step("map", k, tuple(inputs), uniforms, n, output, None)
    compiled = backend.compile("map", k, tuple(s.kind for s in inputs), example)
    step = Step("map", k, tuple(inputs), uniforms, n, output, compiled)
    return backend.run([step]), output.data.tobytes(), step


def recognised(step: Step) -> bool:
    compiled = step.compiled
    assert isinstance(compiled, Compiled) and compiled._contractions is not None
    return compiled._contractions.of(step) is not None


def same(
    k: Kernel, inputs: list[Storage], uniforms: tuple[Scalar, ...], n: int, over: int | None = None, caught: bool = True
) -> None:
    report, wanted, _ = run(OracleBackend(), k, inputs, uniforms, n, over)
    for host in HOSTS.values():
        found, got, step = run(host, k, inputs, uniforms, n, over)
        assert found == report
        if report.fault is None:
            assert got == wanted
        if over is None:
            assert recognised(step) == caught


@pytest.mark.parametrize("kind", [Kind.F64, Kind.F32, Kind.F16, Kind.BF16])
@pytest.mark.parametrize("m", [1, 3, 14])
def test_matmul_with_bias_activation_and_residual(kind: Kind, m: int) -> None:
    """C1, C5: the epilogue sees each sum once; weights in every storage kind."""
    rng = np.random.default_rng(m)
    inner, cols = 7, 19
    i = index()
    hidden = f("fadd", matmul().result, get(2, mod(i, u(2))))
    active = f("fmul", hidden, f("fadd", const(1.0), f("tanh", hidden)))
    k = kernel(f("fadd", load(3, FLOAT, i), active), 4)
    inputs = [store(rng, m * inner), store(rng, inner * cols, kind), store(rng, cols, kind), store(rng, m * cols)]
    for over in (None, 3):
        same(k, inputs, (m, inner, cols), m * cols, over)
    same(matmul(), inputs[:2], (m, inner, cols), m * cols)


def test_the_epilogue_may_be_of_another_type() -> None:
    """C5: a comparison of the sums stores booleans."""
    rng = np.random.default_rng(2)
    k = kernel(Node("lt", BOOL, (matmul().result, const(0.25))))
    same(k, [store(rng, 35), store(rng, 77)], (5, 7, 11), 55)


@pytest.mark.parametrize("root", [2.0, 0.0])
def test_attention_scores(root: float) -> None:
    """C1, C5: a fault in the epilogue is the step's."""
    rng = np.random.default_rng(3)
    rows, cols, size, heads = 5, 9, 4, 3
    width = heads * size
    inputs = [store(rng, rows * width), store(rng, cols * width)]
    same(attention_scores(), inputs, (rows, cols, size, width, root), heads * rows * cols)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_attention_mix(causal: bool, rows: int) -> None:
    """C1, C3: heads in the middle of a row, sums of growing length."""
    rng = np.random.default_rng(4)
    cols, size, heads = 20, 5, 2
    width = heads * size
    inputs = [store(rng, heads * rows * cols), store(rng, cols * width)]
    same(mix(causal), inputs, (rows, cols, size, width), rows * width)


@pytest.mark.parametrize("m", [1, 14])
def test_a_fold_may_begin_with_what_is_computed(m: int) -> None:
    """C1: a bias as the fold's first value; a fault in it is the launch's."""
    rng = np.random.default_rng(8)
    r, c = div(index(), u(2)), mod(index(), u(2))

    def product(first: Node) -> Node:
        return total(
            u(1),
            lambda acc, k: f("fadd", acc, f("fmul", get(0, add(mul(r, u(1)), k)), get(1, add(mul(k, u(2)), c)))),
            first,
        )

    inputs = [store(rng, m * 7), store(rng, 7 * 11, Kind.F32), store(rng, 11), store(rng, m * 11)]
    for first in (get(2, c), f("fmul", load(3, FLOAT, index()), const(2.0)), checked("fdiv", get(2, c), get(2, r))):
        same(kernel(product(first), 4), inputs, (m, 7, 11), m * 11)
        same(kernel(f("tanh", product(first)), 4), inputs, (m, 7, 11), m * 11, over=3)
    inputs[2].data[0] = 0.0
    same(kernel(product(checked("fdiv", get(2, c), get(2, r))), 4), inputs, (m, 7, 11), m * 11)


@pytest.mark.parametrize("m", [1, 14])
def test_several_products_in_one_kernel(m: int) -> None:
    """C1, C5: a complex product: the difference of two sums, each by the matrix kernels."""
    rng = np.random.default_rng(9)
    r, c = div(index(), u(2)), mod(index(), u(2))

    def product(left: int, right: int) -> Node:
        def body(acc: Node, k: Node) -> Node:
            return f("fadd", acc, f("fmul", get(left, add(mul(r, u(1)), k)), get(right, add(mul(k, u(2)), c))))

        return total(u(1), body)

    k = kernel(f("fsub", product(0, 1), f("fmul", product(2, 3), product(0, 3))), 4)
    inputs = [store(rng, m * 7), store(rng, 77), store(rng, m * 7, Kind.F32), store(rng, 77)]
    same(k, inputs, (m, 7, 11), m * 11)
    _, _, step = run(HOSTS[1], k, inputs, (m, 7, 11), m * 11)
    products = 0
    compiled = step.compiled
    while compiled is not None:
        products += bool(compiled._contractions.candidates)
        compiled = next(iter(compiled._parts.values()), None)
    assert products == 3
    # Over an input that a product reads at the index: one column of outputs for each row of it.
    square = kernel(f("fadd", f("fsub", product(0, 1), product(2, 3)), load(0, FLOAT, index())), 4)
    inputs = [store(rng, m * 7), store(rng, 49), store(rng, m * 7), store(rng, 49)]
    same(square, inputs, (m, 7, 7), m * 7)


def test_special_values() -> None:
    """C1: NaN is stored canonical, with an epilogue and without; infinities, -0.0 and subnormals go through."""
    rng = np.random.default_rng(5)
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e308, 1.0, -1.0])
    for _ in range(5):
        inputs = [Storage(Kind.F64, rng.choice(values, 35)), Storage(Kind.F64, rng.choice(values, 77))]
        same(matmul(), inputs, (5, 7, 11), 55)
        same(kernel(f("fneg", matmul().result)), inputs, (5, 7, 11), 55)


def test_what_is_refused_at_a_launch_runs_as_written() -> None:
    """C4: reads out of range, no terms, a fault inside."""
    rng = np.random.default_rng(6)
    a, b = store(rng, 35), store(rng, 77)
    same(matmul(), [store(rng, 30), b], (5, 7, 11), 55, caught=False)
    same(matmul(), [a, b], (5, 0, 11), 55, caught=False)
    same(matmul(), [a, b], (5, 7, 0), 55, caught=False)
    same(matmul(), [a, b], (5, 7, 11), 40, caught=False)


def test_one_plan_for_all_lengths() -> None:
    """C1: one compiled kernel, lengths 5 to 24."""
    rng = np.random.default_rng(7)
    host = HOSTS[2]
    k = matmul()
    compiled = host.compile("map", k, (Kind.F64, Kind.F32), Step("map", k, (), (), 0, store(rng, 1), None))
    weights = store(rng, 8 * 20, Kind.F32)
    for m in range(5, 25):
        x, out = store(rng, m * 8), host.allocate(Kind.F64, m * 20)
        assert host.run([Step("map", k, (x, weights), (m, 8, 20), m * 20, out, compiled)]).fault is None
        acc = np.zeros((m, 20))
        for j in range(8):
            acc = acc + x.data.reshape(m, 8)[:, j, None] * weights.data.reshape(8, 20)[None, j].astype(np.float64)
        assert out.data.tobytes() == acc.tobytes()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    """C1: output digits and operand dimensions in any order, with strides, offsets and repeated batches."""
    draw = data.draw
    digits = draw(st.permutations(["m", "n", "batch", "other"]))[: draw(st.integers(2, 4))]
    if "n" not in digits:
        digits[0] = "n"
    extent = {d: draw(st.integers(1, 5)) for d in ("m", "n", "batch", "other")}
    extent["n"] = draw(st.integers(4, 9))
    terms = draw(st.integers(1, 6))
    place: dict[str, Node] = {}
    unit = 1
    for d in reversed(digits):
        whole = div(index(), const(unit)) if draw(st.booleans()) or unit > 1 else index()
        place[d] = mod(whole, const(extent[d])) if d != digits[0] or draw(st.booleans()) else whole
        unit *= extent[d]

    def operand(names: list[str], slot: int) -> tuple[list[str], int, int]:
        order = draw(st.permutations(names))
        room = 1
        for name in order:
            room *= terms if name == "k" else extent[name]
        return order, draw(st.integers(0, 3)), room

    left = operand([d for d in digits if d in ("m", "batch")] + ["k"], 0)
    right = operand([d for d in digits if d in ("n", "batch")] + ["k"], 1)

    def read(slot: int, how: tuple[list[str], int, int], k: Node) -> Node:
        order, offset, _ = how
        at: Node = const(offset)
        step = 1
        for name in reversed(order):
            at = add(at, mul(k if name == "k" else place[name], const(step)))
            step *= terms if name == "k" else extent[name]
        return get(slot, at)

    swapped = draw(st.booleans())
    first, second = (right, left) if swapped else (left, right)
    body = total(const(terms), lambda acc, k: f("fadd", acc, f("fmul", read(0, first, k), read(1, second, k))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.tuples(*[st.sampled_from([Kind.F64, Kind.F32])] * 2))
    inputs = [store(rng, how[1] + how[2], kind) for how, kind in zip((first, second), kinds, strict=True)]
    k = kernel(f("fadd", body, const(1.0)) if draw(st.booleans()) else body, 2, 0)
    same(k, inputs, (), unit)


@pytest.mark.parametrize("seeded", [False, True])
def test_one_kernel_at_growing_lengths(seeded: bool) -> None:
    """C1, C2: what was proven at other lengths is checked for each, and the captured seed is each launch's own; now and
    then an input is too short, or the columns are one, and the launch is another thing."""
    i = index()
    width = 4
    k, slots = mix(False), 2
    if seeded:
        row, column = mul(div(i, u(2)), u(1)), mod(i, u(2))
        total_ = total(
            u(1),
            lambda acc, j: f("fadd", acc, f("fmul", get(0, add(row, j)), get(1, add(mul(j, u(2)), column)))),
            Node("uniform", FLOAT, (), 3),
        )
        k = Kernel((FLOAT,) * slots, (INT, INT, INT, FLOAT), total_)
    rng = np.random.default_rng(5)
    host, oracle = HOSTS[1], OracleBackend()
    example = Step("map", k, (), (), 1, store(rng, 1), None)
    compiled = host.compile("map", k, (Kind.F64,) * slots, example)
    for cols in (5, 6, 7, 8, 1, 9, 10, 30, 11):
        for short in (0, 0, 1):
            rows = 3
            n = rows * width
            inputs = (store(rng, (1 if seeded else 2) * rows * cols), store(rng, cols * width - short))
            uniforms: tuple[Scalar, ...] = (rows, cols, width, 0.25 * cols) if seeded else (rows, cols, 2, width)
            output = Storage(Kind.F64, np.zeros(n))
            step = Step("map", k, inputs, uniforms, n, output, compiled)
            assert host.run([step]).fault is None
            assert output.data.tobytes() == run(oracle, k, list(inputs), uniforms, n)[1]
            assert recognised(step) == (not short)
