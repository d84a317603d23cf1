"""Text to tokens.

Comes in: a `Source`. Goes out: its tokens, the last one `$END`, and diagnostics about what is no token. Keeps the lexical
rules L1.2 to L1.12 of spec/language.md; what a token means in its context is decided afterwards, by syntax/newlines.py.
The scan is a loop with an explicit stack for interpolations, so no text is nested too deep for it.
"""

from __future__ import annotations

import math
import re

from osprey_py.source.diagnostic import Diagnostic
from osprey_py.source.span import Source, Span
from osprey_py.syntax.tokens import END, KEYWORDS, PUNCTUATION, RESERVED, Token

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_PUNCTUATION = "|".join(re.escape(p) for p in sorted(PUNCTUATION, key=len, reverse=True) if p != "_")
_TOKEN = re.compile(
    rf"""
      (?P<SPACE>[ \t\r\n]+)
    | (?P<DOC>///(?!/)[^\n]*)
    | (?P<COMMENT>//[^\n]*)
    | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<FLOAT>{_DIGITS}(?:\.{_DIGITS}(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
    | (?P<INT>{_DIGITS})
    | (?P<QUOTE>")
    | (?P<ARROW_AFTER_TYPE>>(?==>))
    | (?P<PUNCTUATION>{_PUNCTUATION})
    """,
    re.VERBOSE,
)
_NUMBER_TAIL = re.compile(r"[A-Za-z0-9_]+")
_PLAIN_TEXT = re.compile(r'[^"\\$\n]+')
_UNICODE_ESCAPE = re.compile(r"\\u\{([0-9A-Fa-f]{1,6})\}")
_BAD_RUN = re.compile(r"[^\x00-\x7f]+|.", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "0": "\0", '"': '"', "\\": "\\", "$": "$"}

INT_LIMIT = 2**63
"""The magnitude of the smallest int: a literal of this value stands only directly under a unary `-` (L1.5)."""


def tokenize(source: Source) -> tuple[list[Token], list[Diagnostic]]:
    """All tokens of the text. Never fails: what cannot be read is reported and passed over."""
    lexer = _Lexer(source)
    lexer.run()
    return lexer.tokens, lexer.diagnostics


