"""File-scope bindings are used only after they have their value.

Comes in: declarations in the order they run. Goes out: an error for a `let` whose value needs a later one, by itself or
through functions it names. Spec: types-and-effects L7.9.
"""

from __future__ import annotations

from osprey_py.check.context import Context
from osprey_py.check.free_names import lambdas_apart, mentioned
from osprey_py.check.groups import Placed
from osprey_py.check.names import quiet_look
from osprey_py.modules.spaces import Symbol
from osprey_py.syntax import ast


def check_startup(cx: Context, placed: list[Placed]) -> None:
    home = {s: (i, p) for i, p in enumerate(placed) for s in p.symbols}
    reach: dict[Symbol, list[Symbol]] = {}

    def named(p: Placed, now: bool) -> list[Symbol]:
        paths = lambdas_apart(p.decl.value) if now and isinstance(p.decl, (ast.Let, ast.Mut)) else mentioned(p.decl)
        found = (quiet_look(p.space, path, "value") for path in paths)
        return [s for s in found if s is not None and s in home]

    for i, p in enumerate(placed):
        if isinstance(p.decl, ast.FunctionDecl):
            continue
        work: list[tuple[Symbol, tuple[str, ...]]] = [(s, ()) for s in named(p, True)]
        seen: set[Symbol] = set()
        while work:
            s, through = work.pop(0)
            if s in seen:
                continue
            seen.add(s)
            at, other = home[s]
            if not isinstance(other.decl, ast.FunctionDecl):
                if at >= i:
                    _tell(cx, p, s, through)
                    break
                continue
            if s not in reach:
                reach[s] = named(other, False)
            work.extend((t, (*through, s.name)) for t in reach[s])


def _tell(cx: Context, p: Placed, s: Symbol, through: tuple[str, ...]) -> None:
    assert isinstance(p.decl, (ast.Let, ast.Mut))
    name = p.symbols[0].name if p.symbols else "_"
    by = f" through {', '.join(f'`{t}`' for t in through)}" if through else ""
    title = f"`{s.name}` needs its own value" if s in p.symbols else f"`{s.name}` is used before it has its value"
    cx.tell(
        "E0110",
        title,
        p.decl.value.span,
        f"`{name}` needs `{s.name}`{by}",
        ((s.span, "gets its value here, later"),) if s not in p.symbols else (),
        help="file-scope bindings run from top to bottom: move it up" if s not in p.symbols else "",
    )
