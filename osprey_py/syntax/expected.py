"""Sets of token kinds in words: "an expression", "`,` or `)`".

Comes in: the kinds that a parser state accepts. Goes out: the shortest list of phrases that says so to a person. Operators
that could also go on are left out: nobody who misplaced a bracket wants to read of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from osprey_py.source.span import Span
from osprey_py.syntax.tokens import END, KEYWORDS, KIND_NAMES, Token

_EXPRESSION = frozenset(
    "INT FLOAT STRING STRING_BEGIN NAME TRUE FALSE LPAR LSQB LBRACE FIELDS_LBRACE MAP_LBRACE IF MATCH HANDLE PERFORM "
    "RESUME FN LAMBDA_BAR NEG POS NOT".split()
)
_STATEMENT = _EXPRESSION | frozenset("LET MUT TYPE EFFECT MODULE IMPORT EXPORT NAMESPACE ERROR".split())
_PATTERN = frozenset("UNDERSCORE NAME INT FLOAT NEG TRUE FALSE STRING LPAR LSQB LBRACE FIELDS_LBRACE ERROR".split())
_TYPE = frozenset("NAME LPAR FN LBRACE FIELDS_LBRACE".split())
_OPERATORS = frozenset(
    "INDEX_LSQB DOT QUESTION RECOVER PIPE STAR SLASH PERCENT PLUS MINUS EQ NE LE GT GE AND OR".split()
)
_ATTACHED = frozenset("CALL_LPAR NAME_LBRACE PATH_SEP LT NOT".split())
_ORDER = [
    "NAME", "UNDERSCORE", "INT", "FLOAT", "STRING", "COMMA", "ASSIGN", "COLON", "ARROW", "FAT_ARROW", "IN", "ELSE", "RPAR",
    "RSQB", "RBRACE", "STRING_MIDDLE", "SEMICOLON", END,
]  # fmt: skip


def phrases(kinds: Iterable[str]) -> list[str]:
    """What is expected, the most telling first."""
    left = set(kinds)
    out: list[str] = []

    def take(taken: frozenset[str], phrase: str) -> None:
        left.difference_update(taken)
        out.append(phrase)

    if "LET" in left:
        take(_STATEMENT, "a statement")
    elif {"INT", "IF", "MATCH"} <= left:
        take(_EXPRESSION, "an expression")
    elif {"INT", "NEG", "UNDERSCORE"} <= left:
        take(_PATTERN, "a pattern")
    elif {"NAME", "LPAR", "FN"} <= left:
        take(_TYPE, "a type")
    if "STAR" in left:
        left -= _OPERATORS
    if out:
        left.discard(END)
    if out or left - _ATTACHED:
        left -= _ATTACHED
    rank = {kind: k for k, kind in enumerate(_ORDER)}
    ordered = sorted(left - {"ERROR"}, key=lambda k: (rank.get(k, len(rank)), k))
    return list(dict.fromkeys([*out, *(KIND_NAMES[k] for k in ordered)]))


def either(items: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"


def found(token: Token, span: Span) -> str:
    """The token, as it is told to a person."""
    if token.kind == END:
        return "the end of the file"
    if token.kind == "NAME":
        return f"the name `{token.value}`"
    if token.kind in ("INT", "FLOAT"):
        return f"the number `{span.text}`"
    if token.kind in ("STRING", "STRING_BEGIN"):
        return "a string"
    if token.kind in ("STRING_MIDDLE", "STRING_END"):
        return "the end of an interpolation"
    if token.kind in KEYWORDS.values():
        return f"the keyword `{span.text}`"
    return f"`{span.text}`"
