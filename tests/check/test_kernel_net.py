"""The check behind the purity proof: what inference lets pass and the typed program contradicts is refused (L5.4)."""

from __future__ import annotations

from dataclasses import replace

from osprey_py.check import check_source, core
from osprey_py.check.context import Context
from osprey_py.check.kernels import KERNEL_BUILTINS, check_kernels
from osprey_py.check.local_functions import local_functions
from osprey_py.check.signatures import SIGNATURES
from osprey_py.check.types import FLOAT, FunctionType
from osprey_py.source.span import NO_SPAN


def program(text: str) -> core.Program:
    found, told = check_source(text)
    assert found is not None, told
    return found


def codes(p: core.Program) -> list[str]:
    cx = Context({}, local_functions)
    check_kernels(cx, p)
    return [d.code for d in cx.told]


def with_helper(p: core.Program, body: core.Expr) -> core.Program:
    return replace(p, functions={**p.functions, "helper": replace(p.functions["helper"], body=body)})


PURE = "fn helper(x: float) = x\nlet b = toGpu([1.0]) |> gpuMap(fn(x) => helper(x))"


def test_sound_program_passes() -> None:
    assert codes(program(PURE)) == []


def test_perform_behind_a_pure_type() -> None:
    p = program(PURE)
    perform = core.Perform(NO_SPAN, FLOAT, "Log", "write", ())
    assert codes(with_helper(p, perform)) == ["E0302"]


def test_io_behind_a_pure_type() -> None:
    p = program(PURE)
    call = core.Call(NO_SPAN, FLOAT, core.BuiltinRef(NO_SPAN, FunctionType((), FLOAT), "random"), ())
    assert codes(with_helper(p, call)) == ["E0310"]


def test_impure_type_of_a_kernel() -> None:
    p = program(PURE)
    (bind,) = p.startup
    assert isinstance(bind, core.Bind) and isinstance(bind.value, core.Call)
    kernel = bind.value.args[-1]
    loud = replace(kernel, type=FunctionType((FLOAT,), FLOAT, frozenset({"Log.write"})))
    call = replace(bind.value, args=(bind.value.args[0], loud))
    assert codes(replace(p, startup=(replace(bind, value=call),))) == ["E0302"]


def test_impure_type_of_what_is_differentiated() -> None:
    p = program("fn helper(x: float) = x\nlet b = gradient(helper, 1.0)")
    assert codes(p) == []
    (bind,) = p.startup
    assert isinstance(bind, core.Bind) and isinstance(bind.value, core.Call)
    f, at = bind.value.args
    loud = replace(f, type=FunctionType((FLOAT,), FLOAT, frozenset({"IO"})))
    assert codes(replace(p, startup=(replace(bind, value=replace(bind.value, args=(loud, at))),))) == ["E0311"]


def test_no_kernel_built_in_touches_the_world() -> None:
    assert not [name for name in KERNEL_BUILTINS if "IO" in SIGNATURES[name]]
