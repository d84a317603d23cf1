"""A kernel as text, for people: `--plan`, test failures, this project's own developers.

Comes in: a kernel, as extracted or lowered. Goes out: one line a node, bodies of folds and loops indented under them.
Numbering depends on the structure alone, so the same structure gives the same text.
"""

from __future__ import annotations

from collections.abc import Sequence

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import Bound, FoldAttr, Kernel, LoopAttr, Node, TableAttr, fold_parts, loop_parts, walk
from osprey_py.kernel.scopes import Scope, scopes

_INLINE = frozenset({"const", "uniform", "index", "var", "length"})


def show(kernel: Kernel) -> str:
    """The whole kernel, functions first."""
    slots = ", ".join(f"s{k}: {t.value}" for k, t in enumerate(kernel.slots))
    uniforms = ", ".join(f"u{k}: {t.value}" for k, t in enumerate(kernel.uniforms))
    lines = [f"kernel {kernel.name}({slots}; {uniforms}) -> {kernel.type.value}"]
    for k, f in enumerate(kernel.functions):
        text = _Text()
        params = ", ".join(f"{text.bound(p)}: {p.type.value}" for p in f.params)
        lines += [f"  function f{k} {f.name}({params})", *text.body(f.results, f.params, 2)]
    text = _Text()
    acc = () if kernel.acc is None else (kernel.acc,)
    if kernel.acc is not None and kernel.init is not None:
        lines.append(f"  scan {text.bound(kernel.acc)} = {text.name(kernel.init)}")
    roots = [kernel.result]
    if isinstance(kernel, Lowered) and kernel.fault is not None:
        roots.append(kernel.fault)
    return "\n".join([*lines, *text.body(roots, acc, 1)])


def show_node(node: Node) -> str:
    """One expression, as the lines of a kernel that returns it; variables bound outside it are named alike."""
    loose = tuple(dict.fromkeys(n.attr for n in walk((node,)) if isinstance(n.attr, Bound)))
    return "\n".join(_Text().body((node,), loose, 0))


class _Text:
    def __init__(self) -> None:
        self.numbers: dict[Node, int] = {}
        self.bounds: dict[Bound, str] = {}

    def bound(self, b: Bound) -> str:
        return self.bounds.setdefault(b, f"{b.name or 'v'}.{len(self.bounds)}")

    def body(self, roots: Sequence[Node], params: Sequence[Bound], depth: int) -> list[str]:
        lines = self.scope(scopes(roots, params), depth)
        return [*lines, "  " * depth + "return " + ", ".join(map(self.name, roots))]

    def name(self, node: Node) -> str:
        match node.op:
            case "const":
                return repr(node.attr)
            case "uniform":
                return f"u{node.attr}"
            case "index":
                return "i"
            case "var" if isinstance(node.attr, Bound):
                return self.bound(node.attr)
            case "length":
                return f"length(s{node.attr})"
            case "proj":
                return f"{self.name(node.args[0])}.{node.attr}"
        return f"%{self.numbers.setdefault(node, len(self.numbers))}"

    def scope(self, scope: Scope, depth: int) -> list[str]:
        lines = []
        for node in scope.nodes:
            if node.op not in _INLINE and node.op != "proj":
                lines += self.line(node, scope, depth)
        return lines

    def line(self, node: Node, scope: Scope, depth: int) -> list[str]:
        indent = "  " * depth
        if isinstance(node.attr, FoldAttr):
            n, inits, nexts, of_fold = fold_parts(node)
            head = f"{indent}{self.name(node)} = fold {self.bound(of_fold.index)} < {self.name(n)}"
            head += "".join(f", {self.bound(a)} = {self.name(i)}" for a, i in zip(of_fold.accs, inits, strict=True))
            inner = self.scope(scope.under[node], depth + 1)
            return [head, *inner, f"{indent}  next {', '.join(map(self.name, nexts))}"]
        if isinstance(node.attr, LoopAttr):
            inits, condition, nexts, loop = loop_parts(node)
            starts = ", ".join(f"{self.bound(v)} = {self.name(i)}" for v, i in zip(loop.vars, inits, strict=True))
            inner = self.scope(scope.under[node], depth + 1)
            steps = f"{indent}  while {self.name(condition)} next {', '.join(map(self.name, nexts))}"
            return [f"{indent}{self.name(node)} = loop {starts}", *inner, steps]
        attr = node.attr
        of = {"load": f" s{attr}", "inrange": f" s{attr}", "call": f" f{attr}", "fault": f" {attr!r}"}.get(node.op, "")
        if isinstance(attr, TableAttr):
            of = f" [{len(attr.values)} values]"
        operands = ", ".join(map(self.name, node.args))
        return [f"{indent}{self.name(node)} = {node.op}{of} {operands}".rstrip()]
