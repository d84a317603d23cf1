"""The rules of the IR, stated and checked.

Comes in: a kernel, as extracted or `Lowered`. Goes out: nothing, or a `KernelError` that names the node and the rule.
A kernel that breaks a rule is a mistake of this compiler, never of the user; tests verify after every pass.

V1 every op is known, with operands of its types in its number, and the attribute it needs
V2 a node has a site exactly when its op is checked
V3 slots and uniforms are in range and of the kernel's types
V4 a bound variable has one binder and is read in its body only; `index` is not read in functions
V5 results of folds, loops and calls are read by `proj` alone, in range and of their types
V6 a scan has both an accumulator and an init; the init cannot fault and reads uniforms and constants only
V7 after faults.py: no checked op but `call`, no `recover`, `seq` or `fault`; the fault is a bool
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.ir import (
    BOOL,
    FLOAT,
    INT,
    OPS,
    PRIVATE,
    Bound,
    FoldAttr,
    Kernel,
    LoopAttr,
    Node,
    OpInfo,
    TableAttr,
    Ty,
    walk,
)
from osprey_py.kernel.scopes import binds, free

_T = TypeVar("_T")


class KernelError(ValueError):
    """A kernel that breaks rule `rule`."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule


def _table(rows: dict[tuple[tuple[Ty, ...], Ty], str]) -> dict[str, tuple[tuple[Ty, ...], Ty]]:
    return {op: signature for signature, ops in rows.items() for op in ops.split()}


SIGNATURES = _table(
    {
        ((INT, INT), INT): "add sub mul quot rem shl shr shru wadd wsub wmul uquot urem ushl ushr ushru mulhigh "
        "and or xor imin imax",
        ((INT,), INT): "neg iabs inot",
        ((INT, INT), BOOL): "addo subo mulo",
        ((FLOAT, FLOAT), FLOAT): "fadd fsub fmul fdiv fmod fdivi fmodi fmin fmax",
        ((FLOAT,), FLOAT): "fneg fabs floor ceil round sqrt exp ln tanh stop",
        ((INT,), FLOAT): "tofloat bitsfloat",
        ((FLOAT,), INT): "toint utoint floatbits ubits",
        ((BOOL, BOOL), BOOL): "band bor",
        ((BOOL,), BOOL): "bnot",
    }
)
"""Operand and result types of the ops that have just one signature."""

_LATE = frozenset({"recover", "seq", "fault", "stop"})
_MANY = frozenset({"fold", "loop", "call"})


def verify(kernel: Kernel, *, expanded: bool = False) -> None:
    """Raise KernelError when a rule is broken. O(nodes). expanded: it may hold private operations."""
    lowered = isinstance(kernel, Lowered)
    checker = _Checker(kernel, lowered, OPS | PRIVATE if expanded else OPS)
    if (kernel.acc is None) != (kernel.init is None):
        raise KernelError("V6", "an accumulator without an init, or an init without an accumulator")
    result: tuple[Node, ...] = (kernel.result,)
    if isinstance(kernel, Lowered) and kernel.fault is not None:
        result = (kernel.result, kernel.fault)
        if kernel.fault.type is not BOOL:
            raise KernelError("V7", f"the fault is of type {kernel.fault.type!r}")
    checker.graph(result, (kernel.acc,) if kernel.acc else (), "the kernel")
    for function in kernel.functions:
        checker.graph(function.results, function.params, function.name)
        for node in walk(function.results):
            if node.op == "index":
                raise KernelError("V4", f"{function.name} reads the launch index")
    if kernel.init is not None and kernel.acc is not None:
        checker.graph((kernel.init,), (), "the init")
        if kernel.init.type is not kernel.acc.type or kernel.result.type is not kernel.acc.type:
            raise KernelError("V6", "init, accumulator and result have different types")
        for node in walk((kernel.init,)):
            if OPS[node.op].checked or node.op in ("index", "load", "inrange", "length"):
                raise KernelError("V6", f"the init holds `{node.op}`")


