"""stdlib/random.osp's numbers (R1 to R7): the published vectors, the model in plain Python, exactness and bounds.

The vectors are lines for philox2x64 with ten rounds from `kat_vectors` in the distribution of Random123, the authors' own
implementation of Salmon et al., SC'11: counter, key, and the two words expected.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from tests.random import model
from tests.random.support import BACKENDS, literals, printed

VECTORS = """
0000000000000000 0000000000000000 0000000000000000 ca00a0459843d731 66c24222c9a845b5
ffffffffffffffff ffffffffffffffff ffffffffffffffff 65b021d60cd8310f 4d02f3222f86df20
243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 0a5e742c2997341c b0f883d38000de5d
0000000000000001 0000000000000000 0000000000000001 d9942a5c25dce933 512c1502dbacf1a2
0000000000000000 0000000000000001 0000000000000001 9d42f8da0c592ba8 626786f6b2c510b0
0000000000000000 ffffffffffffffff 0000000000000001 2d7c99d63b91dec2 0e13046ba2a2a7e6
0000000000000000 8000000000000000 0000000000000001 0a1c7400c97c2506 845e4df70479d69f
243f6a8885a308d3 13198a2e03707344 0000000000000001 9da663796aaa8b69 a04cf817aceac82d
a4093822299f31d0 082efa98ec4e6c89 0000000000000001 0bde60d810e6cfcd ed2f63ae6019fd5a
"""

KNOWN = [[int(word, 16) for word in line.split()] for line in VECTORS.split("\n") if line]

KEYS = [0, 1, 42, -1, -(2**63), 2**63 - 1, 0x1234_5678_9ABC_DEF]
INDICES = [0, 1, 2, 3, 1000, 2**31, 2**53 + 1, 2**63 - 1, -1, -(2**63)]


def least(n: int) -> str:
    """An int as the language writes it: the least one has no literal of its own."""
    return str(n) if n > -(2**63) else "(-9223372036854775807 - 1)"


def ints(values: list[int]) -> str:
    return f"[{', '.join(map(least, values))}]"


def test_the_models_generator_gives_the_published_vectors() -> None:
    assert len(KNOWN) == 9
    for i, j, key, first, second in KNOWN:
        assert model.philox2x64(key, i, j) == (first, second)


@pytest.mark.parametrize("backend", BACKENDS)
def test_published_vectors_in_kernels_and_outside(backend: str) -> None:
    columns = [ints([model.signed(row[c]) for row in KNOWN]) for c in range(3)]
    program = f"""
        import random::{{key, block}}
        let (i, j, k) = ({columns[0]}, {columns[1]}, {columns[2]})
        let (gi, gj, gk) = (toGpu(i), toGpu(j), toGpu(k))
        fn first(n) {{ let (a, _) = block(key(gpuGet(gk, n) ?: 0), gpuGet(gi, n) ?: 0, gpuGet(gj, n) ?: 0)  a }}
        fn second(n) {{ let (_, b) = block(key(gpuGet(gk, n) ?: 0), gpuGet(gi, n) ?: 0, gpuGet(gj, n) ?: 0)  b }}
        print(fromGpu(gpuMap(gpuIota({len(KNOWN)}), first)))
        print(fromGpu(gpuMap(gpuIota({len(KNOWN)}), second)))
        print(range(0, {len(KNOWN)}) |> map(fn(n) => block(key(k[n] ?: 0), i[n] ?: 0, j[n] ?: 0)))
    """
    firsts, seconds, pairs = printed(program, backend)
    expected = [(model.signed(first), model.signed(second)) for *_, first, second in KNOWN]
    assert list(zip(firsts, seconds, strict=True)) == expected
    assert pairs == expected


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key", KEYS)
def test_numbers_are_the_models(backend: str, key: int) -> None:
    """R1 to R5, at the same indices in a kernel and outside of one."""
    calls = {
        "bitsAt(k, i)": [model.signed(model.bits(key, i)) for i in INDICES],
        "uniformAt(k, i)": [model.uniform(key, i) for i in INDICES],
        "normalAt(k, i)": [model.normal(key, i) for i in INDICES],
        "belowAt(k, i, 6)": [model.below(key, i, 6) for i in INDICES],
        "belowAt(k, i, 9223372036854775807)": [model.below(key, i, 2**63 - 1) for i in INDICES],
        "belowAt(k, i, 0 - 3)": [0 for _ in INDICES],
        "foldIn(k, i).word": [model.folded(key, i) for i in INDICES],
        "normalAt(foldIn(foldIn(k, 3), i), 1)": [
            model.normal(model.folded(model.folded(key, 3), i), 1) for i in INDICES
        ],
    }
    program = f"""
        import random::{{key, bitsAt, uniformAt, normalAt, belowAt, foldIn}}
        let k = key({least(key)})
        let indices = {ints(INDICES)}
    """
    for call in calls:
        program += f"print(fromGpu(gpuMap(toGpu(indices), fn(i) => {call})))\nprint(indices |> map(fn(i) => {call}))\n"
    lines = printed(program, backend)
    for n, (call, expected) in enumerate(calls.items()):
        assert lines[2 * n] == expected, f"{call} in a kernel"
        assert lines[2 * n + 1] == expected, f"{call} outside"


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers_hold_what_is_at_their_places(backend: str) -> None:
    """R6; a length of 0 too."""
    program = """
        import random::{key, uniforms, normals, permutation}
        print(fromGpu(uniforms(key(5), 70)))
        print(fromGpu(normals(key(5), 70)))
        print(fromGpu(permutation(key(5), 70)))
        print((gpuLength(uniforms(key(5), 0)), gpuLength(normals(key(5), 0)), gpuLength(permutation(key(5), 0))))
    """
    uniforms, normals, permutation, empty = printed(program, backend)
    assert uniforms == [model.uniform(5, i) for i in range(70)]
    assert normals == [model.normal(5, i) for i in range(70)]
    assert permutation == [model.permuted(5, i, 70) for i in range(70)]
    assert empty == (0, 0, 0)


def probabilities() -> list[float]:
    """Of every binade from 0.5 to 2^-54, and the ends of the three pieces of the approximation."""
    found = [0.5 - 2.0**-54, 2.0**-54]
    for e in range(1, 54):
        found += [2.0**-e * (1 - model.uniform(e, i) / 2) for i in range(12)]
    middle, far = Fraction(75, 1000), mpmath.exp(-25)
    for near in (float(middle), float(far)):
        found += [near * (1 + k * 2.0**-52) for k in range(-4, 5)]
    found += [0.5 - model.uniform(60, i) ** 4 / 2 for i in range(100)]
    return [p for p in found if 2.0**-54 <= p < 0.5]


def test_the_quantile_is_off_by_less_than_its_bound() -> None:
    """R5, against mpmath: this is how good the approximation is, not what its bytes are."""
    ps = probabilities()
    program = f"import random::{{upperQuantile}}\nprint(fromGpu(gpuMap(toGpu({literals(ps)}), upperQuantile)))"
    (found,) = printed(program)
    assert found == [model.upper_quantile(p) for p in ps]
    worst = 0.0
    with mpmath.workprec(160):
        for p, x in zip(ps, found, strict=True):
            true = mpmath.findroot(lambda z, p=p: mpmath.erfc(z / mpmath.sqrt(2)) / 2 - mpmath.mpf(p), x)
            worst = max(worst, abs(float((x - true) / true)))
    assert 2.0**-53 < worst < 2.0**-50


def test_the_largest_normal() -> None:
    """R5: the least probability that `normalAt` uses is 2^-54."""
    (found,) = printed(
        "import random::{upperQuantile}\nprint([upperQuantile(5.551115123125783e-17), upperQuantile(0.5)])"
    )
    assert 8.29 < found[0] < 8.3 and found[1] == 0.0


SIZES = [*range(1, 70), 255, 256, 257, 1000, 4095, 4096, 4097, 70_000]


def test_permutations_are_permutations() -> None:
    """R7: every place once. The numbers themselves, of some places, are the model's."""
    orders = printed(f"""
        import random::{{key, permutation}}
        {SIZES} |> forEach(fn(n) => print(fromGpu(permutation(key(9), n))))
    """)
    for n, order in zip(SIZES, orders, strict=True):
        assert sorted(order) == list(range(n))
        assert all(order[i] == model.permuted(9, i, n) for i in range(0, n, n // 20 + 1))


def test_places_outside_of_a_permutation_stay() -> None:
    """R7; a walk from there might never end."""
    calls = (
        "permutedAt(key(9), 0 - 1, 5), permutedAt(key(9), 5, 5), permutedAt(key(9), 0, 0), permutedAt(key(9), 64, 9)"
    )
    assert printed(f"import random::{{key, permutedAt}}\nprint([{calls}])") == [[-1, 5, 0, 64]]


def test_permutations_of_more_than_any_buffer() -> None:
    """R7 at the end of its range: halves of 27 bits."""
    n = 2**53
    (found,) = printed(
        f"import random::{{key, permutedAt}}\nprint(range(0, 20) |> map(fn(i) => permutedAt(key(1), i, {n})))"
    )
    assert found == [model.permuted(1, i, n) for i in range(20)]
