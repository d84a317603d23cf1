"""What holds for every tree: spans, depth, several errors, the front door."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osprey_py.source.diagnostic import OspreyError
from osprey_py.source.span import Source
from osprey_py.syntax import ast
from osprey_py.syntax.parser import parse, parse_or_raise

CASES = sorted((Path(__file__).parent / "cases").glob("*.osp"))


def nodes_in(value: Any) -> Iterator[ast.Node]:
    """The nodes directly inside a field's value."""
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, tuple):
        for v in value:
            yield from nodes_in(v)


def children(node: ast.Node | ast.File) -> list[ast.Node]:
    return [n for f in dataclasses.fields(node) for n in nodes_in(getattr(node, f.name))]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_spans_nest_and_names_are_what_they_cover(path: Path) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    file, _ = parse(source)
    stack = list(children(file))
    assert stack
    while stack:
        node = stack.pop()
        assert node.span.source is source
        assert node.span.start <= node.span.end
        if isinstance(node, ast.Name) and not node.text.isdigit():
            assert node.span.text == node.text
        if isinstance(node, ast.Binary):
            assert node.op_span.text == node.op
        if isinstance(node, ast.StringLiteral):
            assert node.span.text[0] == node.span.text[-1] == '"'
        for child in children(node):
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end, (node, child)
            stack.append(child)


def test_parentheses_belong_to_the_operator_that_holds_them() -> None:
    file, _ = parse(Source("a.osp", "(a + b) * (c)"))
    statement = file.statements[0]
    assert isinstance(statement, ast.ExprStatement)
    assert statement.value.span.text == "(a + b) * (c)"


NESTED = {
    "parentheses": ("(", "1", ")"),
    "lists": ("[", "1", "]"),
    "tuples": ("(1, ", "1", ")"),
    "blocks": ("{ ", "1", " }"),
    "records": ("P { x: ", "1", " }"),
    "prefixes": ("- ", "1", ""),
    "lambdas": ("fn(x) => ", "1", ""),
    "bars": ("|x| => ", "1", ""),
    "calls": ("f(", "1", ")"),
    "operators": ("1 + (", "1", ")"),
    "flat operators": ("1 + ", "1", ""),
    "recoveries": ("x ?: ", "1", ""),
    "else if": ("if a { 1 } else ", "{ 2 }", ""),
    "matches": ("match a { x => ", "1", " }"),
    "interpolations": ('"${', "1", '}"'),
    "handlers": ("handle E op => 1 in ", "1", ""),
    "methods": ("", "x", ".f()"),
    "indexes": ("", "x", "[0]"),
    "pipes": ("", "x", " |> f"),
}


@pytest.mark.parametrize("name", NESTED)
def test_depth_is_no_limit(name: str) -> None:
    """L3.18: ten thousand deep, whole and cut off in the middle."""
    begin, middle, end = NESTED[name]
    depth = 10_000
    whole = "let x = " + begin * depth + middle + end * depth
    assert parse(Source("deep.osp", whole))[1] == []
    _, diagnostics = parse(Source("deep.osp", whole[: len(whole) // 2] + "\n]\nlet y = 1"))
    assert diagnostics


def test_deep_types_and_patterns() -> None:
    """L3.18"""
    n = 10_000
    assert parse(Source("deep.osp", f"let x: {'List<' * n}int{'>' * n} = 1"))[1] == []
    assert parse(Source("deep.osp", f"let {'(a, ' * n}b{')' * n} = 1"))[1] == []


def test_what_is_good_survives_what_is_not() -> None:
    """L1.12: the statements around an error are in the tree."""
    text = "let a = 1\nlet b = )\nfn f() { let c = = 2\n print(1) }\nlet d = 2\ntype = 3\nlet e = 3"
    file, diagnostics = parse(Source("a.osp", text))
    assert [d.span.source.position(d.span.start)[0] for d in diagnostics] == [2, 3, 6]
    lets = [s.pattern for s in file.statements if isinstance(s, ast.Let)]
    assert [p.name.text for p in lets if isinstance(p, ast.NamePattern)] == ["a", "d", "e"]
    assert sum(isinstance(s, ast.FunctionDecl) for s in file.statements) == 1


def test_parse_or_raise() -> None:
    assert parse_or_raise(Source("a.osp", "let x = 1")).statements
    with pytest.raises(OspreyError) as raised:
        parse_or_raise(Source("a.osp", "let x = )\nlet y = ]"))
    assert [d.code for d in raised.value.diagnostics] == ["E0002", "E0002"]


def test_an_empty_file() -> None:
    """L2.1"""
    for text in ("", "\n", "// only a comment", "/// only a document"):
        file, diagnostics = parse(Source("a.osp", text))
        assert (file.namespace, file.statements, diagnostics) == ((), (), [])


def test_line_ends_do_not_matter() -> None:
    """L1.2: a carriage return is white space; columns do not see it."""
    text = "/// doc\nlet a = f\n(1) |> g\nlet b = )\n"
    unix, dos = parse(Source("a.osp", text)), parse(Source("a.osp", text.replace("\n", "\r\n")))
    assert [d.span.place for d in unix[1]] == [d.span.place for d in dos[1]] == ["a.osp:4:9"]
    first = dos[0].statements[0]
    assert isinstance(first, ast.Let) and first.doc == "doc"
    assert len(unix[0].statements) == len(dos[0].statements) == 2
