"""One emitter for each scalar operation of the kernel IR, the same text for one lane and for many.

Comes in: operands as values of one width. Goes out: the value of `EMITTERS[op]`. Operands may be anything (an
unchosen arm is evaluated too): nothing here traps, and what LLVM calls poison never leaves an operation. Division
is the exception, whose divisor kernel/faults.py has made safe. Keeps spec/numerics: no fast-math flag, and no fused
operation but the private ones of the expansions of exp, ln and tanh (numerics/build.py)."""

from __future__ import annotations

from collections.abc import Callable

from osprey_py.backends.host.native import machine
from osprey_py.backends.host.text import Scope, Value, literal, llvm_type, suffix, vector
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Ty

Emitter = Callable[[Scope, tuple[Value, ...]], Value]


def _plain(instruction: str, result: Ty | None = None) -> Emitter:
    """An LLVM instruction over operands of one type."""

    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a = args[0]
        operands = ", ".join(str(x) for x in args)
        return s.define(result or a.type, a.width, f"{instruction} {a.llvm} {operands}")

    return emit


def _intrinsic(name: str) -> Emitter:
    """A call of an LLVM intrinsic with operands and result of one type."""

    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a = args[0]
        operands = ", ".join(f"{x.llvm} {x}" for x in args)
        return s.define(a.type, a.width, f"call {a.llvm} @llvm.{name}.{suffix(a.type, a.width)}({operands})")

    return emit


def _compare(signed: str, ordered: str) -> Emitter:
    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a, b = args
        how = f"fcmp {ordered}" if a.type is FLOAT else f"icmp {signed}"
        return s.define(BOOL, a.width, f"{how} {a.llvm} {a}, {b}")

    return emit


def _convert(instruction: str, result: Ty) -> Emitter:
    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        (a,) = args
        return s.define(result, a.width, f"{instruction} {a.llvm} {a} to {llvm_type(result, a.width)}")

    return emit


def _shift(instruction: str) -> Emitter:
    """The amount is taken modulo 64: what an unchosen operand holds may be out of range."""

    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a, b = args
        amount = s.define(INT, a.width, f"and {a.llvm} {b}, {literal(63, a.width)}")
        return s.define(INT, a.width, f"{instruction} {a.llvm} {a}, {amount}")

    return emit


def _overflow(operation: str) -> Emitter:
    """Add and subtract overflow when the result's sign is wrong."""

    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a, b = args
        total = s.define(INT, a.width, f"{operation} {a.llvm} {a}, {b}")
        left = s.define(INT, a.width, f"xor {a.llvm} {a}, {total}")
        other = a if operation == "sub" else total
        right = s.define(INT, a.width, f"xor {a.llvm} {b}, {other}")
        both = s.define(INT, a.width, f"and {a.llvm} {left}, {right}")
        return s.define(BOOL, a.width, f"icmp slt {a.llvm} {both}, {literal(0, a.width)}")

    return emit


def _product_overflow(s: Scope, args: tuple[Value, ...]) -> Value:
    a, b = args
    low = s.define(INT, a.width, f"mul {a.llvm} {a}, {b}")
    high = _high(s, a, b, "sext")
    sign = s.define(INT, a.width, f"ashr {a.llvm} {low}, {literal(63, a.width)}")
    return s.define(BOOL, a.width, f"icmp ne {a.llvm} {high}, {sign}")


def _high(s: Scope, a: Value, b: Value, extend: str) -> Value:
    """The high half of the 128-bit product. Vectors have no such instruction; LLVM goes through the lanes."""
    wide = vector("i128", a.width)
    shift = "64" if a.width == 1 else "splat (i128 64)"
    x = s.raw(f"{extend} {a.llvm} {a} to {wide}")
    y = s.raw(f"{extend} {b.llvm} {b} to {wide}")
    product = s.raw(f"mul {wide} {x}, {y}")
    shifted = s.raw(f"lshr {wide} {product}, {shift}")
    return s.define(INT, a.width, f"trunc {wide} {shifted} to {a.llvm}")


def _mulhigh(s: Scope, args: tuple[Value, ...]) -> Value:
    return _high(s, args[0], args[1], "zext")


def _extreme(better: str, zeros: str) -> Emitter:
    """IEEE 754-2019 minimum and maximum. The chosen one, or b where the comparison fails, which is right if b is NaN;
    equal operands differ at most in a zero's sign, which `or` and `and` of their bits settle; a NaN in a wins.
    (LLVM's own expansion has a longer chain from operand to result, which a fold waits for.)"""

    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a, b = args
        ints = llvm_type(INT, a.width)
        plain = choose(s, s.define(BOOL, a.width, f"fcmp {better} {a.llvm} {a}, {b}"), a, b)
        equal = s.define(BOOL, a.width, f"fcmp oeq {a.llvm} {a}, {b}")
        left = s.raw(f"bitcast {a.llvm} {a} to {ints}")
        right = s.raw(f"bitcast {a.llvm} {b} to {ints}")
        bits = s.raw(f"{zeros} {ints} {left}, {right}")
        zero = s.define(FLOAT, a.width, f"bitcast {ints} {bits} to {a.llvm}")
        nan = s.define(BOOL, a.width, f"fcmp uno {a.llvm} {a}, {a}")
        return choose(s, nan, a, choose(s, equal, zero, plain))

    return emit


