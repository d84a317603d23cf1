"""A kernel as a Python function: the oracle's whole compiler.

Comes in: a `Kernel`, as extracted (lazy) or after kernel/faults.py. Goes out: a `Program`, whose `bind` gives a
function from the index to the element. The text it makes is the kernel written down in Python: an operation is a call
of its definition in scalars.py, `select` is `a if c else b`, a fold is a `for` loop, a recursive helper a function.

A node that is used more than once, or from a scope inside its own, gets a name: a function that computes it when it is
first wanted and remembers it, forgotten when its scope begins anew. So a node is evaluated at most once in its scope,
only when it is chosen, in the order of its first use: the IR's order of evaluation (spec/gpu-surface, S1).

`eager` evaluates both operands of `select` where no loop or call is in them, and gives arbitrary values for loads out
of range: what vector code does with a kernel after faults.py, tested to make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from osprey_py.kernel.fault import MathFault
from osprey_py.kernel.ir import (
    MAX_DEPTH,
    MESSAGES,
    OPS,
    Bound,
    Kernel,
    Node,
    Site,
    TableAttr,
    Ty,
    fold_parts,
    loop_parts,
    walk,
)
from osprey_py.kernel.scalars import SCALARS, fault
from osprey_py.kernel.scopes import Scope, body, scopes

_LEAVES = frozenset({"const", "uniform", "index", "var", "length"})
_BINDERS = frozenset({"fold", "loop", "call"})
_NESTING = 20
"""Operations nested deeper than this get names, for Python's parser counts parentheses."""

_INFIX = {
    "fadd": "+",
    "fsub": "-",
    "fmul": "*",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "and": "&",
    "or": "|",
    "xor": "^",
}


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """bind(reads, lengths, uniforms, depth) -> (element, init): element(i) or, of a scan, element(i, acc);
    init() or None.
    reads: for each slot a function from a place to the element there."""

    bind: Callable[..., tuple[Callable[..., Any], Callable[[], Any] | None]]
    source: str


class Depth:
    """How many frames of kernel recursion are open."""

    def __init__(self) -> None:
        self.now = 0

    def enter(self, site: Site) -> None:
        if self.now >= MAX_DEPTH:
            raise MathFault(MESSAGES["call"], site.span, recoverable=False)
        self.now += 1

    def leave(self) -> None:
        self.now -= 1


def write(kernel: Kernel, results: Sequence[Node] | None = None, *, eager: bool = False) -> Program:
    """results: what an element is, a tuple then; the kernel's result when None."""
    writer = _Writer(eager)
    slots = len(kernel.slots)
    head = ["def bind(reads, lengths, uniforms, depth):", "    recover = recovering(depth)"]
    head += [f"    L{k} = reads[{k}]" for k in range(slots)]
    head += [f"    N{k} = lengths[{k}]" for k in range(slots)]
    head += [f"    U{k} = uniforms[{k}]" for k in range(len(kernel.uniforms))]
    lines = list(head)
    for k, function in enumerate(kernel.functions):
        params = "".join(f", {_bound(p)}" for p in function.params)
        lines.append(f"    def F{k}(site{params}):")
        lines.append("        depth.enter(site)")
        lines_of, value = writer.scope(function.results, function.params)
        lines += _indent(lines_of, 2)
        lines += [f"        result = {_tuple(value)}", "        depth.leave()", "        return result"]
    acc = "" if kernel.acc is None else f", {_bound(kernel.acc)}"
    lines.append(f"    def element(i{acc}):")
    lines_of, value = writer.scope(
        (kernel.result,) if results is None else results, (kernel.acc,) if kernel.acc else ()
    )
    lines += _indent(lines_of, 2)
    lines.append(f"        return {value[0] if results is None else _tuple(value)}")
    if kernel.init is not None:
        lines.append("    def init():")
        lines_of, value = writer.scope((kernel.init,), ())
        lines += [*_indent(lines_of, 2), f"        return {value[0]}"]
    lines.append(f"    return element, {'None' if kernel.init is None else 'init'}")
    source = "\n".join(lines) + "\n"
    namespace = writer.namespace
    exec(compile(source, f"<oracle {kernel.name}>", "exec"), namespace)
    return Program(namespace["bind"], source)


def _bound(b: Bound) -> str:
    return f"v{b.uid}"


def _tuple(parts: Iterable[str]) -> str:
    return "(" + "".join(f"{p}, " for p in parts) + ")"


def _indent(lines: Iterable[str], by: int) -> list[str]:
    return ["    " * by + line for line in lines]


