"""Where a run begins (spec/training TR4-TR6, TR17).

Comes in: a program, what the command line says, perhaps a checkpoint. Goes out: `Start`; or TrainingError for what
contradicts the checkpoint or cannot be learnt from. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osprey_py.eval.formatting import to_string
from osprey_py.eval.values import Record, field
from osprey_py.training.checkpoint import NAME, Checkpoint, History, Origin
from osprey_py.training.corpus import Part, Text, default_text, encoded, read_text
from osprey_py.training.errors import TrainingError
from osprey_py.training.options import STEPS, Option, with_values
from osprey_py.training.program import TrainingProgram

DEFAULT_STEPS, DEFAULT_SEED = 600, 0


@dataclass(frozen=True, slots=True)
class Settings:
    """The command's own options; None where nothing was said."""

    data: Path | None
    steps: int | None
    until: int | None
    seed: int | None
    checkpoint: Path | None
    every: int
    resume: bool
    windows: int
    log: Path | None
    plot: Path | None


@dataclass(frozen=True, slots=True)
class Start:
    """saved: how many steps the checkpoint has, None when there is none. steps: in all."""

    origin: Origin
    parts: tuple[Part, Part]
    state: Any
    history: History
    saved: int | None
    steps: int


def start(program: TrainingProgram, options: Sequence[Option], given: Mapping[str, Any], settings: Settings) -> Start:
    """given: options of the program that stood on the command line."""
    kept = _checkpoint(settings)
    values, steps = _values(program, options, given, settings, kept)
    complaint = program.complaint(values)
    if complaint:
        raise TrainingError(complaint)
    if kept is not None and kept.done > steps:
        raise TrainingError(f"{kept.path}: {kept.done} steps were taken, and there are to be {steps} in all")
    seed = _seed(settings, kept)
    rows, tokens = program.window(values)
    if rows < 1 or tokens < 1:
        raise TrainingError(f"a batch of {rows} rows of {tokens} tokens has nothing in it")
    text = _text(program, settings, kept)
    vocabulary = program.learn(values, text.training) if kept is None else kept.vocabulary(program.signature)
    parts = encoded(program, vocabulary, text, tokens)
    origin = Origin(values, vocabulary, seed, text.sha256)
    if kept is None:
        return Start(origin, parts, program.init(values, vocabulary, seed), History(), None, steps)
    state = kept.state(program.signature, program.runtime)
    return Start(origin, parts, state, kept.history(), kept.done, steps)


def _checkpoint(settings: Settings) -> Checkpoint | None:
    if settings.checkpoint is None or not (settings.checkpoint / NAME).exists():
        return None
    if not settings.resume:
        raise TrainingError(
            f"{settings.checkpoint / NAME} is there already: --resume goes on from it; another folder begins anew"
        )
    return Checkpoint(settings.checkpoint / NAME)


def _values(
    program: TrainingProgram,
    options: Sequence[Option],
    given: Mapping[str, Any],
    settings: Settings,
    kept: Checkpoint | None,
) -> tuple[Record, int]:
    """(the options of the program, the number of steps)"""
    names = {o.field: o.name for o in options}
    shared = next((o.field for o in options if o.name == STEPS), None)
    if shared is not None and settings.steps is not None:
        given = {**given, shared: settings.steps}
    values = program.options()
    if kept is not None:
        before = kept.options(program.signature)
        for name, value in given.items():
            if before[name] != value:
                raise TrainingError(
                    f"{kept.path}: made with --{names[name]} {to_string(before[name])}, and the command line says "
                    f"{to_string(value)}"
                )
        values = with_values(values, before)
    values = with_values(values, given)
    steps = int(field(values, shared)) if shared is not None else settings.steps or DEFAULT_STEPS
    if steps < 1:
        raise TrainingError(f"{steps} steps: there is to be 1 at least")
    return values, steps


def _seed(settings: Settings, kept: Checkpoint | None) -> int:
    if kept is None:
        return DEFAULT_SEED if settings.seed is None else settings.seed
    if settings.seed not in (None, kept.seed):
        raise TrainingError(f"{kept.path}: made with --seed {kept.seed}, and the command line says {settings.seed}")
    return kept.seed


def _text(program: TrainingProgram, settings: Settings, kept: Checkpoint | None) -> Text:
    text = read_text(settings.data or default_text(program.data(), program.folder))
    if kept is not None and kept.sha256 != text.sha256:
        raise TrainingError(f"{kept.path}: made from another text than {text.path} (its SHA-256 was {kept.sha256})")
    return text
