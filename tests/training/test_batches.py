"""Where the windows of a batch begin: TR7 and TR9, against Philox written out here and its published vectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.training.batches import batch, even_places, random_places, random_words

MASK = 2**64 - 1


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    """One block of Philox4x64-10, as the paper has it."""
    a, b, c, d = counter
    k, l = key  # noqa: E741
    for _ in range(10):
        p, q = 0xD2E7470EE14C6C93 * a, 0xCA5A826395121157 * c
        a, b, c, d = (q >> 64) ^ b ^ k, q & MASK, (p >> 64) ^ d ^ l, p & MASK
        k, l = (k + 0x9E3779B97F4A7C15) & MASK, (l + 0xBB67AE8584CAA73B) & MASK  # noqa: E741
    return a, b, c, d


def test_philox_gives_the_published_vectors() -> None:
    """kat_vectors of the Random123 distribution."""

    def words(text: str) -> tuple[int, ...]:
        return tuple(int(w, 16) for w in text.split())

    ones = (MASK,) * 4
    assert philox((0, 0, 0, 0), (0, 0)) == words("16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b")
    assert philox(ones, ones[:2]) == words("87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0")
    digits_of_pi = words("243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89")
    key = (0x452821E638D01377, 0xBE5466CF34E90C6C)
    assert philox(digits_of_pi, key) == words("a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6")


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**63 - 1),
    part=st.integers(0, 1),
    number=st.integers(0, 2**40),
    rows=st.integers(1, 9),
    places=st.integers(1, 10**7),
)
def test_places_are_those_of_the_rule(seed: int, part: int, number: int, rows: int, places: int) -> None:
    """TR7"""
    blocks = [philox((j, number, 0, 0), (seed, part)) for j in range(3)]
    expected = [word for block in blocks for word in block][:rows]
    assert random_words(seed, part, number, rows) == expected
    found = random_places(seed, part, number, rows, places)
    assert found == [word * places // 2**64 for word in expected]
    assert all(0 <= at < places for at in found)


def test_windows_and_targets() -> None:
    """TR7"""
    inputs, targets = batch(np.arange(100, 110), [6, 0], 3)
    assert inputs.tolist() == [106, 107, 108, 100, 101, 102]
    assert targets.tolist() == [107, 108, 109, 101, 102, 103]


def test_even_windows_reach_both_ends() -> None:
    """TR9"""
    assert even_places(1, 50) == [0]
    assert even_places(5, 50) == [0, 12, 24, 36, 49]
    assert even_places(4, 1) == [0, 0, 0, 0]
