"""What checking one program carries along: scopes of local names, side tables, complaints.

Comes in: a loaded project. Goes out: the tables that inference fills and elaboration reads. A `Context` lives for one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from osprey_py.check import core
from osprey_py.check.effects import ASSIGN, EffVar, Label, Reason, Sink, Step
from osprey_py.check.schemes import Instance, Scheme
from osprey_py.check.showing import Shower
from osprey_py.check.terms import Kind, Need, Term, TVar, prune
from osprey_py.check.unify import Mismatch, Unifier
from osprey_py.modules.spaces import Space, Symbol
from osprey_py.source import diagnostic
from osprey_py.source.diagnostic import Diagnostic
from osprey_py.source.span import Span
from osprey_py.syntax import ast

_cells = count(1)


@dataclass(eq=False, slots=True)
class Local:
    """A local name. params: the parameter names of a lambda bound by `let`, for named arguments.
    home: the function that declares it. cell: the label of an assignment, for a `mut` cell.
    captures: for a recursive local function, which is lifted to the top, the outer names it is given as arguments."""

    name: str
    span: Span
    scheme: Scheme
    home: FunctionScope
    params: tuple[str | None, ...] | None = None
    cell: Label | None = None
    var: core.Var | None = None
    captures: tuple[Local, ...] | None = None


@dataclass(eq=False, slots=True)
class Global:
    """A function or file-scope `let` or `mut`. scheme: while its group is inferred, its plain type."""

    symbol: Symbol
    scheme: Scheme | None = None
    params: tuple[str | None, ...] | None = None
    cell: Label | None = None
    var: core.Var | None = None


@dataclass(eq=False, slots=True)
class FunctionScope:
    """The function, lambda or top level that code stands in. ambient: what running it may perform. cells: its own `mut`
    cells. params: the types of what it is given. parent: the function around it."""

    ambient: EffVar
    name: str
    type_params: dict[str, TVar] = field(default_factory=dict)
    cells: set[Label] = field(default_factory=set)
    params: tuple[Term, ...] = ()
    parent: FunctionScope | None = None

    def holds(self, other: FunctionScope) -> bool:
        """Whether `other` is this function or stands in it."""
        at: FunctionScope | None = other
        while at is not None and at is not self:
            at = at.parent
        return at is self


@dataclass(eq=False, slots=True)
class ResumeScope:
    """The handler arm that `resume` belongs to. value: what it takes; answer: what it gives; rest: what running the rest
    of the computation may perform; used: it was seen."""

    value: Term
    answer: Term
    rest: EffVar
    used: bool = False


class Env:
    """Local names, innermost first. assigns: cells may be assigned here (a handler arm)."""

    __slots__ = ("ambient", "assigns", "function", "names", "parent", "resume", "space")

    def __init__(
        self,
        space: Space,
        function: FunctionScope,
        ambient: EffVar,
        parent: Env | None = None,
        resume: ResumeScope | None = None,
        assigns: bool = False,
    ) -> None:
        self.space = space
        self.function = function
        self.ambient = ambient
        self.parent = parent
        self.resume = resume
        self.assigns = assigns
        self.names: dict[str, Local] = {}

    def inner(self) -> Env:
        return Env(self.space, self.function, self.ambient, self, self.resume, self.assigns)

    def find(self, name: str) -> Local | None:
        env: Env | None = self
        while env is not None:
            found = env.names.get(name)
            if found is not None:
                return found
            env = env.parent
        return None

    def local_names(self) -> list[str]:
        names: list[str] = []
        env: Env | None = self
        while env is not None:
            names.extend(env.names)
            env = env.parent
        return names


@dataclass(eq=False, slots=True)
class ConstructorDef:
    """A declared record or a variant. fields: in terms of the type's parameters."""

    core: core.Constructor
    type: TypeDef
    fields: tuple[tuple[str, Term], ...]
    span: Span


@dataclass(eq=False, slots=True)
class TypeDef:
    """scheme: the type applied to its own parameters, which are its quantified variables."""

    name: str
    span: Span
    is_record: bool
    params: tuple[TVar, ...]
    hidden: tuple[EffVar, ...] = ()
    constructors: dict[str, ConstructorDef] = field(default_factory=dict)
    bounds: list[tuple[EffVar, Row]] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """A written effect row: the effects, with the arguments of generic ones."""

    effects: tuple[tuple[str, tuple[object, ...]], ...]
    span: Span
    what: str


@dataclass(eq=False, slots=True)
class OperationDef:
    params: tuple[Term, ...]
    result: Term
    span: Span


@dataclass(eq=False, slots=True)
class EffectDef:
    name: str
    span: Span
    params: tuple[TVar, ...]
    hidden: tuple[EffVar, ...] = ()
    operations: dict[str, OperationDef] = field(default_factory=dict)
    bounds: list[tuple[EffVar, Row]] = field(default_factory=list)


