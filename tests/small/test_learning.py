"""The programs of examples/small/ that learn: what can be known of their results without them, and the same bytes on both
backends."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.random import model
from tests.small.support import shown

LINE = re.compile(r"(-?\d\.\d{9}) x \+ (-?\d\.\d{9})$")


def test_regression() -> None:
    """The points are the model's; the line is that of least squares, found by fractions, to the nine digits shown."""
    lines = shown("regression", "host")
    assert lines == shown("regression", "oracle")
    places, noise = model.folded(1, 0), model.folded(1, 1)
    x = [4.0 * model.uniform(places, i) - 2.0 for i in range(40)]
    y = [1.5 * a - 0.7 + 0.3 * model.normal(noise, i) for i, a in enumerate(x)]
    xs, ys = list(map(Fraction, x)), list(map(Fraction, y))
    mean = (sum(xs) / 40, sum(ys) / 40)
    slope = (sum(a * b for a, b in zip(xs, ys, strict=True)) / 40 - mean[0] * mean[1]) / (
        sum(a * a for a in xs) / 40 - mean[0] ** 2
    )
    best = (round(float(slope), 9), round(float(mean[1] - slope * mean[0]), 9))
    squares = 0.0
    for b in y:
        squares += (0.0 * 0.0 + 0.0 - b) * (0.0 * 0.0 + 0.0 - b)
    assert lines[0] == f"step 0: loss {squares / 40:.6f} at 0.000000000 x + 0.000000000"
    assert [line.split(":")[0] for line in lines[:-2]] == [f"step {k}" for k in range(0, 101, 20)]
    for line in lines[-2:]:
        found = LINE.search(line)
        assert found is not None and (float(found[1]), float(found[2])) == best


def test_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 steps tell nearly all points apart; the sketch is one middle in one ring, and the picture agrees with it."""
    monkeypatch.chdir(tmp_path)
    lines = shown("ring", "host")
    said = [re.fullmatch(r"step (\d+): loss (\d\.\d{4}), (\d+) of 160 right", line) for line in lines[:5]]
    steps, losses, right = zip(*[s.groups() for s in said if s is not None], strict=True)
    assert list(steps) == ["0", "50", "100", "150", "200"]
    assert sorted(map(float, losses), reverse=True) == list(map(float, losses))
    assert float(losses[0]) > 0.5 and float(losses[-1]) < 0.05 and int(right[-1]) >= 155
    sketch, last = lines[5:-1], lines[-1]
    assert last == "wrote ring.ppm" and len(sketch) == 20
    assert {line[k : k + 2] for line in sketch for k in range(0, 40, 2)} == {"##", " ."}
    assert sketch[10][20:22] == " ." and all("." not in sketch[k] for k in (0, 1, 18, 19))
    picture = Path("ring.ppm").read_bytes()
    assert picture.startswith(b"P6\n120 120\n255\n") and len(picture) == 15 + 3 * 120 * 120
    red, _, blue = picture[15 + 3 * (60 * 120 + 2) :][:3]
    assert blue > red, "the edge of the plane is ring"


def test_ring_is_the_same_on_both_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = []
    for backend in ("host", "oracle"):
        made.append((shown("ring", backend, "2", "12"), Path("ring.ppm").read_bytes()))
    assert made[0] == made[1]
    assert made[0][0][-1] == "wrote ring.ppm" and not math.isnan(float(made[0][0][0].split()[3].rstrip(",")))
