"""Code for processors that are not here compiles, fuses nothing of the contract, and asks the C library only for what is
exact."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from osprey_py.backends.host import vectors
from osprey_py.backends.host.native import machine
from osprey_py.backends.host.widths import widths
from osprey_py.backends.prepare import prepare_shape
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import FLOAT, INT, Bound, Kernel, Node, const, fold, index, load, uniform, var
from osprey_py.kernel.nest import Nest
from tests.host.arrays import guarded, op

PROCESSORS = [
    ("x86_64-unknown-linux-gnu", "x86-64", 2, False),
    ("x86_64-unknown-linux-gnu", "znver3", 4, True),
    ("x86_64-unknown-linux-gnu", "sapphirerapids", 8, True),
    ("aarch64-unknown-linux-gnu", "neoverse-n1", 2, True),
    ("arm64-apple-macosx14", "apple-m1", 2, True),
]
"""Triple, processor, lanes, and whether it converts binary16 and has fused operations (the first has neither)."""

EXACT = {"fmod", "floor", "ceil", "roundeven", "memset"}
"""What C libraries compute without error."""

FUSED = re.compile(r"\b(v?fn?m(add|sub)\w*|fml[as]|fmadd|fmsub)\b")


def sums(kind: Kind) -> tuple[Kernel, tuple[Kind, ...], list[int], int]:
    """Row sums of squares plus an element: a fold along rows, multiplications feeding additions."""
    k, acc = Bound(INT, "k"), Bound(FLOAT, "acc")
    x = guarded(0, op("add", INT, op("mul", INT, index(), uniform(0, INT)), var(k)))
    term = Node("fadd", FLOAT, (var(acc), Node("fmul", FLOAT, (x, x))))
    (total,) = fold(uniform(0, INT), k, (acc,), (const(0.0),), (term,))
    return Kernel((FLOAT,), (INT,), total), (kind,), [100 * 40], 100


def scalars() -> tuple[Kernel, tuple[Kind, ...], list[int], int]:
    """Every function of a float, and a remainder."""
    x = load(0, FLOAT, index())
    total = op("fmodi", FLOAT, x, const(3.0))
    for name in ("exp", "ln", "tanh", "sqrt", "floor", "ceil", "round"):
        total = op("fadd", FLOAT, op("fmul", FLOAT, total, x), op(name, FLOAT, x))
    return Kernel((FLOAT,), (), total), (Kind.F64,), [1000], 1000


CASES = [sums(Kind.F64), sums(Kind.F32), sums(Kind.F16), sums(Kind.BF16), scalars()]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda p: p[1])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_code_for_other_processors(
    processor: tuple[str, str, int, bool], case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    triple, cpu, lanes, modern = processor
    monkeypatch.setattr(machine(), "lanes", lanes)
    monkeypatch.setattr(machine(), "f16c", modern)
    monkeypatch.setattr(machine(), "fma", modern)
    kernel, kinds, lengths, n = CASES[case]
    nest = Nest(lower(kernel))
    shape = prepare_shape(nest.shape(nest.facts(lengths, (40,) * len(kernel.uniforms), n)))
    text, _ = vectors.module_text(shape, kinds, widths(kernel, lanes, n))  # type: ignore[arg-type]
    assembly = compiled(text, triple, cpu)
    # exp, ln and tanh name each fused operation of theirs; of the operations around them, none is.
    named = sum(max(1, int(n or 1) // lanes) for n in re.findall(r"call (?:<(\d+) x )?double>? @llvm\.fma\.", text))
    assert len(FUSED.findall(assembly)) == named
    assert (named > 0) == (modern and case == 4)
    calls = {c.lstrip("_").split("@")[0] for c in re.findall(r"\b(?:callq?|bl)[ \t]+\*?([\w.@]+)", assembly)}
    assert {c for c in calls if not re.fullmatch(r"rare\d+", c)} <= EXACT
    assert ("fmod" in calls) == (case == 4)


def compiled(text: str, triple: str, cpu: str) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="default")
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.data_layout = str(target.target_data)
    return str(target.emit_assembly(module))