class _Checker:
    def __init__(self, kernel: Kernel, lowered: bool, ops: Mapping[str, OpInfo]) -> None:
        self.kernel = kernel
        self.lowered = lowered
        self.ops = ops
        self.binders: dict[Bound, object] = {}

    def graph(self, roots: Sequence[Node], params: Sequence[Bound], where: str) -> None:
        """Check everything under roots, where params are the variables bound outside."""
        for p in params:
            self._bind(p, object())
        for node in walk(roots):
            self._node(node)
            for b in binds(node):
                self._bind(b, node)
        reads = free(roots)
        for root in roots:
            loose = reads[root] - set(params)
            if loose:
                raise KernelError("V4", f"{where} reads a variable outside its binder")
            if root.op in _MANY:
                raise KernelError("V5", f"{where} is a bare {root.op}")

    def _bind(self, b: Bound, binder: object) -> None:
        if self.binders.setdefault(b, binder) is not binder:
            raise KernelError("V4", "a variable has two binders")

    def _node(self, node: Node) -> None:
        info = self.ops.get(node.op)
        if info is None:
            raise KernelError("V1", f"`{node.op}` is no op")
        if self.lowered and node.op != "call" and (info.checked or node.op in _LATE):
            raise KernelError("V7", f"`{node.op}` after the fault pass")
        if info.checked != (node.site is not None):
            raise KernelError("V2", f"`{node.op}` {'without' if info.checked else 'with'} a site")
        for a in node.args:
            if a.op in _MANY and node.op != "proj":
                raise KernelError("V5", f"`{node.op}` of a bare {a.op}")
        signature = SIGNATURES.get(node.op) or self._signature(node)
        found = tuple(a.type for a in node.args), node.type
        if found != signature:
            raise KernelError("V1", f"`{node.op}` has types {found}, not {signature}")
        if node.op in SIGNATURES and node.attr is not None:
            raise KernelError("V1", f"`{node.op}` has an attribute")

    def _signature(self, node: Node) -> tuple[tuple[Ty, ...], Ty]:
        """What the types of a node with an attribute, or of a generic one, have to be."""
        attr, args = node.attr, node.args
        match node.op:
            case "const":
                exact = {INT: int, FLOAT: float, BOOL: bool}[node.type]
                if type(attr) is not exact or (exact is int and not -(2**63) <= attr < 2**63):  # type: ignore[operator]
                    raise KernelError("V1", f"the {node.type!r} constant {attr!r}")
                return (), node.type
            case "uniform":
                return (), self._of(self.kernel.uniforms, attr, "uniform")
            case "index":
                return (), INT
            case "var":
                if not isinstance(attr, Bound):
                    raise KernelError("V1", "a variable without a Bound")
                return (), attr.type
            case "length":
                self._of(self.kernel.slots, attr, "slot")
                return (), INT
            case "load":
                return (INT,), self._of(self.kernel.slots, attr, "slot")
            case "inrange":
                self._of(self.kernel.slots, attr, "slot")
                return (INT,), BOOL
            case "table":
                if not isinstance(attr, TableAttr) or not attr.values:
                    raise KernelError("V1", "a table without values")
                return (INT,), FLOAT if isinstance(attr.values[0], float) else INT
            case "eq" | "ne" if args and args[0].type is BOOL:
                return (BOOL, BOOL), BOOL
            case "eq" | "ne" | "lt" | "le":
                operand = args[0].type if args and args[0].type is not BOOL else INT
                return (operand, operand), BOOL
            case "muladd" | "residue":
                return (FLOAT, FLOAT, FLOAT), FLOAT
            case "select" | "rare":
                return (BOOL, node.type, node.type), node.type
            case "recover":
                return (node.type, node.type), node.type
            case "seq":
                if not args:
                    raise KernelError("V1", "an empty `seq`")
                return tuple(a.type for a in args), args[-1].type
            case "fault":
                if not isinstance(attr, str):
                    raise KernelError("V1", "a `fault` without a message")
                return (), node.type
            case "fold":
                return self._fold(node)
            case "loop":
                return self._loop(node)
            case "call":
                function = self._of(self.kernel.functions, attr, "function")
                return tuple(p.type for p in function.params), function.results[0].type
            case "proj":
                return self._proj(node)
        raise KernelError("V1", f"no rule for `{node.op}`")

    @staticmethod
    def _of(items: Sequence[_T], k: object, what: str) -> _T:
        if not isinstance(k, int) or not 0 <= k < len(items):
            raise KernelError("V3", f"{what} {k!r} is out of range")
        return items[k]

    def _fold(self, node: Node) -> tuple[tuple[Ty, ...], Ty]:
        if not isinstance(node.attr, FoldAttr) or not node.attr.accs or node.attr.index.type is not INT:
            raise KernelError("V1", "a fold without a FoldAttr of an int index and accumulators")
        accs = tuple(b.type for b in node.attr.accs)
        return (INT, *accs, *accs), accs[0]

    def _loop(self, node: Node) -> tuple[tuple[Ty, ...], Ty]:
        if not isinstance(node.attr, LoopAttr) or not node.attr.vars:
            raise KernelError("V1", "a loop without a LoopAttr of variables")
        state = tuple(b.type for b in node.attr.vars)
        return (*state, BOOL, *state), state[0]

    def _proj(self, node: Node) -> tuple[tuple[Ty, ...], Ty]:
        if len(node.args) != 1 or node.args[0].op not in _MANY:
            raise KernelError("V5", "`proj` of what is no fold, loop or call")
        of = node.args[0]
        results: Sequence[Bound | Node]
        if isinstance(of.attr, FoldAttr):
            results = of.attr.accs
        elif isinstance(of.attr, LoopAttr):
            results = of.attr.vars
        else:
            results = self._of(self.kernel.functions, of.attr, "function").results
        if not isinstance(node.attr, int) or not 0 <= node.attr < len(results):
            raise KernelError("V5", f"result {node.attr!r} of {len(results)}")
        return (of.type,), results[node.attr].type
