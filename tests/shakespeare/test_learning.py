"""examples/shakespeare/gpt.osp learns; how it does so is decided by its options, and by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Backend
from osprey_py.eval.values import Record
from osprey_py.training.program import TrainingProgram
from tests.shakespeare.support import SMALL, floats, gpt, options, part, tokens

SEQUENCE = "abcdefghijk" * 8
MINUTE: dict[str, Any] = {**SMALL, "batch": 2, "context": 4, "width": 4}


class Learner:
    """A program, its options, and the state after so many steps on one batch of windows of SEQUENCE."""

    def __init__(self, program: TrainingProgram | None = None, seed: int = 0, **changed: Any) -> None:
        self.program = program or gpt()
        self.o: Record = options(self.program, **{**SMALL, **changed})
        v = self.program.learn(self.o, SEQUENCE)
        self.state = self.program.init(self.o, v, seed)
        rows, length = self.program.window(self.o)
        xs = self.program.encode(v, SEQUENCE)
        assert isinstance(xs, list)
        self.x, self.y = ([x for n in range(rows) for x in xs[n + at : n + at + length]] for at in (0, 1))
        self.losses: list[float] = []

    def step(self) -> Learner:
        number = len(self.losses)
        x, y = tokens(self.program, self.x), tokens(self.program, self.y)
        self.state, loss = self.program.step(self.o, self.state, number, x, y)
        self.program.settle(self.state)
        self.losses.append(loss)
        return self

    def evaluate(self) -> float:
        return self.program.evaluate(self.o, self.state, tokens(self.program, self.x), tokens(self.program, self.y))

    def weights(self) -> list[float]:
        return floats(self.program, self.state, "model.blocks.0.expand.weight")

    def bytes(self) -> list[str]:
        """The losses, and some of what was learnt and remembered."""
        paths = ["model.characters", "model.places", "model.norm.gain", "model.blocks.0.attention.weight"]
        paths += ["optimizer.second.blocks.0.norm1.gain", "optimizer.first.blocks.0.contract.bias"]
        found = [x for path in paths for x in floats(self.program, self.state, path)]
        return [x.hex() for x in [*self.losses, *found]]


@pytest.mark.parametrize(
    "changed", [{}, {"tied": True}, {"dropout": 0.05}, {"clip": 0.5, "schedule": "cosine", "steps": 60}]
)
def test_a_repeating_sequence_is_learnt_in_thirty_steps(changed: dict[str, Any]) -> None:
    """To a quarter of the first loss."""
    learner = Learner(**changed)
    for _ in range(30):
        learner.step()
    assert learner.losses[-1] < 0.25 * learner.losses[0]
    assert learner.evaluate() < 0.25 * learner.losses[0]


@pytest.mark.parametrize("changed", [{}, {"tied": True, "dropout": 0.3, "clip": 0.1, "warmup": 1}])
def test_every_backend_learns_the_same_bytes(changed: dict[str, Any]) -> None:
    backends: list[Backend] = [HostBackend(threads=1), HostBackend(threads=2), OracleBackend()]
    programs = [*map(gpt, backends), gpt(fusion=False)]
    found = [Learner(program, **{**MINUTE, **changed}).step().step().bytes() for program in programs]
    assert all(other == found[0] for other in found[1:])


def test_the_loss_of_a_step_is_the_one_before_it() -> None:
    learner = Learner()
    for _ in range(3):
        before = learner.evaluate()
        assert learner.step().losses[-1] == before


def largest_move(**changed: Any) -> float:
    """In the first step: Adam's is about the rate, whatever the gradient."""
    learner = Learner(**changed)
    before = learner.weights()
    return max(abs(a - b) for a, b in zip(before, learner.step().weights(), strict=True))


def test_the_rate_follows_the_schedule() -> None:
    whole = largest_move(decay=0.0)
    assert whole == pytest.approx(0.01, rel=1e-3)
    assert largest_move(decay=0.0, warmup=9) == pytest.approx(0.001, rel=1e-3)
    assert largest_move(decay=0.0, rate=0.0) == 0.0
    falling = {name: Learner(decay=0.0, schedule=name, steps=4) for name in ("constant", "linear", "cosine")}
    moves: dict[str, list[float]] = {name: [] for name in falling}
    for name, learner in falling.items():
        for _ in range(4):
            before = learner.weights()
            after = learner.step().weights()
            moves[name].append(sum(abs(a - b) for a, b in zip(before, after, strict=True)))
    assert moves["linear"][0] == moves["cosine"][0] == moves["constant"][0]
    assert moves["cosine"][3] < moves["linear"][3] < 0.5 * moves["constant"][3]


def test_decay_shrinks_what_has_no_gradient() -> None:
    """A row of the table that is never read: times 1 - rate * decay in each step, and nothing else."""
    learner = Learner(decay=0.5, batch=1)
    unread = sorted(set(range(11)) - set(learner.x))
    row = slice(16 * unread[0], 16 * unread[0] + 16)
    before = floats(learner.program, learner.state, "model.characters")[row]
    learner.step()
    assert floats(learner.program, learner.state, "model.characters")[row] == [(1.0 - 0.01 * 0.5) * x for x in before]


def test_a_gradient_that_is_short_enough_is_not_clipped() -> None:
    plain, wide, narrow = (Learner(clip=clip).step().step() for clip in (0.0, 1e6, 1e-9))
    assert plain.bytes() == wide.bytes() != narrow.bytes()
    first = floats(narrow.program, narrow.state, "optimizer.first.blocks.0.expand.weight")
    assert max(map(abs, first)) < 1e-9


def test_what_is_dropped_is_chosen_anew_in_each_step_and_for_each_seed() -> None:
    learner = Learner(rate=0.0, decay=0.0, dropout=0.5)
    calm = learner.evaluate()
    learner.step().step()
    assert len({*learner.losses, calm}) == 3, "the parameters stay, and the losses differ"
    assert learner.evaluate() == calm, "nothing is dropped where it is measured"
    again = Learner(rate=0.0, decay=0.0, dropout=0.5).step().step()
    assert again.losses == learner.losses


def test_no_plan_is_made_after_the_first_steps_and_samples() -> None:
    """Whatever rate and schedule do."""
    learner = Learner(schedule="cosine", warmup=3, steps=40, clip=1.0)
    stats = learner.program.runtime.stats
    planned = []
    for _ in range(12):
        planned.append(learner.step().program.runtime.stats.planned)
    assert planned[-1] == planned[3], planned
    assert stats.replays >= 6
    v = learner.program.learn(learner.o, SEQUENCE)
    for count in (10, 10, 20, 40, 40, 80, 80):
        planned.append(stats.planned)
        learner.program.sample(options(learner.program, **SMALL, characters=count), v, learner.state, 0)
    assert stats.planned == planned[-3], "nothing new in the longer ones"


def test_the_state_counts_its_steps() -> None:
    learner = Learner(**MINUTE).step().step()
    assert part(learner.state, "optimizer.steps") == 2
