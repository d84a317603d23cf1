"""stdlib/optim.osp (O1 to O9) against the same order of operations in plain Python, byte for byte."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import pairwise

import mpmath
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.graph.runtime import Runtime
from tests.optim import model
from tests.random.model import normal
from tests.random.support import BACKENDS, literals, printed

SIZES = (5, 1, 0, 33)
STEPS = 12

PARAMETERS = [[normal(k, i) for i in range(size)] for k, size in enumerate(SIZES)]


def gradient(parameters: model.Buffers) -> model.Buffers:
    """Of a curved function, so that a wrong bit stays wrong."""
    return [[2.5 * x * x * x - 0.75 * x for x in b] for b in parameters]


DESCENT = """
    fn slope(parameters) = mapBuffers(parameters, fn(b) => gpuMap(b, fn(x) => 2.5 * x * x * x - 0.75 * x))
    fn descend(step, parameters, state) = if step == STEPS { (parameters, state) } else {
        let (next, after) = move(step, state, parameters, slope(parameters))
        print(next |> map(fromGpu))
        descend(step + 1, next, after)
    }
    let parameters: List<GpuBuffer<float>> = [PARAMETERS]
"""


def descent(imports: str, move: str, start: str, rest: str = "") -> str:
    """A program that makes STEPS steps and prints the parameters after each."""
    body = DESCENT.replace("STEPS", str(STEPS)).replace(
        "PARAMETERS", ", ".join(f"toGpu({literals(b)})" for b in PARAMETERS)
    )
    call = f"fn move(step, state, parameters, gradients) = {move}"
    return f"import optim::{{{imports}}}\n{call}\n{body}\nlet (_, state) = descend(0, parameters, {start})\n{rest}"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("decay", "epsilon"), [(0.01, 1e-8), (0.0, 1e-3), (0.3, 0.5)])
def test_adam_w(backend: str, decay: float, epsilon: float) -> None:
    """O3, with a rate that changes; the state too."""
    found = printed(
        descent(
            "adamW, adamWStart, adamWStep, cosineRate",
            f"adamWStep(adamW {{ decay: {decay}, epsilon: {epsilon} }}, (cosineRate(0.05, 0.001, 10))(step), state, "
            "parameters, gradients)",
            "adamWStart(parameters)",
            "print((state.steps, state.first |> map(fromGpu), state.second |> map(fromGpu)))",
        ),
        backend,
    )
    optimiser = model.AdamW(PARAMETERS, 0.9, 0.999, epsilon, decay)
    p = PARAMETERS
    for step in range(STEPS):
        p = optimiser.step(model.cosine(0.05, 0.001, 10)(step), p, gradient(p))
        assert found[step] == p
    assert found[STEPS] == (STEPS, optimiser.first, optimiser.second)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_descent_with_momentum(backend: str, momentum: float) -> None:
    """O2."""
    found = printed(
        descent(
            "Sgd, sgdStart, sgdStep",
            f"sgdStep(Sgd {{ momentum: {momentum} }}, 0.05, state, parameters, gradients)",
            "sgdStart(parameters)",
            "print(state.velocity |> map(fromGpu))",
        ),
        backend,
    )
    velocities, p = model.zeros_like(PARAMETERS), PARAMETERS
    for step in range(STEPS):
        p = model.sgd(momentum, 0.05, velocities, p, gradient(p))
        assert found[step] == p
    assert found[STEPS] == velocities


@pytest.mark.parametrize("t", [1, 2, 3, 7, 1000, 123_457])
def test_bias_is_corrected_by_powers(t: int) -> None:
    """O3, O4: a state that was saved after t - 1 steps."""
    (found,) = printed(f"""
        import optim::{{adamW, AdamWState, adamWStep}}
        let state = AdamWState {{ steps: {t - 1}, first: [toGpu([0.25])], second: [toGpu([0.125])] }}
        let (next, _) = adamWStep(adamW, 0.1, state, [toGpu([3.0])], [toGpu([-0.5])])
        print(next |> map(fromGpu))
    """)
    optimiser = model.AdamW([[3.0]], 0.9, 0.999, 1e-8, 0.01)
    optimiser.steps, optimiser.first, optimiser.second = t - 1, [[0.25]], [[0.125]]
    assert found == optimiser.step(0.1, [[3.0]], [[-0.5]])
    assert math.isclose(model.power(0.999, t), 0.999**t, rel_tol=1e-10)


def test_no_gradient_and_no_epsilon_is_nan_and_no_fault() -> None:
    """O3."""
    assert printed("""
        import optim::{adamW, adamWStart, adamWStep}
        let p = [toGpu([1.0])]
        let (next, _) = adamWStep(adamW { epsilon: 0.0 }, 0.1, adamWStart(p), p, [toGpu([0.0])])
        print(next |> map(fn(b) => isNan(gpuGet(b, 0) ?: 0.0)) |> fold(true, fn(a, b) => a && b) ? 1 : 0)
    """) == [1]


def test_a_model_is_moved_as_it_is() -> None:
    """O1: a record of buffers and floats, with the gradient that the language derives; by hand the first step of AdamW is
    rate times the slope's sign, that of descent rate times the slope."""
    lines = printed("""
        import optim::{adamW, adamWStart, adamWStep, Sgd, sgdStart, sgdStep}
        type Model = { weights: GpuBuffer<float>, parts: List<Model2>, bias: float }
        type Model2 = { weights: GpuBuffer<float> }
        let m = Model { weights: toGpu([1.0, -2.0]), parts: [Model2 { weights: toGpu([4.0]) }], bias: 3.0 }
        fn sum(b) = gpuFold(b, 0.0, fn(s, x) => s + x * x)
        fn loss(m) = sum(m.weights) + fold(m.parts, 0.0, fn(s, p) => s + sum(p.weights)) + m.bias * m.bias
        let (value, slope) = valueAndGradient(loss, m)
        print(value)
        let (a, s) = adamWStep(adamW { decay: 0.0, epsilon: 0.0 }, 0.25, adamWStart(m), m, slope)
        print(buffersOf(a) |> map(fromGpu))
        print((a.bias, s.first.bias > 0.0 ? 1 : 0, length(s.second.parts)))
        let (d, _) = sgdStep(Sgd { momentum: 0.9 }, 0.25, sgdStart(m), m, slope)
        print(buffersOf(d) |> map(fromGpu))
    """)
    assert lines == [30.0, [[0.75, -1.75], [3.75], [2.75]], (2.75, 1, 1), [[0.5, -1.0], [2.0], [1.5]]]


