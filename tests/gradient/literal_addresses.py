"""Random places of reads: digits of the launch's index and of folds, scaled, shifted, mirrored, of any lengths.

`places()` draws a program whose kernels read one buffer at such places, in launches of one to three digits, under none,
one or two folds whose counts are fixed, captured, or grow with the element. The sums round in every order, so an
execution that is missed, met twice or added elsewhere is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.gradient.literal_compare import program

HELPERS = """
fn some(n: int, seed: int) -> GpuBuffer<float> =
    gpuIota(n) |> gpuMap(fn(i) => toFloat((i * 7919 + seed * 104729 + 13) % 1999) / 1666.0 - 0.6)
let mixing = some(97, 5)
let looked = toGpu([3, 0, 5, 0, 1, 3])
"""


class Places:
    """Draws. digits: names of ints in scope, each with its extent."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.captured: list[str] = []

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, n: int) -> str:
        """An int, written in the kernel or captured."""
        if self.pick(True, False):
            return str(n)
        name = f"n{len(self.captured)}"
        self.captured.append(f"let {name} = {n}")
        return name

    def digits(self, extents: list[int]) -> list[tuple[str, int]]:
        """The digits of i, the most significant first."""
        found = []
        below = 1
        for k in reversed(range(len(extents))):
            text = "i" if below == 1 else f"intDiv(i, {self.number(below)})"
            found.append((text if k == 0 else f"{text} % {self.number(extents[k])}", extents[k]))
            below *= extents[k]
        return found[::-1]

    def place(self, digits: list[tuple[str, int]]) -> str:
        """A sum of multiples of digits: a mixed radix as a rule, sometimes with gaps, overlaps, or backwards."""
        chosen = self.draw(st.lists(st.sampled_from(digits), max_size=len(digits), unique=True)) if digits else []
        terms, size = [], 1
        for text, extent in chosen:
            scale = max(size + self.pick(0, 0, 0, 0, 1, -1), 1)
            digit = f"({text})"
            if self.pick(*[False] * 4, True):
                digit = f"({extent - 1} - {digit})"
            terms.append(digit if scale == 1 else f"{digit} * {self.number(scale)}")
            size = scale * extent
        constant = self.pick(0, 0, 0, 1, 2, -1)
        if constant or not terms:
            terms.append(str(constant) if constant >= 0 else f"({constant})")
        text = " + ".join(terms)
        return f"(gpuGet(looked, {text}) ?: 1)" if self.pick(*[False] * 7, True) else text

    def term(self, digits: list[tuple[str, int]]) -> str:
        known = " + ".join(f"({d}) * {k * 3 + 1}" for k, (d, _) in enumerate(digits))
        other = self.pick(f"at(mixing, {known})", f"at(p, {self.place(digits)})")
        return f"at(p, {self.place(digits)}) * {other}"

    def element(self, digits: list[tuple[str, int]], folds: int) -> str:
        if not folds:
            return self.term(digits)
        k = f"k{folds}"
        extent = self.pick(1, 2, 3, 4)
        count = self.pick(self.number(extent), self.number(extent), f"{self.pick(*[d for d, _ in digits])} + 1", "0")
        inner = self.element([*digits, (k, extent)], folds - 1)
        step = self.pick("s + {}", "s + {}", "{} + s", "max(s, {})", "s * 0.9 + {}", "s - {}").format(inner)
        before = self.pick("", f"let a = {self.term(digits)}\n")
        after = " + a" if before else ""
        return f"({{ {before}gpuFold(gpuIota({count}), {self.pick('0.0', '0.7')}, fn(s, {k}) => {step}){after} }})"


@st.composite
def places(draw: Callable[..., Any]) -> str:
    w = Places(draw)
    launches = []
    for _ in range(draw(st.integers(1, 2))):
        extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        n = 1
        for e in extents:
            n *= e
        n = max(n + w.pick(0, 0, 0, 0, -1, 1), 0)
        body = w.element(w.digits(extents), w.pick(0, 0, 1, 1, 2))
        launches.append(f"total(gpuIota({n}) |> gpuMap(fn(i) => {body}))")
    lets = "\n".join(w.captured)
    return program(
        "GpuBuffer<float>", f"some({draw(st.integers(0, 14))}, 1)", f"{{ {lets}\n{' + '.join(launches)} }}", HELPERS
    )