Target = Local | Global | ConstructorDef | str
"""What a name in an expression means; a string is a built-in."""


@dataclass(eq=False, slots=True)
class Side:
    """What inference found out about nodes, for elaboration."""

    types: dict[ast.Node, Term] = field(default_factory=dict)
    targets: dict[ast.Node, Target] = field(default_factory=dict)
    constructors: dict[ast.Node, ConstructorDef] = field(default_factory=dict)
    binders: dict[ast.Node, Local | Global] = field(default_factory=dict)
    orders: dict[ast.Node, tuple[int, ...]] = field(default_factory=dict)
    sugar: dict[ast.Node, ast.Call] = field(default_factory=dict)
    attempts: set[ast.Node] = field(default_factory=set)
    plain_leaves: set[ast.Node] = field(default_factory=set)
    effects: dict[ast.Node, str] = field(default_factory=dict)
    resuming: set[ast.Node] = field(default_factory=set)


Infer = Callable[..., Term]
"""(context, expression of one class, env, expected) -> its type."""


class Context:
    def __init__(self, rules: dict[type[ast.Expr], Infer], local_functions: Callable[..., None]) -> None:
        self._rules = rules
        self.local_functions = local_functions
        self.told: list[Diagnostic] = []
        self.level = 0
        self.side = Side()
        self.types: dict[str, TypeDef] = {}
        self.effects: dict[str, EffectDef] = {}
        self.globals: dict[Symbol, Global] = {}
        self.symbols: dict[Symbol, TypeDef | ConstructorDef | EffectDef] = {}
        self.broken_aliases: set[Symbol] = set()
        self.open: list[TVar] = []
        self.retries: list[Callable[[bool], bool]] = []
        self.refused: list[tuple[Sink, Label, Reason]] = []
        self.builtin_schemes: dict[str, Scheme] = {}
        self.call_arguments: dict[Span, tuple[Span, ...]] = {}
        self.read_field: Callable[[Term, Need], Term | None] = lambda t, n: None
        self.tell_need: Callable[[Term, Need, Mismatch | None], None] = lambda t, n, m: None
        self.differentiable: Callable[[Term, Need], None] = lambda t, n: None
        self.unifier = Unifier(
            lambda t, n: self.read_field(t, n),
            lambda t, n, m: self.tell_need(t, n, m),
            lambda t, n: self.differentiable(t, n),
        )
        self.flows = self.unifier.flows

    def infer(self, expr: ast.Expr, env: Env, expected: Term | None = None) -> Term:
        """The type of an expression; each is inferred once. expected: what is known about it beforehand (for lambdas)."""
        known = self.side.types.get(expr)
        if known is None:
            known = self._rules[type(expr)](self, expr, env, expected)
            self.side.types[expr] = known
        return known

    # --- complaints -------------------------------------------------------------------------------------------------

    def tell(
        self,
        code: str,
        title: str,
        span: Span,
        text: str = "",
        labels: Sequence[tuple[Span, str]] = (),
        notes: Sequence[str] = (),
        help: str = "",
    ) -> None:
        marks = tuple(diagnostic.Label(s, t) for s, t in labels)
        self.told.append(Diagnostic(code, title, span, text, marks, tuple(notes), help))

    def refuse(self, sink: Sink, label: Label, reason: Reason) -> None:
        """A label reached a bound that does not admit it; told at the end, when chains are complete."""
        self.refused.append((sink, label, reason))

    # --- variables --------------------------------------------------------------------------------------------------

    def fresh(self, kind: Kind | None = None, where: Span | None = None) -> TVar:
        v = TVar(self.level, kind)
        v.where = where
        self.open.append(v)
        return v

    def fresh_effect(self) -> EffVar:
        return EffVar(self.level)

    def bound(self, allowed: frozenset[str], io: bool, cells: bool, span: Span, what: str) -> EffVar:
        """A sink: what may arrive is limited."""
        return EffVar(self.level, Sink(allowed, io, cells, self.refuse, span, what))

    def instance(self, scheme: Scheme, use: Step | None) -> Term:
        if scheme.is_mono:
            return scheme.type
        return self.opened(scheme, use)[0]

    def opened(self, scheme: Scheme, use: Step | None) -> tuple[Term, Instance]:
        instance = Instance(self.unifier, self.level, use)
        return instance.open(scheme, lambda v: self.fresh(v.kind)), instance

    def type_of(self, node: ast.Node) -> Term:
        return prune(self.side.types[node])

    def shower(self) -> Shower:
        return Shower()


def new_cell(name: str) -> Label:
    """The label of an assignment to a new `mut` cell."""
    return Label(ASSIGN, f"{name}#{next(_cells)}")
