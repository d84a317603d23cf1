"""Inference of file-scope declarations, in groups that need each other.

Comes in: the functions, `let`s and `mut`s of a project. Goes out: their schemes. Functions generalise group by group, after
everything they need (L6.3); what is still open when a group ends, and not part of its types, is int (L6.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.check.context import Context, Env, FunctionScope, Global, new_cell
from osprey_py.check.free_names import mentioned
from osprey_py.check.infer_control import function_body, let_value, run_retries
from osprey_py.check.infer_patterns import pattern
from osprey_py.check.mismatch import expect
from osprey_py.check.names import quiet_look
from osprey_py.check.scc import components
from osprey_py.check.schemes import Scheme, generalise, own_variables
from osprey_py.check.terms import FLOAT, INT, STRING, TCon, Term, TFun, TVar, prune
from osprey_py.check.unify import Mismatch, lower
from osprey_py.check.written_types import read_type, reading
from osprey_py.modules.declare import pattern_names
from osprey_py.modules.spaces import Space, Symbol
from osprey_py.syntax import ast

Decl = ast.FunctionDecl | ast.Let | ast.Mut


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """A declaration, the space it is read in, and the symbols it declares."""

    decl: Decl
    space: Space
    symbols: tuple[Symbol, ...]


def infer_groups(cx: Context, placed: list[Placed], top: FunctionScope) -> None:
    """Types every declaration. top: the scope of code that runs at start-up."""
    home: dict[Symbol, Placed] = {}
    for p in placed:
        for s in p.symbols:
            home[s] = p
            cx.globals[s] = Global(s)
            if isinstance(p.decl, ast.FunctionDecl):
                cx.globals[s].params = tuple(q.name.text if q.name else None for q in p.decl.params)
            elif isinstance(p.decl, ast.Let) and isinstance(p.decl.value, ast.Lambda):
                cx.globals[s].params = tuple(q.name.text if q.name else None for q in p.decl.value.params)
            elif isinstance(p.decl, ast.Mut):
                cx.globals[s].cell = new_cell(s.name)
    needs: dict[Placed, list[Placed]] = {}
    for p in placed:
        found = (quiet_look(p.space, path, "value") for path in mentioned(p.decl))
        needs[p] = list(dict.fromkeys(home[s] for s in found if s is not None and s in home))
    for group in components(placed, lambda p: needs[p]):
        _Group(cx, group, top).infer(recursive=len(group) > 1 or group[0] in needs[group[0]])


class _Group:
    def __init__(self, cx: Context, group: list[Placed], top: FunctionScope) -> None:
        self.cx = cx
        self.group = group
        self.top = top

    def infer(self, recursive: bool) -> None:
        cx = self.cx
        cx.level = 1
        functions = [p for p in self.group if isinstance(p.decl, ast.FunctionDecl)]
        others = [p for p in self.group if not isinstance(p.decl, ast.FunctionDecl)]
        envs = [self._begin(p) for p in functions]
        if recursive:
            for p in others:
                for s in p.symbols:
                    cx.globals[s].scheme = Scheme(cx.fresh())
        for p, (env, t, tparams) in zip(functions, envs, strict=True):
            assert isinstance(p.decl, ast.FunctionDecl)
            function_body(cx, p.decl, t.params, t.result, t.eff, env, p.decl.name.text, tparams)
        general = [(p, self._other(p, recursive)) for p in others]
        run_retries(cx, 0, True)
        for p, is_general in general:
            for s in p.symbols:
                plain = cx.globals[s].scheme
                if plain is not None and (recursive or not is_general):
                    lower(plain.type, 0)
        schemes = (cx.globals[s].scheme for p, is_general in general if is_general for s in p.symbols)
        self._default([*(t for _, t, _ in envs), *(scheme.type for scheme in schemes if scheme is not None)])
        cx.level = 0
        for p, (_, t, tparams) in zip(functions, envs, strict=True):
            self._finish(p, t, tparams)
        for p, is_general in general:
            for s in p.symbols:
                scheme = cx.globals[s].scheme
                if scheme is None:
                    continue
                if is_general and not recursive:
                    cx.globals[s].scheme = generalise(scheme.type, 0)
        cx.open = [v for v in cx.open if v.ref is None and v.level == 0]

    def _begin(self, p: Placed) -> tuple[Env, TFun, dict[str, TVar]]:
        cx = self.cx
        decl = p.decl
        assert isinstance(decl, ast.FunctionDecl)
        tparams = {q.name.text: TVar(cx.level, None, q.name.text) for q in decl.type_params}
        env = Env(p.space, self.top, self.top.ambient)
        r = reading(cx, p.space, tparams)
        params = tuple(cx.fresh() if q.type is None else read_type(r, q.type) for q in decl.params)
        t = TFun(params, cx.fresh(), cx.fresh_effect())
        if p.symbols:
            cx.globals[p.symbols[0]].scheme = Scheme(t)
        return env, t, tparams

    def _finish(self, p: Placed, t: TFun, tparams: dict[str, TVar]) -> None:
        cx = self.cx
        for name, v in tparams.items():
            if v.level == 0:
                assert isinstance(p.decl, ast.FunctionDecl)
                cx.tell(
                    "E0207",
                    f"`{name}` stands for any type, and here it would have to be one",
                    p.decl.name.span,
                    f"`{name}` reaches a file-scope binding",
                )
        if p.symbols:
            cx.globals[p.symbols[0]].scheme = generalise(t, 0)

    def _other(self, p: Placed, recursive: bool) -> bool:
        """A `let` or `mut` at file scope; whether it is generalised."""
        cx = self.cx
        env = Env(p.space, self.top, self.top.ambient)
        decl = p.decl
        names = {s.name: cx.globals[s] for s in p.symbols}
        if isinstance(decl, ast.Mut):
            t = cx.infer(decl.value, env)
            if decl.type is not None:
                wanted = read_type(reading(cx, p.space, {}), decl.type)
                expect(cx, t, wanted, decl.value.span, "", ((decl.type.span, "declared with this type"),))
                t = wanted
            self._settle(names.get(decl.name.text), t, decl, recursive)
            if decl.name.text in names:
                cx.side.binders[decl] = names[decl.name.text]
            return False
        assert isinstance(decl, ast.Let)
        t, general = let_value(cx, decl, env)

        def bind(name: ast.Name, bound: Term) -> Global:
            target = names.get(name.text) or Global(Symbol(name.text, name.text, "value", "let", name.span, None))
            self._settle(target, bound, decl, recursive)
            return target

        pattern(cx, decl.pattern, t, env, bind, ((decl.value.span, f"this is `{cx.shower().show(t)}`"),))
        return general and len(list(pattern_names(decl.pattern))) == 1

    def _settle(self, target: Global | None, t: Term, decl: Decl, recursive: bool) -> None:
        if target is None:
            return
        if recursive and target.scheme is not None:
            expect(self.cx, t, target.scheme.type, decl.span)
        else:
            target.scheme = Scheme(t)

    def _default(self, types: list[Term]) -> None:
        """Variables of the group that its types do not mention become int, or what their set allows."""
        keep = {v.id for t in types for v in own_variables(t, 0)[0]}
        default_open(self.cx, keep)


def default_open(cx: Context, keep: set[int], everything: bool = False) -> None:
    """Decides open variables. everything: those of file-scope bindings too, at the end."""
    k = 0
    while k < len(cx.open):
        v = prune(cx.open[k])
        k += 1
        if isinstance(v, TVar) and not v.name and not v.generic and v.id not in keep and (everything or v.level > 0):
            _decide(cx, v)


def _decide(cx: Context, v: TVar) -> None:
    choice: Term = INT
    if v.needs and any(kind == "differentiable" for kind, _ in v.needs):
        choice = FLOAT
    if v.kind is not None and "int" not in v.kind:
        if "List" in v.kind:
            need = v.needs.get(("element", "")) if v.needs else None
            choice = TCon("List", (need.types[0] if need is not None else INT,))
        else:
            choice = FLOAT if "float" in v.kind else STRING
    elif v.needs and ("error", "") in v.needs:
        choice = STRING
    elif v.kind is None and v.needs:
        need = v.needs.get(("recover", ""))
        if need is not None and prune(need.types[0]) is not v:
            choice = need.types[0]
    if any(d.is_error for d in cx.told):
        v.needs = None  # it may be open because of an error: what it lacks as an int is no news
    try:
        cx.unifier.unify(v, choice)
    except Mismatch:
        v.needs = None
        v.ref = v.ref or INT
