"""The standard library's examples (B7.1): each ```osprey block in a `///` comment is a program. A line
`expression  // => text` prints that text (L1.3, L7.2, L7.5)."""

from __future__ import annotations

import io
import re

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import check_source, load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.modules.paths import stdlib_path
from osprey_py.source.render import render

FILES = sorted(stdlib_path().glob("*.osp"))
BLOCK = re.compile(r"^/// ```osprey\n((?:///.*\n)*?)/// ```$", re.MULTILINE)
PROMISE = re.compile(r"^(.*\S)\s*// => (.*)$", re.MULTILINE)
EXPORTED = re.compile(r"((?:^///.*\n)*)^export (?:fn|let|type) (\w+)", re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    found = []
    for path in FILES:
        for doc, name in EXPORTED.findall(path.read_text(encoding="utf-8")):
            found += [(f"{path.stem}::{name}", re.sub(r"^/// ?", "", b, flags=re.M)) for b in BLOCK.findall(doc)]
    return found


@pytest.mark.parametrize(("name", "example"), examples(), ids=[name for name, _ in examples()])
def test_example(name: str, example: str) -> None:
    program, told = check_source(PROMISE.sub(r"print(\1)", example), f"{name}.osp")
    assert program is not None and not told, "\n".join(map(render, told))
    out, err = io.StringIO(), io.StringIO()
    code = run_program(program, runtime=Runtime(OracleBackend()), stdout=out, stderr=err, stdin=io.StringIO())
    promised = "".join(f"{text}\n" for _, text in PROMISE.findall(example))
    assert promised
    assert (code, out.getvalue(), err.getvalue()) == (0, promised, "")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_checks_and_every_exported_name_is_documented(path) -> None:
    program, told = load_program(path)
    assert program is not None and not told, "\n".join(map(render, told))
    for doc, name in EXPORTED.findall(path.read_text(encoding="utf-8")):
        assert doc, f"{name} has no `///`"
        assert path.stem == "prelude" or "```osprey" in doc, f"{name} has no example"


def output(text: str) -> str:
    program, told = check_source(text)
    assert program is not None and not told, "\n".join(map(render, told))
    out, err = io.StringIO(), io.StringIO()
    assert run_program(program, runtime=Runtime(OracleBackend()), stdout=out, stderr=err, stdin=io.StringIO()) == 0
    return out.getvalue()


def test_sorting_is_stable() -> None:
    for n in (*range(10), 100):
        pairs = [((i * 7919) % 7, i) for i in range(n)]
        program = f"import list::{{sortBy}}\nprint(sortBy({pairs}, fn(p) => {{ let (k, _) = p  k }}))"
        assert output(program) == f"{sorted(pairs, key=lambda p: p[0])}\n"


def test_long_lists_need_no_stack() -> None:
    program = """
        import list::{any, all, find, zip, sort}
        import result::{collect}
        let xs = toList(range(0, 110000))
        print([any(xs, fn(x) => x < 0), all(xs, fn(x) => x >= 0)])
        print(find(xs, fn(x) => x == 109999))
        print((length(zip(xs, xs)), length(sort(xs)), length(collect(xs |> map(fn(x) => Success(x)) |> toList) ?: [])))
    """
    assert output(program) == "[false, true]\nSuccess(109999)\n(110000, 110000, 110000)\n"
