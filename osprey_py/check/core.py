"""The typed program: what the checker hands on, and all that the evaluator and kernel extraction read.

Names are resolved, sugar is gone (pipes, named arguments, methods, `c ? a : b` are calls, positions, `If`), every
expression has its type, patterns are explicit. Evaluation is strict, left to right, in the order of the fields here.
Equality is identity.

Run-time values, for every reader of this tree:
  int -> int (in int64), float -> float, bool -> bool, string -> str, Unit -> (), tuple -> tuple,
  List, Map, records, variants, Result -> osprey_py.eval.values, function -> a Python function,
  GpuBuffer -> osprey_py.graph.buffer.Buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Literal as OneOf

from osprey_py.check.types import Type
from osprey_py.source.span import NO_SPAN, Span

_uids = count()


@dataclass(frozen=True, eq=False, slots=True)
class Var:
    """A local variable. Unique by identity; `uid` only makes names in generated code. mutable: a `mut` cell."""

    name: str
    type: Type
    mutable: bool = False
    span: Span = NO_SPAN
    uid: int = field(default_factory=lambda: next(_uids))


@dataclass(frozen=True, eq=False, slots=True)
class Expr:
    span: Span
    type: Type


# --- leaves -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Literal(Expr):
    """int, float, bool, str, or () for Unit."""

    value: int | float | bool | str | tuple[()]


@dataclass(frozen=True, eq=False, slots=True)
class LocalRef(Expr):
    var: Var


@dataclass(frozen=True, eq=False, slots=True)
class GlobalRef(Expr):
    """A function or a file-scope `let`, by its key in Program.functions or Program.globals."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class BuiltinRef(Expr):
    """A built-in by its name in check/builtins.py, called or used as a value."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class ConstructorRef(Expr):
    """A positional variant used as a function, `map(Square)`; a payload-less variant is a RecordNew."""

    constructor: Constructor


# --- calls and functions ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """The code of a function or lambda. name: qualified for declarations, `<lambda>` otherwise.
    math_result: declared to return Result<T, MathError>: a math fault in its tail becomes an Error (the body already
    holds the `Attempt` there)."""

    name: str
    params: tuple[Var, ...]
    body: Expr
    type: Type
    span: Span
    doc: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Lambda(Expr):
    function: Function


@dataclass(frozen=True, eq=False, slots=True)
class Call(Expr):
    """Saturated. The callee is evaluated first. Positional variants are built with RecordNew, not Call."""

    callee: Expr
    args: tuple[Expr, ...]


# --- operators -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Unary(Expr):
    """op: `-` (int checked, float), `!`. Unary `+` is gone."""

    op: str
    operand: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Binary(Expr):
    """op: `+ - * / % == != < <= > >=`. The operand type (left.type) decides: int checked, float IEEE, `+` string
    concatenation, `==` structural; a TypeVar: look at the values. span is the operator with its operands."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Logic(Expr):
    """`&&` or `||`, short-circuit."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Recover(Expr):
    """`value ?: default`: an Error, or a math fault while value runs (launches included), gives default. Success is
    unwrapped. kind: what value.type is; "either" in generic code: look."""

    value: Expr
    default: Expr
    kind: OneOf["result", "scalar", "either"]


@dataclass(frozen=True, eq=False, slots=True)
class Attempt(Expr):
    """value of plain type T, or already of Result type: Success{value}, or Error{MathError} when a math fault happens.
    wraps: value is a plain T and Success is to be put around it."""

    value: Expr
    wraps: bool


@dataclass(frozen=True, eq=False, slots=True)
class Interpolate(Expr):
    """Text and values (written as `toString` does) joined."""

    parts: tuple[str | Expr, ...]


# --- control ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class If(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Arm:
    pattern: Pattern
    guard: Expr | None
    body: Expr
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Match(Expr):
    """Exhaustive: one arm always matches. recovers: the arms are Success/Error and the scrutinee is a Result, so a math
    fault in the scrutinee is matched as Error{MathError}."""

    scrutinee: Expr
    arms: tuple[Arm, ...]
    recovers: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Block(Expr):
    statements: tuple[Statement, ...]
    result: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Statement:
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Bind(Statement):
    """`let`: an irrefutable pattern. A `mut` cell is a Bind of a mutable Var."""

    pattern: Pattern
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Assign(Statement):
    var: Var
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Do(Statement):
    """An expression for its effects."""

    value: Expr


# --- patterns ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    pass


@dataclass(frozen=True, eq=False, slots=True)
class PWild(Pattern):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class PVar(Pattern):
    var: Var


@dataclass(frozen=True, eq=False, slots=True)
class PLiteral(Pattern):
    """Matches by ==, on floats too (so nan never matches)."""

    value: int | float | bool | str | tuple[()]


@dataclass(frozen=True, eq=False, slots=True)
class PConstructor(Pattern):
    """A variant or a declared record, with patterns for some of its fields."""

    constructor: Constructor
    fields: tuple[tuple[str, Pattern], ...]


@dataclass(frozen=True, eq=False, slots=True)
class PRecord(Pattern):
    """Fields of a record whose type is anonymous or known; irrefutable itself."""

    fields: tuple[tuple[str, Pattern], ...]


@dataclass(frozen=True, eq=False, slots=True)
class PTuple(Pattern):
    items: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class PList(Pattern):
    items: tuple[Pattern, ...]
    rest: Pattern | None


# --- data ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Constructor:
    """A declared record or a variant of a union. type_name: the qualified type; name: as shown (`Circle`);
    fields in declaration order, positional payloads named "0", "1", …; `Success` and `Error` are built-in ones
    (SUCCESS and ERROR below)."""

    type_name: str
    name: str
    fields: tuple[str, ...]
    positional: bool = False


SUCCESS = Constructor("Result", "Success", ("value",))
ERROR = Constructor("Result", "Error", ("message",))

JSON = (
    Constructor("Json", "JsonNull", ()),
    Constructor("Json", "JsonBool", ("0",), positional=True),
    Constructor("Json", "JsonNumber", ("0",), positional=True),
    Constructor("Json", "JsonString", ("0",), positional=True),
    Constructor("Json", "JsonArray", ("0",), positional=True),
    Constructor("Json", "JsonObject", ("0",), positional=True),
)
"""The constructors of the union Json of stdlib/prelude.osp, which the built-in `parseJson` builds."""

BUILT_IN = {(c.type_name, c.name): c for c in JSON}


@dataclass(frozen=True, eq=False, slots=True)
class RecordNew(Expr):
    """fields in written order (that is the order of evaluation); each field of the constructor once.
    constructor None: an anonymous record."""

    constructor: Constructor | None
    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class RecordUpdate(Expr):
    record: Expr
    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Field(Expr):
    """A field of a record, or of a tuple-like single variant."""

    record: Expr
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class TupleNew(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ListNew(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class MapNew(Expr):
    """A later equal key replaces an earlier one's value and keeps its place."""

    entries: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Index(Expr):
    """container[index] of a List (int), Map (key) or string (int, code point): a Result."""

    container: Expr
    index: Expr


