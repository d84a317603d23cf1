"""Built-ins: complete, and right at their edges."""

from __future__ import annotations

import io
import math

import pytest
from core_build import (
    NO_SPAN,
    span,
    world,
)

from osprey_py.check.builtins import SIGNATURES
from osprey_py.eval.formatting import to_string
from osprey_py.eval.library import scalars, text, unicode
from osprey_py.eval.pipelines import elements
from osprey_py.eval.registry import BUILTINS, CONSTANTS
from osprey_py.eval.unit import Unit
from osprey_py.eval.values import Success, make_list
from osprey_py.kernel.fault import MathFault


def test_every_builtin_is_implemented():
    """B0.1"""
    assert Unit
    assert set(BUILTINS) | set(CONSTANTS) == set(SIGNATURES)
    constants = {name for name, s in SIGNATURES.items() if "(" not in s}
    assert set(CONSTANTS) == constants


def use(name, *args):
    return BUILTINS[name].call(*args)


def shown(name, *args):
    return to_string(use(name, *args))


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("split", ("a,b,,c", ","), '["a", "b", "", "c"]'),
        ("split", ("", ","), '[""]'),
        ("split", ("aé", ""), '["a", "é"]'),
        ("lines", ("a\r\nb\n\nc\n",), '["a", "b", "", "c"]'),
        ("lines", ("",), "[]"),
        ("lines", ("a\rb\x0bc",), '["a\\rb\\u{B}c"]'),
        ("words", (" a\u3000b \x1c c ",), '["a", "b", "\\u{1C}", "c"]'),
        ("trim", ("\u00a0 a\x1f ",), "a\x1f"),
        ("substring", ("hello", 1, 3), "el"),
        ("substring", ("hello", -5, 2), "he"),
        ("substring", ("hello", 4, 99), "o"),
        ("substring", ("hello", 3, 1), ""),
        ("substring", ("hello", -3, -1), ""),
        ("take", ("abc", -1), ""),
        ("drop", ("abc", 2), "c"),
        ("replace", ("aaa", "a", "b"), "bbb"),
        ("replace", ("abc", "", "x"), "abc"),
        ("repeat", ("ab", 2), "abab"),
        ("repeat", ("ab", -1), ""),
        ("reverse", ("añb",), "bña"),
        ("padStart", ("7", 3, "0"), "007"),
        ("padEnd", ("7", 4, "ab"), "7aba"),
        ("padStart", ("7", 3, ""), "7"),
        ("toUpperCase", ("straße ǆ",), "STRASSE Ǆ"),
        ("toLowerCase", ("ΑΣ Å",), "ας å".replace("ς", "σ")),
        ("indexOf", ("hello", "l"), "Success(2)"),
        ("indexOf", ("hello", "z"), 'Error(indexOf: no "z" in the text)'),
        ("parseInt", ("42",), "Success(42)"),
        ("parseInt", ("-9223372036854775808",), "Success(-9223372036854775808)"),
        ("parseInt", ("9223372036854775808",), 'Error(parseInt: "9223372036854775808" is out of range)'),
        ("parseInt", ("4 2",), 'Error(parseInt: "4 2" is not an int)'),
        ("parseInt", ("٣",), 'Error(parseInt: "٣" is not an int)'),
        ("parseInt", ("1" * 5000,), f'Error(parseInt: "{"1" * 5000}" is out of range)'),
        ("parseFloat", ("1e5",), "Success(100000.0)"),
        ("parseFloat", ("3",), "Success(3.0)"),
        ("parseFloat", ("-inf",), "Success(-inf)"),
        ("parseFloat", ("1_0.0",), 'Error(parseFloat: "1_0.0" is not a float)'),
        ("byteLength", ("é",), "2"),
        ("byteAt", ("é", 1), "Success(169)"),
        ("byteAt", ("é", 2), "Error(byteAt: index 2 out of bounds for 2 bytes)"),
        ("codePointAt", ("é", 0), "Success(233)"),
        ("fromCodePoint", (0xD800,), "Error(fromCodePoint: 55296 is not a Unicode scalar value)"),
        ("codePointWidth", (0x20AC,), "3"),
        ("floatHex", (1.5,), "0x1.8000000000000p+0"),
        ("join", (make_list(["a", "b"]), "-"), "a-b"),
        ("listGet", (make_list([1]), 1), "Error(listGet: index 1 out of bounds for length 1)"),
        ("listSlice", (make_list([1, 2, 3]), 1, 99), "[2, 3]"),
        ("listSlice", (make_list([1, 2, 3]), 2, 1), "[]"),
        ("range", (3, 1), "[]"),
        (
            "parseJson",
            ('{"a": [1, true, null, "x"]}',),
            'Success(JsonObject({ "a": JsonArray([JsonNumber(1.0), JsonBool(true), JsonNull, JsonString("x")]) }))',
        ),
        (
            "parseJson",
            ("{",),
            "Error(parseJson: expecting property name enclosed in double quotes at line 1, column 2)",
        ),
        ("parseJson", ("NaN",), "Error(parseJson: NaN is not JSON)"),
        ("parseJson", ("[" * 2000,), "Error(parseJson: nested deeper than 1000)"),
    ],
)
def test_text(name, args, want):
    """B1.2, B1.3, B2.1, B2.3"""
    assert shown(name, *args) == want


