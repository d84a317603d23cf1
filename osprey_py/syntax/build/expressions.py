"""Actions for expressions."""

from __future__ import annotations

from osprey_py.source.diagnostic import Label
from osprey_py.source.span import Source, Span
from osprey_py.syntax import ast
from osprey_py.syntax.build.base import Children, nodes
from osprey_py.syntax.build.patterns import PatternActions
from osprey_py.syntax.foreign import FOREIGN_INFIX, FOREIGN_WORDS
from osprey_py.syntax.lexer import INT_LIMIT
from osprey_py.syntax.tokens import RESERVED, Token

Field = tuple[ast.Name, ast.Expr]

_THROWN_AWAY: dict[type[ast.Expr], str] = {
    ast.Reference: "this name is read and thrown away",
    ast.FieldAccess: "this field is read and thrown away",
    ast.IndexAccess: "this element is read and thrown away",
    ast.Unary: "this value is computed and thrown away",
    ast.Binary: "this value is computed and thrown away",
    ast.Lambda: "this lambda is never called",
} | dict.fromkeys(
    (
        ast.IntLiteral,
        ast.FloatLiteral,
        ast.BoolLiteral,
        ast.UnitLiteral,
        ast.StringLiteral,
        ast.Tuple,
        ast.ListLiteral,
        ast.MapLiteral,
        ast.RecordLiteral,
    ),
    "this value is thrown away",
)


