"""The abstract syntax of a parsed file, before names and types are resolved.

Comes in: nothing. Goes out: the node classes that the parser builds and the checker reads.
Every node carries its `span`. Equality is identity, so nodes can key side tables.
Sugar (pipes, named arguments, method calls, `c ? a : b`) is kept here and removed by check/elaborate.
"""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.source.span import Source, Span


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Name(Node):
    """An identifier where it is written."""

    text: str


# --- types as written -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class TypeExpr(Node):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class TypeName(TypeExpr):
    """`int`, `List<float>`, `gpt2::Layer`: a path of names with arguments."""

    path: tuple[Name, ...]
    args: tuple[TypeExpr, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class TypeTuple(TypeExpr):
    """`(int, float)`; `()` is Unit."""

    items: tuple[TypeExpr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class EffectRef(Node):
    """`Log` or `Cell<int>` in an effect row."""

    path: tuple[Name, ...]
    args: tuple[TypeExpr, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class TypeFunction(TypeExpr):
    """`(int, int) -> int !E` or `fn(int) -> int`. effects None: not written; (): written as empty."""

    params: tuple[TypeExpr, ...]
    result: TypeExpr
    effects: tuple[EffectRef, ...] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class TypeRecord(TypeExpr):
    """`{ x: float, y: float }`."""

    fields: tuple[tuple[Name, TypeExpr], ...]


# --- patterns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Pattern(Node):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class WildPattern(Pattern):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class NamePattern(Pattern):
    """A name: binds, unless it names a payload-less constructor in scope (the checker decides)."""

    name: Name


@dataclass(frozen=True, eq=False, slots=True)
class LiteralPattern(Pattern):
    """An int (sign applied), float, bool, string without interpolation, or `()`."""

    value: int | float | bool | str | None
    kind: str  # "int" | "float" | "bool" | "string" | "unit"


@dataclass(frozen=True, eq=False, slots=True)
class ConstructorPattern(Pattern):
    """`Circle { radius }`, `Circle { radius: r }`, `Square(side)`. named None: positional."""

    path: tuple[Name, ...]
    positional: tuple[Pattern, ...] | None
    named: tuple[tuple[Name, Pattern], ...] | None
    open: bool = False  # `..` present


@dataclass(frozen=True, eq=False, slots=True)
class RecordPattern(Pattern):
    """`{ x, y: p, .. }`."""

    fields: tuple[tuple[Name, Pattern], ...]
    open: bool


@dataclass(frozen=True, eq=False, slots=True)
class TuplePattern(Pattern):
    items: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ListPattern(Pattern):
    """`[a, b]`, `[h, ...t]`; rest None when absent."""

    items: tuple[Pattern, ...]
    rest: Pattern | None


# --- expressions ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Expr(Node):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class IntLiteral(Expr):
    """Already within int64. `-9223372036854775808` is one literal; other negatives are Unary of a literal."""

    value: int


@dataclass(frozen=True, eq=False, slots=True)
class FloatLiteral(Expr):
    value: float


@dataclass(frozen=True, eq=False, slots=True)
class BoolLiteral(Expr):
    value: bool


@dataclass(frozen=True, eq=False, slots=True)
class UnitLiteral(Expr):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class StringLiteral(Expr):
    """Escapes resolved; parts alternate freely between text and `${...}` expressions."""

    parts: tuple[str | Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Reference(Expr):
    """`x`, `Layers::linear`."""

    path: tuple[Name, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Unary(Expr):
    """op: `-`, `+`, `!`."""

    op: str
    operand: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Binary(Expr):
    """op: `+ - * / % == != < <= > >= && ||`."""

    op: str
    op_span: Span
    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Pipe(Expr):
    """`left |> right`; right is a Call to be given one more first argument, or any callee."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Recover(Expr):
    """`value ?: default`."""

    value: Expr
    default: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Argument(Node):
    name: Name | None
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Call(Expr):
    callee: Expr
    args: tuple[Argument, ...]


@dataclass(frozen=True, eq=False, slots=True)
class MethodCall(Expr):
    """`x.f(a)`: reads a field f where the type has one, else calls f(x, a)."""

    receiver: Expr
    name: Name
    args: tuple[Argument, ...]


@dataclass(frozen=True, eq=False, slots=True)
class FieldAccess(Expr):
    record: Expr
    name: Name


@dataclass(frozen=True, eq=False, slots=True)
class IndexAccess(Expr):
    container: Expr
    index: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Parameter(Node):
    """name None: `_`."""

    name: Name | None
    type: TypeExpr | None


@dataclass(frozen=True, eq=False, slots=True)
class Lambda(Expr):
    params: tuple[Parameter, ...]
    result: TypeExpr | None
    effects: tuple[EffectRef, ...] | None
    body: Expr


@dataclass(frozen=True, eq=False, slots=True)
class If(Expr):
    """`if c { a } else { b }` and `c ? a : b`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Arm(Node):
    pattern: Pattern
    guard: Expr | None
    body: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Match(Expr):
    scrutinee: Expr
    arms: tuple[Arm, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Tuple(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ListLiteral(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class MapLiteral(Expr):
    entries: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class RecordLiteral(Expr):
    """`Point { x: 1.0 }` (path not None) or `{ x: 1.0 }`. A lower-case single-name path is an update `p { x: 3.0 }`:
    the parser builds RecordUpdate then."""

    path: tuple[Name, ...] | None
    fields: tuple[tuple[Name, Expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class RecordUpdate(Expr):
    record: Expr
    fields: tuple[tuple[Name, Expr], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Block(Expr):
    """statements, then the value; a block that ends in a statement without value is an error of the parser."""

    statements: tuple[Statement, ...]
    result: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Perform(Expr):
    effect: tuple[Name, ...]
    operation: Name
    args: tuple[Argument, ...]


@dataclass(frozen=True, eq=False, slots=True)
class HandlerArm(Node):
    operation: Name
    params: tuple[Parameter, ...]
    body: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Handle(Expr):
    effect: EffectRef
    arms: tuple[HandlerArm, ...]
    body: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Resume(Expr):
    value: Expr | None


# --- statements and declarations ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class Let(Statement):
    """At file scope too. doc is the text of the `///` lines above, exported only at file or module scope."""

    pattern: Pattern
    type: TypeExpr | None
    value: Expr
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Mut(Statement):
    name: Name
    type: TypeExpr | None
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Assign(Statement):
    name: Name
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class ExprStatement(Statement):
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class TypeParameter(Node):
    name: Name


@dataclass(frozen=True, eq=False, slots=True)
class FunctionDecl(Statement):
    name: Name
    type_params: tuple[TypeParameter, ...]
    params: tuple[Parameter, ...]
    result: TypeExpr | None
    effects: tuple[EffectRef, ...] | None
    body: Expr
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Variant(Node):
    """`Circle { radius: float }`, `Square(float)`, `Empty`. Positional payloads are fields named "0", "1", ..."""

    name: Name
    fields: tuple[tuple[Name, TypeExpr], ...]
    positional: bool


@dataclass(frozen=True, eq=False, slots=True)
class RecordDecl(Statement):
    name: Name
    type_params: tuple[TypeParameter, ...]
    fields: tuple[tuple[Name, TypeExpr], ...]
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class UnionDecl(Statement):
    """`type T = A | B(int)`; a single variant with payload or a leading `|` is a union too."""

    name: Name
    type_params: tuple[TypeParameter, ...]
    variants: tuple[Variant, ...]
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class AliasDecl(Statement):
    """`type Row = List<float>`. The parser cannot tell `type A = B` (alias) from a one-variant union without payload:
    it builds an AliasDecl, and the checker turns it into a union when B names no type."""

    name: Name
    type_params: tuple[TypeParameter, ...]
    target: TypeExpr
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class OperationDecl(Node):
    name: Name
    params: tuple[TypeExpr, ...]
    result: TypeExpr


@dataclass(frozen=True, eq=False, slots=True)
class EffectDecl(Statement):
    name: Name
    type_params: tuple[TypeParameter, ...]
    operations: tuple[OperationDecl, ...]
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ModuleDecl(Statement):
    name: Name
    body: tuple[Statement, ...]
    doc: str = ""
    exported: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ImportItem(Node):
    """`linear as lin`; alias None when absent."""

    name: Name
    alias: Name | None


@dataclass(frozen=True, eq=False, slots=True)
class Import(Statement):
    """`import a::b`, `import a::b as c`, `import a::b::{x, y as z}`, `import a::b::*` is not in the language.
    items None: the module itself is imported under its last name or `alias`."""

    path: tuple[Name, ...]
    alias: Name | None
    items: tuple[ImportItem, ...] | None


@dataclass(frozen=True, eq=False)
class File:
    """One parsed file. namespace: the path of `namespace a::b;`, empty when absent. Statements in written order,
    declarations among them."""

    source: Source
    namespace: tuple[Name, ...]
    statements: tuple[Statement, ...]
