"""What a person sees of a run: lines, and on a terminal a bar with losses, tokens a second and time left.

Comes in: what happened. Goes out: text; the clock is read here and nowhere else.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter
from typing import Any


class Screen:
    """done, steps: where the run stands and where it ends. tokens: learnt from in a step."""

    def __init__(self, done: int, steps: int, tokens: int) -> None:
        self._began = perf_counter()
        self._first = done
        self._tokens = tokens
        self._validation = ""
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            known = os.get_terminal_size(sys.stderr.fileno()).columns > 0
            width = {"dynamic_ncols": True} if known else {"ncols": 100, "nrows": 24}
            self._bar = tqdm(
                total=steps, initial=done, unit="step", file=sys.stderr, bar_format=_BAR, leave=False, **width
            )

    def step(self, number: int, loss: float, validation: float | None) -> None:
        """A line where there is a validation loss; the bar moves on."""
        seconds = perf_counter() - self._began
        steps = number + 1 - self._first
        if validation is not None:
            self._validation = f"  val {validation:.3f}"
            self.say(f"step {number:5d}  train {loss:.3f}  val {validation:.3f}  {seconds / steps * 1e3:6.0f} ms/step")
        if self._bar is not None:
            rate = self._tokens * steps / seconds
            self._bar.set_postfix_str(f"train {loss:.3f}{self._validation}  {rate:,.0f} tokens/s", refresh=False)
            self._bar.update()

    def say(self, text: str) -> None:
        """A line on standard output, above the bar."""
        if self._bar is None:
            print(text, flush=True)
        else:
            self._bar.write(text, file=sys.stdout)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


_BAR = "{percentage:3.0f}% {bar} {n_fmt}/{total_fmt}{postfix}  {elapsed} gone, {remaining} left"
