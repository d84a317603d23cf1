"""Random differentiable programs: the gradient by the book, on the oracle and on the host, by bytes (G1-G13)."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from osprey_py.kernel.fault import MathFault
from osprey_py.source.diagnostic import OspreyError
from tests.gradient.literal_addresses import places
from tests.gradient.literal_compare import judged
from tests.gradient.literal_programs import programs

TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def check(text: str) -> None:
    try:
        judged(text)
    except MathFault:
        assume(False)
    except OspreyError as refused:  # a count that is not understood is refused by name (G10)
        assert [d.code for d in refused.diagnostics] == ["E0356"]
        assume(False)


@settings(TIME, max_examples=25)
@given(programs())
def test_a_random_program(text: str) -> None:
    """G1, G2, G3, G4, G6, G11, G13"""
    check(text)


@settings(TIME, max_examples=20)
@given(programs(edges=True))
def test_a_random_program_of_zeros_infinities_and_huge_numbers(text: str) -> None:
    """G4, G5, G12"""
    check(text)


@settings(TIME, max_examples=25)
@given(places())
def test_random_places(text: str) -> None:
    """G3: an element's executions in order, whatever the addresses."""
    check(text)
