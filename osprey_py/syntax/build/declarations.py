"""Actions for declarations and the whole file."""

from __future__ import annotations

from dataclasses import replace

from osprey_py.syntax import ast
from osprey_py.syntax.build.base import Children, nodes
from osprey_py.syntax.build.expressions import ExpressionActions
from osprey_py.syntax.tokens import Token

_EXPORTABLE = (
    ast.Let,
    ast.FunctionDecl,
    ast.RecordDecl,
    ast.UnionDecl,
    ast.AliasDecl,
    ast.EffectDecl,
    ast.ModuleDecl,
)


class FileActions(ExpressionActions):
    """All actions: what syntax/parser.py hands to the machine."""

    def on_file(self, c: Children, start: int, end: int) -> ast.File:
        statements: list[ast.Statement] = nodes(c[1:])
        ends_in_value = bool(statements) and isinstance(c[-1], ast.ExprStatement)
        self.used(statements[:-1] if ends_in_value else statements)
        return ast.File(self.source, c[0] or (), tuple(statements))

    def on_namespace(self, c: Children, start: int, end: int) -> tuple[ast.Name, ...]:
        path: tuple[ast.Name, ...] = c[1]
        return path

    def on_exported(self, c: Children, start: int, end: int) -> ast.Statement:
        export: Token = c[0]
        declared: ast.Statement = c[1]
        if not isinstance(declared, _EXPORTABLE):
            self.report(
                "E0012",
                "this cannot be exported",
                self.at(export.start, export.end),
                "",
                "only `let`, `fn`, `type`, `effect` and `module` are exported",
            )
            return declared
        return replace(declared, span=self.at(start, end), exported=True, doc=export.doc or declared.doc)

    def on_let(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.Let(self.at(start, end), c[1], c[2], c[4], c[0].doc)

    def on_mut(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.Mut(self.at(start, end), self.name(c[1]), c[2], c[4])

    def on_function(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.FunctionDecl(
            self.at(start, end), self.name(c[1]), c[2] or (), c[4] or (), c[6], c[7], c[8], c[0].doc
        )

    def on_body_expression(self, c: Children, start: int, end: int) -> ast.Expr:
        body: ast.Expr = c[1]
        return body

    # --- types and effects -----------------------------------------------------------------------------------------

    def on_alias(self, c: Children, start: int, end: int) -> ast.Statement:
        name, params, target = self.name(c[1]), c[2] or (), c[4]
        if isinstance(target, ast.TypeRecord):
            return ast.RecordDecl(self.at(start, end), name, params, target.fields, c[0].doc)
        return ast.AliasDecl(self.at(start, end), name, params, target, c[0].doc)

    def on_union_type(self, c: Children, start: int, end: int) -> ast.Statement:
        given = c[4]
        variants: tuple[ast.Variant, ...] = given if isinstance(given, tuple) else (given,)
        self.distinct((v.name for v in variants), "variant")
        return ast.UnionDecl(self.at(start, end), self.name(c[1]), c[2] or (), variants, c[0].doc)

    def on_variants(self, c: Children, start: int, end: int) -> tuple[ast.Variant, ...]:
        return tuple(nodes(c))

    def on_bare(self, c: Children, start: int, end: int) -> ast.Variant:
        return ast.Variant(self.at(start, end), self.name(c[0]), (), False)

    def on_positional_variant(self, c: Children, start: int, end: int) -> ast.Variant:
        fields = tuple((ast.Name(t.span, str(k)), t) for k, t in enumerate(c[2]))
        return ast.Variant(self.at(start, end), self.name(c[0]), fields, True)

    def on_named_variant(self, c: Children, start: int, end: int) -> ast.Variant:
        return ast.Variant(self.at(start, end), self.name(c[0]), c[2] or (), False)

    def on_effect(self, c: Children, start: int, end: int) -> ast.Statement:
        operations = tuple(o for o in c if isinstance(o, ast.OperationDecl))
        self.distinct((o.name for o in operations), "operation")
        return ast.EffectDecl(self.at(start, end), self.name(c[1]), c[2] or (), operations, c[0].doc)

    def on_operation(self, c: Children, start: int, end: int) -> ast.OperationDecl:
        name, declared = self.name(c[0]), c[2]
        span = self.at(start, declared.span.end)
        if isinstance(declared, ast.TypeFunction):
            if declared.effects is not None:
                self.report(
                    "E0018",
                    "an operation has no effect row of its own",
                    declared.span,
                    "",
                    "remove the row: what the operation does is its handler's business",
                )
            return ast.OperationDecl(span, name, declared.params, declared.result)
        self.report(
            "E0018",
            f"the operation `{name.text}` is not a function",
            declared.span,
            "this is a type of values",
            f"write what it takes and gives, as in `{name.text}: fn() -> {declared.span.text}`",
        )
        return ast.OperationDecl(span, name, (), declared)

    # --- modules ---------------------------------------------------------------------------------------------------

    def on_module(self, c: Children, start: int, end: int) -> ast.Statement:
        body: list[ast.Statement] = nodes(c[3:])
        for statement in body:
            if isinstance(statement, ast.ExprStatement | ast.Assign | ast.Mut):
                self.report(
                    "E0012",
                    "a module holds declarations only",
                    statement.span,
                    "a statement",
                    "move it to the file's own scope or into a function",
                )
        return ast.ModuleDecl(self.at(start, end), self.name(c[1]), tuple(body), c[0].doc)

    def on_import_module(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.Import(self.at(start, end), c[1], None, None)

    def on_import_as(self, c: Children, start: int, end: int) -> ast.Statement:
        return ast.Import(self.at(start, end), c[1], self.name(c[3]), None)

    def on_import_items(self, c: Children, start: int, end: int) -> ast.Statement:
        items = tuple(i for i in c if isinstance(i, ast.ImportItem))
        self.distinct((i.alias or i.name for i in items), "import")
        return ast.Import(self.at(start, end), c[1], None, items)

    def on_import_name(self, c: Children, start: int, end: int) -> ast.ImportItem:
        return ast.ImportItem(self.at(start, end), self.name(c[0]), None)

    def on_import_renamed(self, c: Children, start: int, end: int) -> ast.ImportItem:
        return ast.ImportItem(self.at(start, end), self.name(c[0]), self.name(c[2]))
