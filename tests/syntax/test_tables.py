"""The grammar and what stands beside it: tokens, actions, the cache."""

from __future__ import annotations

import logging
from pathlib import Path

import lark
import pytest

from osprey_py.source.span import Source
from osprey_py.syntax import tables
from osprey_py.syntax.build import FileActions
from osprey_py.syntax.tokens import END, KEYWORDS, PUNCTUATION, REFINED

GRAMMAR = (Path(tables.__file__).parent / "grammar.lark").read_text(encoding="utf-8")


def test_tokens_are_the_grammars() -> None:
    """L1.7, L1.10: the lexer's tables name the terminals of the grammar, no more and no fewer."""
    written = {
        line.split(":", 1)[0]: line.split('"')[1]
        for line in GRAMMAR.splitlines()
        if line[:1].isupper() and '"' in line and ":" in line.split('"')[0]
    }
    assert written == {kind: text for text, kind in {**KEYWORDS, **PUNCTUATION}.items()}
    used = {symbol for row in tables.load().steps for symbol in row if symbol.isupper()} | {"UNDERSCORE"}
    literals = {"NAME", "INT", "FLOAT", "STRING", "STRING_BEGIN", "STRING_MIDDLE", "STRING_END", "ERROR"}
    assert used - {END} == set(written) | set(REFINED) | literals


def test_every_alternative_has_its_action_and_every_action_its_alternative() -> None:
    named = {rule.name for rule in tables.load().rules if rule.name and not rule.repeats}
    built = {name.removeprefix("on_") for name in dir(FileActions) if name.startswith("on_")}
    assert named == built
    actions = FileActions(Source("a.osp", ""))
    assert all(callable(actions.action(name)) for name in named)


def test_the_only_choices_left_are_how_far_right_something_reaches(caplog: pytest.LogCaptureFixture) -> None:
    """L3.6: the grammar is LALR(1) but for lambdas and handlers as last operands, and the row of an arrow; there the parser
    reads on."""
    level = lark.logger.level
    lark.logger.addHandler(caplog.handler)
    try:
        lark.logger.setLevel(logging.DEBUG)
        tables.build(GRAMMAR)
    finally:
        lark.logger.setLevel(level)
        lark.logger.removeHandler(caplog.handler)
    rules = [r.getMessage().strip(" *<>") for r in caplog.records if r.getMessage().startswith(" *")]
    heads = {rule.split(" : ")[0] for rule in rules}
    assert heads == {"expr", "or", "comparison", "sum", "product", "type_without_row"}
    assert {r for r in rules if r.startswith("type_without_row")} == {"type_without_row : arrow"}


def test_the_cache_is_used_and_a_broken_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = tables.load.__wrapped__()
    (kept,) = (tmp_path / "osprey").iterdir()
    text = kept.read_text(encoding="utf-8")

    def fail(_: str) -> tables.Tables:
        raise AssertionError("the tables were made again")

    with monkeypatch.context() as patch:
        patch.setattr(tables, "build", fail)
        assert tables.load.__wrapped__() == made
    for broken in ("", "{}", text[: len(text) // 2], "[1]"):
        kept.write_text(broken, encoding="utf-8")
        assert tables.load.__wrapped__() == made
        assert kept.read_text(encoding="utf-8") == text


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert tables.load.__wrapped__().steps
