"""A whole run: what it opens, what it says, how it ends (spec/training TR11-TR15).

Comes in: a program, its options, the settings of the command. Goes out: the exit code; 0 also when `--until` ends the run,
128 + the signal when one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from osprey_py.training.checkpoint import Keeper, held
from osprey_py.training.log import Log
from osprey_py.training.loop import Plan, Run
from osprey_py.training.options import Option
from osprey_py.training.plain import to_json
from osprey_py.training.plot import ensure_plots
from osprey_py.training.prepare import Settings, Start, start
from osprey_py.training.program import TrainingProgram
from osprey_py.training.stopping import Stopping


def drive(
    program: TrainingProgram,
    options: Sequence[Option],
    given: Mapping[str, Any],
    settings: Settings,
    stop: Stopping,
) -> int:
    """Raises TrainingError and OspreyError; files are then as the last step left them."""
    if settings.plot is not None:
        ensure_plots(settings.plot)
    with ExitStack() as opened:
        if settings.checkpoint is not None:
            opened.enter_context(held(settings.checkpoint))
        begin = start(program, options, given, settings)
        parameters = program.parameters(begin.state)
        size = program.vocabulary_size(begin.origin.vocabulary)
        print(f"{parameters:,} parameters, vocabulary {size:,}", flush=True)
        if begin.saved is not None:
            print(f"{begin.saved:,} of {begin.steps:,} steps are taken", flush=True)
        log = None
        if settings.log is not None:
            log = Log(settings.log)
            opened.callback(log.close)
            values = to_json(program.signature.options, begin.origin.options)
            log.head(parameters, size, begin.origin.seed, values, begin.history)
        return _run(program, begin, settings, log, f"{parameters:,} parameters", stop)


def _run(
    program: TrainingProgram, begin: Start, settings: Settings, log: Log | None, title: str, stop: Stopping
) -> int:
    keeper = None
    if settings.checkpoint is not None:
        keeper = Keeper(settings.checkpoint, program.signature, program.runtime, begin.origin)
        keeper.saved = begin.saved
    until = min(begin.steps, settings.until or begin.steps)
    plan = Plan(begin.steps, until, settings.every, settings.windows, settings.plot, title)
    run = Run(program, begin.origin, begin.parts, plan, keeper=keeper, log=log, stop=stop)
    state, history = run.go(begin.state, begin.history), begin.history
    if history.done < begin.steps:
        kept = "--resume goes on" if keeper is not None else "nothing was kept, for there is no --checkpoint"
        print(f"stopped after {history.done:,} of {begin.steps:,} steps; {kept}", flush=True)
        return 128 + stop.signal if stop.signal else 0
    if plan.windows:
        count, loss = run.thorough(state)
        print(f"validation over {count:,} windows: {loss:.4f}", flush=True)
        if log is not None:
            log.windows(count, loss)
    text = program.sample(begin.origin.options, begin.origin.vocabulary, state, begin.origin.seed)
    if log is not None:
        log.sample(text)
    print(f"\n{text}", flush=True)
    return 0
