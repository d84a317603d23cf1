"""A long run costs what a short one does: nothing is compiled after the second step, and memory stays flat."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Kind, Storage
from osprey_py.eval import replay
from osprey_py.eval.run import on_big_stack
from osprey_py.graph.runtime import Runtime
from osprey_py.training.checkpoint import History, Origin
from osprey_py.training.corpus import encoded, read_text
from osprey_py.training.loop import Plan, Run
from osprey_py.training.program import TrainingProgram, load_training_program
from osprey_py.training.stopping import Stopping
from tests.training.support import BIGRAM, text


class Counting(HostBackend):
    """live: elements that are allocated and not yet released; compiled: programs made."""

    def __init__(self) -> None:
        super().__init__(threads=2)
        self.live = 0
        self.compiled = 0

    def allocate(self, kind: Kind, n: int) -> Storage:
        self.live += n
        return super().allocate(kind, n)

    def release(self, storage: Storage) -> None:
        self.live -= storage.length
        super().release(storage)

    def compile(self, *args, **named):  # type: ignore[no-untyped-def]
        self.compiled += 1
        return super().compile(*args, **named)


@pytest.mark.parametrize("worth", [replay.WORTH_IT, 2])
def test_nothing_is_planned_after_the_second_step_and_memory_is_flat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: int
) -> None:
    """worth: how many launches a function makes that is recorded and replayed; `evaluate` of the model has few."""
    monkeypatch.setattr(replay, "WORTH_IT", worth)
    path = tmp_path / "text.txt"
    path.write_text(text(), encoding="utf-8")
    backend = Counting()
    runtime = Runtime(backend)
    seen: list[tuple[int, int, int]] = []

    class Watched(Run):
        def _step(self, state, history, screen):  # type: ignore[no-untyped-def]
            del screen
            state = super()._step(state, history, Silent())
            seen.append((runtime.stats.planned, backend.compiled, backend.live))
            return state

    def go() -> None:
        program, signature, _ = load_training_program(BIGRAM)
        made = TrainingProgram(program, signature, runtime, BIGRAM.parent)
        options = made.options()
        read = read_text(path)
        vocabulary = made.learn(options, read.training)
        origin = Origin(options, vocabulary, 0, read.sha256)
        plan = Plan(60, 60, 10, 0, None, "")
        parts = encoded(made, vocabulary, read, 8)
        run = Watched(made, origin, parts, plan, keeper=None, log=None, stop=Stopping())
        run.go(made.init(options, vocabulary, 0), History())

    on_big_stack(go)
    assert len(seen) == 60
    assert len({(planned, compiled) for planned, compiled, _ in seen[2:]}) == 1, seen
    # From one validation to the next, every step holds what it held in the round before.
    for k in range(10):
        assert len({live for _, _, live in seen[10 + k : -1 : 10]}) == 1, seen


class Silent:
    def step(self, number: int, loss: float, validation: float | None) -> None:
        pass
