"""The world: output, input, files, the process, chance (spec/library B5). Pending launches that may fault run before
every observable effect."""

from __future__ import annotations

import os
import random
from typing import Any

from osprey_py.eval.formatting import to_string
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, List, Success, make_list
from osprey_py.eval.world import ProgramExit, World


@builtin("print", world=True)
def print_line(w: World, x: Any) -> tuple[()]:
    text = to_string(x)
    w.runtime.barrier()
    w.stdout.write(text + "\n")
    w.stdout.flush()
    return ()


@builtin("write", world=True)
def write(w: World, x: Any) -> tuple[()]:
    text = to_string(x)
    w.runtime.barrier()
    w.stdout.write(text)
    w.stdout.flush()
    return ()


@builtin("printError", world=True)
def print_error(w: World, x: Any) -> tuple[()]:
    text = to_string(x)
    w.runtime.barrier()
    w.stderr.write(text + "\n")
    w.stderr.flush()
    return ()


@builtin("input", world=True)
def read_line(w: World) -> Any:
    """A line of standard input without its end; an Error when there is no more."""
    w.runtime.barrier()
    try:
        line = w.stdin.readline()
        line.encode("utf-8")
    except UnicodeError:
        return Error("input: not UTF-8")
    except OSError as e:
        return Error(f"input: {_reason(e)}")
    if not line:
        return Error("input: end of input")
    return Success(line.removesuffix("\n").removesuffix("\r"))


@builtin("args", world=True)
def arguments(w: World) -> List:
    return make_list(list(w.args))


@builtin("programFolder", world=True)
def program_folder(w: World) -> str:
    return w.folder


def _reason(e: OSError | ValueError) -> str:
    return (e.strerror or "cannot be used").lower() if isinstance(e, OSError) else "not a file name"


@builtin("readFile", world=True)
def read_file(w: World, path: str) -> Any:
    w.runtime.barrier()
    try:
        with open(path, "rb") as f:
            return Success(f.read().decode("utf-8"))
    except UnicodeDecodeError as e:
        return Error(f"readFile: {path}: not UTF-8 at byte {e.start}")
    except (OSError, ValueError) as e:
        return Error(f"readFile: {path}: {_reason(e)}")


def _write(w: World, name: str, path: str, mode: str, data: bytes) -> Any:
    w.runtime.barrier()
    try:
        with open(path, mode) as f:
            f.write(data)
    except (OSError, ValueError) as e:
        return Error(f"{name}: {path}: {_reason(e)}")
    return Success(())


@builtin("writeFile", world=True)
def write_file(w: World, path: str, text: str) -> Any:
    return _write(w, "writeFile", path, "wb", text.encode("utf-8"))


@builtin("appendFile", world=True)
def append_file(w: World, path: str, text: str) -> Any:
    return _write(w, "appendFile", path, "ab", text.encode("utf-8"))


@builtin("writeBytes", world=True)
def write_bytes(w: World, path: str, data: List) -> Any:
    items = list(data)
    bad = next((x for x in items if not 0 <= x <= 255), None)
    if bad is not None:
        return Error(f"writeBytes: {bad} is not a byte")
    return _write(w, "writeBytes", path, "wb", bytes(items))


@builtin("fileExists", world=True)
def file_exists(w: World, path: str) -> bool:
    w.runtime.barrier()
    return os.path.exists(path) if "\0" not in path else False


@builtin("isTerminal", world=True)
def is_terminal(w: World) -> bool:
    return w.stdout.isatty()


@builtin("exit", world=True)
def leave(w: World, code: int) -> Any:
    w.runtime.barrier()
    raise ProgramExit(code & 0xFF)


def _random(w: World) -> random.Random:
    if w.random is None:
        w.random = random.Random()
    found: random.Random = w.random
    return found


@builtin("random", world=True)
def random_float(w: World) -> float:
    """In [0, 1)."""
    w.runtime.barrier()
    return _random(w).random()


@builtin("randomBelow", world=True)
def random_below(w: World, n: int) -> int:
    """In 0 … n-1; 0 for n <= 0."""
    w.runtime.barrier()
    return _random(w).randrange(n) if n > 0 else 0
