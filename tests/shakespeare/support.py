"""examples/shakespeare/gpt.osp, called from Python."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Backend
from osprey_py.eval.values import Record, field
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import INT
from osprey_py.training.program import TrainingProgram, load_training_program

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "shakespeare"
PROGRAM = FOLDER / "gpt.osp"

LETTERS = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The 65 characters of Tiny Shakespeare, ascending."""

SMALL: dict[str, Any] = {"batch": 4, "context": 8, "width": 16, "heads": 2, "layers": 1, "rate": 0.01}


@cache
def _loaded() -> Any:
    program, signature, told = load_training_program(PROGRAM)
    assert not told
    return program, signature


def gpt(backend: Backend | None = None, *, fusion: bool = True) -> TrainingProgram:
    """The program on a backend: the host on one thread by default."""
    program, signature = _loaded()
    runtime = Runtime(backend or HostBackend(threads=1), fusion=fusion)
    return TrainingProgram(program, signature, runtime, FOLDER)


def options(program: TrainingProgram, **changed: object) -> Record:
    """The program's options with some changed."""
    made = program.options()
    return type(made)(*(changed.get(name, field(made, name)) for name in made.fields))


def tokens(program: TrainingProgram, xs: list[int]) -> Buffer:
    return program.runtime.from_list(xs, INT)


def part(state: Any, path: str) -> Any:
    """What stands at a path of fields and numbers."""
    for name in path.split("."):
        state = list(state)[int(name)] if name.isdigit() else field(state, name)
    return state


def floats(program: TrainingProgram, state: Any, path: str) -> list[float]:
    return list(program.runtime.read(part(state, path)))
