"""What people who come from other languages write, recognised where the parser is stuck on it.

Comes in: where the parser is stuck. Goes out: a diagnostic that says how it is written here. These rules are asked with
those of syntax/hints.py, and like them say nothing unless they are sure.
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.source.diagnostic import Diagnostic
from osprey_py.syntax.foreign import FOREIGN_INFIX, FOREIGN_WORDS
from osprey_py.syntax.stuck import Stuck
from osprey_py.syntax.tokens import END, Token

_ARITHMETIC = frozenset("PLUS MINUS STAR SLASH PERCENT POS NEG".split())
_BRACES = frozenset("LBRACE NAME_LBRACE HEAD_LBRACE FIELDS_LBRACE".split())


def _touches(s: Stuck) -> bool:
    """The token stands right behind the one before."""
    return s.at > 0 and s.tokens[s.at - 1].end == s.token.start


def _word(s: Stuck) -> Diagnostic | None:
    for token in (s.token, s.tokens[s.at - 1]):
        if token.kind == "NAME" and token.value in FOREIGN_INFIX:
            return _foreign(s, token)
    first, second = s.first_on_line
    if (
        first.kind == "NAME"
        and first.value in FOREIGN_WORDS
        and second.kind in ("NAME", "LPAR", "LBRACE", "UNDERSCORE")
    ):
        return _foreign(s, first)
    return None


def _foreign(s: Stuck, token: Token) -> Diagnostic:
    word = str(token.value)
    advice = FOREIGN_INFIX.get(word) or FOREIGN_WORDS[word]
    return Diagnostic("E0001", f"`{word}` has no meaning here", s.span_of(token), help=advice)


def _comment(s: Stuck) -> Diagnostic | None:
    behind = s.tokens[min(s.at + 1, len(s.tokens) - 1)]
    opens = s.kind == "SLASH" and behind.kind == "STAR" and behind.start == s.token.end
    if opens or (s.kind == "STAR" and s.before == "SLASH" and _touches(s)):
        return s.advises("a comment begins with `//` and ends with its line")
    return None


def _operators(s: Stuck) -> Diagnostic | None:
    if s.kind == "ASSIGN" and s.before in _ARITHMETIC and _touches(s):
        return s.advises("values do not change: give the new one a name, as in `let next = x + 1`")
    if s.kind == "STAR" and s.before == "STAR" and _touches(s):
        return s.advises("there is no operator for powers: multiply, or write a recursive function")
    if s.before == "QUESTION" and s.kind in ("RPAR", "RSQB", "RBRACE", "COMMA", END):
        return s.advises("what may fail is given a value for the failure, `… ?: 0`, or looked at with `match`")
    if s.kind == "OPEN_END" and "FAT_ARROW" in s.expected:
        return s.advises("a range in a pattern is a guard: `n if 1 <= n && n <= 5 => …`")
    if s.kind == "OPEN_END" and "PIPE" in s.expected:
        return s.advises("`range(a, b)` counts from a to b - 1")
    return None


def _arm_on_a_line(s: Stuck) -> Diagnostic | None:
    """`match t { (0, _) => f(x) (_, 1) => … }`: the second arm was taken for a call."""
    opened = s.open_bracket
    if s.kind != "UNDERSCORE" or opened is None or s.open_kind != "CALL_LPAR" or "MATCH" not in s.words:
        return None
    if s.source.text[opened.start - 1 : opened.start] != " ":
        return None
    return s.advises("an arm that begins with `(` begins a line; on the line above it is a call")


def _declarations(s: Stuck) -> Diagnostic | None:
    if s.kind == "MUT" and s.before == "LET":
        return s.advises("a cell is declared with `mut` alone, `mut n = 0`; only handlers change it")
    if s.kind in _BRACES and "ASSIGN" in s.expected and "TYPE" in s.words and "FN" not in s.words:
        return s.advises("a type is declared with `=`: `type Point = { x: float, y: float }`")
    if s.kind in ("LPAR", "CALL_LPAR") and s.expected == {"COLON"} and "EFFECT" in s.words:
        return s.advises("an operation is a name and a function type: `write: fn(string) -> Unit`")
    if s.kind == "COLON" and {"ASSIGN", "ARROW"} <= s.expected and s.before == "RPAR":
        return s.advises("the type of the result follows `->`")
    if s.kind == "ASSIGN" and s.before == "NAME" and s.expected == {"COMMA", "COLON", "RPAR"}:
        return s.advises("parameters have no default values: declare a second function, which gives them")
    return None


def _lambdas(s: Stuck) -> Diagnostic | None:
    if s.kind in _BRACES and "FAT_ARROW" in s.expected and "ARROW" in s.expected:
        return s.advises("the body of a lambda follows `=>`: `fn(x) => { … }`")
    if s.kind == "COLON" and s.open_kind == "LPAR" and s.before == "NAME" and "COMMA" in s.expected:
        return s.advises("a lambda is written `fn(x: int) => …`")
    return None


HABITS: tuple[Callable[[Stuck], Diagnostic | None], ...] = (
    _comment,
    _operators,
    _arm_on_a_line,
    _declarations,
    _lambdas,
    _word,
)
