"""Nodes of a lowered kernel as C: the statements of its blocks and the expressions in them.

Comes in: `Places` and a `Dialect`. Goes out: lines of C and an expression for each root. A node that is used once, in the
block where it is computed, is written where it is used; every other gets a name. Names follow the kernel's own where it
has them. What is written depends on the kernel alone, so that compiled programs are found again in a driver's cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.backends.c.dialect import Dialect
from osprey_py.backends.c.places import Places, Region
from osprey_py.backends.protocol import Kind
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Node, TableAttr, Ty, fold_parts, loop_parts, walk

C_TYPE = {INT: "i64", FLOAT: "f64", BOOL: "bool"}
_LEAVES = frozenset({"const", "uniform", "index", "var", "length", "proj"})
_NESTING = 6
"""Operations nested deeper than this get names."""


def literal(value: object, ty: Ty) -> str:
    """A constant, exactly."""
    if ty is BOOL:
        return "true" if value else "false"
    if ty is INT:
        if value == -(1 << 63):
            return "((i64)1 << 63)"
        return f"(i64){value}" if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31 else f"{value}"
    assert isinstance(value, float)
    if value != value:
        return "float_of(0x7FF8000000000000)"
    if value in (float("inf"), -float("inf")):
        return f"float_of({'(i64)0xFFF0' if value < 0 else '0x7FF0'}000000000000)"
    short = repr(value)
    written = short if len(short) < 9 and "e" not in short and (value * 1024).is_integer() else value.hex()
    return f"({written})" if short[0] == "-" else written


class Names:
    """Names that are not yet taken."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        stem = stem if stem.isidentifier() and stem.isascii() else "v"
        count = self._taken.get(stem, 0)
        self._taken[stem] = count + 1
        return f"{stem}_{count}"