def test_no_plan_is_made_for_other_numbers() -> None:
    """O1: steps with clipping and a schedule are recorded once in each phase of it; then each is one replay, and no
    plan is made, whatever step and rate are."""
    seen = []
    for steps in (25, 60):
        runtime = Runtime(HostBackend(threads=2))
        program = descent(
            "adamW, adamWStart, adamWStep, clipByGlobalNorm, warmUp, cosineRate",
            "adamWStep(adamW, (warmUp(10, cosineRate(0.1, 0.0, 80)))(step), state, parameters, "
            "clipByGlobalNorm(gradients, 0.5 + toFloat(step)))",
            "adamWStart(parameters)",
        )
        printed(program.replace(f"step == {STEPS}", f"step == {steps}"), runtime=runtime)
        seen.append(runtime.stats)
    assert seen[0].planned == seen[1].planned > 0
    assert seen[1].replays - seen[0].replays == 60 - 25


GRADIENTS = [
    [[3.0, 0.0], [4.0]],
    [[]],
    [],
    [[0.0, -0.0], []],
    [[normal(1, i) for i in range(1023)], [normal(2, i) for i in range(1024)], [normal(3, i) for i in range(1025)]],
    [[normal(4, i) for i in range(2500)], [1e-200, 1e200]],
    [[math.inf, 1.0]],
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("gradients", GRADIENTS, ids=lambda g: str([len(b) for b in g]))
def test_clipping(backend: str, gradients: model.Buffers) -> None:
    """O5, O6: below, at and above the limit."""
    norm = math.sqrt(model.squares(gradients))
    limits = [1.0, 5.0, norm, math.nextafter(norm, 0.0) if norm > 0.0 else 0.0, 0.0, math.inf]
    program = f"""
        import optim::{{clipByGlobalNorm, globalNorm}}
        let gradients: List<GpuBuffer<float>> = [{", ".join(f"toGpu({literals(b)})" for b in gradients)}]
        print(globalNorm(gradients))
    """
    for limit in limits:
        program += (
            f"print(clipByGlobalNorm(gradients, {limit!r}) |> map(fn(b) => fromGpu(b) |> map(floatBits) |> toList))\n"
        )
    lines = printed(program, backend)
    assert lines[0] == norm
    for limit, found in zip(limits, lines[1:], strict=True):
        assert found == [[bits(x) for x in b] for b in model.clipped(gradients, limit)], limit


def bits(x: float) -> int:
    """A float's bits as the language's int; NaN is one."""
    if math.isnan(x):
        return 0x7FF8000000000000
    return int.from_bytes(struct.pack("<d", x), "little", signed=True)


SCHEDULES: dict[str, Callable[[int], float]] = {
    "constantRate(0.3)": lambda step: 0.3,
    "linearRate(0.003, 0.0001, 7)": model.linear(0.003, 0.0001, 7),
    "cosineRate(0.003, 0.0001, 37)": model.cosine(0.003, 0.0001, 37),
    "cosineRate(0.1, 0.7, 0)": model.cosine(0.1, 0.7, 0),
    "warmUp(5, cosineRate(0.003, 0.0, 30))": model.warm_up(5, model.cosine(0.003, 0.0, 30)),
    "warmUp(0, linearRate(1.0, 0.0, 3))": model.warm_up(0, model.linear(1.0, 0.0, 3)),
    "warmUp(3, warmUp(4, constantRate(0.7)))": model.warm_up(3, model.warm_up(4, lambda step: 0.7)),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule: str) -> None:
    """O7, O8, O9, before the first step and after the last too."""
    (found,) = printed(f"""
        import optim::{{constantRate, linearRate, cosineRate, warmUp}}
        print(range(0 - 2, 45) |> map({schedule}))
    """)
    assert found == [SCHEDULES[schedule](step) for step in range(-2, 45)]


def test_schedules_begin_and_end_where_they_say() -> None:
    """O7: to the last bit; halfway the cosine is halfway."""
    (found,) = printed("""
        import optim::{linearRate, cosineRate}
        let (l, c) = (linearRate(0.1, 0.7, 10), cosineRate(0.1, 0.7, 10))
        print([l(0), c(0), l(10), c(10), l(999), c(999), (cosineRate(1.0, 0.0, 10))(5)])
    """)
    assert found == [0.1, 0.1, 0.7, 0.7, 0.7, 0.7, 0.5]


def test_the_cosine_is_off_by_less_than_its_bound() -> None:
    """O8, against mpmath."""
    (found,) = printed("import optim::{cosineRate}\nprint(range(0, 2001) |> map(cosineRate(1.0, 0.0, 2000)))")
    with mpmath.workprec(120):
        worst = max(abs((1 + mpmath.cos(mpmath.pi * k / 2000)) / 2 - x) for k, x in enumerate(found))
        assert worst < 2.0**-52
    assert all(a > b for a, b in pairwise(found))
