"""What a kernel holds must be something a device can run.

Comes in: the typed program, proven pure. Goes out: errors for kernels that make or read text, lists, maps or iterators,
that handle effects, or call a built-in that has no scalar result; in themselves or in functions they call by name. Captured
records may hold anything: only what the kernel reads of them counts. What cannot be seen here is refused at the launch.
Spec: types-and-effects L5.12, L5.13.
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.check import core
from osprey_py.check.builtins import KERNEL_SCALARS
from osprey_py.check.context import Context
from osprey_py.check.core_walk import parts, statement_value, statements_in
from osprey_py.check.signatures import kernel_slots, takes_proven
from osprey_py.check.types import FunctionType, Named, Type
from osprey_py.source.span import Span

KERNEL_BUILTINS = KERNEL_SCALARS | frozenset("gpuGet gpuLength gpuIota gpuMap gpuZipWith gpuFilter gpuFold".split())
"""What kernels may call: scalars, reads of buffers, and pipelines that end in a fold."""

_HOST_TYPES = {"string": "text", "List": "a list", "Map": "a map", "Iterator": "an iterator"}


def check_kernels(cx: Context, program: core.Program) -> None:
    """Tells every part of a visible kernel that cannot run in one."""
    known = _known_functions(program)
    roots = [*(f.body for f in program.functions.values()), *map(statement_value, program.startup)]
    told: set[Span] = set()
    for root in roots:
        stack = [root]
        while stack:
            e = stack.pop()
            stack.extend(parts(e))
            if not (isinstance(e, core.Call) and isinstance(e.callee, core.BuiltinRef)):
                continue
            if takes_proven(e.callee.name):
                f = e.args[0]
                if isinstance(f.type, FunctionType) and any(map(_is_performed, f.type.effects)):
                    _tell_undifferentiable(cx, f.span, f"its type is `{f.type}`")
            elif kernel_slots(e.callee.name):
                kernel = e.args[-1]
                if isinstance(kernel.type, FunctionType) and any(map(_is_performed, kernel.type.effects)):
                    _tell_unproven(cx, kernel.span, f"its type is `{kernel.type}`")
                _Kernel(cx, program, known, e.callee.name, kernel.span, told).function(kernel, ())


def _is_performed(effect: str) -> bool:
    """An operation, IO or an assignment; not the name of an effect that passes through."""
    return effect == "IO" or "." in effect or " " in effect


def _tell_unproven(cx: Context, span: Span, why: str) -> None:
    """The last line of defence: inference let a kernel pass, and the typed program says otherwise (L5.4)."""
    cx.tell("E0302", "cannot prove GPU kernel pure", span, why, help="give it a function that performs nothing")


def _tell_undifferentiable(cx: Context, span: Span, why: str) -> None:
    """Likewise, of what is differentiated (gradients G8)."""
    cx.tell(
        "E0311", "cannot prove pure what is differentiated", span, why, help="give it a function that performs nothing"
    )


def _known_functions(program: core.Program) -> dict[core.Var, core.Function]:
    """Immutable names of lambdas, anywhere."""
    known: dict[core.Var, core.Function] = {}
    roots = [*(f.body for f in program.functions.values()), *map(statement_value, program.startup)]
    for s in (*program.startup, *(s for root in roots for s in statements_in(root))):
        if isinstance(s, core.Bind) and isinstance(s.value, core.Lambda):
            p = s.pattern
            if isinstance(p, core.PVar) and not p.var.mutable:
                known[p.var] = s.value.function
    return known


@dataclass(frozen=True, slots=True)
class _Problem:
    span: Span
    title: str
    text: str
    help: str
    code: str = "E0310"


class _Kernel:
    """One kernel argument of one built-in; walks what it runs."""

    def __init__(
        self,
        cx: Context,
        program: core.Program,
        known: dict[core.Var, core.Function],
        builtin: str,
        span: Span,
        told: set[Span],
    ) -> None:
        self.cx = cx
        self.program = program
        self.known = known
        self.builtin = builtin
        self.span = span
        self.told = told
        self.seen: set[core.Function] = set()

    def function(self, e: core.Expr, calls: tuple[tuple[Span, str], ...]) -> None:
        """A function value, as far as it is visible."""
        match e:
            case core.Lambda(function=f):
                self._body(f, calls)
            case core.GlobalRef(name=name):
                found = self.program.functions.get(name)
                if found is None and name in self.program.globals:
                    found = self.known.get(self.program.globals[name])
                if found is not None:
                    self._body(found, calls)
            case core.LocalRef(var=var) if var in self.known:
                self._body(self.known[var], calls)
            case core.BuiltinRef(name=name) if name not in KERNEL_BUILTINS:
                self._tell(_no_builtin(e.span, name), calls)
            case core.If(then=a, otherwise=b):
                self.function(a, calls)
                self.function(b, calls)

    def _body(self, f: core.Function, calls: tuple[tuple[Span, str], ...]) -> None:
        """A function that the kernel calls. Lambdas in it count where they are called."""
        if f in self.seen:
            return
        self.seen.add(f)
        stack = [f.body]
        while stack:
            e = stack.pop()
            problem = _problem(e)
            if problem is not None:
                self._tell(problem, calls)
                continue
            if isinstance(e, core.Lambda) or (isinstance(e, core.RecordNew) and e.constructor is core.ERROR):
                continue
            if isinstance(e, core.Call):
                stack.extend(reversed(e.args))
                if isinstance(e.callee, (core.GlobalRef, core.LocalRef)):
                    name = e.callee.name if isinstance(e.callee, core.GlobalRef) else e.callee.var.name
                    self.function(e.callee, (*calls, (e.span, name.rsplit("::", 1)[-1])))
                elif isinstance(e.callee, core.Lambda):
                    self.function(e.callee, calls)
                elif not isinstance(e.callee, core.BuiltinRef):
                    stack.append(e.callee)
                continue
            stack.extend(reversed(list(parts(e))))

    def _tell(self, problem: _Problem, calls: tuple[tuple[Span, str], ...]) -> None:
        if problem.code == "E0302":
            _tell_unproven(self.cx, problem.span, problem.text)
            return
        if problem.span in self.told:
            return
        self.told.add(problem.span)
        marks = [(self.span, f"a kernel of `{self.builtin}`"), *((s, f"calls `{n}`") for s, n in calls)]
        marks = [m for m in marks if m[0] != problem.span]
        self.cx.tell("E0310", problem.title, problem.span, problem.text, marks, help=problem.help)


def _problem(e: core.Expr) -> _Problem | None:
    match e:
        case core.Handle(span=span) | core.Resume(span=span):
            return _Problem(
                span,
                "a GPU kernel cannot handle effects",
                "a handler in a kernel",
                "handle the effect around the launch, and give the kernel its value",
            )
        case core.Call(callee=core.BuiltinRef(name=name)) if name not in KERNEL_BUILTINS:
            return _no_builtin(e.span, name)
        case core.Perform(span=span):
            return _Problem(span, "", "it performs this", "", "E0302")
        case core.Call() | core.LocalRef() | core.GlobalRef() if _host_type(e.type):
            return _no_type(e.span, e.type)
        case core.Interpolate() | core.ListNew() | core.MapNew():
            return _no_type(e.span, e.type)
        case core.Literal(value=str()) | core.Binary(type=Named(name="string")) | core.Field() if _host_type(e.type):
            return _no_type(e.span, e.type)
        case core.Index(container=container):
            return _no_type(e.span, container.type) if _host_type(container.type) else None
    return None


def _host_type(t: Type) -> bool:
    return isinstance(t, Named) and t.name in _HOST_TYPES


def _no_type(span: Span, t: Type) -> _Problem:
    what = _HOST_TYPES.get(t.name, "this") if isinstance(t, Named) else "this"
    help = {
        "a list": "make it a buffer before the launch, with `toGpu`, and read it with `gpuGet`",
        "an iterator": "fold over `gpuIota(n)` with `gpuFold` instead",
    }.get(what, "work it out before the launch; a kernel captures numbers, bools and buffers")
    return _Problem(span, f"a GPU kernel cannot use {what}", f"this is `{t}`", help)


def _no_builtin(span: Span, name: str) -> _Problem:
    help = "call it before the launch and capture its value with `let`"
    if name in ("fold", "map", "filter", "range", "forEach"):
        help = "a kernel folds over a buffer: `gpuIota(n) |> gpuFold(init, fn(a, i) => …)`"
    return _Problem(span, f"a GPU kernel cannot call `{name}`", "it works on the host alone", help)
