"""How much a step computes and moves: counted by hand from programs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.graph.trace import Record
from osprey_py.graph.work import operations_of

HEAD = """
fn at(xs: GpuBuffer<float>, i: int) -> float = gpuGet(xs, i) ?: 0.0
let x = toGpu(toList(map(range(0, 48), fn(i) => toFloat(i) + 1.0)))
let places = toGpu([47, 0, 5])
"""


def records(tmp_path: Path, body: str, *, fusion: bool = True) -> list[Record]:
    """What was launched by a program whose last value is the buffer `y`."""
    path = tmp_path / "program.osp"
    path.write_text(f"{HEAD}{body}\nprint(gpuGet(y, 0) ?: 0.0)\n", "utf-8")
    program, diagnostics = load_program(path)
    assert program is not None, diagnostics
    rt = Runtime(OracleBackend(), profile=True, fusion=fusion)
    out = io.StringIO()
    assert run_program(program, runtime=rt, stdout=out, stderr=out) == 0, out.getvalue()
    assert rt.profile is not None
    return rt.profile.records


@pytest.mark.parametrize(
    ("body", "operations", "moved"),
    [
        # A product and an addition for each of 4 * 3 * 8 terms; both operands and the result.
        (
            "let y = gpuMatMul(gpuSlice(x, 0, 32) ?: x, gpuSlice(x, 0, 24) ?: x, 4, 8, 3) ?: x",
            2 * 96,
            8 * (32 + 24 + 12),
        ),
        # 1 + 2 + … + 8 additions, of the same eight elements.
        (
            "let y = gpuIota(8) |> gpuMap(fn(i) => gpuFold(gpuIota(i + 1), 0.0, fn(s, j) => s + at(x, j)))",
            36,
            8 * (8 + 8),
        ),
        # A difference and a quotient an element; what reads the row alone, once a row.
        (
            "let y = gpuIota(48) |> gpuMap(fn(i) => { let r = intDiv(i, 8)\n"
            "    (at(x, i) - at(x, r)) / sqrt(at(x, r + 6) + 0.5) })",
            2 * 48 + 2 * 6,
            8 * (48 + 48),
        ),
        # A gather reads what it reads, not the table: three ints and three floats.
        ("let y = gpuMap(places, fn(p) => at(x, p))", 0, 8 * (3 + 3 + 3)),
        # Of a choice that is decided, one side counts; comparisons of ints cost nothing.
        ("let y = gpuIota(48) |> gpuMap(fn(i) => i < 48 ? at(x, i) + 1.0 : at(x, i) / 3.0 / 7.0)", 48, 8 * 96),
        # Of one that is not, both do.
        ("let y = gpuIota(48) |> gpuMap(fn(i) => i < 47 ? at(x, i) + 1.0 : at(x, i) / 3.0 / 7.0)", 3 * 48, 8 * 96),
        ("let y = gpuMap(x, fn(v) => exp(v))", 48 * operations_of("exp"), 8 * 96),
        ("let y = gpuAccumulate(48, places, gpuSlice(x, 0, 3) ?: x) ?: x", 3, 8 * (3 + 3 + 48)),
        # Nobody knows how long a loop runs.
        (
            "fn halved(v: float, n: int) -> int = if v < 1.0 { n } else { halved(v / 2.0, n + 1) }\n"
            "let y = gpuMap(x, fn(v) => toFloat(halved(v, 0)))",
            0,
            8 * 48,
        ),
    ],
)
def test_work_is_what_the_kernel_says(tmp_path: Path, body: str, operations: int, moved: int) -> None:
    (record,) = records(tmp_path, body)
    assert (record.operations, record.bytes) == (operations, moved)


def test_an_exp_costs_tens_of_operations() -> None:
    assert 40 < operations_of("ln") < operations_of("exp") < operations_of("tanh") < 120


def test_a_step_s_work_is_shared_by_the_lines_that_are_in_it(tmp_path: Path) -> None:
    """Three operations an element on one line, one on the other, and an element each."""
    body = "let a = gpuMap(x, fn(v) => v * v * v + 1.0)\nlet y = gpuMap(a, fn(v) => v - 2.0)"
    (record,) = records(tmp_path, body)
    shares = {span.source.position(span.start)[0]: part for span, part in record.shares.items()}
    assert shares == {5: 4 / 6, 6: 2 / 6}
    apart = records(tmp_path, body, fusion=False)
    assert [r.operations for r in apart] == [3 * 48, 48]
