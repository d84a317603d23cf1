"""Text to AST: the front door of this folder.

Comes in: a `Source`. Goes out: its `ast.File` and everything that is wrong with its syntax, in the order of the text. With
errors among the diagnostics the file holds what could be read and is good for tools, not for running.
"""

from __future__ import annotations

from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import Source
from osprey_py.syntax import ast
from osprey_py.syntax.build import FileActions
from osprey_py.syntax.lexer import tokenize
from osprey_py.syntax.machine import Machine
from osprey_py.syntax.messages import Explainer
from osprey_py.syntax.newlines import refine
from osprey_py.syntax.tables import load

_ABOUT_VALUES = frozenset(("E0009", "E0010"))


def parse(source: Source) -> tuple[ast.File, list[Diagnostic]]:
    """The file and its syntax errors. Never raises on any text."""
    tokens, lexical = tokenize(source)
    kinds = refine(tokens)
    tables = load()
    actions = FileActions(source)
    explainer = Explainer(tables, source, tokens, kinds, lexical)
    file: ast.File = Machine(tables, source, tokens, kinds, actions, explainer).run()
    actions.finish()
    found = [*lexical, *explainer.diagnostics]
    broken = bool(found)
    # The tree of a line that could not be read says nothing; and what it says of values is only worth saying of a file
    # that was read whole, once a line.
    lines = {source.position(d.span.start)[0] for d in explainer.diagnostics}
    for d in actions.diagnostics:
        line = source.position(d.span.start)[0]
        if line in lines or (broken and d.code in _ABOUT_VALUES):
            continue
        if d.code in _ABOUT_VALUES:
            lines.add(line)
        found.append(d)
    return file, sorted(found, key=lambda d: (d.span.start, d.code))


def parse_or_raise(source: Source) -> ast.File:
    """The file; raises OspreyError with all diagnostics when there is an error."""
    file, diagnostics = parse(source)
    if any(d.is_error for d in diagnostics):
        raise OspreyError(diagnostics)
    return file
