"""Functions declared in blocks.

Comes in: adjacent `fn` declarations of a block. Goes out: their types, generalised like those of file scope; and for
functions that call each other or themselves, which outer local names they read, so that elaboration can lift them out.
Spec: types-and-effects L6.17.
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.check.context import Context, Env, FunctionScope, Local
from osprey_py.check.free_names import inner_nodes, mentioned
from osprey_py.check.infer_control import function_body, run_retries
from osprey_py.check.scc import components
from osprey_py.check.schemes import Scheme, generalise
from osprey_py.check.terms import TFun, TVar
from osprey_py.check.written_types import read_type, reading
from osprey_py.syntax import ast


def local_functions(cx: Context, declarations: Sequence[ast.FunctionDecl], env: Env) -> None:
    """Adjacent functions see each other, whatever their order, and what stands above them."""
    by_name: dict[str, ast.FunctionDecl] = {}
    for d in declarations:
        first = by_name.setdefault(d.name.text, d)
        if first is not d:
            cx.tell(
                "E0104",
                f"`{d.name.text}` is declared twice",
                d.name.span,
                "declared again here",
                ((first.name.span, "first declared here"),),
                help="rename one of them",
            )
    needs = {
        d: [by_name[p[0].text] for p in mentioned(d) if len(p) == 1 and p[0].text in by_name] for d in by_name.values()
    }
    for group in components(list(by_name.values()), lambda d: needs[d]):
        recursive = len(group) > 1 or group[0] in needs[group[0]]
        _infer(cx, group, env, recursive)


def _infer(cx: Context, group: list[ast.FunctionDecl], env: Env, recursive: bool) -> None:
    mark = len(cx.retries)
    cx.level += 1
    begun: list[tuple[ast.FunctionDecl, Local, TFun, dict[str, TVar]]] = []
    for d in group:
        tparams = {
            **env.function.type_params,
            **{q.name.text: TVar(cx.level, None, q.name.text) for q in d.type_params},
        }
        r = reading(cx, env.space, tparams)
        t = TFun(
            tuple(cx.fresh() if q.type is None else read_type(r, q.type) for q in d.params),
            cx.fresh(),
            cx.fresh_effect(),
        )
        names = tuple(q.name.text if q.name else None for q in d.params)
        local = Local(d.name.text, d.name.span, Scheme(t), env.function, names)
        begun.append((d, local, t, tparams))
    for d, local, _, _ in begun:
        env.names[d.name.text] = local
        cx.side.binders[d] = local
    scopes: list[FunctionScope] = []
    for d, _, t, tparams in begun:
        scopes.append(function_body(cx, d, t.params, t.result, t.eff, env, d.name.text, tparams))
        cx.side.types[d] = t
    run_retries(cx, mark, True)
    cx.level -= 1
    for _, local, t, _ in begun:
        local.scheme = generalise(t, cx.level)
    if recursive:
        _lift(cx, [d for d, *_ in begun], [local for _, local, *_ in begun], scopes)


def _lift(cx: Context, group: list[ast.FunctionDecl], locals_: list[Local], scopes: list[FunctionScope]) -> None:
    """Finds what the group reads of the functions around it; a group that reads a cell stays a closure."""
    captured: dict[Local, None] = {}
    for d in group:
        for node in inner_nodes(d, cx.side.sugar):
            target = cx.side.targets.get(node)
            if not isinstance(target, Local) or target in locals_ or any(s.holds(target.home) for s in scopes):
                continue
            for through in target.captures if target.captures is not None else (target,):
                captured[through] = None
    if any(c.cell is not None for c in captured):
        return
    for local in locals_:
        local.captures = tuple(captured)
