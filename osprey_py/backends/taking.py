"""Many elements of a sequence at once, at places that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any


def taker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes the elements at these places, in their order."""
    if len(places) < 2:
        return lambda values: tuple([values[k] for k in places])
    return itemgetter(*places)
