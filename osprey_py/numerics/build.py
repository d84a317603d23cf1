"""Arithmetic notation for kernel IR: `V` wraps a node so that formulas read as formulas.

On floats `+ - *` are the IEEE operations, never contracted; on ints they wrap, `>>` is arithmetic and `.shru` logical.
"""

from __future__ import annotations

from osprey_py.kernel.ir import BOOL, FLOAT, INT, Node, TableAttr, Ty, const

_MIN = -(1 << 63)


def signed(bits: int) -> int:
    """A 64-bit pattern as the int64 with these bits."""
    bits &= (1 << 64) - 1
    return bits - (1 << 64) if bits >> 63 else bits


class V:
    """A scalar expression. Constants mix in: Python floats as float, Python ints as int (bit patterns are wrapped)."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def _of(self, x: V | int | float) -> V:
        if isinstance(x, V):
            return x
        return V(const(float(x))) if self.node.type is FLOAT else V(const(signed(int(x))))

    def _op(self, float_op: str, int_op: str, x: V | int | float) -> V:
        is_float = self.node.type is FLOAT
        return V(Node(float_op if is_float else int_op, self.node.type, (self.node, self._of(x).node)))

    def __add__(self, x: V | int | float) -> V:
        return self._op("fadd", "wadd", x)

    def __sub__(self, x: V | int | float) -> V:
        return self._op("fsub", "wsub", x)

    def __mul__(self, x: V | int | float) -> V:
        return self._op("fmul", "wmul", x)

    def __truediv__(self, x: V) -> V:
        return V(Node("fdivi", FLOAT, (self.node, x.node)))

    def __rtruediv__(self, x: float) -> V:
        return self._of(x) / self

    def __and__(self, x: V | int) -> V:
        return V(Node("and", INT, (self.node, self._of(x).node)))

    def __or__(self, x: V | int) -> V:
        return V(Node("or", INT, (self.node, self._of(x).node)))

    def __xor__(self, x: V | int) -> V:
        return V(Node("xor", INT, (self.node, self._of(x).node)))

    def __invert__(self) -> V:
        return V(Node("inot", INT, (self.node,)))

    def __lshift__(self, x: V | int) -> V:
        return V(Node("ushl", INT, (self.node, self._of(x).node)))

    def __rshift__(self, x: V | int) -> V:
        return V(Node("ushr", INT, (self.node, self._of(x).node)))

    def shru(self, x: V | int) -> V:
        return V(Node("ushru", INT, (self.node, self._of(x).node)))

    def mulhigh(self, x: V) -> V:
        return V(Node("mulhigh", INT, (self.node, x.node)))

    def _compare(self, op: str, x: V | int | float) -> V:
        return V(Node(op, BOOL, (self.node, self._of(x).node)))

    def lt(self, x: V | int | float) -> V:
        return self._compare("lt", x)

    def le(self, x: V | int | float) -> V:
        return self._compare("le", x)

    def eq(self, x: V | int | float) -> V:
        return self._compare("eq", x)

    def ne(self, x: V | int | float) -> V:
        return self._compare("ne", x)

    def ltu(self, x: V) -> V:
        """Unsigned <."""
        return (self ^ _MIN).lt(x ^ _MIN)

    def leu(self, x: V) -> V:
        """Unsigned <=."""
        return (self ^ _MIN).le(x ^ _MIN)

    def either(self, x: V) -> V:
        return V(Node("bor", BOOL, (self.node, x.node)))

    def both(self, x: V) -> V:
        return V(Node("band", BOOL, (self.node, x.node)))

    def negated(self) -> V:
        return V(Node("bnot", BOOL, (self.node,)))

    def bits(self) -> V:
        """The bits of a float that is no NaN."""
        return V(Node("ubits", INT, (self.node,)))

    def float(self) -> V:
        """The float with these bits."""
        return V(Node("bitsfloat", FLOAT, (self.node,)))

    def __neg__(self) -> V:
        """The float with the other sign."""
        return V(Node("fneg", FLOAT, (self.node,)))

    def abs(self) -> V:
        return V(Node("fabs", FLOAT, (self.node,)))


def select(c: V, a: V | int | float, b: V | int | float) -> V:
    x, y = (v.node if isinstance(v, V) else const(v if isinstance(v, float) else signed(v)) for v in (a, b))
    return V(Node("select", x.type, (c.node, x, y)))


def rare(c: V, slow: V, fast: V) -> V:
    """select(c, slow, fast) where c is almost never true."""
    return V(Node("rare", fast.node.type, (c.node, slow.node, fast.node)))


def smaller(a: V | float, b: V) -> V:
    """a where it is less than b, else b, be that NaN: one instruction of most processors."""
    x = a if isinstance(a, V) else V(const(a))
    return select(x.lt(b), x, b)


def table(values: tuple[int | float, ...], ty: Ty, at: V) -> V:
    """values[at]; at is in range by construction."""
    return V(Node("table", ty, (at.node,), TableAttr(values)))


def muladd(a: V, b: V | float, c: V | float) -> V:
    """a · b + c with an error below 2^-53 (|a · b| + |a · b + c|): a private operation (kernel/ir.py), fused where the
    target can, since the bounds cover both."""
    return V(Node("muladd", FLOAT, (a.node, a._of(b).node, a._of(c).node)))


def residue(a: V, b: V | float, c: V | float) -> V:
    """a · b + c where the sum cancels (c between -2 a · b and -a · b / 2, or a · b is 0): rounded once after an error below
    2^-103 |a · b|. A private operation too.

    A fused operation, or p = a · b, p + c (exact: within a factor of two) and Dekker's error of p: with heads of 26 bits
    and tails of at most 27, the products of heads and of a head and a tail are exact, and their sums in this order are
    multiples of 2^-77 below 2^-24 (for a and b in [1, 2)); the product of the tails is below 2^-50 and loses 2^-104.
    """
    return V(Node("residue", FLOAT, (a.node, a._of(b).node, a._of(c).node)))
