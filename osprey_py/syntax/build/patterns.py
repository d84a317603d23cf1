"""Actions for patterns."""

from __future__ import annotations

from dataclasses import dataclass

from osprey_py.source.span import Span
from osprey_py.syntax import ast
from osprey_py.syntax.build.base import Children, nodes
from osprey_py.syntax.build.types import TypeActions
from osprey_py.syntax.lexer import INT_LIMIT
from osprey_py.syntax.tokens import Token

FieldPattern = tuple[ast.Name, ast.Pattern]


@dataclass(frozen=True, slots=True)
class _Rest:
    """`...tail` in a list pattern, or `..` among fields (pattern None)."""

    span: Span
    pattern: ast.Pattern | None


class PatternActions(TypeActions):
    def on_wild_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        return ast.WildPattern(self.at(start, end))

    def on_name_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        path: tuple[ast.Name, ...] = c[0]
        if len(path) == 1:
            return ast.NamePattern(path[0].span, path[0])
        return ast.ConstructorPattern(self.at(start, end), path, None, None)

    def on_int_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        value: int = c[-1].value if len(c) == 1 else -c[-1].value
        if value >= INT_LIMIT:
            self.out_of_range(self.at(start, end))
        return ast.LiteralPattern(self.at(start, end), value, "int")

    def on_float_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        value: float = c[-1].value if len(c) == 1 else -c[-1].value
        return ast.LiteralPattern(self.at(start, end), value, "float")

    def on_bool_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        return ast.LiteralPattern(self.at(start, end), c[0].kind == "TRUE", "bool")

    def on_string_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        return ast.LiteralPattern(self.at(start, end), c[0].value, "string")

    def on_unit_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        return ast.LiteralPattern(self.at(start, end), None, "unit")

    def on_group_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        inner: ast.Pattern = c[1]
        return inner

    def on_patterns(self, c: Children, start: int, end: int) -> tuple[ast.Pattern, ...]:
        return tuple(nodes(c))

    def on_tuple_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        items = (c[1], *(c[3] or ()))
        if len(items) == 1:
            self.one_tuple(self.at(start, end))
        return ast.TuplePattern(self.at(start, end), items)

    def on_positional_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        return ast.ConstructorPattern(self.at(start, end), c[0], c[2] or (), None)

    def on_named_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        fields, is_open = c[2] or ((), False)
        return ast.ConstructorPattern(self.at(start, end), c[0], None, fields, is_open)

    def on_record_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        fields, is_open = c[1] or ((), False)
        return ast.RecordPattern(self.at(start, end), fields, is_open)

    def on_field_patterns(self, c: Children, start: int, end: int) -> tuple[tuple[FieldPattern, ...], bool]:
        given = nodes(c)
        rest = self.last(given, "..")
        fields = tuple(f for f in given if not isinstance(f, _Rest))
        self.distinct((name for name, _ in fields), "field")
        return fields, rest is not None

    def on_field_pattern(self, c: Children, start: int, end: int) -> FieldPattern | _Rest:
        if c[0].kind == "OPEN_END":
            return _Rest(self.at(start, end), None)
        name = self.name(c[0])
        pattern: ast.Pattern = c[2] if c[2] is not None else ast.NamePattern(name.span, name)
        return name, pattern

    def on_list_pattern(self, c: Children, start: int, end: int) -> ast.Pattern:
        given = nodes(c)
        rest = self.last(given, "...")
        items = tuple(p for p in given if not isinstance(p, _Rest))
        return ast.ListPattern(self.at(start, end), items, None if rest is None else rest.pattern)

    def on_rest_pattern(self, c: Children, start: int, end: int) -> _Rest:
        token: Token = c[1]
        span = self.at(token.start, token.end)
        if token.kind == "UNDERSCORE":
            return _Rest(self.at(start, end), ast.WildPattern(span))
        return _Rest(self.at(start, end), ast.NamePattern(span, self.name(token)))

    def last(self, given: list[object], written: str) -> _Rest | None:
        """The rest among the parts of a pattern, reported unless it is the last of them."""
        rests = [g for g in given if isinstance(g, _Rest)]
        for rest in rests:
            if rest is not given[-1]:
                self.report(
                    "E0015", f"`{written}` is not the last part of the pattern", rest.span, "", "move it to the end"
                )
        return rests[-1] if rests else None

    def out_of_range(self, span: Span) -> None:
        self.report(
            "E0007",
            "int literal out of range",
            span,
            "does not fit in 64 bits",
            f"an int lies between {-INT_LIMIT} and {INT_LIMIT - 1}; {INT_LIMIT} stands only directly under a unary `-`",
        )

    def one_tuple(self, span: Span) -> None:
        self.report("E0001", "a tuple has two items or more", span, "only one item", "remove the comma")