class _Writer:
    """Writes the scopes of one kernel; `namespace` collects what the text refers to."""

    def __init__(self, eager: bool) -> None:
        self.eager = eager
        self.namespace: dict[str, Any] = {
            "recovering": _recovering,
            "raising": _raising,
            "choose": lambda c, a, b: a if c else b,
            "anything": lambda read, n, i: read(i) if 0 <= i < n else read(0) if n else 0,
            **{f"op_{name}": function for name, function in SCALARS.items()},
        }
        self.fresh = count()
        self.names: dict[Node, str] = {}
        self.tree: Scope
        self.endless: set[Node] = set()

    def scope(self, roots: Sequence[Node], binders: tuple[Bound, ...]) -> tuple[list[str], list[str]]:
        """The statements and the result expressions of a whole kernel or function."""
        self.tree = scopes(roots, binders)
        self.names = self._choose_names(roots)
        self.endless = set()
        for node in walk(roots):
            if node.op in ("loop", "call") or any(a in self.endless for a in node.args):
                self.endless.add(node)
        return self._statements(self.tree), [self._use(r) for r in roots]

    def _choose_names(self, roots: Sequence[Node]) -> dict[Node, str]:
        uses: dict[Node, int] = {}
        from_inside: set[Node] = set()
        order = list(walk(roots))
        of = self.tree.of
        for node in order:
            inside = len(node.args) - len(body(node))
            for position, a in enumerate(node.args):
                uses[a] = uses.get(a, 0) + 1
                if of[a] is not (of[node] if position < inside else self.tree.under[node]):
                    from_inside.add(a)
        for r in roots:
            uses[r] = uses.get(r, 0) + 1
        named: dict[Node, str] = {}
        nesting: dict[Node, int] = {}
        for node in order:
            nesting[node] = 1 + max((nesting[a] for a in node.args), default=0)
            shared = uses[node] > 1 or node in from_inside
            if node.op not in _LEAVES and (shared or node.op in _BINDERS or nesting[node] > _NESTING):
                named[node] = f"n{next(self.fresh)}"
                nesting[node] = 0
        return named

    def _statements(self, scope: Scope) -> list[str]:
        lines = []
        mine = [n for n in scope.nodes if n in self.names]
        if mine:
            lines.append(" = ".join(f"x{self.names[n]}" for n in mine) + " = None")
        for node in mine:
            name = self.names[node]
            lines += [f"def {name}():", f"    nonlocal x{name}", f"    if x{name} is None:"]
            lines += _indent(self._definition(node, f"x{name}"), 2)
            lines.append(f"    return x{name}")
        return lines

    def _definition(self, node: Node, target: str) -> list[str]:
        if node.op == "fold":
            return self._fold(node, target)
        if node.op == "loop":
            return self._loop(node, target)
        return [f"{target} = {self._expression(node)}"]

    def _fold(self, node: Node, target: str) -> list[str]:
        n, inits, nexts, attr = fold_parts(node)
        accs = _tuple(_bound(a) for a in attr.accs)
        return [
            f"count = {self._use(n)}",
            f"{accs} = {_tuple(map(self._use, inits))}",
            f"for {_bound(attr.index)} in range(count):",
            *_indent(self._statements(self.tree.under[node]), 1),
            f"    {accs} = {_tuple(map(self._use, nexts))}",
            f"{target} = {accs}",
        ]

    def _loop(self, node: Node, target: str) -> list[str]:
        inits, condition, nexts, attr = loop_parts(node)
        state = _tuple(_bound(v) for v in attr.vars)
        return [
            f"{state} = {_tuple(map(self._use, inits))}",
            "while True:",
            *_indent(self._statements(self.tree.under[node]), 1),
            f"    if not {self._use(condition)}:",
            "        break",
            f"    {state} = {_tuple(map(self._use, nexts))}",
            f"{target} = {state}",
        ]

    def _use(self, node: Node) -> str:
        name = self.names.get(node)
        return self._expression(node) if name is None else f"{name}()"

    def _site(self, node: Node) -> str:
        assert node.site is not None, node.op
        name = f"S{next(self.fresh)}"
        self.namespace[name] = node.site
        return name

    def _constant(self, value: object) -> str:
        name = f"K{next(self.fresh)}"
        self.namespace[name] = value
        return name

    def _expression(self, node: Node) -> str:
        op, args = node.op, node.args
        match op:
            case "const":
                return repr(node.attr) if node.type is not Ty.FLOAT else self._constant(node.attr)
            case "uniform":
                return f"U{node.attr}"
            case "index":
                return "i"
            case "var":
                assert isinstance(node.attr, Bound)
                return _bound(node.attr)
            case "length":
                return f"N{node.attr}"
            case "load":
                place = self._use(args[0])
                return f"anything(L{node.attr}, N{node.attr}, {place})" if self.eager else f"L{node.attr}({place})"
            case "inrange":
                return f"(0 <= {self._use(args[0])} < N{node.attr})"
            case "table":
                assert isinstance(node.attr, TableAttr)
                return f"{self._constant(node.attr.values)}[{self._use(args[0])}]"
            case "select" | "rare":
                c, a, b = map(self._use, args)
                if self.eager and not self.endless.intersection(args[1:]):
                    return f"choose({c}, {a}, {b})"
                return f"({a} if {c} else {b})"
            case "recover":
                e, d = map(self._use, args)
                return f"recover(lambda: {e}, lambda: {d})"
            case "seq":
                return f"{_tuple(map(self._use, args))}[-1]"
            case "fault":
                return f"raising({node.attr!r}, {self._site(node)})"
            case "proj":
                return f"{self._use(args[0])}[{node.attr}]"
            case "call":
                return f"F{node.attr}({', '.join([self._site(node), *map(self._use, args)])})"
        operands = list(map(self._use, args))
        if op in _INFIX:
            return f"({operands[0]} {_INFIX[op]} {operands[1]})"
        if OPS[op].checked:
            operands.append(self._site(node))
        return f"op_{op}({', '.join(operands)})"


def _raising(message: str, site: Site) -> Any:
    raise fault(message, site)


def _recovering(depth: Depth) -> Callable[[Callable[[], Any], Callable[[], Any]], Any]:
    def recover(e: Callable[[], Any], d: Callable[[], Any]) -> Any:
        open_frames = depth.now
        try:
            return e()
        except MathFault as found:
            if not found.recoverable:
                raise
        depth.now = open_frames
        return d()

    return recover
