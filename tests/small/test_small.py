"""The programs of examples/small/ that need no gradient, on both backends: what they print and write is computed here once
more, in plain Python."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from osprey_py.numerics import exact
from tests.random import model
from tests.random.support import BACKENDS
from tests.small.support import FOLDER, shown

both = pytest.mark.parametrize("backend", BACKENDS)


@both
def test_prefix(backend: str) -> None:
    days = [310, 120, 560, 90, 0, 0, 450, 780, 20, 0, 330, 640]
    sums = list(accumulate(days))
    kept = [x for x in days if x]
    streaks = list(accumulate(days, lambda streak, x: streak + 1 if x else 0, initial=0))[1:]
    assert shown("prefix", backend) == [
        f"takings   {days}",
        f"so far    {sums}",
        f"days 3-6  {sum(days[3:7])}",
        f"weekly    {[sum(days[i : i + 7]) for i in range(6)]}",
        f"best      {list(accumulate(days, max))}",
        f"1500 were together after day {next(i for i, s in enumerate(sums) if s >= 1500)}",
        f"places    {list(accumulate(int(x > 0) for x in days))}",
        f"by hand   {kept}",
        f"filtered  {kept}",
        f"open      {[(i, x) for i, x in enumerate(days) if x]}",
        f"streaks   {streaks}, the longest {max(streaks)}",
    ]


def escapes(width: int, height: int) -> list[int]:
    found = []
    for i in range(width * height):
        cx, cy = i % width / width * 3.0 - 2.25, i // width / height * 2.0 - 1.0
        x = y = 0.0
        n = 0
        while n < 200 and not x * x + y * y > 4.0:
            x, y, n = x * x - y * y + cx, 2.0 * x * y + cy, n + 1
        found.append(n)
    return found


@both
@pytest.mark.parametrize("arguments", [(), ("60", "other.ppm"), ("60", "missing/other.ppm")])
def test_mandelbrot(backend: str, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    width, name = (int(arguments[0]), arguments[1]) if arguments else (144, "mandelbrot.ppm")
    height = 2 * width // 3
    lines = shown("mandelbrot", backend, *arguments)
    steps = escapes(width, height)
    look = [
        "".join("#" if n == 200 else "." if n > 12 else " " for n in steps[8 * row * width : (8 * row + 1) * width : 4])
        for row in range(height // 8)
    ]
    inside = steps.count(200)
    area = 6.0 * inside / (width * height)
    assert lines[:-1] == [*look, f"{inside} of {width * height} points are in the set, so its area is about {area}"]
    if "/" in name:
        assert lines[-1] == f"writeBytes: {name}: no such file or directory"
        assert not list(tmp_path.iterdir())
        return
    assert lines[-1] == f"wrote {name}"
    pixels = bytearray()
    for n in steps:
        t = math.sqrt(n / 200)
        u = 1.0 - t
        for hill in (9.0 * u * t * t * t, 15.0 * u * u * t * t, 8.5 * u * u * u * t):
            pixels.append(int(255.0 * min(hill, 1.0)))
    assert Path(name).read_bytes() == b"P6\n%d %d\n255\n" % (width, height) + bytes(pixels)


def drawn_points(seed: int) -> list[tuple[float, float]]:
    x, y = model.folded(seed, 0), model.folded(seed, 1)
    places = [(2.0, 2.0), (5.5, 7.0), (8.0, 3.0)]
    return [
        (places[i % 3][0] + 0.9 * model.normal(x, i), places[i % 3][1] + 0.9 * model.normal(y, i)) for i in range(150)
    ]


def mean(values: list[float], old: float) -> float:
    total = 0.0
    for x in values:
        total += x
    return total / len(values) if values else old


@both
@pytest.mark.parametrize("arguments", [(), ("2",), ("17",)])
def test_kmeans(backend: str, arguments: tuple[str, ...]) -> None:
    seed = int(arguments[0]) if arguments else 1
    points = drawn_points(seed)
    centres = [points[model.permuted(model.folded(seed, 2), c, 150)] for c in range(3)]
    groups, expected = [-1] * 150, []
    for turn in range(1, 100):
        nearest = []
        for x, y in points:
            distances = [(x - a) * (x - a) + (y - b) * (y - b) for a, b in centres]
            nearest.append(distances.index(min(distances)))
        changed = sum(a != b for a, b in zip(groups, nearest, strict=True))
        expected.append(f"round {turn}: {changed} points change their group")
        if not changed:
            break
        groups = nearest
        members = [[p for p, g in zip(points, groups, strict=True) if g == c] for c in range(3)]
        centres = [
            (mean([x for x, _ in m], a), mean([y for _, y in m], b)) for m, (a, b) in zip(members, centres, strict=True)
        ]
    plane = [[" "] * 40 for _ in range(10)]
    for (x, y), g in zip(points, groups, strict=True):
        plane[9 - max(0, min(9, math.floor(y)))][max(0, min(39, math.floor(4.0 * x)))] = str(g + 1)
    for x, y in centres:
        plane[9 - max(0, min(9, math.floor(y)))][max(0, min(39, math.floor(4.0 * x)))] = "+"
    expected += ["".join(row) for row in plane]
    for c, (x, y) in enumerate(centres):
        expected.append(f"group {c + 1}: {groups.count(c)} points around ({x:.2f}, {y:.2f})")
    assert shown("kmeans", backend, *arguments) == expected


def bigram(text: str) -> str:
    letters = sorted(set(text))
    number = {letter: n for n, letter in enumerate(letters)}
    size = len(letters)
    counts = [[0.0] * size for _ in letters]
    for a, b in pairwise(text):
        counts[number[a]][number[b]] += 1.0
    scores = []
    for row in counts:
        whole = 0.0
        for n in row:
            whole += n + 0.01
        scores.append([exact.ln((n + 0.01) / whole) for n in row])
    loss = 0.0
    for a, b in pairwise(text):
        loss -= scores[number[a]][number[b]]

    def after(letter: str) -> str:
        row = counts[number.get(letter, 0)]
        names = [letters[b] for b in sorted(range(size), key=lambda b: -row[b])[:3]]
        return "[" + ", ".join(f'"{n}"'.replace("\n", "\\n") for n in names) + "]"

    written = [number.get("S", 0)]
    for more in range(120, 0, -1):
        written.append(model.choice(model.folded(1, more), scores[written[-1]], 1.0, 0))
    return "\n".join(
        [
            f"{len(text)} letters, {size} different ones",
            f"loss {loss / (len(text) - 1)}; of one that knows nothing, {exact.ln(float(size))}",
            f"most often after t: {after('t')}, after s: {after('s')}, after y: {after('y')}",
            "".join(letters[n] for n in written),
        ]
    )


@both
def test_bigram(backend: str, tmp_path: Path) -> None:
    source = (FOLDER / "bigram.osp").read_text(encoding="utf-8")
    sonnet = "".join(line[5:-2] + "\n" for line in source.splitlines() if line.startswith('    "') and len(line) > 7)
    assert (
        sonnet.startswith("Shall I compare") and sonnet.endswith("gives life to thee.\n") and sonnet.count("\n") == 14
    )
    assert "\n".join(shown("bigram", backend)) == bigram(sonnet).removesuffix("\n")
    text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\n" * 3
    file = tmp_path / "text.txt"
    file.write_text(text, encoding="utf-8")
    assert "\n".join(shown("bigram", backend, str(file))) == bigram(text).removesuffix("\n")
