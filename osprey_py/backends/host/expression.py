"""Expressions into code: each node once, in the outermost scope that its operands and its branch allow.

Comes in: nodes after kernel/faults.py and the expansion of exp, ln and tanh. Goes out: text in scopes, a `Value`
for each node. What varies from lane to lane (it depends on the launch index in vector code) is a vector; everything
else stays scalar and is spread over the lanes where it meets a vector."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from osprey_py.backends.host import control, memory, sums
from osprey_py.backends.host.operations import EMITTERS, choose
from osprey_py.backends.host.placement import INDEX, Placement
from osprey_py.backends.host.text import Function, Scope, Value, literal
from osprey_py.kernel.ir import BOOL, Bound, FoldAttr, LoopAttr, Node, Ty

Signatures = tuple[tuple[Ty, ...], ...]


class Expressions:
    """Writes the expressions of one LLVM function.

    arguments: where slots, lengths and uniforms come from. signatures: the result types of each of the kernel's
    functions. lane_digit: the variable that counts lanes in vector code; lane_bits: all that differ between lanes.
    in_range: loads that need no check. folds: the digits of fold indices that are cut. depth: calls under way.
    outlined: functions written for rare paths."""

    def __init__(
        self,
        function: Function,
        placement: Placement,
        arguments: memory.Arguments,
        signatures: Signatures = (),
        lane_digit: Bound | None = None,
        in_range: frozenset[Node] = frozenset(),
        folds: Mapping[Bound, tuple[Bound, ...]] = MappingProxyType({}),
    ) -> None:
        self.function = function
        self.placement = placement
        self.arguments = arguments
        self.lane_digit = lane_digit
        self.lane_bits = 0 if lane_digit is None else placement.bit(lane_digit) | INDEX
        self.in_range = in_range
        self.folds = folds
        self.signatures = signatures
        self.depth = literal(0)
        self.outlined: dict[Node, str] = {}

    def apart(self, function: Function) -> Expressions:
        """For scalar code of another function of the module, over the same nodes."""
        return Expressions(function, self.placement, self.arguments, self.signatures)

    # --- the way in -----------------------------------------------------------------------------------------

    def value(self, node: Node, s: Scope) -> Value:
        """The node's value, usable in the scope."""
        stack = [node]
        while stack:
            top = stack[-1]
            if self.known(top, s) is not None:
                stack.pop()
                continue
            missing = [a for a in self._eager(top) if self.known(a, s) is None]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            home = self.home(top, s)
            home.memo[top] = self._emit(top, home)
        found = self.known(node, s)
        assert found is not None
        return found

    def at_width(self, node: Node, s: Scope, width: int) -> Value:
        """The node's value in the scope as that many lanes."""
        return self.fit(self.value(node, s), node, s, width)

    def fit(self, value: Value, node: Node, s: Scope, width: int) -> Value:
        if value.width == width:
            return value
        if value.width == 1:
            return self._owner(node, s).widen(value, width)
        assert width == 1
        return control.extract(s, value)

    def known(self, node: Node, s: Scope) -> Value | None:
        here: Scope | None = s
        while here is not None:
            found = here.memo.get(node)
            if found is not None:
                return found
            here = here.parent
        return None

    def bound(self, bound: Bound, s: Scope) -> Value | None:
        """The variable's value, where a scope around binds it."""
        here: Scope | None = s
        while here is not None:
            found = here.variables.get(bound)
            if found is not None:
                return found
            here = here.parent
        return None

    def variable(self, bound: Bound, s: Scope) -> Value:
        found = self.bound(bound, s)
        assert found is not None
        return found

    def proven(self, node: Node) -> bool:
        """The place that this load or table reads is always in range."""
        if node.op == "load":
            return node in self.in_range
        (at,) = node.args
        masks = [a.attr for a in at.args if a.op == "const"] if at.op == "and" else []
        return any(isinstance(m, int) and 0 <= m < len(node.attr.values) for m in masks)  # type: ignore[attr-defined]

    def varies(self, node: Node) -> bool:
        return bool(self.placement.depends[node] & self.lane_bits)

    # --- where ----------------------------------------------------------------------------------------------

    def home(self, node: Node, s: Scope) -> Scope:
        """The outermost scope, from s outwards, in which the node may be computed."""
        depends = self.placement.depends[node]
        if node in self.placement.unbounded:
            return s
        chain = set(self.placement.chain(node))
        here = s
        while True:
            outer = here.parent
            if outer is None or here.binds & depends:
                return here
            if here.arm is not None and here.arm in chain:
                loop = here
                while loop.parent is not None and not loop.binds:
                    loop = loop.parent
                if here.arm[0].op == "rare" or loop.parent is None or loop.binds & depends:
                    return here
                outer = loop.parent
            here = outer

    def _owner(self, node: Node, s: Scope) -> Scope:
        here: Scope | None = s
        while here is not None:
            if node in here.memo:
                return here
            here = here.parent
        raise KeyError(node)

    def _eager(self, node: Node) -> tuple[Node, ...]:
        """The operands that are evaluated whatever happens."""
        if node.op == "fold":
            return node.args[: 1 + len(node.attr.accs)]  # type: ignore[attr-defined]
        if node.op == "loop":
            return node.args[: len(node.attr.vars)]  # type: ignore[attr-defined]
        if node in self.placement.lazy:
            return node.args[:1] if node.op == "select" else (node.args[0], node.args[2])
        return node.args

    # --- what -----------------------------------------------------------------------------------------------

    def _emit(self, node: Node, s: Scope) -> Value:
        width = s.width if self.varies(node) else 1
        emitter = EMITTERS.get(node.op)
        if emitter is not None:
            return emitter(s, tuple(self.at_width(a, s, width) for a in node.args))
        if node in self.placement.lazy:
            return control.branch(self, node, s, width)
        if node in self.placement.unbounded and node.op in ("fold", "loop", "call"):
            return control.once(self, node, s, _STRUCTURE[node.op])
        return _STRUCTURE[node.op](self, node, s, width)

    def result_types(self, node: Node) -> tuple[Ty, ...]:
        """The types of a fold's, loop's or call's results."""
        match node.attr:
            case FoldAttr(accs=bounds) | LoopAttr(vars=bounds):
                return tuple(b.type for b in bounds)
            case k:
                assert isinstance(k, int)
                return self.signatures[k]

    def operands(self, node: Node, s: Scope, width: int) -> tuple[Value, ...]:
        return tuple(self.at_width(a, s, width) for a in node.args)


