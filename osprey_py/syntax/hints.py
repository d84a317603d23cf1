"""The usual mistakes, each with its remedy.

Comes in: where the parser is stuck. Goes out: the diagnostic of the first of `RULES` that knows the mistake. A rule looks
at the token found, its neighbours, what was expected and the symbols read so far, and says nothing unless it is sure.
"""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import Span
from osprey_py.syntax.habits import HABITS
from osprey_py.syntax.stuck import CLOSERS, Stuck
from osprey_py.syntax.tokens import END, KEYWORDS, PUNCTUATION, Token

_OPENERS = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}
_MARKS = {kind: mark for mark, kind in PUNCTUATION.items()}
_COMPARISONS = frozenset(("EQ", "NE", "LT", "LE", "GT", "GE"))
_KEYWORD_KINDS = frozenset(KEYWORDS.values())
_DECLARING = frozenset("LET MUT FN TYPE EFFECT MODULE IMPORT EXPORT NAMESPACE".split())


def hint(stuck: Stuck) -> Diagnostic | None:
    for rule in RULES:
        diagnostic = rule(stuck)
        if diagnostic is not None:
            return diagnostic
    return None


# --- brackets ----------------------------------------------------------------------------------------------------


def _unclosed(stuck: Stuck) -> Diagnostic | None:
    """The file ends inside a bracket. The culprit is the first brace whose `}` stands further left than its line begins:
    that one closed something else."""
    opened = stuck.open_bracket
    if stuck.kind != END or opened is None:
        return None
    culprit, closed_by = opened, None
    open_braces: list[Token] = []
    line_begins: dict[int, int] = {}
    column = 1
    for token in stuck.tokens:
        if token.starts_line:
            column = stuck.source.position(token.start)[1]
        if token.kind == "LBRACE":
            open_braces.append(token)
            line_begins[token.start] = column
        elif token.kind == "RBRACE" and open_braces:
            brace = open_braces.pop()
            if token.starts_line and column < line_begins[brace.start] and closed_by is None:
                culprit, closed_by = brace, token
    mark = stuck.span_of(culprit).text
    labels = (
        () if closed_by is None else (Label(stuck.span_of(closed_by), "by its place, this `}` closes an earlier `{`"),)
    )
    title = "this interpolation is never closed" if culprit.kind == "STRING_BEGIN" else f"this `{mark}` is never closed"
    rest = stuck.source.line(stuck.source.position(culprit.start)[0]).partition(mark)[2]
    help = "`//` begins a comment; ints are divided with `intDiv(a, b)`" if mark == "(" and "//" in rest else ""
    return Diagnostic("E0002", title, stuck.span_of(culprit), "opened here", labels, help=help)


def _unclosed_above(s: Stuck) -> Diagnostic | None:
    """A declaration, or a name no deeper than the line of the bracket, begins on a new line while a `(` or `[` is open."""
    opened = s.open_bracket
    if opened is None or opened.kind == "LBRACE" or not s.token.starts_line:
        return None
    if s.kind not in _DECLARING and not (s.kind == "NAME" and _indent(s, s.token) <= _indent(s, opened)):
        return None
    if "COMMA" not in s.expected and CLOSERS[opened.kind] not in s.expected:
        return None
    mark = s.span_of(opened).text
    closer = {"(": ")", "[": "]"}.get(mark, "}")
    label = Label(s.span, f"expected `{closer}` before this")
    return Diagnostic("E0002", f"this `{mark}` is never closed", s.span_of(opened), "opened here", (label,))


def _indent(s: Stuck, token: Token) -> int:
    """White space at the beginning of the line of a token."""
    line = s.source.line(s.source.position(token.start)[0])
    return len(line) - len(line.lstrip())


def _stray_closer(s: Stuck) -> Diagnostic | None:
    opener = _OPENERS.get(s.kind)
    if opener is None:
        return None
    mark = s.span.text
    opened = s.open_bracket
    if opened is None or (opened.kind == "LBRACE" and all(b.kind != opener for b in s.open_brackets)):
        return s.says(f"`{mark}` closes nothing", f"no `{_MARKS[opener]}` is open here", "remove it", "E0002")
    if opened.kind == opener:
        return None
    label = Label(s.span_of(opened), "still open")
    return s.says(
        f"`{mark}` does not close `{s.span_of(opened).text}`", "", "close the inner bracket first", "E0002", (label,)
    )


