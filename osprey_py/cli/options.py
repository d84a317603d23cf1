"""What the commands share: option parsing with exit code 2, diagnostics on the terminal, the chosen backend."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from typing import NoReturn, TextIO

from osprey_py.backends.protocol import Backend
from osprey_py.source.diagnostic import Diagnostic


class Parser(argparse.ArgumentParser):
    """Errors are one clear sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (`{self.prog} --help` explains)", file=sys.stderr)
        raise SystemExit(2)


def positive(text: str) -> int:
    """argparse type of a count."""
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number of at least 1")
    return value


def split_at_program(argv: list[str], with_value: Iterable[str]) -> tuple[list[str], list[str]]:
    """(osprey's own options, the program's path and all that follows it).

    The path is the first word that is neither an option nor the value of one (`with_value`: the options that take one).
    """
    takes = set(with_value)
    at = 0
    while at < len(argv):
        word = argv[at]
        if word == "--":
            return argv[:at], argv[at + 1 :]
        if not word.startswith("-") or word == "-":
            return argv[:at], argv[at:]
        at += 2 if word in takes else 1
    return argv, []


def use_colour(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def report(diagnostics: Iterable[Diagnostic]) -> None:
    """Render to standard error; on a terminal, say where more is told."""
    from osprey_py.source.render import render

    told = list(diagnostics)
    colour = use_colour(sys.stderr)
    if told:
        print("\n\n".join(render(diagnostic, color=colour) for diagnostic in told), file=sys.stderr)
    if told and sys.stderr.isatty():
        print(f"\n`osprey explain {told[0].code}` says more", file=sys.stderr)


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="NAME", default="host", help="the backend that runs the kernels (default: host)"
    )
    parser.add_argument(
        "--threads", metavar="N", type=positive, help="threads of the host backend (default: every core)"
    )


BACKEND_OPTIONS = ("--device", "--threads")
"""The options of add_backend_options that take a value."""


def make_backend(name: str, threads: int | None) -> Backend:
    """The backend called `name`. SystemExit(2) when there is none, SystemExit(1) with the reason when it is of no use
    on this machine."""
    if name == "host":
        from osprey_py.backends.host import HostBackend

        return HostBackend(threads=threads)
    from osprey_py.backends.discovery import NoSuchDevice, names, open_device
    from osprey_py.backends.protocol import Unusable

    try:
        return open_device(name)
    except NoSuchDevice:
        print(f"osprey: no device `{name}`; there are: {', '.join(names())}", file=sys.stderr)
        raise SystemExit(2) from None
    except Unusable as error:
        remedy = f" ({error.help})" if error.help else ""
        print(f"osprey: device `{name}` cannot be used: {error.text}{remedy}", file=sys.stderr)
        raise SystemExit(1) from None