def _const(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    return literal(node.attr)  # type: ignore[arg-type]


def _uniform(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    assert isinstance(node.attr, int)
    return e.arguments.uniforms[node.attr]


def _index(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    return control.launch_index(e, s)


def _var(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    assert isinstance(node.attr, Bound)
    return e.variable(node.attr, s)


def _length(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    assert isinstance(node.attr, int)
    return e.arguments.lengths[node.attr]


def _select(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    c, a, b = node.args
    # A scalar condition chooses whole vectors.
    condition = e.at_width(c, s, width if e.varies(c) else 1)
    return choose(s, condition, e.at_width(a, s, width), e.at_width(b, s, width))


def _inrange(e: Expressions, node: Node, s: Scope, width: int) -> Value:
    (at,) = e.operands(node, s, width)
    assert isinstance(node.attr, int)
    length = e.arguments.entry.widen(e.arguments.lengths[node.attr], width)
    return s.define(BOOL, width, f"icmp ult {at.llvm} {at}, {length}")


_STRUCTURE = {
    "const": _const,
    "uniform": _uniform,
    "index": _index,
    "var": _var,
    "length": _length,
    "select": _select,
    "inrange": _inrange,
    "load": memory.load,
    "table": memory.table,
    "fold": control.fold,
    "loop": control.loop,
    "call": control.call,
    "proj": control.projection,
    "affine": sums.emit,
}
"""Operations that read more than their operands' values."""

STRUCTURE = frozenset(_STRUCTURE) | {"rare"}
