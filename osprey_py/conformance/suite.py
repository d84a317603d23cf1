"""The whole check of a device: launches, mathematics, programs, generated programs, the examples.

Comes in: the backend that is right and the one under test. Goes out: `Found`s, one for each thing that was compared, in
a fixed order. What differs is told with its place: of a launch, the element and both values; of a program, the first node
whose buffer differs (conformance/verify.py), with its source line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from osprey_py.backends.protocol import Backend, DeviceError
from osprey_py.conformance.cases import cases
from osprey_py.conformance.compare import difference, may_refuse
from osprey_py.conformance.generated import Seeded
from osprey_py.conformance.mathematics import mathematics as pointwise
from osprey_py.conformance.programs import actions, data, observe
from osprey_py.conformance.verify import Verifying
from osprey_py.source.diagnostic import OspreyError

PROGRAMS = Path(__file__).parent / "osp"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
"""There in a checkout; an installed package has none."""
GENERATION = ("--prompt", "The capital of France is", "--tokens", "3", "--weights", str(EXAMPLES / "gpt2" / "small"))


@dataclass(frozen=True, slots=True)
class Found:
    """part: launches, mathematics, programs, generated or examples. operation: what it is counted under. difference: what
    differs, for people; None when nothing does. refused: the device may refuse it, by name, and did."""

    part: str
    operation: str
    name: str
    difference: str | None = None
    refused: bool = False


def launches(right: Backend, tested: Backend, only: str = "") -> Iterator[Found]:
    """The conformance launches."""
    for case in cases():
        based = case.op == "accumulate" and len(case.inputs) > 2
        if only not in case.name or (based and not tested.capabilities.bases):
            continue
        operation = re.split(r"[ ,]", case.name)[0] if " of " in case.name else case.name
        text = difference(case, right, tested)
        yield Found("launches", operation, case.name, text, text is None and may_refuse(case, tested))


def mathematics(right: Backend, tested: Backend, points: int, seed: int, only: str = "") -> Iterator[Found]:
    """Every function on so many points."""
    for case in pointwise(points, seed):
        if only in case.name:
            yield Found("mathematics", case.name.rsplit(" on ", 1)[0], case.name, difference(case, right, tested))


def programs(right: Backend, tested: Backend, only: str = "") -> Iterator[Found]:
    """The conformance programs."""
    for path in sorted(PROGRAMS.glob("*.osp")):
        if only in path.stem:
            yield Found("programs", path.stem, path.name, _compare(path, (), right, tested))


def examples(right: Backend, tested: Backend, only: str = "") -> Iterator[Found]:
    """The examples whose runs need no input, and the small GPT-2's trace; nothing where there are none."""
    for path in sorted([*EXAMPLES.glob("tour/*.osp"), *EXAMPLES.glob("small/*.osp")]):
        if only in path.stem and "gpu" in path.read_text(encoding="utf-8") and ".test." not in path.name:
            name = f"{path.parent.name}/{path.name}"
            yield Found("examples", path.stem, name, _compare(path, (), right, tested))
    path = EXAMPLES / "gpt2" / "gpt2.osp"
    if path.exists() and only in path.stem:
        yield Found("examples", path.stem, f"gpt2/{path.name}", _compare(path, GENERATION, right, tested, trace=True))


def generated(right: Backend, tested: Backend, count: int, seed: int = 0) -> Iterator[Found]:
    """So many random programs over buffers, of random kernels, the same for the same seed."""
    from osprey_py.graph.runtime import Runtime

    for number in range(seed, seed + count):

        def seen(backend: Backend, number: int = number) -> list[object]:
            choices = Seeded(number)
            return observe(Runtime(backend), list(data(choices)), actions(choices, 7))

        name = f"program {number}"
        try:
            told = None if seen(right) == seen(tested) else _located(lambda: seen(Verifying(right, tested)))
        except OspreyError as refused:
            told = refused.diagnostics[0].title
        except DeviceError as error:
            told = error.text
        yield Found("generated", "generated programs", name, told)


def _located(again: Callable[[], Any]) -> str:
    """What the run in step finds first."""
    try:
        again()
    except OspreyError as differs:
        d = differs.diagnostics[0]
        return f"{d.title} ({d.span.place})"
    return "what the program sees differs, though every buffer compared in step is the same: launches are out of order"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a run leaves: exit code, output, errors, and the files it wrote."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]


def _compare(path: Path, args: Sequence[str], right: Backend, tested: Backend, *, trace: bool = False) -> str | None:
    """Everything that can be seen of a program on both, the files it writes among that; where it differs, the first node
    that does. Each run is in a folder of its own, which goes away."""
    path = path.resolve()
    more = ("--trace", "trace.jsonl") if trace else ()

    def seen(backend: Backend) -> _Seen:
        with TemporaryDirectory() as folder, chdir(folder):
            code, out, err = _run(path, (*args, *more), backend)
            files = {p.as_posix(): p.read_bytes() for p in Path().rglob("*") if p.is_file()}
        return _Seen(code, "" if trace else out, err, files)  # with a trace, the output names the device

    expected, found = seen(right), seen(tested)
    if expected == found:
        return None
    located = seen(Verifying(right, tested)).err.strip()
    if "E0507" in located:
        return located
    names = sorted(n for n in {**expected.files, **found.files} if expected.files.get(n) != found.files.get(n))
    written = f"the file {names[0]} differs" if names else ""
    told = written or _line(expected.out, found.out, right.name, tested.name)
    return f"{told}\n{found.err}".strip()


def _run(path: Path, args: Sequence[str], backend: Backend) -> tuple[int, str, str]:
    """(exit code, output, errors) of a program."""
    from osprey_py.check import load_program
    from osprey_py.eval.run import run_program
    from osprey_py.graph.runtime import Runtime
    from osprey_py.source.render import render

    program, diagnostics = load_program(path)
    assert program is not None, "\n".join(render(d) for d in diagnostics)
    out, err = io.StringIO(), io.StringIO()
    try:
        runtime = Runtime(backend, plain_calls=1)
        code = run_program(
            program, args=args, runtime=runtime, stdout=out, stderr=err, stdin=io.StringIO(), folder=str(path.parent)
        )
    except OspreyError as refused:
        code = 1
        err.write("".join(f"{render(d)}\n" for d in refused.diagnostics))
    except DeviceError as error:
        code = 1
        err.write(f"{error.text}\n")
    return code, out.getvalue(), err.getvalue()


def _line(expected: str, found: str, right: str, tested: str) -> str:
    """The first line that differs."""
    for number, (a, b) in enumerate(zip(expected.splitlines(), found.splitlines(), strict=False), start=1):
        if a != b:
            return f"line {number} of the output: {right} `{a}`, {tested} `{b}`"
    return "the outputs end differently"
