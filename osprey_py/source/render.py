"""The one renderer of diagnostics: text for people, plain data for tools.

Comes in: a `Diagnostic`. Goes out: its text (`render`) or a JSON-ready dictionary (`to_json`). Colour only when asked for.

    error[E0001]: `let` cannot stand here
      --> shop.osp:3:5
       |
     2 | let total = (1 +
       |             - this bracket is still open
     3 | let x = 2
       | ^^^ expected an expression
       |
       = help: …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osprey_py.source.columns import Shown, show_line
from osprey_py.source.diagnostic import Diagnostic
from osprey_py.source.span import BUILTIN_SOURCE, Source, Span

WIDTH = 150
"""Longer lines are cut to a window of this many columns around what they are shown for."""

_RED, _YELLOW, _BLUE, _CYAN, _BOLD, _PLAIN = "1;31", "1;33", "1;34", "1;36", "1", ""


@dataclass(frozen=True, slots=True)
class _Mark:
    """Display columns [begin, end) of one line, underlined. text: what to say there."""

    begin: int
    end: int
    text: str
    primary: bool


@dataclass(frozen=True, slots=True)
class _Paint:
    color: bool
    main: str

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and text and style else text


def render(diagnostic: Diagnostic, color: bool = False) -> str:
    """The diagnostic as lines of text, without a line break at the end."""
    d = diagnostic
    word, style = ("error", _RED) if d.is_error else ("warning", _YELLOW)
    paint = _Paint(color, style)
    lines = [paint(f"{word}[{d.code}]", style) + paint(f": {d.title}", _BOLD)]
    spans = [(d.span, d.text, True), *((label.span, label.text, False) for label in d.labels)]
    shown = [s for s in spans if _has_text(s[0].source)]
    sources = list(dict.fromkeys(s[0].source for s in shown))
    gutter = max((len(str(_last_line(s[0]))) for s in shown), default=1)
    for source in sources:
        marked = [s for s in shown if s[0].source is source]
        first = min(marked, key=lambda s: not s[2])[0]
        arrow = "-->" if source is d.span.source else ":::"
        lines.append(f"{' ' * gutter}{paint(arrow, _BLUE)} {first.place}")
        lines += _snippet(source, marked, gutter, paint)
    bar = paint("|", _BLUE)
    if not shown and d.span.source is not BUILTIN_SOURCE:
        lines.append(f"{' ' * gutter}{paint('-->', _BLUE)} {d.span.source.path}")
    if not _has_text(d.span.source) and d.text:
        lines.append(f"{' ' * gutter} {paint('=', _BLUE)} {d.text}")
    if shown and (d.notes or d.help):
        lines.append(f"{' ' * gutter} {bar}")
    for kind, text in [*(("note", note) for note in d.notes), *([("help", d.help)] if d.help else [])]:
        head = f"{' ' * gutter} {paint('=', _BLUE)} {paint(kind, _CYAN)}: "
        indent = "\n" + " " * (gutter + 3 + len(kind) + 2)
        lines.append(head + text.replace("\n", indent))
    return "\n".join(line.rstrip() for line in lines)


def to_json(diagnostic: Diagnostic) -> dict[str, object]:
    """The same as plain data: severity, code, title, where (path, offsets in code points, line and column from 1), labels,
    notes, help. The keys are a contract with editors and scripts."""
    d = diagnostic
    return {
        "severity": "error" if d.is_error else "warning",
        "code": d.code,
        "title": d.title,
        "text": d.text,
        **_place(d.span),
        "labels": [{"text": label.text, **_place(label.span)} for label in d.labels],
        "notes": list(d.notes),
        "help": d.help,
    }


def _place(span: Span) -> dict[str, object]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "path": span.source.path,
        "start": span.start,
        "end": span.end,
        "line": line,
        "column": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _has_text(source: Source) -> bool:
    return bool(source.text)


def _last_line(span: Span) -> int:
    return span.source.position(max(span.start, span.end - 1))[0]


def _snippet(source: Source, spans: Sequence[tuple[Span, str, bool]], gutter: int, paint: _Paint) -> list[str]:
    """The lines that the spans touch, with what is said under them. Of a span over several lines the first and the last
    are shown."""
    marks: dict[int, list[_Mark]] = {}
    texts: dict[int, Shown] = {}

    def mark(number: int, begin: int, end: int, text: str, primary: bool) -> None:
        shown = texts.setdefault(number, show_line(source.line(number)))
        last = len(shown.columns) - 1
        left, right = shown.columns[min(begin, last)], shown.columns[min(end, last)]
        marks.setdefault(number, []).append(_Mark(left, max(right, left + 1), text, primary))

    for span, text, primary in spans:
        line, column = source.position(span.start)
        last, end = source.position(max(span.start, span.end - 1))
        if line == last:
            mark(line, column - 1, end if span.end > span.start else column - 1, text, primary)
        else:
            mark(line, column - 1, len(source.line(line)), text, primary)
            final = source.line(last)
            mark(last, len(final) - len(final.lstrip()), end, "", primary)
    bar = paint("|", _BLUE)
    out = [f"{' ' * gutter} {bar}"]
    previous = 0
    for number in sorted(marks):
        if previous and number == previous + 2:
            out += _line(number - 1, show_line(source.line(number - 1)), [], gutter, paint)
        elif previous and number > previous + 2:
            out.append(paint("...", _BLUE))
        out += _line(number, texts[number], marks[number], gutter, paint)
        previous = number
    return out


def _line(number: int, shown: Shown, marks: list[_Mark], gutter: int, paint: _Paint) -> list[str]:
    text, marks = _window(shown, marks)
    head = f"{paint(f'{number:>{gutter}}', _BLUE)} {paint('|', _BLUE)} "
    under = f"{' ' * gutter} {paint('|', _BLUE)} "
    out = [head + text]
    if not marks:
        return out
    # One row of underlines; the text of the rightmost goes beside it, the others hang below, rightmost first.
    marks = sorted(marks, key=lambda m: (m.begin, m.end))
    width = max(m.end for m in marks)
    row = [" "] * width
    style = [_PLAIN] * width
    for m in sorted(marks, key=lambda m: m.primary):
        for k in range(m.begin, m.end):
            row[k], style[k] = ("^", paint.main) if m.primary else ("-", _BLUE)
    beside = marks[-1] if marks[-1].end == width else None
    underline = _runs(row, style, paint)
    if beside is not None and beside.text:
        underline += " " + paint(beside.text, _mark_style(beside, paint))
    out.append(under + underline)
    hanging = [m for m in marks if m is not beside and m.text]
    if hanging:
        out.append(under + _posts(hanging, paint))
    while hanging:
        m = hanging.pop()
        before = _posts([h for h in hanging if h.begin < m.begin], paint, m.begin)
        out.append(under + before + paint(m.text, _mark_style(m, paint)))
    return out


def _posts(marks: Sequence[_Mark], paint: _Paint, width: int = 0) -> str:
    """A `|` under the beginning of each mark, filled up to `width` columns."""
    row = [" "] * max([width, *(m.begin + 1 for m in marks)])
    style = [_PLAIN] * len(row)
    for m in marks:
        row[m.begin], style[m.begin] = "|", _mark_style(m, paint)
    return _runs(row, style, paint)


def _mark_style(m: _Mark, paint: _Paint) -> str:
    return paint.main if m.primary else _BLUE


def _runs(row: list[str], style: list[str], paint: _Paint) -> str:
    """The characters of a row, painted in runs of one style."""
    out: list[str] = []
    begin = 0
    for k in range(1, len(row) + 1):
        if k == len(row) or style[k] != style[begin]:
            out.append(paint("".join(row[begin:k]), style[begin]))
            begin = k
    return "".join(out)


def _window(shown: Shown, marks: list[_Mark]) -> tuple[str, list[_Mark]]:
    """A line that is too long, cut to what its marks need; the marks move along."""
    total = shown.columns[-1]
    if total <= WIDTH:
        return shown.text, marks
    first = min((m.begin for m in marks), default=0)
    last = max((m.end for m in marks), default=0)
    left = max(0, min(first - WIDTH // 4, total - WIDTH))
    if last <= WIDTH:
        left = 0
    right = left + WIDTH
    # Cut between code points: the shown characters and their columns.
    kept: list[str] = []
    at, begin = 0, None
    for c in shown.text:
        width = show_line(c).columns[-1]
        if at >= left and at + width <= right:
            begin = at if begin is None else begin
            kept.append(c)
        at += width
    shift = (begin or 0) - (1 if left else 0)
    text = ("…" if left else "") + "".join(kept) + ("…" if right < total else "")
    limit = right - shift + 1
    moved = [_Mark(min(m.begin - shift, limit - 1), min(m.end - shift, limit), m.text, m.primary) for m in marks]
    return text, moved
