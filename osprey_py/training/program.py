"""A training program that can be called from Python.

Comes in: the path of an .osp file and a runtime. Goes out: `TrainingProgram`, one method for each function it exports
(spec/training TR1). Values of Options, Vocabulary and State are the language's own. Shapes: inputs and targets are
buffers of rows * tokens ints, row after row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osprey_py.check import load_checked
from osprey_py.check.core import Program
from osprey_py.eval.session import Session
from osprey_py.eval.values import MESSAGE, VALUE, Record, Success, field
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.training.plain import buffers_of, count_floats
from osprey_py.training.signature import Signature, signature_of

Value = Any


@dataclass(frozen=True, slots=True)
class DefaultData:
    """The text that a program names (TR5). file: relative to the program's folder."""

    file: str
    url: str
    bytes: int
    sha256: str


def load_training_program(path: Path) -> tuple[Program, Signature, list[Diagnostic]]:
    """The checked program, what it exports, and warnings. Raises OspreyError for every mistake in it."""
    program, told, project = load_checked(path)
    if program is None:
        raise OspreyError(told)
    return program, signature_of(program, project), told


class TrainingProgram:
    """The functions of a program. signature: their types. Every call raises OspreyError where the program faults."""

    def __init__(self, program: Program, signature: Signature, runtime: Runtime, folder: Path) -> None:
        self.signature = signature
        self.runtime = runtime
        self.folder = folder
        keys = [f.key for f in signature.functions.values()]
        self._session = Session(program, keys, runtime, folder=str(folder))

    def _call(self, name: str, *args: Value) -> Value:
        return self._session.call(self.signature.functions[name].key, *args)

    def options(self) -> Record:
        made: Record = self._call("options")
        return made

    def complaint(self, options: Record) -> str:
        """What is wrong with the options together; "" when nothing is."""
        return str(self._call("complaint", options)) if "complaint" in self.signature.functions else ""

    def data(self) -> DefaultData | None:
        if self.signature.data is None:
            return None
        made = self._call("data")
        return DefaultData(*[field(made, name) for name in ("file", "url", "bytes", "sha256")])

    def learn(self, options: Record, text: str) -> Value:
        return self._call("learn", options, text)

    def vocabulary_size(self, vocabulary: Value) -> int:
        return int(self._call("vocabularySize", vocabulary))

    def encode(self, vocabulary: Value, text: str) -> list[int] | str:
        """The tokens, or the program's words why there are none."""
        found = self._call("encode", vocabulary, text)
        return list(getattr(found, VALUE)) if type(found) is Success else str(getattr(found, MESSAGE))

    def window(self, options: Record) -> tuple[int, int]:
        """(rows of a batch, tokens of a row)"""
        rows, tokens = self._call("window", options)
        return rows, tokens

    def init(self, options: Record, vocabulary: Value, seed: int) -> Value:
        return self._settled(self._call("init", options, vocabulary, seed))

    def parameters(self, state: Value) -> int:
        """How many floats are learnt."""
        return count_floats(self.signature.learnt, self._call("parameters", state))

    def step(self, options: Record, state: Value, number: int, inputs: Buffer, targets: Buffer) -> tuple[Value, float]:
        """The next state, not yet computed, and the loss before it."""
        after, loss = self._call("step", options, state, number, inputs, targets)
        return after, loss

    def settle(self, state: Value) -> None:
        """Compute a state. Who has let go of the one before lets it be updated in place."""
        self._settled(state)

    def evaluate(self, options: Record, state: Value, inputs: Buffer, targets: Buffer) -> float:
        return float(self._call("evaluate", options, state, inputs, targets))

    def sample(self, options: Record, vocabulary: Value, state: Value, seed: int) -> str:
        return str(self._call("sample", options, vocabulary, state, seed))

    def _settled(self, state: Value) -> Value:
        self._session.settle(buffers_of(self.signature.state, state))
        return state
