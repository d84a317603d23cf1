"""Words of other languages, and what they are called here.

Comes in: nothing. Goes out: the advice that diagnostics give on them. None is a keyword: each is a name where it makes
sense as one.
"""

from __future__ import annotations

FOREIGN_WORDS = {
    "return": "the last expression of a block is its value: leave `return` out",
    "var": "names are bound with `let`; a cell that handlers change is declared with `mut`",
    "val": "names are bound with `let`",
    "const": "names are bound with `let`",
    "def": "functions are declared with `fn`",
    "func": "functions are declared with `fn`",
    "function": "functions are declared with `fn`",
    "lambda": "a lambda is written `fn(x) => …` or `|x| => …`",
    "for": "there are no loops: use `range(0, n) |> forEach(fn(i) => …)`, `fold`, or a recursive function",
    "while": "there are no loops: use `fold`, or a recursive function (a tail call needs no stack)",
    "loop": "there are no loops: use `fold`, or a recursive function (a tail call needs no stack)",
    "struct": "types are declared with `type`: `type Point = { x: float, y: float }`",
    "class": "types are declared with `type`: `type Point = { x: float, y: float }`",
    "data": "types are declared with `type`: `type Shape = Circle(float) | Empty`",
    "enum": "types are declared with `type`: `type Shape = Circle(float) | Empty`",
    "trait": "there are no traits; functions are generic without them",
    "impl": "there are no methods to declare: `x.f(a)` calls `f(x, a)`",
    "use": "modules are imported with `import`",
    "pub": "declarations are exported with `export`",
    "switch": "use `match`",
    "case": "use `match`",
    "elif": "write `else if`",
    "elseif": "write `else if`",
    "throw": "return an `Error { message: … }`",
    "raise": "return an `Error { message: … }`",
}
"""At the beginning of a statement."""

FOREIGN_INFIX = {
    "then": "the branches of an `if` are blocks: `if c { a } else { b }`",
    "and": '"and" is written `&&`',
    "or": '"or" is written `||`',
    "not": '"not" is written `!`',
    "null": "there is no null: use a Result, or a union with an empty variant",
    "try": "use `?:` or `match` on the Result; math faults are recovered the same way",
}
"""Anywhere."""
