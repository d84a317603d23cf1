"""The points of `osprey conform`'s mathematics: enough of what is difficult, no faults, the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.cli.main import main
from osprey_py.conformance.compare import difference, run_case
from osprey_py.conformance.mathematics import mathematics

CASES = {case.name.split(" on ")[0]: case for case in mathematics(3000, 7)}


def test_the_same_points_each_time_and_others_for_another_seed() -> None:
    same, other = list(mathematics(500, 7)), list(mathematics(500, 8))
    for case, again, fresh in zip(mathematics(500, 7), same, other, strict=True):
        data, repeated, changed = (b"".join(s.data.tobytes() for s in c.inputs) for c in (case, again, fresh))
        assert data == repeated and data != changed, case.name


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_agrees_and_nothing_faults(name: str) -> None:
    """N1, N2, N7, N9, N11, N13: the host, which is what devices are held to here."""
    case = next(c for c in mathematics(120, 3) if c.name.startswith(f"{name} "))
    oracle, host = OracleBackend(), HostBackend(threads=1)
    assert not run_case(host, case).fault
    assert difference(case, oracle, host) is None


def test_results_are_where_it_is_difficult() -> None:
    """Results that are subnormal, infinite, NaN, zero; remainders that are next to nothing; roots that are whole."""
    host = HostBackend(threads=1)
    found = {name: run_case(host, case).output.data for name, case in CASES.items()}
    for name in ("fmul", "fdiv", "fmod"):
        sizes = np.abs(found[name])
        assert np.count_nonzero((sizes > 0) & (sizes < 2.0**-1022)) > 5, name
        assert np.isnan(sizes).any(), name
    assert np.count_nonzero(np.isinf(found["fdiv"])) > 50 and np.count_nonzero(np.isinf(found["exp"])) > 50
    divisors = np.abs(CASES["fmod"].inputs[1].data)
    assert np.count_nonzero(np.abs(found["fmod"]) < divisors * 2.0**-40) > 50
    assert np.count_nonzero(found["fsub"] == 0.0) > 50
    roots = found["sqrt"]
    assert np.count_nonzero((roots > 2.0) & (roots < 2.0**26) & (roots == np.round(roots))) > 20
    assert len(set(found["toint"].tolist())) > 1500


def test_a_part_of_conform(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--device", "host", "--part", "mathematics", "--points", "20", "--against", "oracle", "--threads", "1"]
    assert main(["conform", *args, "--only", "fmod"]) == 0
    assert "host: 1 of 1 equal to the oracle's bytes\n" in capsys.readouterr().out
