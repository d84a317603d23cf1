"""What an `import` brings into a file or a module.

Comes in: the namespaces of a project. Goes out: symbols in the importing space, or a complaint that says which part of the
path is missing or private. Spec: types-and-effects L7.3, L7.5.
"""

from __future__ import annotations

from osprey_py.modules.spaces import SORTS, Missing, Private, Space, Symbol, member
from osprey_py.source.diagnostic import Diagnostic, Label
from osprey_py.source.span import NO_SPAN
from osprey_py.source.suggest import did_you_mean
from osprey_py.syntax import ast


def resolve_imports(
    statements: tuple[ast.Statement, ...],
    space: Space,
    declared: Space | None,
    namespaces: dict[tuple[str, ...], Symbol],
) -> list[Diagnostic]:
    """Fills `space.imports` for a file or module. declared: the space that holds what the statements declare."""
    told: list[Diagnostic] = []
    for s in statements:
        if isinstance(s, ast.Import):
            told.extend(_one(s, space, namespaces))
        elif isinstance(s, ast.ModuleDecl) and declared is not None:
            module = declared.names["module"].get(s.name.text)
            if module is not None and module.decl is s and module.inside is not None:
                module.inside.parent = space
                told.extend(resolve_imports(s.body, module.inside, module.inside, namespaces))
    return told


def _one(s: ast.Import, space: Space, namespaces: dict[tuple[str, ...], Symbol]) -> list[Diagnostic]:
    first = s.path[0]
    at = namespaces.get((first.text,))
    if at is None or (at.inside is not None and not any(at.inside.names[sort] for sort in SORTS)):
        known = next((s_.names["module"][first.text] for s_ in space.chain() if first.text in s_.names["module"]), None)
        if known is None:
            names = [".".join(k) for k in namespaces if len(k) == 1]
            return [
                Diagnostic(
                    "E0106",
                    f"there is no namespace or module `{first.text}`",
                    first.span,
                    "not found beside this file, nor in the standard library",
                    help=did_you_mean(first.text, names) or "an import names a namespace that some file declares",
                )
            ]
        at = known
    if s.items is None:
        return _path(s, at, space)
    for name in s.path[1:]:
        step = member(at, name, "module", space)
        if not isinstance(step, Symbol):
            return [_wrong(step, at)]
        at = step
    told: list[Diagnostic] = []
    for item in s.items:
        told.extend(_bring(at, item.name, (item.alias or item.name).text, space))
    return told


def _path(s: ast.Import, at: Symbol, space: Space) -> list[Diagnostic]:
    for name in s.path[1:-1]:
        step = member(at, name, "module", space)
        if not isinstance(step, Symbol):
            return [_wrong(step, at)]
        at = step
    last = s.path[-1]
    if len(s.path) == 1:
        space.bring((s.alias or last).text, at)
        return []
    return _bring(at, last, (s.alias or last).text, space)


def _bring(at: Symbol, name: ast.Name, local: str, space: Space) -> list[Diagnostic]:
    """Everything of that name, whatever its sort; the complaint is about the best of what was not found."""
    problem: Missing | Private = Missing(name, at)
    found = False
    for sort in SORTS:
        got = member(at, name, sort, space)
        if isinstance(got, Symbol):
            space.bring(local, got)
            found = True
            if got.what == "union" and got.inside is None:
                continue
        elif isinstance(got, Private):
            problem = got
    return [] if found else [_wrong(problem, at)]


def _wrong(problem: object, at: Symbol) -> Diagnostic:
    if isinstance(problem, Private):
        what = problem.symbol.what
        return Diagnostic(
            "E0102",
            f"{what} `{problem.at.text}` is private to `{at.key}`",
            problem.at.span,
            "it is not exported",
            () if problem.symbol.span is NO_SPAN else (Label(problem.symbol.span, "declared here"),),
            help=f"write `export` before its declaration to let others use `{problem.at.text}`",
        )
    assert isinstance(problem, Missing)
    names = [n for sort in SORTS for n in (at.inside.names[sort] if at.inside else ())]
    return Diagnostic(
        "E0101",
        f"`{at.key}` has no `{problem.at.text}`",
        problem.at.span,
        "no such name there",
        help=did_you_mean(problem.at.text, names),
    )
