"""File-scope bindings are used only after they have their value.

Comes in: declarations in the order they run. Goes out: an error for a `let` whose value needs a later one, by itself or
through functions it names. Spec: types-and-effects L7.9.
"""

from __future__ import annotations

from collections.abc import Iterable

from osprey_py.check.context import Context
from osprey_py.check.free_names import lambdas_apart, mentioned
from osprey_py.check.groups import Placed
from osprey_py.check.names import quiet_look
from osprey_py.check.scc import components
from osprey_py.modules.spaces import Symbol
from osprey_py.syntax import ast


def check_startup(cx: Context, placed: list[Placed]) -> None:
    _Order(cx, placed).check()


class _Order:
    """home: where each symbol is declared, by place in the order of running. latest: for each function, the last place of a
    binding that calling it may need."""

    def __init__(self, cx: Context, placed: list[Placed]) -> None:
        self.cx = cx
        self.placed = placed
        self.home = {s: (i, p) for i, p in enumerate(placed) for s in p.symbols}
        functions = [s for s, (_, p) in self.home.items() if isinstance(p.decl, ast.FunctionDecl)]
        self.needs = {s: self._named(self.home[s][1], mentioned(self.home[s][1].decl)) for s in functions}
        self.latest: dict[Symbol, int] = {}
        for group in components(functions, lambda s: self.needs[s]):
            last = max((self._place(t) for s in group for t in self.needs[s]), default=-1)
            self.latest.update((s, last) for s in group)

    def _named(self, p: Placed, paths: Iterable[tuple[ast.Name, ...]]) -> list[Symbol]:
        found = (quiet_look(p.space, path, "value") for path in paths)
        return [s for s in found if s is not None and s in self.home]

    def _place(self, s: Symbol) -> int:
        """The last place that evaluating a name needs to have run, as far as it is known."""
        at, p = self.home[s]
        return self.latest.get(s, -1) if isinstance(p.decl, ast.FunctionDecl) else at

    def check(self) -> None:
        for i, p in enumerate(self.placed):
            if isinstance(p.decl, ast.FunctionDecl):
                continue
            now = self._named(p, lambdas_apart(p.decl.value))
            if any(self._place(s) >= i for s in now):
                self._explain(i, p, now)

    def _explain(self, i: int, p: Placed, now: list[Symbol]) -> None:
        """Finds the shortest way from the value to the later binding."""
        work: list[tuple[Symbol, tuple[str, ...]]] = [(s, ()) for s in now]
        seen: set[Symbol] = set()
        for s, through in work:
            if s in seen:
                continue
            seen.add(s)
            if s not in self.needs:
                if self.home[s][0] >= i:
                    _tell(self.cx, p, s, through)
                    return
            else:
                work.extend((t, (*through, s.name)) for t in self.needs[s])


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
