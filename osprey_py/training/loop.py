"""The steps of a run, and what is done after each (spec/training TR7-TR15).

Comes in: a program, its origin, the parts of the text, where the run stands. Goes out: the state after the last step; a
checkpoint, a log, a plot and lines on the way, each whole whatever ends the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osprey_py.graph.buffer import Buffer
from osprey_py.kernel.ir import INT
from osprey_py.training.batches import TRAINING, VALIDATION, batch, even_places, random_places
from osprey_py.training.checkpoint import History, Keeper, Origin
from osprey_py.training.corpus import Part
from osprey_py.training.errors import TrainingError
from osprey_py.training.log import Log
from osprey_py.training.plot import draw
from osprey_py.training.program import TrainingProgram
from osprey_py.training.screen import Screen
from osprey_py.training.stopping import Stopping


@dataclass(frozen=True, slots=True)
class Plan:
    """How far a run goes and what it leaves. steps: in all; until: where it ends for now; every: steps from one validation
    to the next; windows: of the last, thorough validation, 0 for none."""

    steps: int
    until: int
    every: int
    windows: int
    plot: Path | None
    title: str


class Run:
    """One run. What it is given is checked; what fails from here on is the disk, or the program itself."""

    def __init__(
        self,
        program: TrainingProgram,
        origin: Origin,
        parts: tuple[Part, Part],
        plan: Plan,
        *,
        keeper: Keeper | None,
        log: Log | None,
        stop: Stopping,
    ) -> None:
        self.program = program
        self.origin = origin
        self.training, self.validation = parts
        self.plan = plan
        self.keeper = keeper
        self.log = log
        self.stop = stop
        self.rows, self.tokens = program.window(origin.options)
        self._evaluated = False

    def go(self, state: Any, history: History) -> Any:
        """The state where the run ends: after the last step, or where it was stopped."""
        plan = self.plan
        screen = Screen(history.done, plan.steps, self.rows * self.tokens)
        try:
            while history.done < plan.until and not self.stop.signal:
                state = self._step(state, history, screen)
        finally:
            screen.close()
        self._keep(state, history)
        if plan.plot is not None:
            draw(history, plan.plot, plan.title)
        return state

    def _step(self, state: Any, history: History, screen: Screen) -> Any:
        """One step and what belongs to it. The caller's old state dies when this returns."""
        number, plan = history.done, self.plan
        state, loss = self.program.step(
            self.origin.options, state, number, *self._batch(self.training, TRAINING, number)
        )
        self.program.settle(state)
        self._finite(loss, f"the loss of step {number}")
        history.losses.append(loss)
        validation = None
        if number % plan.every == 0 or number == plan.steps - 1:
            validation = self._validate(state, number)
            self._finite(validation, f"the validation loss after step {number}")
            history.validations.append((number, validation))
        if self.log is not None:
            self.log.step(number, loss, validation)
        screen.step(number, loss, validation)
        if validation is not None:
            self._keep(state, history)
        return state

    def _validate(self, state: Any, number: int) -> float:
        """The loss on the validation batch of a step. The evaluator looks at a function in its first call, records it in
        the second and replays it from the third on; all of these are made the first time, so that no later step plans."""
        inputs, targets = self._batch(self.validation, VALIDATION, number)
        loss = self._evaluate(state, inputs, targets)
        for _ in range(0 if self._evaluated else 2):
            loss = self._evaluate(state, inputs, targets)
        self._evaluated = True
        return loss

    def thorough(self, state: Any) -> tuple[int, float]:
        """(windows, mean loss) over windows that are spread evenly over the validation part."""
        count = -(-self.plan.windows // self.rows)
        places = even_places(count * self.rows, len(self.validation.tokens) - self.tokens)
        total = 0.0
        for k in range(count):
            total += self._evaluate(state, *self._windows(self.validation, places[k * self.rows : (k + 1) * self.rows]))
        return count * self.rows, total / count

    def _keep(self, state: Any, history: History) -> None:
        if self.keeper is not None and self.keeper.saved != history.done:
            self.keeper.save(state, history)

    def _evaluate(self, state: Any, inputs: Buffer, targets: Buffer) -> float:
        return self.program.evaluate(self.origin.options, state, inputs, targets)

    def _batch(self, part: Part, stream: int, number: int) -> tuple[Buffer, Buffer]:
        places = random_places(self.origin.seed, stream, number, self.rows, len(part.tokens) - self.tokens)
        return self._windows(part, places)

    def _windows(self, part: Part, places: Sequence[int]) -> tuple[Buffer, Buffer]:
        inputs, targets = batch(part.tokens, places, self.tokens)
        runtime = self.program.runtime
        return runtime.from_list(inputs, INT), runtime.from_list(targets, INT)  # type: ignore[arg-type]

    def _finite(self, loss: float, which: str) -> None:
        if not math.isfinite(loss):
            saved = self.keeper.saved if self.keeper is not None else None
            stands = f"; the checkpoint of step {saved} stands" if saved is not None else ""
            raise TrainingError(f"{which} is {loss!r}: a smaller rate, or clipping, may help{stands}")