# --- words -------------------------------------------------------------------------------------------------------


def _keyword_as_name(s: Stuck) -> Diagnostic | None:
    begins = s.kind in _DECLARING and s.token.starts_line
    if s.kind in _KEYWORD_KINDS and "NAME" in s.expected and not s.expected & {"IF", "IN"} and not begins:
        return s.says(f"the keyword `{s.span.text}` cannot be a name", "", "choose another name")
    return None


def _late_namespace(s: Stuck) -> Diagnostic | None:
    if s.kind == "NAMESPACE":
        return s.says("`namespace` stands only at the top of a file", "", "move it above everything else")
    return None


def _unfinished(s: Stuck) -> Diagnostic | None:
    """`1 +` and on the next line `fn name`, which is taken for a lambda at first."""
    if s.kind == "NAME" and s.before == "FN" and s.expected == {"LPAR"}:
        fn = s.tokens[s.at - 1]
        title = f"expected an expression, found the declaration of `{s.token.value}`"
        help = "" if fn.starts_line else "a lambda is written `fn(x) => …` or `|x| => …`"
        return Diagnostic("E0001", title, Span(s.source, fn.start, s.token.end), help=help)
    return None


def _no_in(s: Stuck) -> Diagnostic | None:
    if "IN" in s.expected and "HANDLE" in s.words and s.kind in (*_DECLARING, "RBRACE", END):
        return s.advises("a `handle` ends with `in` and the computation it handles: `handle Log write m => … in …`")
    return None


def _arm_parameters(s: Stuck) -> Diagnostic | None:
    if s.kind == "CALL_LPAR" and s.expected == {"NAME", "UNDERSCORE", "FAT_ARROW"}:
        return s.advises("the parameters of an arm stand without parentheses: `write m => …`")
    return None


def _no_arms(s: Stuck) -> Diagnostic | None:
    if s.kind == "IN" and "HANDLE" in s.words and "NAME" in s.expected:
        return s.says(
            "a `handle` has at least one arm", "", "write what each operation does: `handle Log write m => … in …`"
        )
    return None


def _else_alone(s: Stuck) -> Diagnostic | None:
    if s.kind == "ELSE":
        return s.says("`else` without `if`", "", "`else` follows the `}` of an `if`, whose branches are blocks")
    return None


# --- separators ----------------------------------------------------------------------------------------------------


def _semicolon(s: Stuck) -> Diagnostic | None:
    if s.kind != "SEMICOLON":
        return None
    return s.says("statements are not separated by `;`", "", "remove it: a statement ends where the next one begins")


def _comma(s: Stuck) -> Diagnostic | None:
    if s.kind != "COMMA" or s.open_bracket is None or s.open_bracket.kind != "LBRACE":
        return None
    if "UNDERSCORE" in s.expected and "RBRACE" in s.expected:
        return s.says("the arms of a `match` are not separated by commas", "", "remove the comma")
    if "LET" in s.expected:
        return s.says("statements are not separated by commas", "", "remove the comma")
    return None


def _missing_comma(s: Stuck) -> Diagnostic | None:
    if (
        "COMMA" in s.expected
        and s.open_bracket is not None
        and s.kind not in ("ASSIGN", "FAT_ARROW", "BAR", END, "COLON")
    ):
        if s.kind in ("NEG", "POS"):
            return _line_start_sign(s)
        if s.kind in ("RPAR", "RSQB", "RBRACE"):
            return None
        return s.advises("separate the items with commas")
    return None


# --- one mark for another --------------------------------------------------------------------------------------------


def _line_start_sign(s: Stuck) -> Diagnostic | None:
    if s.kind not in ("NEG", "POS"):
        return None
    mark = s.span.text
    return s.says(
        f"this `{mark}` begins a new statement",
        "begins a line and touches its operand",
        f"to continue the line above, put a space after the `{mark}`; to begin another item, put a comma before it",
    )


