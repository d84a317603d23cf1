"""The command `osprey`: picks a command and hands it the rest of the line.

Exit codes: 0 done; 1 the program or its input is wrong (a diagnostic says what); 2 the command line is wrong.
Commands are imported only when chosen, so that `osprey --version` starts at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import StringIO, TextIOWrapper

COMMANDS = {
    "run": "run a program",
    "check": "check a program without running it: types, effects, purity of kernels",
    "train": "train what a module of pure functions describes",
    "test": "run the tests in *.test.osp files",
    "explain": "say what a diagnostic code means, with a wrong program and a right one",
    "devices": "list the devices: what each can do, or why it cannot be used",
    "conform": "compare a backend with the oracle, byte for byte",
    "diff": "say where two traces first differ",
}
"""Each lives in the module of its name beside this one, as `main(argv) -> exit code`."""

HELP = """\
osprey: a pure functional language whose GPU kernels are ordinary functions, with one right answer for every number

usage: osprey COMMAND [OPTIONS] ...

commands:
{commands}

options:
  -h, --help     this text; `osprey COMMAND --help` for one command
  --version      the version of osprey and of its numerical contract

A first program, in hello.osp:

    fn square(x) = x * x
    let total = gpuIota(10) |> gpuMap(square) |> gpuFold(0, fn(a, b) => a + b)
    print("the first ten squares add up to ${{total}}")

    $ osprey run hello.osp
    the first ten squares add up to 285
"""


def version() -> str:
    from osprey_py import CONTRACT_VERSION, __version__

    return f"osprey {__version__} (contract {CONTRACT_VERSION})"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _prepare_streams()
    try:
        code = _command(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`osprey run … | head`): nothing to say, and nobody to say it to.
        sys.stdout = None
        return 1
    except OSError as error:
        # What a program reads and writes by name is told where it happens; this is most likely a full disk.
        sys.stdout = None
        print(f"osprey: {error.filename or 'standard output'}: {error.strerror or error}", file=sys.stderr)
        return 1


def _command(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(HELP.format(commands="\n".join(f"  {n.ljust(width)}  {text}" for n, text in COMMANDS.items())), end="")
        return 0
    if args[0] in ("--version", "-V"):
        print(version())
        return 0
    if args[0] not in COMMANDS:
        print(_unknown(args[0]), file=sys.stderr)
        return 2
    from osprey_py.backends.garbage import seldom

    with seldom():
        return _called(args[0], args[1:])


def _called(name: str, args: list[str]) -> int:
    command: Callable[[list[str]], int] = import_module(f"osprey_py.cli.{name}").main
    from osprey_py.backends.protocol import DeviceError
    from osprey_py.source.diagnostic import OspreyError

    try:
        return command(args)
    except OspreyError as error:
        from osprey_py.cli.options import report

        report(error.diagnostics)
        return 1
    except DeviceError as error:
        print(f"osprey: the device failed: {error.text}", file=sys.stderr)
        return 1


def _prepare_streams() -> None:
    """Text is UTF-8 whatever the locale says. What a path or an argument holds of other bytes is shown escaped; what
    input holds of them stays recognisable. A stream that was closed before we began is empty, or takes anything."""
    sys.stdin = sys.stdin or StringIO()
    sys.stdout = sys.stdout or StringIO()
    sys.stderr = sys.stderr or StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    if near:
        return f"osprey: no command `{word}`; did you mean `osprey {near[0]}`?"
    if word.endswith(".osp"):
        return f"osprey: no command `{word}`; to run a program: `osprey run {word}`"
    return f"osprey: no command `{word}`; `osprey --help` lists them"


if __name__ == "__main__":
    sys.exit(main())
