"""Text (spec/library B1, B2): immutable strings of Unicode scalar values; positions count code points, or bytes of
UTF-8 where the name says so. Nothing here depends on the running Python's Unicode version."""

from __future__ import annotations

import re
from typing import Any

from osprey_py.eval.arithmetic import MAX, MIN
from osprey_py.eval.formatting import quote, to_string
from osprey_py.eval.library.absent import ABSENT
from osprey_py.eval.library.unicode import WHITE_SPACE, mapping
from osprey_py.eval.pipelines import Source, elements
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, List, Success, make_list

builtin("toString")(to_string)


def item(text: str, i: int) -> Any:
    """Code point i as a string, or ABSENT."""
    return text[i] if 0 <= i < len(text) else ABSENT


def index(text: str, i: int) -> Any:
    """text[i]"""
    if 0 <= i < len(text):
        return Success(text[i])
    return Error(f"index {i} out of bounds for length {len(text)}")


@builtin("contains")
def contains(text: str, part: str) -> bool:
    return part in text


@builtin("startsWith")
def starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@builtin("endsWith")
def ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@builtin("indexOf")
def index_of(text: str, part: str) -> Any:
    at = text.find(part)
    return Success(at) if at >= 0 else Error(f"indexOf: no {quote(part)} in the text")


@builtin("split")
def split(text: str, separator: str) -> List:
    """The pieces between separators; an empty separator gives the code points."""
    return make_list(text.split(separator) if separator else list(text))


@builtin("join")
def join(parts: Source, separator: str) -> str:
    return separator.join(elements(parts))


@builtin("lines")
def lines(text: str) -> List:
    """Without their ends, `\\n` or `\\r\\n`; an end at the end begins no further line."""
    found = text.split("\n")
    if found[-1] == "":
        found.pop()
    return make_list([line.removesuffix("\r") for line in found])


_SPACES = re.compile(f"[{re.escape(WHITE_SPACE)}]+")


@builtin("words")
def words(text: str) -> List:
    return make_list([w for w in _SPACES.split(text) if w])


@builtin("trim")
def trim(text: str) -> str:
    return text.strip(WHITE_SPACE)


@builtin("substring")
def substring(text: str, begin: int, end: int) -> str:
    """Code points begin … end-1, as far as there are such."""
    return text[begin if begin > 0 else 0 : end if end > 0 else 0]


@builtin("take")
def take(text: str, n: int) -> str:
    return text[:n] if n > 0 else ""


@builtin("drop")
def drop(text: str, n: int) -> str:
    return text[n:] if n > 0 else text


@builtin("replace")
def replace(text: str, old: str, new: str) -> str:
    """Every `old`, from the left; an empty `old` is nowhere."""
    return text.replace(old, new) if old else text


@builtin("repeat")
def repeat(text: str, n: int) -> str:
    return _times(text, n)


def _times(text: str, n: int) -> str:
    try:
        return text * n
    except OverflowError:
        raise MemoryError from None


@builtin("reverse")
def reverse(text: str) -> str:
    """By code points."""
    return text[::-1]


def _padding(text: str, width: int, fill: str) -> str:
    missing = width - len(text)
    if missing <= 0 or not fill:
        return ""
    return _times(fill, missing // len(fill) + 1)[:missing]


@builtin("padStart")
def pad_start(text: str, width: int, fill: str) -> str:
    return _padding(text, width, fill) + text


@builtin("padEnd")
def pad_end(text: str, width: int, fill: str) -> str:
    return text + _padding(text, width, fill)


@builtin("toUpperCase")
def upper(text: str) -> str:
    """Each code point by itself, in full (`ß` becomes `SS`)."""
    return text.upper() if text.isascii() else text.translate(mapping("upper"))


@builtin("toLowerCase")
def lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(mapping("lower"))


_INT = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|inf|nan)\Z")


@builtin("parseInt")
def parse_int(text: str) -> Any:
    """Decimal digits with an optional sign, nothing else, in the range of int."""
    if not _INT.match(text):
        return Error(f"parseInt: {quote(text)} is not an int")
    digits = text.lstrip("+-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= 19 else MAX + 2
    value = -value if text[0] == "-" else value
    return Success(value) if MIN <= value <= MAX else Error(f"parseInt: {quote(text)} is out of range")


@builtin("parseFloat")
def parse_float(text: str) -> Any:
    """The float nearest to a decimal; `inf` and `nan` as they are printed."""
    if not _FLOAT.match(text):
        return Error(f"parseFloat: {quote(text)} is not a float")
    return Success(float(text))


@builtin("floatHex")
def float_hex(x: float) -> str:
    """Exact, in hexadecimal, as C's %a has it: `0x1.8000000000000p+1`."""
    return x.hex()


# --- bytes -------------------------------------------------------------------------------------------------------


@builtin("byteLength")
def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def byte_item(text: str, i: int) -> Any:
    """Byte i of the text in UTF-8, or ABSENT."""
    if text.isascii():
        return ord(text[i]) if 0 <= i < len(text) else ABSENT
    data = text.encode("utf-8")
    return data[i] if 0 <= i < len(data) else ABSENT


@builtin("byteAt")
def byte_at(text: str, i: int) -> Any:
    found = byte_item(text, i)
    return (
        Error(f"byteAt: index {i} out of bounds for {byte_length(text)} bytes") if found is ABSENT else Success(found)
    )


def code_point_item(text: str, i: int) -> Any:
    """Code point i as a number, or ABSENT."""
    return ord(text[i]) if 0 <= i < len(text) else ABSENT


@builtin("codePointAt")
def code_point_at(text: str, i: int) -> Any:
    if 0 <= i < len(text):
        return Success(ord(text[i]))
    return Error(f"codePointAt: index {i} out of bounds for length {len(text)}")


@builtin("toUtf8")
def to_utf8(text: str) -> List:
    return make_list(list(text.encode("utf-8")))


def _bytes(data: List) -> bytes:
    """Each taken modulo 256."""
    items = data.items[data.lo : data.hi]
    try:
        return bytes(items)
    except ValueError:
        return bytes([x & 0xFF for x in items])


@builtin("fromUtf8")
def from_utf8(data: List) -> str:
    """What is not UTF-8 becomes U+FFFD, one for each longest piece that could have begun a character."""
    return _bytes(data).decode("utf-8", "replace")


@builtin("utf8Pending")
def utf8_pending(data: List) -> int:
    """How many bytes at the end begin a character that further bytes may complete: 0 to 3."""
    tail = _bytes(List(data.items, max(data.lo, data.hi - 3), data.hi))
    for n in range(len(tail), 0, -1):
        piece = tail[-n:]
        if _begins_character(piece):
            return n
    return 0


def _begins_character(piece: bytes) -> bool:
    """piece is the beginning, not the whole, of one character of UTF-8."""
    if piece[0] < 0xC2:
        return False
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError as e:
        return e.reason == "unexpected end of data" and e.start == 0
    return False