def _chain(s: Stuck) -> Diagnostic | None:
    if s.kind not in _COMPARISONS or "AND" not in s.expected:
        return None
    after = s.tokens[s.at + 1].kind if s.kind == "GT" else ""
    if after == "LPAR":
        return s.says("type arguments are not written in a call", "", "leave them out: they are inferred", code="E0016")
    return s.says("comparisons do not chain", "", "write `a < b && b < c`", code="E0016")


def _equals(s: Stuck) -> Diagnostic | None:
    if s.kind != "ASSIGN":
        return None
    if "FAT_ARROW" in s.expected:
        return s.advises("the body of a lambda or of an arm follows `=>`")
    if "IF" in s.expected and "LET" not in s.expected:
        return None
    if s.open_kind == "CALL_LPAR" and s.before == "NAME" and "COMMA" in s.expected:
        return s.advises("a named argument is written `name: value`; equality is `==`")
    if "HEAD_LBRACE" in s.expected or "RPAR" in s.expected or "AND" in s.expected:
        if s.before == "RSQB" or (s.before == "NAME" and s.at >= 2 and s.kinds[s.at - 2] == "DOT"):
            return s.says(
                "only a `mut` cell is assigned", "", "values do not change: make a new record with `p { x: 3.0 }`"
            )
        return s.advises("equality is `==`; a name is bound with `let`")
    return None


def _arrow(s: Stuck) -> Diagnostic | None:
    if s.kind == "FAT_ARROW":
        if "ASSIGN" in s.expected and "ARROW" in s.expected:
            return s.advises("the body of a declared function follows `=`; `=>` is for lambdas")
        in_arms = s.open_kind not in ("LPAR", "CALL_LPAR", "LSQB") and s.words & {"MATCH", "HANDLE"}
        if s.before == "RPAR" or (s.before == "NAME" and not in_arms):
            return s.advises("a lambda is written `fn(x) => …` or `|x| => …`")
        if s.before == "OR":
            return _bars(s)
    if s.kind == "ARROW":
        if "FAT_ARROW" in s.expected:
            return s.advises("arms and lambdas are written with `=>`")
        if s.before == "RPAR":
            return s.advises("a lambda is written `fn(x) => …` or `|x| => …`")
    return None


def _bars(s: Stuck) -> Diagnostic | None:
    if s.kind == "OR" or (s.kind == "FAT_ARROW" and s.before == "OR"):
        return s.advises('a lambda without parameters is written `fn() => …`; `||` is always "or"')
    if s.kind == "BAR":
        if "FAT_ARROW" in s.expected:
            return s.advises("an arm has one pattern: write an arm for each")
        if "IF" in s.expected and "AND" not in s.expected:
            return s.advises("a lambda is written `|x| => …`: the arrow is missing, or a parameter is wrong")
        return s.advises('"or" is `||`; bits are combined with `bitOr`')
    return None


def _dot(s: Stuck) -> Diagnostic | None:
    if s.kind == "DOT" and "IF" in s.expected and s.tokens[s.at + 1].kind == "INT":
        return s.says("a float has digits on both sides of the point", "", f"write `0.{s.tokens[s.at + 1].value}`")
    if s.before == "DOT" and "NAME" in s.expected and s.at >= 2 and s.kinds[s.at - 2] == "INT":
        point = s.tokens[s.at - 1]
        digits = s.span_of(s.tokens[s.at - 2])
        return Diagnostic(
            "E0006", "a float has digits on both sides of the point", s.span_of(point), help=f"write `{digits.text}.0`"
        )
    return None


def _import(s: Stuck) -> Diagnostic | None:
    if s.kind == "STAR" and s.before == "PATH_SEP":
        return s.says("there is no import of everything", "", "name what is imported: `import a::b::{x, y}`")
    if s.before == "IMPORT" and s.kind in ("STRING", "STRING_BEGIN"):
        return s.advises("an import names a namespace or a module, never a file: `import a::b`")
    if s.kind == "DOT" and "AS" in s.expected:
        return s.advises("the parts of a path are joined by `::`")
    return None


# --- shapes ----------------------------------------------------------------------------------------------------------


