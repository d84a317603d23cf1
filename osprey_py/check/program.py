"""The whole checker: a loaded project in, a typed program or complaints out.

Order: declared types and effects, groups of declarations, statements, what effects reached which bounds, then (only when
all of that is sound) elaboration with match coverage and what kernels may hold.
"""

from __future__ import annotations

from osprey_py.check import core
from osprey_py.check.bounds import tell_refused
from osprey_py.check.context import ConstructorDef, Context, Env, FunctionScope, Infer, TypeDef
from osprey_py.check.declarations import declare_types
from osprey_py.check.differentiable import meet_differentiable
from osprey_py.check.effects import EffVar
from osprey_py.check.elaborate import Elaborator
from osprey_py.check.groups import Placed, default_open, infer_groups
from osprey_py.check.infer_calls import call, method, pipe
from osprey_py.check.infer_control import assign, block, lambda_, match_, run_retries
from osprey_py.check.infer_effects import handle, perform, resume
from osprey_py.check.infer_names import field_access, index, list_, map_, record, reference, tuple_, update
from osprey_py.check.infer_operators import (
    binary,
    bool_literal,
    float_literal,
    if_,
    int_literal,
    recover,
    string_literal,
    unary,
    unit_literal,
)
from osprey_py.check.kernels import check_kernels
from osprey_py.check.local_functions import local_functions
from osprey_py.check.needs import read_field, tell_need
from osprey_py.check.solved import Solved
from osprey_py.check.startup import check_startup
from osprey_py.check.terms import TFun, prune
from osprey_py.modules.declare import pattern_names
from osprey_py.modules.project import LoadedFile, Project, program_parts
from osprey_py.modules.spaces import BUILTINS, Space, Symbol
from osprey_py.source.diagnostic import Diagnostic
from osprey_py.source.span import NO_SPAN
from osprey_py.syntax import ast

RULES: dict[type[ast.Expr], Infer] = {
    ast.IntLiteral: int_literal,
    ast.FloatLiteral: float_literal,
    ast.BoolLiteral: bool_literal,
    ast.UnitLiteral: unit_literal,
    ast.StringLiteral: string_literal,
    ast.Reference: reference,
    ast.Unary: unary,
    ast.Binary: binary,
    ast.Pipe: pipe,
    ast.Recover: recover,
    ast.Call: call,
    ast.MethodCall: method,
    ast.FieldAccess: field_access,
    ast.IndexAccess: index,
    ast.Lambda: lambda_,
    ast.If: if_,
    ast.Match: match_,
    ast.Tuple: tuple_,
    ast.ListLiteral: list_,
    ast.MapLiteral: map_,
    ast.RecordLiteral: record,
    ast.RecordUpdate: update,
    ast.Block: block,
    ast.Perform: perform,
    ast.Handle: handle,
    ast.Resume: resume,
}


def check_project(project: Project) -> tuple[core.Program | None, list[Diagnostic]]:
    """The typed program, None when anything is wrong; and every diagnostic, in the order of files and places."""
    told = list(project.diagnostics)
    if project.entry is None or any(d.is_error for d in told):
        return None, told
    checker = _Checker(project, project.entry)
    program = checker.check()
    order = {f.file.source: i for i, f in enumerate(reversed(project.files))}
    new = sorted(_once(checker.cx.told), key=lambda d: (order.get(d.span.source, -1), d.span.start, d.code))
    told.extend(new)
    return (None if any(d.is_error for d in told) else program), told


def _once(told: list[Diagnostic]) -> list[Diagnostic]:
    """Without repetitions of one complaint at one place."""
    seen: dict[tuple[object, ...], Diagnostic] = {}
    for d in told:
        seen.setdefault((d.code, d.span, d.title), d)
    return list(seen.values())


