"""Which windows of the text a step learns from: a function of seed, step number and part alone (spec/training TR7, TR9).

Comes in: a seed, a step number, the tokens of a part. Goes out: inputs and targets, int64 [rows * tokens] each, row after
row. The random bits are Philox4x64-10 of J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), as
numpy gives them, raw; what is made of them is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]

TRAINING, VALIDATION = 0, 1
"""The second word of the generator's key."""


def random_words(seed: int, part: int, number: int, count: int) -> list[int]:
    """`count` words of 64 bits: the blocks of the counters (0, number, 0, 0), (1, number, 0, 0), …"""
    before = ((number << 64) - 1) % (1 << 256)  # numpy counts on before each block
    generator = np.random.Philox(key=seed + (part << 64), counter=before)
    words: list[int] = generator.random_raw(count).tolist()
    return words


def random_places(seed: int, part: int, number: int, rows: int, places: int) -> list[int]:
    """Where the rows of a batch begin: each in 0 … places - 1."""
    return [(word * places) >> 64 for word in random_words(seed, part, number, rows)]


def even_places(windows: int, places: int) -> list[int]:
    """The beginnings of windows that are spread evenly from the first place to the last."""
    return [i * (places - 1) // max(windows - 1, 1) for i in range(windows)]


def batch(data: Tokens, places: Sequence[int], tokens: int) -> tuple[Tokens, Tokens]:
    """The windows that begin at these places, and the same one token later."""
    at: Any = np.asarray(places, np.int64)[:, None] + np.arange(tokens, dtype=np.int64)
    return data[at].reshape(-1), data[at + 1].reshape(-1)