def test_utf8():
    """B2.3: decoding is exact, pieces of characters included."""
    for data, pending in (
        (b"a\xc3", 1),
        (b"\xe2\x82", 2),
        (b"\xf0\x9f\x98", 3),
        (b"\xe2\x82\xac", 0),
        (b"\xff", 0),
        (b"\xed\xa0", 0),
        (b"\xc0", 0),
        (b"\xe2\x28", 0),
    ):
        assert use("utf8Pending", make_list(list(data))) == pending, data
        assert use("fromUtf8", make_list(list(data))) == data.decode("utf-8", "replace")
    assert list(use("toUtf8", "é")) == [0xC3, 0xA9]


def test_unicode_is_pinned():
    """B2.2: the classes of Unicode 16.0, whatever this Python knows."""
    spaces = {chr(k) for k, mark in enumerate(unicode.classes()) if mark == unicode.SPACE}
    assert spaces == set(unicode.WHITE_SPACE)
    counts = [sum(1 for mark in unicode.classes() if mark == m) for m in (unicode.LETTER, unicode.NUMBER)]
    assert counts == [141028, 1911]
    assert use("isLetter", 0x105C0) and not use("isLetter", -1) and not use("isNumber", 0x110000)
    assert text.upper("\ua7cd") == "\ua7cc"


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("min", (math.nan, 1.0), math.nan),
        ("min", (0.0, -0.0), -0.0),
        ("max", (-0.0, 0.0), 0.0),
        ("max", (1, 2), 2),
        ("floor", (-0.5,), -1.0),
        ("ceil", (-0.5,), -0.0),
        ("round", (2.5,), 2.0),
        ("round", (-0.2,), -0.0),
        ("floor", (-0.0,), -0.0),
        ("ieeeDiv", (1.0, -0.0), -math.inf),
        ("ieeeDiv", (0.0, 0.0), math.nan),
        ("sqrt", (-0.0,), -0.0),
        ("sqrt", (-1.0,), math.nan),
        ("wrapAdd", (2**63 - 1, 1), -(2**63)),
        ("wrapMul", (-(2**63), -1), -(2**63)),
        ("mulHigh", (-1, -1), -2),
        ("shiftLeft", (1, 63, NO_SPAN), -(2**63)),
        ("shiftRightLogical", (-1, 63, NO_SPAN), 1),
        ("floatBits", (math.nan,), 0x7FF8000000000000),
        ("floatBits", (-0.0,), -(2**63)),
        ("floatFromBits", (0x3FF0000000000000,), 1.0),
        ("toFloat", (2**53 + 1,), float(2**53)),
        ("toInt", (-2.9, NO_SPAN), -2),
        ("exp", (0.0,), 1.0),
    ],
)
def test_scalars(name, args, want):
    """B7: the host computes what kernels do."""
    got = use(name, *args)
    assert type(got) is type(want)
    assert got == want if want == want else got != got
    assert math.copysign(1.0, got) == math.copysign(1.0, want) or want != want


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("toInt", (math.nan,), "not an integer in range"),
        ("toInt", (9223372036854775808.0,), "not an integer in range"),
        ("shiftLeft", (1, 64), "shift out of range"),
        ("shiftRight", (1, -1), "shift out of range"),
        ("abs", (-(2**63),), "integer overflow"),
        ("intDiv", (1, 0), "division by zero"),
    ],
)
def test_scalar_faults(name, args, message):
    with pytest.raises(MathFault) as caught:
        use(name, *args, NO_SPAN)
    assert caught.value.message == message


