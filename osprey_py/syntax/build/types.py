"""Actions for types, effect rows and parameters."""

from __future__ import annotations

from dataclasses import replace

from osprey_py.syntax import ast
from osprey_py.syntax.build.base import Actions, Children, nodes
from osprey_py.syntax.tokens import Token

TypeField = tuple[ast.Name, ast.TypeExpr]


class TypeActions(Actions):
    def on_path(self, c: Children, start: int, end: int) -> tuple[ast.Name, ...]:
        return (self.name(c[0]),) if len(c) == 1 else (*c[0], self.name(c[2]))

    def on_annotation(self, c: Children, start: int, end: int) -> ast.TypeExpr:
        found: ast.TypeExpr = c[1]
        return found

    on_result = on_annotation

    def on_types(self, c: Children, start: int, end: int) -> tuple[ast.TypeExpr, ...]:
        return tuple(nodes(c))

    def on_type_args(self, c: Children, start: int, end: int) -> tuple[ast.TypeExpr, ...]:
        args: tuple[ast.TypeExpr, ...] = c[1]
        return args

    def on_type_name(self, c: Children, start: int, end: int) -> ast.TypeName:
        return ast.TypeName(self.at(start, end), c[0], c[1] or ())

    def on_type_parens(self, c: Children, start: int, end: int) -> ast.TypeExpr:
        items: tuple[ast.TypeExpr, ...] = c[1] or ()
        return items[0] if len(items) == 1 else ast.TypeTuple(self.at(start, end), items)

    def on_type_record(self, c: Children, start: int, end: int) -> ast.TypeRecord:
        return ast.TypeRecord(self.at(start, end), c[1] or ())

    def on_type_fields(self, c: Children, start: int, end: int) -> tuple[TypeField, ...]:
        fields: tuple[TypeField, ...] = tuple(nodes(c))
        self.distinct((name for name, _ in fields), "field")
        return fields

    def on_type_field(self, c: Children, start: int, end: int) -> TypeField:
        return self.name(c[0]), c[2]

    def on_arrow(self, c: Children, start: int, end: int) -> ast.TypeFunction:
        params, result = c[-4], c[-1]
        return ast.TypeFunction(self.at(start, end), params or (), result)

    def on_arrow_with_row(self, c: Children, start: int, end: int) -> ast.TypeFunction:
        arrow: ast.TypeFunction = c[0]
        return replace(arrow, span=self.at(start, end), effects=c[1])

    def on_effect_ref(self, c: Children, start: int, end: int) -> ast.EffectRef:
        return ast.EffectRef(self.at(start, end), c[0], c[1] or ())

    def on_row_one(self, c: Children, start: int, end: int) -> tuple[ast.EffectRef, ...]:
        return (c[1],)

    def on_row_many(self, c: Children, start: int, end: int) -> tuple[ast.EffectRef, ...]:
        return tuple(nodes(c))

    def on_type_params(self, c: Children, start: int, end: int) -> tuple[ast.TypeParameter, ...]:
        names = [self.name(t) for t in c if isinstance(t, Token) and t.kind == "NAME"]
        self.distinct(names, "type parameter")
        return tuple(ast.TypeParameter(n.span, n) for n in names)

    def on_params(self, c: Children, start: int, end: int) -> tuple[ast.Parameter, ...]:
        params: tuple[ast.Parameter, ...] = tuple(nodes(c))
        self.distinct((p.name for p in params if p.name is not None), "parameter")
        return params

    def on_param(self, c: Children, start: int, end: int) -> ast.Parameter:
        name = self.name(c[0]) if c[0].kind == "NAME" else None
        return ast.Parameter(self.at(start, end), name, c[1])