class _Lexer:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.tokens: list[Token] = []
        self.diagnostics: list[Diagnostic] = []
        self.starts_line = True
        self.docs: list[str] = []
        self.reserved: set[str] = set()  # the reserved words already reported
        # One entry an open interpolation: [offset of its `${`, how many braces are open inside].
        self.interpolations: list[list[int]] = []

    def run(self) -> None:
        text, at, match = self.text, 0, _TOKEN.match
        while at < len(text):
            found = match(text, at)
            if found is None:
                at = self.bad_characters(at)
                continue
            end = found.end()
            kind = found.lastgroup
            if kind == "SPACE":
                if "\n" in found.group():
                    self.starts_line = True
            elif kind == "NAME":
                self.name(at, end, found.group())
            elif kind == "PUNCTUATION":
                mark = found.group()
                if self.interpolations and mark in "{}":
                    top = self.interpolations[-1]
                    top[1] += 1 if mark == "{" else -1
                    if top[1] < 0:
                        self.interpolations.pop()
                        at = self.string(at, "STRING_MIDDLE", "STRING_END")
                        continue
                self.add(PUNCTUATION[mark], at, end)
            elif kind == "INT" or kind == "FLOAT":
                end = self.number(kind, at, end, found.group())
            elif kind == "QUOTE":
                end = self.string(at, "STRING_BEGIN", "STRING")
            elif kind == "DOC":
                self.docs.append(found.group()[3:].strip("\r").removeprefix(" "))
            elif kind == "ARROW_AFTER_TYPE":
                self.add("GT", at, end)
            at = end
        if self.interpolations:
            self.close_interpolations()
        self.add(END, len(text), len(text))

    def add(self, kind: str, start: int, end: int, value: int | float | str = "") -> None:
        doc = ""
        if self.docs:
            doc = "\n".join(self.docs)
            self.docs = []
        self.tokens.append(Token(kind, start, end, value, self.starts_line, doc))
        self.starts_line = False

    def report(self, code: str, title: str, start: int, end: int, text: str = "", help: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, title, Span(self.source, start, end), text, help=help))

    # --- names and numbers ---------------------------------------------------------------------------------------

    def name(self, start: int, end: int, word: str) -> None:
        if word in RESERVED and word not in self.reserved:
            self.reserved.add(word)
            self.report(
                "E0008",
                f"`{word}` is a reserved word",
                start,
                end,
                "cannot be used",
                "choose another name: this word is kept for a later version of the language",
            )
        if word == "_":
            self.add("UNDERSCORE", start, end)
        else:
            self.add(KEYWORDS.get(word, "NAME"), start, end, word)

    def number(self, kind: str, start: int, end: int, digits: str) -> int:
        """Adds the literal and returns where it ends, what is stuck to it included."""
        tail = _NUMBER_TAIL.match(self.text, end)
        if tail is not None:
            whole = digits + tail.group()
            if re.match(r"0[xXbBoO]", whole):
                advice = "write the number in decimal"
            elif re.fullmatch(r"[0-9_]+", whole):
                advice = "put single underscores between digits, as in `1_000`"
            else:
                advice = "put a space between the number and the name"
            self.report("E0006", f"`{whole}` is not a number", start, tail.end(), "stuck to the number before", advice)
            self.add("INT", start, tail.end(), 0)
            return tail.end()
        if kind == "INT":
            value = int(digits) if len(digits) < 80 else INT_LIMIT + 1
            if value > INT_LIMIT:
                self.report(
                    "E0007",
                    "int literal out of range",
                    start,
                    end,
                    "does not fit in 64 bits",
                    f"an int lies between {-INT_LIMIT} and {INT_LIMIT - 1}; write a float as `1.0e20`",
                )
                value = 0
            self.add("INT", start, end, value)
        else:
            number = float(digits)
            if math.isinf(number):
                self.report(
                    "E0007", "float literal out of range", start, end, "rounds to infinity", "write `inf` for infinity"
                )
            self.add("FLOAT", start, end, number)
        return end

    # --- strings -----------------------------------------------------------------------------------------------------

    def string(self, start: int, opening: str, closing: str) -> int:
        """Scans on from the quote or the `}` at `start`. Adds `closing` when the string ends here, `opening` when an
        interpolation begins; returns where scanning goes on."""
        text, at = self.text, start + 1
        parts: list[str] = []
        while True:
            plain = _PLAIN_TEXT.match(text, at)
            if plain is not None:
                parts.append(plain.group())
                at = plain.end()
            mark = text[at : at + 1]
            if mark == '"':
                self.add(closing, start, at + 1, "".join(parts))
                return at + 1
            if mark == "\\":
                at = self.escape(at, parts)
            elif mark == "$":
                if text[at + 1 : at + 2] == "{":
                    self.interpolations.append([at, 0])
                    self.add(opening, start, at + 2, "".join(parts))
                    return at + 2
                parts.append("$")
                at += 1
            else:
                self.unterminated(start, at)
                self.add(closing, start, at, "".join(parts))
                if self.interpolations:
                    self.close_interpolations(report=False)
                return at

    def escape(self, at: int, parts: list[str]) -> int:
        letter = self.text[at + 1 : at + 2]
        if letter in _ESCAPES and letter:
            parts.append(_ESCAPES[letter])
            return at + 2
        found = _UNICODE_ESCAPE.match(self.text, at)
        if found is not None:
            point = int(found.group(1), 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                self.report(
                    "E0005",
                    f"`{found.group()}` is no character",
                    at,
                    found.end(),
                    "no Unicode scalar value",
                    "code points end at 10FFFF, and D800 to DFFF are left out",
                )
            else:
                parts.append(chr(point))
            return found.end()
        if letter in ("", "\n", "\r"):
            return at + 1  # the missing quote is reported where the line ends
        if letter == "u":
            self.report("E0005", "`\\u` wants a code point in braces", at, at + 2, "", "write `\\u{1F600}`")
        else:
            self.report(
                "E0005",
                f"`\\{letter}` is not an escape",
                at,
                at + 2,
                "",
                'the escapes are \\n \\t \\r \\e \\0 \\" \\\\ \\$ and \\u{1F600}; a backslash itself is `\\\\`',
            )
        return at + 2

    def unterminated(self, start: int, end: int) -> None:
        if self.interpolations and "\n" not in self.text[self.interpolations[-1][0] : start]:
            # `"a ${b"`: the quote was meant to end the outer string; the brace is what is missing.
            self.report_open_interpolation()
            return
        self.report(
            "E0004",
            "unterminated string",
            start,
            end,
            'no `"` before the end of the line',
            'close it with `"`; a line break is `\\n`',
        )

    def report_open_interpolation(self) -> None:
        at = self.interpolations[-1][0]
        self.report("E0004", "this `${` is never closed", at, at + 2, "opened here", "close the interpolation with `}`")

    def close_interpolations(self, report: bool = True) -> None:
        if report:
            self.report_open_interpolation()
        for _ in self.interpolations:
            end = self.tokens[-1].end
            self.add("STRING_END", end, end)
        self.interpolations = []

    # --- what is no token ----------------------------------------------------------------------------------------------

    def bad_characters(self, at: int) -> int:
        found = _BAD_RUN.match(self.text, at)
        assert found is not None
        run, end = found.group(), found.end()
        if run[0] == "'":
            closing = re.compile(r"'[^'\n]*'").match(self.text, at)
            end = end if closing is None else closing.end()
            self.report("E0003", "strings are written with double quotes", at, end, "", 'write `"text"`')
            self.add("STRING", at, end, self.text[at + 1 : end - 1])
            return end
        advice = _ADVICE.get(run[0], "")
        if run[0] == "#":
            line_end = self.text.find("\n", at)
            end = len(self.text) if line_end < 0 else line_end
        shown = run if run.isprintable() and len(run) < 20 else f"U+{ord(run[0]):04X}"
        title = f"`{shown}` has no meaning here" if shown == run else f"the character {shown} has no meaning here"
        if run[0] > "\x7f" and run.isalpha():
            advice = "names are made of the letters a-z and A-Z, digits and `_`; other text goes into strings"
        self.report("E0003", title, at, end, "", advice)
        return end


_ADVICE = {
    "#": "a comment begins with `//`",
    "&": '"and" is `&&`; bits are combined with `bitAnd`',
    "^": "bits are combined with `bitXor`",
    "~": "bits are turned over with `bitNot`",
    "@": "there are no annotations in the language",
    "$": 'interpolation is written inside a string: `"${x}"`',
    "\\": "a lambda is written `|x| => x` or `fn(x) => x`",
    "`": 'strings are written with double quotes: `"text"`',
    "\u201c": 'use the plain quote `"`',
    "\u201d": 'use the plain quote `"`',
    "\ufeff": "remove the byte order mark",
    "\u00a0": "use a plain space",
    "\u2212": "use the plain minus `-`",
}
