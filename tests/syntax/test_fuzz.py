"""Any text is read to its end: no exception, no hang, spans inside the text, diagnostics that can be rendered."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from osprey_py.source.codes import CODES
from osprey_py.source.render import render, to_json
from osprey_py.source.span import Source
from osprey_py.syntax.lexer import tokenize
from osprey_py.syntax.parser import parse
from osprey_py.syntax.tokens import KEYWORDS, PUNCTUATION

HERE = Path(__file__).parent
PROGRAMS = [
    p.read_text(encoding="utf-8")
    for folder in (HERE / "cases", HERE.parent / "errors" / "syntax")
    for p in sorted(folder.glob("*.osp"))
]
WORDS = [
    *KEYWORDS,
    *PUNCTUATION,
    "x",
    "Point",
    "1",
    "2.5",
    '"s"',
    '"a${',
    '}"',
    '"',
    "\\",
    "\n",
    "\n    ",
    "///",
    "//",
    "é",
]


def read(text: str) -> None:
    source = Source("fuzz.osp", text)
    file, diagnostics = parse(source)
    assert file.source is source
    for d in diagnostics:
        assert d.code in CODES
        assert 0 <= d.span.start <= d.span.end <= len(text)
        assert render(d).startswith("error[")
        assert render(d, color=True)
        to_json(d)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    read(data.decode("utf-8", "replace"))


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200))
def test_text(text: str) -> None:
    read(text)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=80), st.sampled_from(["", " "]))
def test_words(words: list[str], between: str) -> None:
    read(between.join(words))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_mutated_programs(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(PROGRAMS))
    for _ in range(data.draw(st.integers(1, 6))):
        tokens = tokenize(Source("a.osp", text))[0]
        token = tokens[data.draw(st.integers(0, len(tokens) - 1))]
        end = tokens[min(len(tokens) - 1, data.draw(st.integers(0, len(tokens) - 1)))].end
        replacement = data.draw(st.sampled_from(["", " ", *WORDS, text[token.start : max(token.start, end)][:200]]))
        text = text[: token.start] + replacement + text[token.end :]
    read(text)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_cut_programs(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(PROGRAMS))
    read(text[: data.draw(st.integers(0, len(text)))])
