"""Run a checked program.

Comes in: a Program and what it may touch. Goes out: the exit code; a fault that nothing recovered is one rendered
diagnostic on standard error (spec/evaluation V7).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from osprey_py.check.core import Program
from osprey_py.kernel.fault import MathFault
from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import Span

if TYPE_CHECKING:
    from osprey_py.eval.library.tests import Harness
    from osprey_py.eval.unit import Unit

T = TypeVar("T")

STACK_SIZES = (1 << 30, 1 << 29, 1 << 28, 1 << 26)
"""Bytes of C stack to try for the program's thread. It is reserved, not touched: deep recursion needs it."""
RECURSION_LIMIT = 1_200_000
"""Python frames: twelve for each frame of the language's own limit."""

FAULT_CODES = {
    "integer overflow": "E0501",
    "division by zero": "E0502",
    "shift out of range": "E0503",
    "not an integer in range": "E0504",
    "recursion too deep": "E0505",
}
OTHER_FAULT = "E0506"


def run_program(
    program: Program,
    *,
    args: Sequence[str] = (),
    runtime: Any,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    stdin: TextIO | None = None,
    harness: Harness | None = None,
    folder: str = ".",
) -> int:
    """Run startup code and main. 0, 1 (a fault, or a failed test), or what the program gives to `exit`.
    harness: where tests report, when files share one.
    folder: where the program lies, as its path was given."""
    from osprey_py.eval.world import World

    words = tuple(word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in args)
    world = World(runtime, stdout or sys.stdout, stderr or sys.stderr, stdin or sys.stdin, words)
    world.tests = harness
    world.folder = folder
    return on_big_stack(lambda: _run(program, world))


def _run(program: Program, world: Any) -> int:
    from osprey_py.eval.library.tests import finish
    from osprey_py.eval.replay import install
    from osprey_py.eval.unit import Unit
    from osprey_py.eval.world import ProgramExit

    unit = Unit(program)
    namespace = unit.instantiate(world)
    install(unit, namespace, world)
    startup = namespace["startup"]
    try:
        with strict(unit, world):
            startup()
            world.runtime.barrier()
    except MathFault as fault:
        _report(fault, world.stderr)
        return 1
    except ProgramExit as leaving:
        finish(world)
        return leaving.code
    return 0 if finish(world) else 1


@contextmanager
def strict(unit: Unit, world: Any) -> Iterator[None]:
    """Around code of the program: what ends it is the fault that strict evaluation would have met first."""
    try:
        yield
    except MemoryError:
        raise MathFault("out of memory", program_span(unit.program), recoverable=False) from None
    except RecursionError as e:
        span = _deepest(e) or program_span(unit.program)
        raise MathFault("recursion too deep", span, recoverable=False) from None
    except NameError as e:
        raise _read_too_early(unit, e) from None
    except MathFault as fault:
        raise world.runtime.caught(fault, 0) from None


def _deepest(e: BaseException) -> Span | None:
    """The innermost function of the program that an exception went through."""
    from osprey_py.eval.closures import of_code

    found = None
    at = e.__traceback__
    while at is not None:
        function = of_code(at.tb_frame.f_code)
        found = function.span if function is not None else found
        at = at.tb_next
    return found


def _read_too_early(unit: Unit, e: NameError) -> MathFault:
    """A function that reads a file-scope `let` was called before the `let` had run."""
    for v, name in unit.global_lets.items():
        if name == e.name:
            return MathFault(f"`{v.name}` is read before its `let` has run", v.span, recoverable=False)
    raise e


def program_span(program: Program) -> Span:
    """A span for faults that have no place of their own: the main function's, the first statement's, or a library's last
    function's."""
    if program.main is not None:
        return program.functions[program.main].span
    return program.startup[0].span if program.startup else list(program.functions.values())[-1].span


def fault_diagnostic(fault: MathFault) -> Diagnostic:
    """The diagnostic of a fault that ended a program."""
    notes: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    if fault.element is not None:
        notes = (f"in a kernel, at element {fault.element}",)
    if fault.launch is not None and fault.launch != fault.span:
        labels = (Label(fault.launch, "launched here"),)
    code = FAULT_CODES.get(fault.message, OTHER_FAULT)
    text = {"E0505": "this calls itself", OTHER_FAULT: "here"}.get(code, "this operation")
    return Diagnostic(code, fault.message, fault.span, text, labels, notes)


def _report(fault: MathFault, stderr: TextIO) -> None:
    from osprey_py.cli.options import use_colour
    from osprey_py.source.render import render

    print(render(fault_diagnostic(fault), color=use_colour(stderr)), file=stderr)


def on_big_stack(action: Callable[[], T]) -> T:
    """Run in a thread whose C stack lets recursion go as deep as the language says. What it raises is raised here."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((action(), None))
        except BaseException as e:
            outcome.append((None, e))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        thread = _start(work)
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    result, error = outcome[0]
    if error is not None:
        raise error
    made: T = result
    return made


def _start(work: Callable[[], None]) -> threading.Thread:
    """The thread, with the largest of STACK_SIZES that the system grants."""
    before = threading.stack_size()
    try:
        for size in STACK_SIZES:
            thread = threading.Thread(target=work, name="osprey", daemon=True)
            try:
                threading.stack_size(size)
                thread.start()
            except (ValueError, RuntimeError):
                continue
            return thread
    finally:
        threading.stack_size(before)
    raise MemoryError("no thread can be started")
