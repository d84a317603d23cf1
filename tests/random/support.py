"""Running a few lines of the language; chi-square."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Backend
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.source.render import render

BACKENDS: dict[str, Callable[[], Backend]] = {"oracle": OracleBackend, "host": lambda: HostBackend(threads=2)}


def printed(program: str, backend: str = "host", runtime: Runtime | None = None) -> list[Any]:
    """The lines that a program prints, as Python values."""
    checked, told = check_source(program)
    assert checked is not None and not told, "\n".join(map(render, told))
    out, err = io.StringIO(), io.StringIO()
    used = runtime or Runtime(BACKENDS[backend]())
    code = run_program(checked, runtime=used, stdout=out, stderr=err, stdin=io.StringIO())
    assert (code, err.getvalue()) == (0, "")
    return [value(line) for line in out.getvalue().splitlines()]


def value(line: str) -> Any:
    return ast.literal_eval(line.replace("-inf", "-1e999").replace("inf", "1e999"))


def literal(x: float) -> str:
    """A float as the language writes it."""
    return repr(x)


def literals(xs: Iterable[float]) -> str:
    return f"[{', '.join(map(literal, xs))}]"


def evenly(counts: Sequence[int], expected: Sequence[float] | None = None) -> None:
    """The counts are what chance makes of the expected ones (equal ones by default): chi-square is neither greater nor,
    where there are more than ten counts, less than it is once in 100,000 times."""
    assert len(counts) > 1
    wanted = expected or [sum(counts) / len(counts)] * len(counts)
    square = 0.0
    for n, e in zip(counts, wanted, strict=True):
        square += (n - e) ** 2 / e
    freedom = len(counts) - 1
    greater = float(mpmath.gammainc(freedom / 2, square / 2, mpmath.inf, regularized=True))
    assert greater > 1e-5 and (freedom < 10 or greater < 1 - 1e-5), (
        f"chi-square {square:.1f} at {freedom}: {greater:.2g}"
    )
