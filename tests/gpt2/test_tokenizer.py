"""tokenizer.osp against the tokenizers package: random Unicode, real text, and decoding of any bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import reference
from osprey_py.eval.library import unicode
from tests.gpt2.support import PROGRAM, captured, corpus, inside, merge_list, osprey, package_tokenizer

DRIVER = """
import gpt2::{{loadTokenizer, encode, decode, Tokenizer}}

fn numbers(ids: List<int>) -> string = ids |> map(fn(id) => "${{id}}") |> join(" ")

match loadTokenizer({merges}) {{
    Error {{ message }} => print(message)
    Success {{ value: t }} => {{
        let texts = split(readFile({texts}) ?: "", "\\u{{FFFF}}")
        texts |> forEach(fn(text) => print(numbers(encode(t, text))))
        let rows = lines(readFile({ids}) ?: "")
        rows |> forEach(fn(row) => {{
            let ids = split(row, " ") |> map(fn(w) => parseInt(w) ?: -1) |> toList
            print(numbers(toUtf8(decode(t, ids))))
        }})
    }}
}}
"""


def run_driver(folder: Path, merges: Path, texts: list[str], ids: list[list[int]]) -> tuple[list[list[int]], list[str]]:
    """The ids of every text and the text of all ids, by tokenizer.osp, in one run of a program beside it."""
    for source in ("tokenizer.osp", "model.osp", "weights.osp"):
        (folder / source).write_bytes((PROGRAM.parent / source).read_bytes())
    (folder / "texts").write_text("\uffff".join(texts), "utf-8", newline="")
    (folder / "ids").write_text("\n".join(" ".join(map(str, row)) for row in ids), "utf-8")
    names = {key: json.dumps(str(path)) for key, path in (("merges", merges), ("texts", folder / "texts"))}
    driver = folder / "driver.osp"
    driver.write_text(DRIVER.format(**names, ids=json.dumps(str(folder / "ids"))), "utf-8")
    with inside(folder):
        run = captured(osprey, ["run", "driver.osp"])
    assert (run.code, run.error) == (0, "")
    rows = [[int(word) for word in line.split()] for line in run.out.split("\n")]
    return rows[: len(texts)], [bytes(row).decode("utf-8") for row in rows[len(texts) : len(texts) + len(ids)]]


def random_texts(r: random.Random) -> list[str]:
    out = [
        "",
        " ",
        "  ",
        "a",
        "'s",
        "it's  we'll\n\n I'd",
        "don''t 've'RE",
        "x\u0085\u00a0y  ",
        "12ⅷ²3 a1b2",
        "中文 字🙂🙂 e\u0301",
    ]
    for _ in range(150):
        near = "".join(
            r.choice(" \n\t'sdtrevlmé1²Ⅷ中🙂a\u0085\u00a0\u3000\u200b\U00010d40") for _ in range(r.randrange(25))
        )
        far = "".join(
            chr(r.choice([r.randrange(0xD800), r.randrange(0xE000, 0xFFFF), r.randrange(0x10000, 0x110000)]))
            for _ in range(r.randrange(25))
        )
        out += [near, far]
    return out


def test_it_is_the_tokenizers_package_s_on_random_unicode_and_decodes_any_bytes(tmp_path: Path) -> None:
    merges = merge_list()
    package = package_tokenizer(merges)
    r = random.Random(11)
    texts = random_texts(r)
    scattered = [[r.randrange(1000) for _ in range(8)] for _ in range(200)]
    ids, decoded = run_driver(tmp_path, merges, texts, scattered)
    assert ids == [package.encode(text).ids for text in texts]
    assert decoded == [package.decode(row) for row in scattered]


def test_it_is_the_tokenizers_package_s_on_shakespeare(tmp_path: Path) -> None:
    merges, text = merge_list(), corpus()
    ids, _ = run_driver(tmp_path, merges, [text], [])
    assert ids == [package_tokenizer(merges).encode(text).ids]


def test_the_language_s_classes_of_characters_are_reference_py_s() -> None:
    """Over every code point: the table that `isLetter` reads and the one that reference.py carries (Unicode 16.0.0)."""
    names = {0: "other", unicode.LETTER: "letter", unicode.NUMBER: "number", unicode.SPACE: "space"}
    assert [names[c] for c in unicode.classes()] == [reference.kind(chr(c)) for c in range(0x110000)]
