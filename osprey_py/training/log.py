"""The log of a run as JSON lines, the same bytes whenever and wherever it runs (spec/training TR12).

Comes in: what happened. Goes out: lines in a file; those of steps that a checkpoint knows are written again, so a log
never holds a step twice or misses one.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TextIO

from osprey_py.training.checkpoint import History
from osprey_py.training.errors import TrainingError, reason


class Log:
    """Each line reaches the file as it is written. Raises TrainingError where that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file: TextIO = path.open("w", encoding="utf-8", newline="\n")
        except (OSError, ValueError) as e:
            raise TrainingError(f"{path}: {reason(e) if isinstance(e, OSError) else 'not a file name'}") from None

    def head(self, parameters: int, vocabulary: int, seed: int, options: dict[str, Any], history: History) -> None:
        """The first line, and those of the steps that were taken before."""
        self._line({"parameters": parameters, "vocabulary": vocabulary, "seed": seed, "options": options})
        validations = dict(history.validations)
        self._line(*(_step(number, loss, validations.get(number)) for number, loss in enumerate(history.losses)))

    def step(self, number: int, loss: float, validation: float | None) -> None:
        self._line(_step(number, loss, validation))

    def windows(self, count: int, loss: float) -> None:
        self._line({"windows": count, **_number("validation", loss)})

    def sample(self, text: str) -> None:
        self._line({"sample": text})

    def _line(self, *lines: dict[str, Any]) -> None:
        try:
            self._file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            self._file.flush()
        except OSError as e:
            raise TrainingError(f"{self.path}: {reason(e)}") from None

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as e:
            raise TrainingError(f"{self.path}: {reason(e)}") from None


def _step(number: int, loss: float, validation: float | None) -> dict[str, Any]:
    line: dict[str, Any] = {"step": number, **_number("train", loss)}
    return line if validation is None else {**line, **_number("validation", validation)}


def _number(name: str, value: float) -> dict[str, Any]:
    return {name: value if math.isfinite(value) else None, f"{name}Hex": value.hex()}
