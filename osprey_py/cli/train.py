"""`osprey train PROGRAM …`: drive a module of pure functions over a text (spec/training.md)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from osprey_py.cli.options import Parser, add_backend_options, make_backend, positive, report, split_at_program

if TYPE_CHECKING:
    from osprey_py.training.options import Option
    from osprey_py.training.prepare import Settings
    from osprey_py.training.stopping import Stopping

WITH_VALUE = ("data", "steps", "until", "seed", "checkpoint", "every", "windows", "log", "plot", "threads", "device")
OWN = frozenset((*WITH_VALUE, "resume", "help"))


def main(argv: list[str]) -> int:
    parser = _parser()
    before, rest = split_at_program(argv, [f"--{name}" for name in WITH_VALUE])
    if not rest:
        parser.parse_args(before)
        parser.error("which program? give the path of an .osp file")
    path, words = Path(rest[0]), [*before, *rest[1:]]

    from osprey_py.eval.run import on_big_stack
    from osprey_py.training.errors import TrainingError
    from osprey_py.training.stopping import stopping

    try:
        with stopping() as stop:
            return on_big_stack(lambda: _train(parser, path, words, stop))
    except TrainingError as error:
        print(f"osprey train: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    """Of the command's own options; those of a program join once it is known."""
    parser = Parser(
        "osprey train",
        usage="osprey train PROGRAM [OPTIONS]",
        description="Train what a module of pure functions describes (spec/training.md).",
        epilog="`osprey train PROGRAM --help` lists the options of a program too.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--data", metavar="FILE", type=Path, help="a UTF-8 text to learn from (default: the program's own)")
    add("--steps", metavar="N", type=positive, help="how many steps in all (default: the program's, or 600)")
    add("--until", metavar="N", type=positive, help="end after N steps in all, as if stopped there")
    add("--seed", metavar="S", type=_seed, help="of everything random (default: 0)")
    add("--checkpoint", metavar="DIR", type=Path, help="keep the state there, to go on from")
    add("--every", metavar="N", type=positive, default=50, help="validate and keep every N steps (default: 50)")
    add("--resume", action="store_true", help="go on from the checkpoint, where there is one")
    add("--windows", metavar="N", type=positive, default=0, help="at the end, validate on N windows, evenly spread")
    add("--log", metavar="FILE", type=Path, help="every loss, as JSON lines")
    add("--plot", metavar="FILE", type=Path, help="a PNG picture of both losses (wants matplotlib)")
    add_backend_options(parser)
    return parser


def _seed(text: str) -> int:
    value = int(text) if text.isdecimal() and text.isascii() else -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 0 to 2^63 - 1")
    return value


def _train(parser: argparse.ArgumentParser, path: Path, words: list[str], stop: Stopping) -> int:
    from osprey_py.backends.garbage import keep
    from osprey_py.graph.runtime import Runtime
    from osprey_py.training.drive import drive
    from osprey_py.training.options import add_program_options, given_values, program_options
    from osprey_py.training.program import TrainingProgram, load_training_program

    checked, signature, warnings = load_training_program(path)
    report(warnings)
    options = program_options(signature, OWN)
    # The backend runs the program, and the program has the defaults that the parser shows.
    early, _ = _parser().parse_known_args([word for word in words if word not in ("-h", "--help")])
    folder = path if path.is_dir() else path.parent
    runtime = Runtime(make_backend(early.device, early.threads), plain_calls=1)
    program = TrainingProgram(checked, signature, runtime, folder)
    add_program_options(parser, options, program.options())
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(_unknown(unknown[0], options))
    if parsed.resume and parsed.checkpoint is None:
        parser.error("--resume: from where? give --checkpoint DIR")
    keep()
    return drive(program, options, given_values(options, parsed), _settings(parsed), stop)


def _settings(parsed: argparse.Namespace) -> Settings:
    from osprey_py.training.prepare import Settings

    return Settings(
        data=parsed.data,
        steps=parsed.steps,
        until=parsed.until,
        seed=parsed.seed,
        checkpoint=parsed.checkpoint,
        every=parsed.every,
        resume=parsed.resume,
        windows=parsed.windows,
        log=parsed.log,
        plot=parsed.plot,
    )


def _unknown(word: str, options: list[Option]) -> str:
    from osprey_py.source.suggest import did_you_mean

    if not word.startswith("-"):
        return f"what is `{word}`?"
    name = word.split("=")[0]
    hint = did_you_mean(name, [f"--{n}" for n in [*(o.name for o in options), *sorted(OWN)]])
    return f"there is no option `{name}`" + (f"; {hint}" if hint else "")