def test_pipelines_are_lazy_and_repeatable():
    """B3.4"""
    seen = []

    def note(x):
        seen.append(x)
        return x * 2

    w = world()
    it = use("filter", w, use("map", w, use("range", 0, 3), note), lambda x: x != 2)
    assert seen == []
    assert list(elements(it)) == [0, 4] and seen == [0, 1, 2]
    assert use("fold", it, 0, lambda a, x: a + x) == 4 and len(seen) == 6
    order = []
    use(
        "forEach",
        use("map", w, use("range", 0, 2), lambda x: order.append(("map", x)) or x),
        lambda x: order.append(("each", x)),
    )
    assert order == [("map", 0), ("each", 0), ("map", 1), ("each", 1)]


def test_the_world(tmp_path):
    """B5"""
    w = world()
    w.stdin = io.StringIO("one\r\ntwo")
    path = str(tmp_path / "f.txt")
    assert to_string(use("input", w)) == "Success(one)"
    assert to_string(use("input", w)) == "Success(two)"
    assert to_string(use("input", w)) == "Error(input: end of input)"
    assert type(use("writeFile", w, path, "a\r\né")) is Success
    assert type(use("appendFile", w, path, "!")) is Success
    assert use("readFile", w, path).f_value == "a\r\né!"
    assert to_string(use("writeBytes", w, path, make_list([255, 256]))) == "Error(writeBytes: 256 is not a byte)"
    use("writeBytes", w, path, make_list([255]))
    assert to_string(use("readFile", w, path)) == f"Error(readFile: {path}: not UTF-8 at byte 0)"
    assert to_string(use("readFile", w, "/nowhere/x")) == "Error(readFile: /nowhere/x: no such file or directory)"
    assert to_string(use("readFile", w, "a\0b")) == "Error(readFile: a\0b: not a file name)"
    assert use("fileExists", w, path) and not use("fileExists", w, path + "x")
    use("print", w, make_list([1.0]))
    use("write", w, "x")
    assert w.stdout.getvalue() == "[1.0]\nx"


def test_tap():
    """B6"""
    from osprey_py.eval.library.tests import finish

    w = world()
    first, second = span(), span()

    def passes():
        use("expect", w, 1, 1, span())

    def fails():
        use("check", w, "sum", 2, 1, first)
        use("checkAll", w, "all", make_list([True, False]), second)
        use("expectTrue", w, False, span())

    def faults():
        raise MathFault("integer overflow", span())

    for name, body in (("a", passes), ("b", fails), ("c", faults)):
        use("test", w, name, body)
    assert finish(w) is False
    lines = w.stdout.getvalue().splitlines()
    assert [x for x in lines if not x.startswith("  ")] == [
        "ok 1 - a",
        "not ok 2 - b",
        "not ok 3 - c",
        "1..3",
        "# tests=3 passed=1 failed=2 skipped=0",
    ]
    assert f"  # sum: expected 2, got 1 at {first.place}" in lines
    assert f"  # all: condition 2 of 2 does not hold at {second.place}" in lines
    assert scalars
