"""The renderer: what people see and what tools get."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from osprey_py.source.columns import show_line
from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.render import WIDTH, render, to_json
from osprey_py.source.span import NO_SPAN, Source, Span
from tests import snapshots

SHOP = Source(
    "shop.osp", "let x = 1\n\tlet 漢字 = foo(a, b)\nlet y = match x {\n  1 => 2\n  2 => 3\n  3 => 4\n}\nend\n"
)
OTHER = Source("lib/other.osp", "\n" * 99 + "fn foo(a) = a\n")
LONG = Source("long.osp", "let z = " + "a + " * 100 + "q" + " + b" * 60 + "\n")


def at(source: Source, text: str) -> Span:
    start = source.text.index(text)
    return Span(source, start, start + len(text))


CASES = {
    "bare": Diagnostic("E0001", "nothing is known of the place", NO_SPAN, "a text", help="a remedy"),
    "unread": Diagnostic("E0017", "cannot read a.osp: No such file", Span(Source("a.osp", ""), 0, 0)),
    "plain": Diagnostic("E0001", "a title", at(SHOP, "1"), "here"),
    "no text": Diagnostic("E0001", "a title", at(SHOP, "1")),
    "warning": Diagnostic("W0401", "a warning", at(SHOP, "x")),
    "wide and tab": Diagnostic("E0001", "a title", at(SHOP, "foo"), "behind", (Label(at(SHOP, "漢字"), "wide"),)),
    "hanging": Diagnostic(
        "E0001",
        "three things on a line",
        at(SHOP, "foo(a, b)"),
        "the call",
        (Label(at(SHOP, "漢字"), "the name"), Label(at(SHOP, "b)"), "the last"), Label(at(SHOP, "let 漢"), "")),
    ),
    "two files": Diagnostic(
        "E0001",
        "a title",
        at(SHOP, "foo"),
        "used here",
        (Label(at(OTHER, "foo"), "declared here"), Label(at(SHOP, "x"), "and this")),
        ("a note", "a note\nof two lines"),
        "a remedy",
    ),
    "several lines": Diagnostic(
        "E0001", "a title", Span(SHOP, at(SHOP, "match").start, at(SHOP, "end").start - 1), "all of it"
    ),
    "inside several lines": Diagnostic(
        "E0001",
        "a title",
        at(SHOP, "2 => 3"),
        "this arm",
        (Label(Span(SHOP, at(SHOP, "match").start, at(SHOP, "end").start - 1), "of this"),),
    ),
    "far apart": Diagnostic("E0001", "a title", at(SHOP, "end"), "here", (Label(at(SHOP, "let x"), "there"),)),
    "end of file": Diagnostic("E0001", "a title", Span(SHOP, len(SHOP.text), len(SHOP.text)), "here"),
    "end of line": Diagnostic("E0001", "a title", Span(SHOP, 9, 9), "here"),
    "long line": Diagnostic("E0001", "a title", at(LONG, "q"), "here"),
    "long line, beginning": Diagnostic("E0001", "a title", at(LONG, "z"), "here"),
    "long line, all": Diagnostic("E0001", "a title", Span(LONG, 0, len(LONG.text) - 1), "here"),
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    path = Path(__file__).parent / "rendered" / f"{name.replace(' ', '_').replace(',', '')}.txt"
    snapshots.check(render(CASES[name]) + "\n", path)


@pytest.mark.parametrize("name", CASES)
def test_colour_only_adds_colour(name: str) -> None:
    coloured = render(CASES[name], color=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert plain.split() == render(CASES[name]).split()
    assert "\x1b" not in render(CASES[name])


def test_carets_stand_under_what_they_mean() -> None:
    """Also behind a tab and behind characters two columns wide."""
    lines = render(CASES["wide and tab"]).splitlines()
    text, under = lines[3], lines[4]
    assert text == "2 |     let 漢字 = foo(a, b)"
    # 漢字 takes four columns and two characters.
    assert under.index("^^^") == text.index("foo") + 2
    assert under.index("----") == text.index("漢")


def test_nothing_in_a_source_line_reaches_the_terminal_raw() -> None:
    source = Source("a.osp", "let x = \x1b[31m\x07\u202e\u200b\x7f\x85 1")
    shown = render(Diagnostic("E0001", "t", Span(source, 4, 5)))
    assert all(c.isprintable() or c in "\n\ufffd" for c in shown)


def test_columns() -> None:
    assert show_line("a\tb").text == "a   b"
    assert show_line("\ta").columns == (0, 4, 5)
    assert show_line("e\u0301x").columns == (0, 1, 1, 2)
    assert show_line("漢x").columns == (0, 2, 3)


def test_long_lines_are_cut() -> None:
    for name in ("long line", "long line, beginning", "long line, all"):
        assert all(len(line) <= WIDTH + 10 for line in render(CASES[name]).splitlines())


def test_json() -> None:
    data = json.loads(json.dumps(to_json(CASES["two files"])))
    assert data["severity"] == "error" and data["code"] == "E0001" and data["title"] == "a title"
    assert (data["path"], data["line"], data["column"], data["endLine"], data["endColumn"]) == (
        "shop.osp",
        2,
        11,
        2,
        14,
    )
    assert SHOP.text[data["start"] : data["end"]] == "foo"
    assert data["labels"][0]["path"] == "lib/other.osp" and data["labels"][0]["line"] == 100
    assert data["notes"] == ["a note", "a note\nof two lines"] and data["help"] == "a remedy"
    assert to_json(CASES["warning"])["severity"] == "warning"
