"""The newline rule: which of two meanings a token has, from what stands around it.

Comes in: the tokens of a text. Goes out: the kind of each, refined where grammar.lark tells two kinds apart that are
written alike. Keeps rules L1.13 to L1.22 of spec/language.md. One pass; the only memory is the stack of open brackets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from osprey_py.syntax.tokens import OPERAND_END, Token

_CALLEE_END = frozenset(("NAME", "RPAR", "RSQB", "RESUME"))
_LITERALS = frozenset(("INT", "FLOAT", "STRING", "TRUE", "FALSE"))
_IN_LAMBDA_PARAMS = frozenset(
    "NAME UNDERSCORE COMMA COLON PATH_SEP LT GT LPAR RPAR ARROW FN LBRACE RBRACE NOT LSQB RSQB".split()
)
_OPENING = frozenset(("LPAR", "LSQB", "LBRACE", "STRING_BEGIN"))
_CLOSING = frozenset(("RPAR", "RSQB", "RBRACE", "STRING_END"))


@dataclass(slots=True)
class _Bracket:
    """An open bracket. arms: it holds the arms of a `match`. heads: the `match`, `if` and `handle` directly inside that
    still wait for their `{`."""

    arms: bool = False
    heads: list[str] = field(default_factory=list)


def refine(tokens: Sequence[Token]) -> list[str]:
    """The final kind of each token."""
    kinds = [t.kind for t in tokens]
    stack = [_Bracket()]
    before = "ASSIGN"  # the kind before the first token: anything that wants an operand
    for i, token in enumerate(tokens):
        kind = kinds[i]
        here = stack[-1]
        if kind == "LPAR":
            if before in _CALLEE_END and not token.starts_line:
                kinds[i] = "CALL_LPAR"
            stack.append(_Bracket())
        elif kind == "LSQB":
            if before in OPERAND_END and token.start == tokens[i - 1].end:
                kinds[i] = "INDEX_LSQB"
            stack.append(_Bracket())
        elif kind == "LBRACE":
            head = ""
            if before == "ELSE":
                head = "if"
            elif here.heads:
                head = here.heads.pop()
            if head:
                kinds[i] = "HEAD_LBRACE"
            elif before == "NAME" and not token.starts_line:
                kinds[i] = "NAME_LBRACE"
            else:
                kinds[i] = _brace_by_content(tokens, i)
            stack.append(_Bracket(arms=head == "match"))
        elif kind == "STRING_BEGIN":
            stack.append(_Bracket())
        elif kind in _CLOSING:
            if len(stack) > 1:
                stack.pop()
        elif kind == "STRING_MIDDLE":
            here.heads.clear()
        elif kind == "MINUS" or kind == "PLUS":
            if before not in OPERAND_END or _begins_operand(tokens, i, here.arms):
                kinds[i] = "NEG" if kind == "MINUS" else "POS"
        elif kind == "BAR":
            if kinds[i] == "BAR":
                _mark_lambda(tokens, kinds, i)
        elif kind == "MATCH":
            here.heads.append("match")
        elif kind == "HANDLE":
            here.heads.append("handle")
        elif kind == "IF":
            if here.arms and before in OPERAND_END:
                kinds[i] = "GUARD"
            else:
                here.heads.append("if")
        elif kind == "FAT_ARROW" and here.heads and here.heads[-1] == "handle":
            here.heads.pop()
        before = kind
    return kinds


def _brace_by_content(tokens: Sequence[Token], i: int) -> str:
    """`{ name:` is a record, `{ literal:` a map, anything else a block. tokens[i] is the brace."""
    first = tokens[i + 1].kind
    at = i + 2
    if first == "NAME" and tokens[at].kind == "COLON":
        return "FIELDS_LBRACE"
    if first == "MINUS" and tokens[at].kind in ("INT", "FLOAT"):
        at += 1
    elif first == "STRING_BEGIN":
        depth = 1
        while depth and at < len(tokens):
            depth += (tokens[at].kind == "STRING_BEGIN") - (tokens[at].kind == "STRING_END")
            at += 1
    elif first not in _LITERALS:
        return "LBRACE"
    return "MAP_LBRACE" if at < len(tokens) and tokens[at].kind == "COLON" else "LBRACE"


def _begins_operand(tokens: Sequence[Token], i: int, in_arms: bool) -> bool:
    """Whether the `-` or `+` after a complete operand still begins a statement or an arm: it begins a line and touches
    its operand, or it is the sign of an arm's literal (`-1 =>`, `-1 if … =>`)."""
    token, operand = tokens[i], tokens[i + 1]
    if token.starts_line and operand.start == token.end:
        return True
    if operand.kind not in ("INT", "FLOAT"):
        return False
    after = tokens[i + 2].kind
    return after == "FAT_ARROW" or (in_arms and after == "IF")


def _mark_lambda(tokens: Sequence[Token], kinds: list[str], i: int) -> None:
    """Marks both bars when those at i and after are `|params| =>`."""
    j = i + 1
    depth = 0
    while tokens[j].kind in _IN_LAMBDA_PARAMS:
        depth += (tokens[j].kind in _OPENING) - (tokens[j].kind in _CLOSING)
        j += 1
    if depth == 0 and tokens[j].kind == "BAR" and tokens[j + 1].kind == "FAT_ARROW":
        kinds[i] = kinds[j] = "LAMBDA_BAR"
