"""No text ends the checker with anything but a program or diagnostics (L6.16; longer by hand: tests/fuzz/programs.py)."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.programs import check, slipped


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_slips(seed: int) -> None:
    check(slipped(random.Random(seed)))
