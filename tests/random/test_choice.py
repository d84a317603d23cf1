"""`choice` of stdlib/random.osp (R8, R9): the model in plain Python, edges, frequencies, no plan for other
sizes."""

from __future__ import annotations

import math
import random

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.graph.runtime import Runtime
from osprey_py.numerics import exact
from tests.random import model
from tests.random.support import BACKENDS, evenly, literals, printed

EDGES: list[list[float]] = [
    [],
    [3.0],
    [0.0, -0.0, 0.0, -0.0],
    [math.nan, 1.0, math.nan, 2.0],
    [math.nan, math.nan],
    [-math.inf, -math.inf, -math.inf],
    [1.0, math.inf, 2.0, math.inf, -math.inf],
    [-1e308, 1e308, 0.0],
    [1000.0, -1000.0, 999.0],
    [-5e-324, 5e-324, 0.0],
]


def drawn_scores(seed: int) -> list[float]:
    """Some scores, most of them more than once."""
    source = random.Random(seed)
    few = [source.gauss(0.0, 3.0) for _ in range(source.randrange(2, 9))]
    return [source.choice(few) for _ in range(source.randrange(1, 30))]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scores", [*EDGES, *map(drawn_scores, range(6))], ids=lambda s: f"{len(s)}")
def test_choices_are_the_models(backend: str, scores: list[float]) -> None:
    """R8, R9."""
    cases = [
        (key, temperature, top)
        for key in range(3)
        for temperature in (0.0, -1.0, math.nan, 0.01, 1.0, 2.5, math.inf)
        for top in (-1, 0, 1, 2, 3, len(scores), len(scores) + 1)
    ]
    program = f"import random::{{key, choice}}\nlet scores: GpuBuffer<float> = toGpu({literals(scores)})\n"
    for key, temperature, top in cases:
        program += f"print(choice(key({key}), scores, {temperature!r}, {top}))\n"
    found = printed(program, backend)
    for case, choice in zip(cases, found, strict=True):
        assert choice == model.choice(case[0], scores, case[1], case[2]), case


def test_the_best_of_equals_is_the_first() -> None:
    """R8, by hand."""
    assert printed("""
        import random::{key, choice}
        print(choice(key(1), toGpu([1.0, 4.0, 4.0, 2.0]), 0.0, 0))
        print(choice(key(0), toGpu([1.0, 4.0, 4.0]), 1.0, 1))
        print(choice(key(1), toGpu([nan, nan, 2.0]), 0.0, 0))
        print(choice(key(1), toGpu([]), 1.0, 3))
    """) == [1, 1, 2, 0]


def test_frequencies_follow_the_weights() -> None:
    """R9: 1,000 keys, among the four best of six at a temperature of 0.7."""
    scores = [0.3, 1.0, -1.0, 0.5, 0.5, -0.2]
    (found,) = printed(f"""
        import random::{{key, foldIn, choice}}
        let scores = toGpu({literals(scores)})
        print(range(0, 1000) |> map(fn(k) => choice(foldIn(key(4), k), scores, 0.7, 4)) |> toList)
    """)
    kept = [0, 1, 3, 4]
    assert set(found) == set(kept)
    weights = [exact.exp(scores[i] / 0.7) for i in kept]
    whole = weights[0] + weights[1] + weights[2] + weights[3]
    evenly([found.count(i) for i in kept], [1000 * w / whole for w in weights])


def test_no_plan_is_made_for_other_numbers() -> None:
    """Keys, temperatures, numbers of scores and topK are arguments of the kernels: three rounds make all plans."""
    made = []
    for rounds in (3, 12):
        runtime = Runtime(HostBackend(threads=2))
        printed(
            f"""
            import random::{{key, choice, normals}}
            range(0, {rounds}) |> forEach(fn(k) =>
                print(choice(key(k), normals(key(k), 20 + k), 0.5 + toFloat(k), 2 + k)))
            """,
            runtime=runtime,
        )
        made.append(runtime.stats.planned)
    assert made[0] == made[1] > 0


def test_the_greatest_draw_is_below_the_sum() -> None:
    """Why R9's place exists: (1 - 2^-53) times what is 1 or more is less, rounded."""
    greatest = 1.0 - 2.0**-53
    source = random.Random(1)
    sums = [1.0, math.nextafter(1.0, 2.0), math.nextafter(2.0, 1.0), 2.0, 3.0, 65.0, 50257.0]
    sums += [source.uniform(1.0, 2.0) * 2.0 ** source.randrange(60) for _ in range(1000)]
    assert all(greatest * s < s for s in sums)
