"""What a running program touches: the GPU runtime, streams, arguments, and the evaluator's own dynamic state.

Comes in: what `run_program` was given. Goes out: one `World`, which generated code and built-ins share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import MAX_DEPTH
from osprey_py.source.span import Span


class GpuRuntime(Protocol):
    """The part of graph/runtime.py that regions and effects need."""

    def mark(self) -> int: ...

    def settle(self, mark: int) -> None: ...

    def barrier(self) -> None: ...

    def caught(self, fault: MathFault, mark: int) -> MathFault: ...


class NoGpu:
    """Stands in where a program has no GPU runtime (tests of the evaluator alone)."""

    def mark(self) -> int:
        return 0

    def settle(self, mark: int) -> None:
        return None

    def barrier(self) -> None:
        return None

    def caught(self, fault: MathFault, mark: int) -> MathFault:
        if not fault.recoverable:
            raise fault
        return fault


@dataclass(eq=False, slots=True)
class World:
    """depth: frames of recursive functions that are active now; handlers: the innermost effect handler.
    studio: the program's module once more (eval/studio.py), for recordings and gradients.
    tests: the harness of eval/tests.py once a test ran. exit_code: what the program ends with."""

    runtime: Any
    stdout: TextIO
    stderr: TextIO
    stdin: TextIO
    args: tuple[str, ...] = ()
    folder: str = "."
    depth: int = 0
    handlers: Any = None
    tests: Any = None
    random: Any = None
    extractor: Any = None
    studio: Any = None
    exit_code: int = 0


class ProgramExit(BaseException):
    """`exit(code)`: leaves the program through everything."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Cell:
    """A `mut` variable, shared by reference by those who capture it."""

    __slots__ = ("v",)

    def __init__(self, v: Any) -> None:
        self.v = v


class TailCall:
    """What a function of a mutually tail-recursive group returns to its trampoline."""

    __slots__ = ("args", "target")

    def __init__(self, target: Any, *args: Any) -> None:
        self.target = target
        self.args = args


def too_deep(span: Span) -> MathFault:
    return MathFault("recursion too deep", span, recoverable=False)


__all__ = ["MAX_DEPTH", "Cell", "GpuRuntime", "NoGpu", "ProgramExit", "TailCall", "World", "too_deep"]