class Writer:
    """Writes the blocks of one kernel. tables: the names of the constant tables that it needs."""

    def __init__(
        self,
        dialect: Dialect,
        made: Places,
        roots: Sequence[Node],
        kinds: tuple[Kind, ...],
        names: Names,
        tables: dict[tuple[Ty, tuple[int | float, ...]], str],
    ) -> None:
        self.dialect = dialect
        self.made = made
        self.kinds = kinds
        self.names = names
        self.tables = tables
        self.expression: dict[Node, str] = {}
        self.bound: dict[Bound, str] = {}
        self.results: dict[Node, tuple[str, ...]] = {}
        self.nesting: dict[Node, int] = {}
        self.uses: dict[Node, int] = {}
        for root in roots:
            self.uses[root] = self.uses.get(root, 0) + 1
        for node in walk(roots):
            for a in node.args:
                self.uses[a] = self.uses.get(a, 0) + 1
        self.user: dict[Node, Region] = {}
        for node in walk(roots):
            for a, region in zip(node.args, self._regions(node), strict=True):
                self.user[a] = region

    def _regions(self, node: Node) -> list[Region]:
        """In which block each operand of a node is used."""
        here = self.made.of[node].block
        if node.op in ("select", "rare"):
            return [here, *(arm.block for arm in self.made.arms[node])]
        if node in self.made.bodies:
            inside = self.made.bodies[node]
            outside = len(fold_parts(node)[1]) + 1 if node.op == "fold" else len(loop_parts(node)[0])
            return [here if k < outside else inside for k in range(len(node.args))]
        return [here] * len(node.args)

    # --- blocks -----------------------------------------------------------------------------------------

    def block(self, region: Region) -> list[str]:
        """The statements of a region."""
        lines: list[str] = []
        for node in region.nodes:
            if node.op == "fold":
                lines += self._fold(node)
            elif node.op == "loop":
                lines += self._loop(node)
            elif node.op in ("select", "rare") and self.made.arms[node][0].branch:
                lines += self._branch(node)
            else:
                lines += self._plain(node, region)
        return lines

    def _plain(self, node: Node, region: Region) -> list[str]:
        text = self._written(node)
        inner = 1 + max((self.nesting.get(a, 0) for a in node.args), default=0)
        if node.op in _LEAVES:
            self.expression[node] = text
            return []
        if self.uses[node] == 1 and self.user.get(node, region) is region and inner <= _NESTING:
            self.expression[node] = text
            self.nesting[node] = inner
            return []
        name = self.names.fresh("v")
        self.expression[node] = name
        return [f"const {C_TYPE[node.type]} {name} = {_bare(text)};"]

    def _branch(self, node: Node) -> list[str]:
        name = self.names.fresh("chosen")
        yes, no = self.made.arms[node]
        condition = self.expression[node.args[0]]
        first, second = self.block(yes), self.block(no)
        self.expression[node] = name
        return [
            f"{C_TYPE[node.type]} {name};",
            f"if ({_bare(condition)}) {{",
            *indented(first),
            f"    {name} = {_bare(self.expression[node.args[1]])};",
            "} else {",
            *indented(second),
            f"    {name} = {_bare(self.expression[node.args[2]])};",
            "}",
        ]

    def _state(self, variables: Sequence[Bound], inits: Sequence[Node], node: Node) -> list[str]:
        lines = []
        for b, init in zip(variables, inits, strict=True):
            name = self.bound[b] = self.names.fresh(b.name or "acc")
            lines.append(f"{C_TYPE[b.type]} {name} = {_bare(self.expression[init])};")
        self.results[node] = tuple(self.bound[b] for b in variables)
        return lines

    def _advance(self, variables: Sequence[Bound], nexts: Sequence[Node]) -> list[str]:
        """All of the state from the state before."""
        changed = [(self.bound[b], b, x) for b, x in zip(variables, nexts, strict=True) if x.attr is not b]
        if len(changed) == 1:
            name, _, x = changed[0]
            return [f"{name} = {_bare(self.expression[x])};"]
        fresh = [(name, self.names.fresh("next"), b, x) for name, b, x in changed]
        lines = [f"const {C_TYPE[b.type]} {new} = {_bare(self.expression[x])};" for _, new, b, x in fresh]
        return lines + [f"{name} = {new};" for name, new, _, _ in fresh]

    def _fold(self, node: Node) -> list[str]:
        n, inits, nexts, attr = fold_parts(node)
        lines = self._state(attr.accs, inits, node)
        k = self.bound[attr.index] = self.names.fresh(attr.index.name or "k")
        count = self.names.fresh("count")
        body = self.block(self.made.bodies[node])
        return [
            *lines,
            f"const i64 {count} = {_bare(self.expression[n])};",
            f"for (i64 {k} = 0; {k} < {count}; ++{k}) {{",
            *indented([*body, *self._advance(attr.accs, nexts)]),
            "}",
        ]

    def _loop(self, node: Node) -> list[str]:
        inits, condition, nexts, attr = loop_parts(node)
        lines = self._state(attr.vars, inits, node)
        body = self.block(self.made.bodies[node])
        going = f"if (!{_closed(self.expression[condition])}) break;"
        return [*lines, "for (;;) {", *indented([*body, going, *self._advance(attr.vars, nexts)]), "}"]

    # --- expressions ------------------------------------------------------------------------------------

    def _written(self, node: Node) -> str:
        op, attr = node.op, node.attr
        if op == "proj":
            assert isinstance(attr, int)
            return self.results[node.args[0]][attr]
        args = [self.expression[a] for a in node.args]
        match op:
            case "const":
                return literal(attr, node.type)
            case "uniform":
                return f"(u{attr} != 0)" if node.type is BOOL else f"u{attr}"
            case "index":
                return "i"
            case "var":
                assert isinstance(attr, Bound)
                return self.bound[attr]
            case "length":
                return f"length{attr}"
            case "load":
                assert isinstance(attr, int)
                return f"read_{self.kinds[attr].value}(slot{attr}, length{attr}, {_bare(args[0])})"
            case "inrange":
                return f"((u64)({_bare(args[0])}) < (u64)length{attr})"
            case "table":
                assert isinstance(attr, TableAttr)
                name = self.tables.setdefault((node.type, attr.values), f"table{len(self.tables)}")
                return f"{name}[{_bare(args[0])}]"
            case "select":
                return f"({args[0]} ? {args[1]} : {args[2]})"
        template = self.dialect.operation(op)
        assert template is not None, op
        return template.format(*(map(_bare, args) if "(" in template[1:] else args))


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _bare(text: str) -> str:
    """Without the parentheses around the whole."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    open_ = 0
    for at, c in enumerate(text):
        open_ += (c == "(") - (c == ")")
        if open_ == 0 and at < len(text) - 1:
            return text
    return text[1:-1]


def _closed(text: str) -> str:
    return text if text.isidentifier() or (text[0] == "(" and _bare(text) is not text) else f"({text})"
