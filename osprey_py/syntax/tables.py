"""The parse tables of grammar.lark.

Comes in: the grammar. Goes out: `Tables`, plain integers for syntax/machine.py. Lark makes them in about a quarter of a
second; they are kept as JSON in the user's cache folder, under a name that says which grammar made them, so a stale
file is never read, and one that is missing or broken only costs that time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from osprey_py.syntax.tokens import END

_FORMAT = "1"
_GRAMMAR = Path(__file__).with_name("grammar.lark")


@dataclass(frozen=True, slots=True)
class Rule:
    """One alternative. name: of the action that builds its value, empty when the only child is passed on.
    gaps: how many None go before each child and after the last, for optional parts that are absent.
    spliced: the children that are lists made by a repetition, whose items become children."""

    origin: str
    length: int
    name: str
    gaps: tuple[int, ...]
    spliced: tuple[int, ...]

    @property
    def repeats(self) -> bool:
        """Whether it is a rule that lark made for `*` or `+`."""
        return self.origin.startswith("__")


@dataclass(frozen=True, slots=True)
class Tables:
    """steps[state][symbol]: the next state, or -1 - k to reduce by rules[k]."""

    steps: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    start: int


@cache
def load() -> Tables:
    """The tables, from the cache folder where they are there."""
    grammar = _GRAMMAR.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{_FORMAT}\0{grammar}".encode()).hexdigest()[:16]
    path = _cache_folder() / f"grammar-{key}.json"
    try:
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        tables = build(grammar)
        _store(path, json.dumps(_to_json(tables), separators=(",", ":")))
        return tables


def build(grammar: str) -> Tables:
    """The tables of a grammar, made by lark; raises lark's GrammarError when it has a reduce/reduce conflict."""
    from lark import Lark
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        def __init__(self, _conf: object) -> None:
            pass

        def lex(self, *_: object) -> Iterator[Any]:
            return iter(())

    made: Any = Lark(grammar, parser="lalr", lexer=NoLexer, keep_all_tokens=True, maybe_placeholders=True)
    table = made.parser.parser._parse_table
    # Lark numbers states by walking sets; here they are numbered by a walk from the start, so that the same grammar
    # gives the same file.
    start = table.start_states["start"]
    numbers, queue = {start: 0}, [start]
    rules: dict[Any, int] = {}
    steps: list[dict[str, int]] = []
    for state in queue:
        row: dict[str, int] = {}
        for symbol, (action, target) in sorted(table.states[state].items()):
            if str(action) == "Shift":
                if target not in numbers:
                    numbers[target] = len(numbers)
                    queue.append(target)
                row[symbol] = numbers[target]
            else:
                row[symbol] = -1 - rules.setdefault(target, len(rules))
        steps.append(row)
    steps[numbers[table.end_states["start"]]][END] = 0  # the file is whole: the machine stops there
    return Tables(tuple(steps), tuple(map(_rule, rules)), 0)


def _rule(rule: Any) -> Rule:
    origin = str(rule.origin.name)
    symbols = [s.name for s in rule.expansion]
    passes = len(symbols) == 1 and not rule.alias and (rule.options.expand1 or origin.startswith("_"))
    empty = rule.options.empty_indices or (False,) * len(symbols)
    gaps = tuple(len(run) for run in "".join("1" if e else "0" for e in empty).split("0"))
    spliced = tuple(k for k, s in enumerate(symbols) if s.startswith("__"))
    if passes and not origin.startswith("__") and not any(gaps):
        return Rule(origin, 1, "", (0, 0), ())
    return Rule(origin, len(symbols), str(rule.alias or origin), gaps, spliced)


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "osprey"


def _store(path: Path, text: str) -> None:
    """Writes the file whole or not at all; a cache that cannot be written is no error."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        pass


def _to_json(tables: Tables) -> dict[str, Any]:
    rules = [[r.origin, r.length, r.name, r.gaps, r.spliced] for r in tables.rules]
    return {"steps": tables.steps, "rules": rules, "start": tables.start}


def _from_json(data: Any) -> Tables:
    rules = tuple(Rule(o, n, name, tuple(gaps), tuple(spliced)) for o, n, name, gaps, spliced in data["rules"])
    return Tables(tuple(data["steps"]), rules, data["start"])
