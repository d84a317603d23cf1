"""Tokens, and the words for them that diagnostics use.

Comes in: nothing. Goes out: `Token`, the tables of keywords and punctuation (the same as grammar.lark's, a test sees to
it), and `KIND_NAMES`, how each kind is called when a person is told about it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """kind: a terminal of grammar.lark, before syntax/newlines.py refines it. value: the int, float or resolved text of a
    literal, the name of a NAME. starts_line: only white space stands before it on its line. doc: the `///` text above."""

    kind: str
    start: int
    end: int
    value: int | float | str = ""
    starts_line: bool = False
    doc: str = ""


KEYWORDS = {
    word: word.upper()
    for word in (
        "as effect else export false fn handle if import in let match module mut namespace perform resume true type"
    ).split()
}

RESERVED = frozenset("fiber spawn await yield select send recv extern static".split())
"""Words kept for later versions of the language (L1.7)."""

PUNCTUATION = {
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ":": "COLON",
    "::": "PATH_SEP",
    ";": "SEMICOLON",
    ".": "DOT",
    "..": "OPEN_END",
    "...": "REST",
    "=": "ASSIGN",
    "->": "ARROW",
    "=>": "FAT_ARROW",
    "|": "BAR",
    "|>": "PIPE",
    "?": "QUESTION",
    "?:": "RECOVER",
    "||": "OR",
    "&&": "AND",
    "!": "NOT",
    "==": "EQ",
    "!=": "NE",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "%": "PERCENT",
    "_": "UNDERSCORE",
}

END = "$END"

REFINED = {
    "CALL_LPAR": "(",
    "INDEX_LSQB": "[",
    "HEAD_LBRACE": "{",
    "NAME_LBRACE": "{",
    "FIELDS_LBRACE": "{",
    "MAP_LBRACE": "{",
    "NEG": "-",
    "POS": "+",
    "LAMBDA_BAR": "|",
    "GUARD": "if",
}
"""The kinds that syntax/newlines.py gives by context, and what they look like."""

KIND_NAMES = (
    {kind: f"`{text}`" for text, kind in PUNCTUATION.items()}
    | {kind: f"`{word}`" for word, kind in KEYWORDS.items()}
    | {kind: f"`{text}`" for kind, text in REFINED.items()}
    | {
        "NAME": "a name",
        "INT": "a number",
        "FLOAT": "a number",
        "STRING": "a string",
        "STRING_BEGIN": "a string",
        "STRING_MIDDLE": "`}`",
        "STRING_END": "`}`",
        END: "the end of the file",
    }
)

OPERAND_END = frozenset("NAME INT FLOAT STRING STRING_END TRUE FALSE UNDERSCORE RPAR RSQB RBRACE".split())
"""Kinds after which an operand may be complete, so that a `-` there may be binary and a `[` an index."""