def _divide(instruction: str) -> Emitter:
    """Lanes that do not count divide by one: they hold anything, and hardware traps."""

    def emit(s: Scope, args: tuple[Value, ...]) -> Value:
        a, b = args
        if s.mask is not None and b.width > 1:
            b = choose(s, s.mask, b, literal(1, b.width))
        return s.define(INT, a.width, f"{instruction} {a.llvm} {a}, {b}")

    return emit


def _inot(s: Scope, args: tuple[Value, ...]) -> Value:
    (a,) = args
    return s.define(INT, a.width, f"xor {a.llvm} {a}, {literal(-1, a.width)}")


def _bnot(s: Scope, args: tuple[Value, ...]) -> Value:
    (a,) = args
    return s.define(BOOL, a.width, f"xor {a.llvm} {a}, {literal(True, a.width)}")


def _utoint(s: Scope, args: tuple[Value, ...]) -> Value:
    (a,) = args
    into = llvm_type(INT, a.width)
    raw = s.raw(f"fptosi {a.llvm} {a} to {into}")
    return s.define(INT, a.width, f"freeze {into} {raw}")


def canonical(s: Scope, a: Value) -> Value:
    """The float with every NaN made 0x7FF8000000000000."""
    if not a.name.startswith("%"):  # a literal is canonical already
        return a
    nan = s.define(BOOL, a.width, f"fcmp uno {a.llvm} {a}, {literal(0.0, a.width)}")
    return choose(s, nan, literal(float("nan"), a.width), a)


def choose(s: Scope, c: Value, a: Value, b: Value) -> Value:
    """LLVM's select, of one width."""
    return s.define(a.type, a.width, f"select {c.llvm} {c}, {a.llvm} {a}, {b.llvm} {b}")


def _muladd(s: Scope, args: tuple[Value, ...]) -> Value:
    """Fused where the processor can."""
    if machine().fma:
        return _intrinsic("fma")(s, args)
    a, b, c = args
    product = s.define(FLOAT, a.width, f"fmul {a.llvm} {a}, {b}")
    return s.define(FLOAT, a.width, f"fadd {a.llvm} {product}, {c}")


def _residue(s: Scope, args: tuple[Value, ...]) -> Value:
    if machine().fma:
        return _intrinsic("fma")(s, args)
    a, b, c = args

    def op(name: str, x: Value, y: Value) -> Value:
        return s.define(FLOAT, a.width, f"{name} {a.llvm} {x}, {y}")

    def split(x: Value) -> tuple[Value, Value]:
        ints = llvm_type(INT, a.width)
        bits = s.define(INT, a.width, f"bitcast {a.llvm} {x} to {ints}")
        cut = s.define(INT, a.width, f"and {ints} {bits}, {literal(-1 << 27, a.width)}")
        head = s.define(FLOAT, a.width, f"bitcast {ints} {cut} to {a.llvm}")
        return head, op("fsub", x, head)

    product = op("fmul", a, b)
    (ah, al), (bh, bl) = split(a), split(b)
    error = op("fsub", op("fmul", ah, bh), product)
    for x, y in ((ah, bl), (al, bh), (al, bl)):
        error = op("fadd", error, op("fmul", x, y))
    return op("fadd", op("fadd", product, c), error)


def _floatbits(s: Scope, args: tuple[Value, ...]) -> Value:
    a = canonical(s, args[0])
    return s.define(INT, a.width, f"bitcast {a.llvm} {a} to {llvm_type(INT, a.width)}")


EMITTERS: dict[str, Emitter] = {
    "wadd": _plain("add"),
    "wsub": _plain("sub"),
    "wmul": _plain("mul"),
    "uquot": _divide("sdiv"),
    "urem": _divide("srem"),
    "ushl": _shift("shl"),
    "ushr": _shift("ashr"),
    "ushru": _shift("lshr"),
    "mulhigh": _mulhigh,
    "addo": _overflow("add"),
    "subo": _overflow("sub"),
    "mulo": _product_overflow,
    "and": _plain("and"),
    "or": _plain("or"),
    "xor": _plain("xor"),
    "inot": _inot,
    "imin": _intrinsic("smin"),
    "imax": _intrinsic("smax"),
    "fadd": _plain("fadd"),
    "fsub": _plain("fsub"),
    "fmul": _plain("fmul"),
    "fdivi": _plain("fdiv"),
    "fmodi": _plain("frem"),
    "fneg": _plain("fneg"),
    "fabs": _intrinsic("fabs"),
    "fmin": _extreme("olt", "or"),
    "fmax": _extreme("ogt", "and"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "round": _intrinsic("roundeven"),
    "sqrt": _intrinsic("sqrt"),
    "tofloat": _convert("sitofp", FLOAT),
    "utoint": _utoint,
    "floatbits": _floatbits,
    "ubits": _convert("bitcast", INT),
    "bitsfloat": _convert("bitcast", FLOAT),
    "eq": _compare("eq", "oeq"),
    "ne": _compare("ne", "une"),
    "lt": _compare("slt", "olt"),
    "le": _compare("sle", "ole"),
    "band": _plain("and"),
    "bor": _plain("or"),
    "bnot": _bnot,
    "muladd": _muladd,
    "residue": _residue,
}
"""op -> emitter, for the operations that are functions of their operands' values. `table` reads memory, and `exp ln
tanh` are expanded into these before code is emitted."""
