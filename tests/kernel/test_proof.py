"""A proof that is checked for other integers says what the computation itself would say, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from osprey_py.backends.protocol import Scalar
from osprey_py.conformance.generated import INTS
from osprey_py.kernel.contraction import Candidate, candidates, match
from osprey_py.kernel.contraction_affine import Affine
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import FLOAT, Kernel
from osprey_py.kernel.nest import Coefficient, Nest
from osprey_py.kernel.proof import MOST_PROOFS, PLAIN, Proofs, Recorder
from tests.fuzz.kernels import Launch, launches
from tests.host.arrays import arrays
from tests.kernel.products import attention_scores, kernel, matmul, mix, total, u
from tests.kernel.some_terms import RANGES, guarded

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
Integers = tuple[int, ...]


# --- the recorder -----------------------------------------------------------------------------------------------


def steps(inputs: Sequence[int]) -> object:
    """Uses every operation, from both sides."""
    a, b, c = inputs
    if b <= 0 or not a:
        return "none"
    if c:
        a = a + 1
    parts = (a // b, a % b, -a, 100 // b, 100 % b, a >> 1, 1 << 10 >> 1, 64 >> b, 7 - a, 7 + a, 3 * a, a - b, a * b)
    least = min(a, b, 5)
    return (parts, Affine(a * 1 + 0, ()), least, a == b, a != b, a < 3, a < 3, a >= 10, "text", sum((a, b)))


def prove(compute: Callable[[Sequence[int]], object], inputs: Integers) -> Callable[[Integers], tuple[object] | None]:
    recorder = Recorder(inputs)
    return recorder.proof(compute(recorder.inputs)).check


@SETTINGS
@given(st.tuples(*[st.integers(-3, 12)] * 2, st.booleans()), st.tuples(*[st.integers(-3, 12)] * 2, st.booleans()))
def test_a_check_says_what_the_computation_says(first: Integers, second: Integers) -> None:
    check = prove(steps, first)
    assert check(first) == (steps(first),)
    assert check(second) in (None, (steps(second),))


def test_a_comparison_that_comes_out_otherwise_is_no_proof() -> None:
    check = prove(steps, (40, 3, True))
    assert check((41, 4, True)) == (steps((41, 4, True)),)
    assert check((1, 4, True)) is None  # a < 3
    assert check((40, 3, False)) is None
    assert check((40, 0, True)) is None  # would divide by zero
    assert check((40, -1, True)) is None  # would shift by less than nothing
    assert check((0, 3, True)) is None


def test_a_check_ends_where_the_computation_would_have_stopped() -> None:
    """One more product would have twice as many digits as all the ones before."""

    def squares(inputs: Sequence[int]) -> int | None:
        (x,) = inputs
        for _ in range(60):
            x = x * x
            if x >= 2**63:
                return None
        return x

    check = prove(squares, (1,))
    assert check((0,)) == (0,)
    assert check((2**40,)) is None
    assert Proofs(squares).of((2**40,)) is None


def test_nothing_else_can_be_done_with_a_recorded_integer() -> None:
    """So no decision is taken that is not written down."""
    x = Recorder((5,)).inputs[0]
    for use in (
        lambda: {x},
        lambda: [0, 1, 2, 3, 4, 5, 6][x],
        lambda: range(x),
        lambda: int(x),
        lambda: float(x),
        lambda: x & 1,
        lambda: x**2,
        lambda: divmod(x, 2),
        lambda: x / 2,
        lambda: x << 1,
        lambda: f"{x:d}",
    ):
        with pytest.raises(TypeError):
            use()


def test_what_is_not_needed_is_not_computed_again() -> None:
    recorder = Recorder((6, 0))
    a, b = recorder.inputs
    assert (a * 5) * 7 == 210
    unused = (a + 1) * (a + 2)
    assert unused is not None
    proof = recorder.proof(b + 1)
    assert len(proof._lines) == 3
    assert proof.check((6, 8)) == (9,)
    assert proof.check((7, 8)) is None


def test_proofs_are_found_by_need_and_kept() -> None:
    """As it is at first, then recorded; when there are many forms, as it is again."""
    runs: list[Integers] = []

    def compute(inputs: Sequence[int]) -> int:
        plain = tuple(x for x in inputs if isinstance(x, int))
        runs.append(plain)
        return next(k for k in range(100) if inputs[0] < 10 * k)

    proofs = Proofs(compute)
    for x in range(PLAIN + 1):
        assert proofs.of((x,)) == 1
    assert runs == [*((x,) for x in range(PLAIN)), ()]
    assert [proofs.of((x,)) for x in range(10)] == [1] * 10
    assert len(runs) == PLAIN + 1
    for _ in range(2):
        assert [proofs.of((10 * k,)) for k in range(50)] == [k + 1 for k in range(50)]
    assert len(runs) == PLAIN + 50 + (50 - MOST_PROOFS)


# --- facts ------------------------------------------------------------------------------------------------------


def facts_of(kernel: Kernel) -> Callable[[Sequence[int]], object]:
    """Everything that is known of a launch, as a function of n, the lengths and the integers captured."""
    nest = Nest(lower(kernel))
    ints = [k for k, t in enumerate(kernel.uniforms) if t is not FLOAT]

    def compute(integers: Sequence[int]) -> object:
        slots = len(kernel.slots)
        uniforms: list[int | float] = [0.5] * len(kernel.uniforms)
        for k, value in zip(ints, integers[1 + slots :], strict=True):
            uniforms[k] = value
        facts = nest.facts(integers[1 : 1 + slots], uniforms, integers[0])
        nodes = nest.questions.nodes
        places = [Coefficient(k, None) for k, n in enumerate(nodes) if isinstance(facts.values[n], Affine)]
        return (
            nest.key(facts),
            tuple(facts.values[n] for n in nodes),
            tuple(facts.ranges.get(n) for n in nodes),
            tuple(nest.numbers(facts, places)),
            facts.digits(None),
        )

    return compute


def integers_of(launch: Launch) -> Integers:
    captured = [u for u, t in zip(launch.uniforms, launch.kernel.uniforms, strict=True) if t is not FLOAT]
    return (launch.n, *(s.length for s in launch.inputs), *(u for u in captured if isinstance(u, int)))


@st.composite
def others(draw: Callable[..., Integers], first: Integers, sizes: int) -> Integers:
    """Integers near the first: sizes (n and the lengths) scaled and moved, captured ones exchanged now and then."""
    scale = draw(st.sampled_from([1, 1, 2, 3]))
    found = []
    for k, x in enumerate(first):
        if isinstance(x, bool):
            found.append(draw(st.sampled_from([x, x, x, not x])))
        elif k < sizes:
            found.append(max(x * scale + draw(st.sampled_from([0, 0, 0, 1, -1])), int(k == 0)))
        else:
            found.append(draw(st.sampled_from([x, x, x, x * scale, x + 1, *INTS])))
    return tuple(x if isinstance(x, bool) else min(max(x, -(2**63)), 2**63 - 1) for x in found)


@SETTINGS
@given(st.data(), st.one_of(launches(), arrays()))
def test_facts_by_a_proof_are_the_facts(data: st.DataObject, launch: Launch) -> None:
    """Random kernels: every affine sum, interval, decision and digit."""
    if launch.n <= 0 or lower(launch.kernel).general:
        return
    compute = facts_of(launch.kernel)
    first = integers_of(launch)
    check = prove(compute, first)
    assert check(first) == (compute(first),)
    for _ in range(6):
        second = data.draw(others(first, 1 + len(launch.inputs)))
        assert check(second) in (None, (compute(second),))


@pytest.mark.parametrize("rows", [2, 9, 31])
def test_one_proof_serves_every_number_of_rows(rows: int) -> None:
    """A growing prompt, a growing cache: proven once."""

    def product(m: int) -> Integers:
        return (m * 12, m * 8, 96, m, 8, 12)

    def scores(m: int) -> Integers:
        return (3 * m * m, m * 12, m * 12, m, m, 4, 12)

    for shown, launch in ((matmul(), product), (attention_scores(), scores)):
        compute = facts_of(shown)
        check = prove(compute, launch(rows))
        for m in range(3, 40):
            assert check(launch(m)) == (compute(launch(m)),)


# --- contractions -----------------------------------------------------------------------------------------------


def contraction_of(kernel: Kernel) -> Callable[[Sequence[int]], object]:
    found = candidates(lower(kernel))
    slots = len(kernel.slots)
    floats: list[Scalar] = [2.0] * sum(t is FLOAT for t in kernel.uniforms)  # after the ints, in these kernels

    def one(c: Candidate, integers: Sequence[int]) -> object:
        return match(c, integers[1 : 1 + slots], (*integers[1 + slots :], *floats), integers[0])

    return lambda integers: tuple(one(c, integers) for c in found)


KERNELS = {
    "product": matmul(),
    "scores": attention_scores(),
    "mix": mix(False),
    "causal": mix(True),
    **{name: kernel(total(u(1), guarded(RANGES[name][0]))) for name in ("a band", "backwards", "three times as steep")},
}


@st.composite
def extents(draw: Callable[..., int], name: str) -> Integers:
    """A launch of one of the kernels, sometimes with a slot too short."""
    a, b, c, d = (draw(st.integers(1, 7)) for _ in range(4))
    short = draw(st.sampled_from([0, 0, 0, 1]))
    if name == "product" or name in RANGES:
        return (a * c, a * b - short, b * c, a, b, c)
    rows, cols, size, heads = min(a, b), b, c, d
    width = heads * size
    if name == "scores":
        return (heads * rows * cols, rows * width, cols * width - short, rows, cols, size, width)
    return (rows * width, heads * rows * cols, cols * width - short, rows, cols, size, width)


@pytest.mark.parametrize("name", KERNELS)
def test_contractions_by_a_proof_are_the_contractions(name: str) -> None:
    """Extents, strides, batches and what is left to do, or that it is none."""
    compute = contraction_of(KERNELS[name])
    proven = 0

    @SETTINGS
    @given(extents(name), st.lists(extents(name), min_size=15, max_size=30))
    def check(first: Integers, more: list[Integers]) -> None:
        nonlocal proven
        proof = prove(compute, first)
        assert proof(first) == (compute(first),)
        for second in more:
            found = proof(second)
            proven += found is not None and second != first
            assert found in (None, (compute(second),))

    check()
    assert proven