class ExpressionActions(PatternActions):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        # Literals 9223372036854775808 that no unary minus has taken yet.
        self.oversized: dict[ast.Expr, Span] = {}

    def finish(self) -> None:
        """Reports what only the end of the file decides."""
        for span in self.oversized.values():
            self.out_of_range(span)

    # --- literals and names ------------------------------------------------------------------------------------------

    def on_int(self, c: Children, start: int, end: int) -> ast.Expr:
        node = ast.IntLiteral(self.at(start, end), c[0].value)
        if node.value >= INT_LIMIT:
            self.oversized[node] = node.span
        return node

    def on_float(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.FloatLiteral(self.at(start, end), c[0].value)

    def on_negative_int(self, c: Children, start: int, end: int) -> ast.Expr:
        return self.negated(self.on_int(c[1:], c[1].start, end), start, end)

    def on_negative_float(self, c: Children, start: int, end: int) -> ast.Expr:
        return self.negated(self.on_float(c[1:], c[1].start, end), start, end)

    def on_true(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.BoolLiteral(self.at(start, end), True)

    def on_false(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.BoolLiteral(self.at(start, end), False)

    def on_unit(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.UnitLiteral(self.at(start, end))

    def on_string(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.StringLiteral(self.at(start, end), (c[0].value,) if c[0].value else ())

    def on_interpolation(self, c: Children, start: int, end: int) -> ast.Expr:
        parts: list[str | ast.Expr] = [str(part.value) if isinstance(part, Token) else part for part in c]
        return ast.StringLiteral(self.at(start, end), tuple(p for p in parts if p != ""))

    def on_reference(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Reference(self.at(start, end), c[0])

    # --- operators ----------------------------------------------------------------------------------------------------

    def on_recover(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Recover(self.at(start, end), c[0], c[2])

    def on_ternary(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.If(self.at(start, end), c[0], c[2], c[4])

    def on_binary(self, c: Children, start: int, end: int) -> ast.Expr:
        op: Token = c[1]
        text = self.source.text[op.start : op.end]
        return ast.Binary(self.at(start, end), text, self.at(op.start, op.end), c[0], c[2])

    def on_pipe(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Pipe(self.at(start, end), c[0], c[2])

    def on_unary(self, c: Children, start: int, end: int) -> ast.Expr:
        op = self.source.text[c[0].start]
        if op == "-":
            return self.negated(c[1], start, end)
        return ast.Unary(self.at(start, end), op, c[1])

    def negated(self, operand: ast.Expr, start: int, end: int) -> ast.Expr:
        if self.oversized.pop(operand, None) is not None:
            return ast.IntLiteral(self.at(start, end), -INT_LIMIT)
        return ast.Unary(self.at(start, end), "-", operand)

    def on_group(self, c: Children, start: int, end: int) -> ast.Expr:
        inner: ast.Expr = c[1]
        span = self.oversized.pop(inner, None)
        if span is not None:
            self.out_of_range(span)
        return inner

    # --- calls and access ---------------------------------------------------------------------------------------------

    def on_call(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Call(self.at(start, end), c[0], c[2] or ())

    def on_method_call(self, c: Children, start: int, end: int) -> ast.Expr:
        field: ast.FieldAccess = c[0]
        return ast.MethodCall(self.at(start, end), field.record, field.name, c[2] or ())

    def on_index(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.IndexAccess(self.at(start, end), c[0], c[2])

    def on_field(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.FieldAccess(self.at(start, end), c[0], self.name(c[2]))

    def on_args(self, c: Children, start: int, end: int) -> tuple[ast.Argument, ...]:
        args: tuple[ast.Argument, ...] = tuple(nodes(c))
        named = [a for a in args if a.name is not None]
        if named and len(named) < len(args):
            other = next(a for a in args if a.name is None)
            self.report(
                "E0013",
                "named and positional arguments are mixed",
                other.span,
                "this argument has no name",
                "name all arguments of a call, or none",
                (Label(named[0].span, "this one has"),),
            )
        self.distinct((a.name for a in named if a.name is not None), "argument")
        return args

    def on_positional(self, c: Children, start: int, end: int) -> ast.Argument:
        return ast.Argument(self.at(start, end), None, c[0])

    def on_named(self, c: Children, start: int, end: int) -> ast.Argument:
        return ast.Argument(self.at(start, end), self.name(c[0]), c[2])

    def on_perform(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Perform(self.at(start, end), c[1], self.name(c[3]), c[5] or ())

    def on_resume(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Resume(self.at(start, end), c[2])

    # --- data ---------------------------------------------------------------------------------------------------------

    def on_tuple(self, c: Children, start: int, end: int) -> ast.Expr:
        items = tuple(nodes(c))
        if len(items) == 1:
            self.one_tuple(self.at(start, end))
        return ast.Tuple(self.at(start, end), items)

    def on_list(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.ListLiteral(self.at(start, end), tuple(nodes(c)))

    def on_map(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.MapLiteral(self.at(start, end), tuple(nodes(c)))

    def on_entry(self, c: Children, start: int, end: int) -> tuple[ast.Expr, ast.Expr]:
        return c[0], c[2]

    def on_record(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.RecordLiteral(self.at(start, end), None, c[1])

    def on_braced(self, c: Children, start: int, end: int) -> ast.Expr:
        """`Point { … }` makes a record, `p { … }` updates one: the capital tells."""
        before: ast.Expr = c[0]
        fields = c[2] or ()
        if isinstance(before, ast.Reference) and before.path[-1].text[0].isupper():
            return ast.RecordLiteral(self.at(start, end), before.path, fields)
        return ast.RecordUpdate(self.at(start, end), before, fields)

    def on_fields(self, c: Children, start: int, end: int) -> tuple[Field, ...]:
        fields: tuple[Field, ...] = tuple(nodes(c))
        self.distinct((name for name, _ in fields), "field")
        return fields

    def on_field_value(self, c: Children, start: int, end: int) -> Field:
        return self.name(c[0]), c[2]

    # --- functions and control ----------------------------------------------------------------------------------------

    def on_lambda_fn(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Lambda(self.at(start, end), c[2] or (), c[4], c[5], c[7])

    def on_lambda_bars(self, c: Children, start: int, end: int) -> ast.Expr:
        return ast.Lambda(self.at(start, end), c[1], None, None, c[4])

    def on_if_else(self, c: Children, start: int, end: int) -> ast.Expr:
        otherwise: ast.Expr | None = c[3]
        if otherwise is None:
            self.report(
                "E0011",
                "`if` without `else`",
                self.at(c[0].start, c[0].end),
                "has no value when the condition is false",
                "add `else { … }`; where there is nothing to do, `else { () }`",
            )
            otherwise = ast.UnitLiteral(self.at(end, end))
        return ast.If(self.at(start, end), c[1], c[2], otherwise)

    def on_else_block(self, c: Children, start: int, end: int) -> ast.Expr:
        block: ast.Expr = c[1]
        return block

    def on_else_if(self, c: Children, start: int, end: int) -> ast.Expr:
        return self.on_if_else(c[1:], c[1].start, end)

    def on_match(self, c: Children, start: int, end: int) -> ast.Expr:
        arms = tuple(a for a in c if isinstance(a, ast.Arm))
        return ast.Match(self.at(start, end), c[1], arms)

    def on_arm(self, c: Children, start: int, end: int) -> ast.Arm:
        return ast.Arm(self.at(start, end), c[0], c[1], c[3])

    def on_guard(self, c: Children, start: int, end: int) -> ast.Expr:
        condition: ast.Expr = c[1]
        return condition

    def on_handle(self, c: Children, start: int, end: int) -> ast.Expr:
        arms = tuple(a for a in c if isinstance(a, ast.HandlerArm))
        return ast.Handle(self.at(start, end), c[1], arms, c[-1])

    def on_handler_arm(self, c: Children, start: int, end: int) -> ast.HandlerArm:
        params = tuple(p for p in c[1:] if isinstance(p, ast.Parameter))
        self.distinct((p.name for p in params if p.name is not None), "parameter")
        return ast.HandlerArm(self.at(start, end), self.name(c[0]), params, c[-1])

    def on_handler_param(self, c: Children, start: int, end: int) -> ast.Parameter:
        return self.on_param([c[0], None], start, end)

    # --- statements and blocks ----------------------------------------------------------------------------------------

    def on_assign(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.Assign(self.at(start, end), self.name(c[0]), c[2])

    def on_assign_body(self, c: Children, start: int, end: int) -> ast.Expr:
        """An arm or a lambda that only assigns: its value is ()."""
        return ast.Block(self.at(start, end), (c[0],), ast.UnitLiteral(self.at(end, end)))

    def on_expression_statement(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.ExprStatement(self.at(start, end), c[0])

    def on_block(self, c: Children, start: int, end: int) -> ast.Expr:
        """The last expression is the block's value; an assignment's value, and an empty block's, is ()."""
        written = c[1:-1]
        statements: list[ast.Statement] = nodes(written)
        result: ast.Expr = ast.UnitLiteral(self.at(end - 1, end - 1))
        last = statements[-1] if statements else None
        if last is not None and last is written[-1]:
            if isinstance(last, ast.ExprStatement):
                result = last.value
                statements.pop()
            elif not isinstance(last, ast.Assign):
                self.report(
                    "E0010",
                    "this block has no value",
                    self.at(last.span.start, last.span.end),
                    "the last thing in the block is a declaration",
                    "end the block with an expression; `()` is the value of Unit",
                )
        self.used(statements)
        self.local(statements)
        return ast.Block(self.at(start, end), tuple(statements), result)

    def used(self, statements: list[ast.Statement]) -> None:
        """Reports the statements that compute a value for nothing (L3.3)."""
        for statement in statements:
            if not isinstance(statement, ast.ExprStatement):
                continue
            value = statement.value
            title = _THROWN_AWAY.get(type(value))
            if title is None:
                continue
            advice = "remove it, or bind it with `let`" + _line_start_advice(statement.span)
            if isinstance(value, ast.Reference):
                word = value.path[0].text
                foreign = FOREIGN_INFIX.get(word) or FOREIGN_WORDS.get(word)
                if word in RESERVED:
                    continue
                if foreign is not None and self.goes_on(value.span):
                    title, advice = f"`{word}` has no meaning here", foreign
                elif self.goes_on(value.span):
                    advice = f"to call it, put what it is given in parentheses: `{word}(…)`"
            self.report("E0009", title, statement.span, "not the last in its block, so nothing reads it", advice)

    def goes_on(self, span: Span) -> bool:
        """Whether more text follows on the line that the span ends on."""
        rest = self.source.text[span.end :].split("\n", 1)[0].strip()
        return bool(rest) and not rest.startswith("//")

    def local(self, statements: list[ast.Statement]) -> None:
        """Reports the declarations that stand at file or module scope only."""
        allowed = (ast.Let, ast.Mut, ast.Assign, ast.ExprStatement, ast.FunctionDecl)
        for statement in statements:
            if not isinstance(statement, allowed):
                self.report(
                    "E0012",
                    "this declaration cannot stand in a block",
                    statement.span,
                    "inside a block",
                    "move it to the top of the file or into a module",
                )
            elif isinstance(statement, ast.Let | ast.FunctionDecl) and statement.exported:
                self.report(
                    "E0012",
                    "`export` inside a block",
                    statement.span,
                    "nothing outside the block can see it",
                    "remove `export`",
                )


def _line_start_advice(span: Span) -> str:
    """More help when the value is one that a line break cut off from the line above."""
    text = span.source.text
    line_start = text.rfind("\n", 0, span.start) + 1
    if text[line_start : span.start].strip():
        return ""
    mark = text[span.start]
    if mark in "-+":
        return f"; to continue the line above, put a space after the `{mark}`"
    if mark in "([":
        return f"; to continue the line above, put the `{mark}` at its end"
    return ""
