"""From the alternatives of grammar.lark to the nodes of syntax/ast.py, bottom up."""

from osprey_py.syntax.build.declarations import FileActions

__all__ = ["FileActions"]
