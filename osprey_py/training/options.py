"""The options of a training program on the command line (spec/training TR3, TR4).

Comes in: the record type of the program's options and its defaults. Goes out: arguments of an argparse parser, what was
given of them, and the record with these values.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from osprey_py.eval.formatting import to_string
from osprey_py.eval.library.text import parse_float, parse_int
from osprey_py.eval.values import VALUE, Record, Success, attribute, field, update
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.training.plain import Leaf
from osprey_py.training.signature import Signature

STEPS = "steps"
"""The one option that the command and a program may share."""

_CAPITAL = re.compile(r"(?<=.)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Option:
    """A field of the options and its name on the command line, without dashes."""

    field: str
    name: str
    kind: type


def program_options(signature: Signature, taken: frozenset[str]) -> list[Option]:
    """In the order of the fields. taken: the names of the command's own. Raises OspreyError for a clash."""
    found: list[Option] = []
    told: list[Diagnostic] = []
    used = dict.fromkeys(taken, "the command has that option itself")
    for name, leaf in signature.options.fields:
        assert isinstance(leaf, Leaf)
        option = Option(name, _CAPITAL.sub("-", name).lower().replace("_", "-"), leaf.kind)
        shared = option.name == STEPS and option.kind is int
        names = [option.name, f"no-{option.name}"] if option.kind is bool else [option.name]
        clash = next((n for n in names if n in used and not shared), None)
        if clash is not None:
            title = f"the field `{name}` of the options would be `--{clash}`"
            told.append(Diagnostic("E0602", title, signature.functions["options"].span, used[clash], help="rename it"))
        used.update((n, f"the field `{name}` is that option") for n in names)
        found.append(option)
    if told:
        raise OspreyError(told)
    return found


def add_program_options(parser: argparse.ArgumentParser, options: list[Option], defaults: Record) -> None:
    """What is not given does not appear in the parsed namespace."""
    group = parser.add_argument_group("options of the program")
    for o in options:
        if o.name == STEPS:
            continue
        said = f"default: {to_string(field(defaults, o.field)) or 'empty'}"
        common: dict[str, Any] = {"dest": _dest(o), "default": argparse.SUPPRESS}
        if o.kind is bool:
            action = argparse.BooleanOptionalAction
            group.add_argument(f"--{o.name}", action=action, help=said.replace("%", "%%"), **common)
        else:
            metavar, read = {int: ("INT", _int), float: ("FLOAT", _float), str: ("TEXT", _text)}[o.kind]
            group.add_argument(f"--{o.name}", metavar=metavar, type=read, help=said.replace("%", "%%"), **common)


def given_values(options: list[Option], parsed: argparse.Namespace) -> dict[str, Any]:
    """The values that stood on the command line, by field."""
    return {o.field: getattr(parsed, _dest(o)) for o in options if hasattr(parsed, _dest(o))}


def with_values(defaults: Record, values: Mapping[str, Any]) -> Record:
    return update(defaults, **{attribute(name): value for name, value in values.items()})


def _dest(o: Option) -> str:
    return f"option {o.field}"


def _int(text: str) -> int:
    found = parse_int(text)
    if type(found) is not Success:
        raise argparse.ArgumentTypeError(f"`{text}` is not an int")
    return int(getattr(found, VALUE))


def _float(text: str) -> float:
    found = parse_float(text)
    if type(found) is not Success or not math.isfinite(getattr(found, VALUE)):
        raise argparse.ArgumentTypeError(f"`{text}` is not a finite float")
    return float(getattr(found, VALUE))


def _text(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