# --- effects ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Perform(Expr):
    """effect: qualified name of the effect declaration."""

    effect: str
    operation: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class HandlerArm:
    """resumes: the body holds a Resume, so the arm's value is the answer of the whole `handle`; otherwise the arm's
    value is the operation's result and the computation goes on."""

    operation: str
    params: tuple[Var, ...]
    body: Expr
    resumes: bool
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Handle(Expr):
    effect: str
    arms: tuple[HandlerArm, ...]
    body: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Resume(Expr):
    value: Expr


# --- the program -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class TypeInfo:
    """A declared record or union, for printing and for gradients. params: its type parameters' names;
    constructors with their fields' types (in terms of the params)."""

    name: str
    params: tuple[str, ...]
    constructors: tuple[Constructor, ...]
    field_types: dict[str, tuple[Type, ...]]  # by constructor name


@dataclass(frozen=True, eq=False)
class Program:
    """functions and globals by qualified name. `startup`: what runs, in order: the globals' Binds (every file's, each
    file's in written order, dependencies first) and the entry file's statements. `main`: the qualified name of the
    function that runs afterwards, if any. kernels: how many kernel uses were proven pure (`osprey check --stats`)."""

    functions: dict[str, Function]
    globals: dict[str, Var]
    startup: tuple[Statement, ...]
    main: str | None
    types: dict[str, TypeInfo]
    kernels: int = 0