class _Checker:
    def __init__(self, project: Project, entry: LoadedFile) -> None:
        self.project = project
        self.entry = entry
        self.cx = Context(RULES, local_functions)
        self.cx.read_field = lambda t, need: read_field(self.cx, t, need)
        self.cx.differentiable = lambda t, need: meet_differentiable(self.cx, t, need)
        self.cx.tell_need = lambda t, need, m: tell_need(self.cx, t, need, m)
        self.top = FunctionScope(EffVar(0), "the top level")
        self.placed: list[Placed] = []

    def check(self) -> core.Program | None:
        cx = self.cx
        self._declare()
        for f in self.project.files:
            assert f.space.parent is not None
            self._place(f.file.statements, f.space, f.space.parent)
        infer_groups(cx, self.placed, self.top)
        self._statements()
        self._main_is_handled()
        run_retries(cx, 0, True)
        default_open(cx, set(), everything=True)
        check_startup(cx, self.placed)
        tell_refused(cx)
        if any(d.is_error for d in cx.told):
            return None
        return self._program()

    # --- declarations -----------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        symbols: list[Symbol] = []
        variants: dict[Symbol, list[Symbol]] = {}
        seen: set[int] = set()

        def collect(space: Space) -> None:
            if id(space) in seen:
                return
            seen.add(id(space))
            symbols.extend(space.names["type"].values())
            symbols.extend(space.names["effect"].values())
            for s in space.names["value"].values():
                if s.what == "variant" and s.owner is not None:
                    variants.setdefault(s.owner, []).append(s)
            for s in space.names["module"].values():
                if s.what == "module" and s.inside is not None:
                    collect(s.inside)

        for f in self.project.files:
            assert f.space.parent is not None
            collect(f.space.parent)
        names = {s.name for s in symbols if s.sort == "type"} | set(BUILTINS.names["type"])
        declare_types(self.cx, symbols, variants, names)

    def _place(self, statements: tuple[ast.Statement, ...], space: Space, declared: Space) -> None:
        """The declarations with values, in written order, modules included."""
        for s in statements:
            names: list[str] = []
            if isinstance(s, ast.Let):
                names = [n.text for n in pattern_names(s.pattern)]
            elif isinstance(s, (ast.FunctionDecl, ast.Mut)):
                names = [s.name.text]
            elif isinstance(s, ast.ModuleDecl):
                module = declared.names["module"].get(s.name.text)
                if module is not None and module.inside is not None and module.decl is s:
                    self._place(s.body, module.inside, module.inside)
                continue
            else:
                continue
            found = [declared.names["value"].get(n) for n in names]
            self.placed.append(Placed(s, space, tuple(x for x in found if x is not None and x.decl is s)))

    def _statements(self) -> None:
        cx = self.cx
        sink = cx.bound(frozenset(), True, True, NO_SPAN, "top")
        cx.flows.flow(self.top.ambient, sink)
        env = Env(self.entry.space, self.top, self.top.ambient)
        for s in self.entry.file.statements:
            if isinstance(s, ast.ExprStatement):
                cx.infer(s.value, env)
            elif isinstance(s, ast.Assign):
                assign(cx, s, env)

    def _main_symbol(self) -> Symbol | None:
        runs, main = program_parts(self.entry.file)
        if runs is not None or main is None or self.entry.space.parent is None:
            return None
        symbol = self.entry.space.parent.names["value"].get("main")
        return symbol if symbol is not None and symbol.decl is main else None

    def _main_is_handled(self) -> None:
        symbol = self._main_symbol()
        if symbol is None or not isinstance(symbol.decl, ast.FunctionDecl):
            return
        if symbol.decl.params:
            self.cx.tell(
                "E0107",
                "`main` takes no parameters",
                symbol.decl.params[0].span,
                "nothing calls it with an argument",
                help="what follows the program on the command line is read with `args()`",
            )
            return
        scheme = self.cx.globals[symbol].scheme
        if scheme is None:
            return
        t = prune(self.cx.instance(scheme, None))
        if isinstance(t, TFun):
            self.cx.flows.flow(t.eff, self.cx.bound(frozenset(), True, True, symbol.span, "main"))

    # --- the program ------------------------------------------------------------------------------------------------

    def _program(self) -> core.Program:
        cx = self.cx
        e = Elaborator(cx)
        functions: dict[str, core.Function] = {}
        globals_: dict[str, core.Var] = {}
        startup: list[core.Statement] = []
        for p in self.placed:
            e.solved.begin()
            if isinstance(p.decl, ast.FunctionDecl):
                for s in p.symbols:
                    scheme = cx.globals[s].scheme
                    assert scheme is not None
                    functions[s.key] = e.function(p.decl, s.key, scheme.type)
                continue
            startup.append(e.statement(p.decl))
            for s in p.symbols:
                globals_[s.key] = e.var(cx.globals[s])
        ran = [s for s in self.entry.file.statements if isinstance(s, (ast.ExprStatement, ast.Assign))]
        startup = self._in_order(startup, [e.statement(s) for s in ran])
        functions.update(e.lifted)
        main = self._main_symbol()
        program = core.Program(
            functions,
            globals_,
            tuple(startup),
            None if main is None else main.key,
            {name: self._info(t, e.solved) for name, t in cx.types.items()},
            e.kernels,
        )
        check_kernels(cx, program)
        return program

    def _in_order(self, binds: list[core.Statement], ran: list[core.Statement]) -> list[core.Statement]:
        """The entry file's statements and bindings in written order, after everything else's."""
        source = self.entry.file.source
        before = [b for b in binds if b.span.source is not source]
        own = [*(b for b in binds if b.span.source is source), *ran]
        return [*before, *sorted(own, key=lambda s: s.span.start)]

    def _info(self, t: TypeDef, solved: Solved) -> core.TypeInfo:
        constructors: list[ConstructorDef] = list(t.constructors.values())
        return core.TypeInfo(
            t.name,
            tuple(v.name for v in t.params),
            tuple(c.core for c in constructors),
            {c.core.name: tuple(solved.type(f) for _, f in c.fields) for c in constructors},
        )