def _branch(s: Stuck) -> Diagnostic | None:
    if "HEAD_LBRACE" not in s.expected or s.kind in ("ASSIGN", END):
        return None
    for value in reversed(s.stack):
        if isinstance(value, Token) and value.kind == "IF":
            return s.advises("the branches of an `if` are blocks: `if c { a } else { b }`")
        if isinstance(value, Token) and value.kind == "MATCH":
            return s.advises("the arms of a `match` stand in braces: `match e { pattern => value }`")
        if isinstance(value, Token) and value.kind in CLOSERS:
            return None
    return None


def _record_in_head(s: Stuck) -> Diagnostic | None:
    """`match Point { x: 1 } { … }`: the first brace was taken for the arms."""
    opened = s.open_bracket
    if opened is None or s.kind != "COLON" or s.before != "NAME" or opened.kind != "LBRACE":
        return None
    if s.tokens[s.at - 2] is not opened or s.kinds[s.at - 3] != "NAME":
        return None
    if s.open_kind == "NAME_LBRACE" and "FN" in s.words:
        return _record_body(s)
    if s.open_kind != "HEAD_LBRACE":
        return None
    return s.says(
        "this `{` opens the arms or the block, not a record",
        "",
        "put the record in parentheses: `match (Point { x: 1.0 }) { … }`",
        labels=(Label(s.span_of(opened), "the first `{` after the head"),),
    )


def _pattern_operator(s: Stuck) -> Diagnostic | None:
    if "GUARD" in s.expected and s.kind in (
        "PLUS",
        "MINUS",
        "STAR",
        "SLASH",
        "PERCENT",
        "DOT",
        "OR",
        "AND",
        *_COMPARISONS,
    ):
        return s.advises("a pattern holds no operators: bind a name and test it in a guard, as in `n if n > 0 => …`")
    if s.kind == "STRING_BEGIN" and {"UNDERSCORE", "STRING"} <= s.expected and "IF" not in s.expected:
        return s.says("a string in a pattern has no interpolations", "", 'compare in a guard: `s if s == "…" => …`')
    return None


def _no_body(s: Stuck) -> Diagnostic | None:
    if {"ASSIGN", "ARROW", "LBRACE"} <= s.expected and s.kind != "ASSIGN":
        return s.advises("the body of a function follows `=`, or stands in braces")
    return None


def _field_without_value(s: Stuck) -> Diagnostic | None:
    in_type = s.words & {"TYPE", "EFFECT"}
    if s.kind in ("COMMA", "RBRACE") and s.expected == {"COLON"} and s.before == "NAME" and not in_type:
        name = s.tokens[s.at - 1].value
        return s.advises(f"a field is given with its value: `{name}: {name}`")
    return None


def _pattern_parameter(s: Stuck) -> Diagnostic | None:
    if (
        s.kind in ("LPAR", "LSQB", "LBRACE")
        and {"NAME", "UNDERSCORE", "RPAR"} <= s.expected
        and "INT" not in s.expected
    ):
        return s.advises("a parameter is a name; take it apart inside with `let (a, b) = p`")
    return None


_SIBLINGS = {
    "LPAR": ("CALL_LPAR", "the `(` of a call stands on its callee's line"),
}


def _sibling(s: Stuck) -> Diagnostic | None:
    wanted, sentence = _SIBLINGS.get(s.kind, ("", ""))
    if wanted in s.expected and s.token.starts_line:
        return s.says(sentence, "begins a new line", "move it up")
    if s.kind == "FIELDS_LBRACE" and "LBRACE" in s.expected:
        return _record_body(s)
    return None


def _record_body(s: Stuck) -> Diagnostic:
    return s.says(
        "braces after the head of a function hold a block, not a record", "", "write `= { name: … }` to give a record"
    )


RULES: tuple[Callable[[Stuck], Diagnostic | None], ...] = (
    _unclosed,
    _unclosed_above,
    _stray_closer,
    _record_in_head,
    *HABITS,
    _semicolon,
    _late_namespace,
    _import,
    _dot,
    _chain,
    _equals,
    _arrow,
    _bars,
    _unfinished,
    _no_arms,
    _no_in,
    _arm_parameters,
    _pattern_operator,
    _keyword_as_name,
    _no_body,
    _field_without_value,
    _pattern_parameter,
    _sibling,
    _comma,
    _branch,
    _missing_comma,
    _line_start_sign,
    _else_alone,
)
