"""`osprey conform` finds each way in which a device of `wrong.py` is wrong, and names what is wrong."""

from __future__ import annotations

import pytest

from osprey_py.backends import discovery
from osprey_py.cli import conform
from tests.devices.wrong import WRONG, right


def run(make: object, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(discovery, "factory", lambda name: make)
    return conform.main(["--device", "wrong", "--against", "host", "--threads", "1", *args])


@pytest.mark.parametrize("way", WRONG)
def test_it_is_found_and_named(way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """D7."""
    wrong = WRONG[way]
    assert run(wrong.make, wrong.args, monkeypatch) == 1
    told = capsys.readouterr().err
    assert f"differs: {wrong.named}" in told, told


@pytest.mark.parametrize("args", sorted({wrong.args for wrong in WRONG.values()}))
def test_what_is_right_passes(
    args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the same tiles, the same shares and the same cases."""
    assert run(right, args, monkeypatch) == 0, capsys.readouterr().err
