"""Random functions in the language's own text, for comparing the evaluator with extraction.

`functions()` draws the text of `fn k(i: int, x: float) -> T = …` with helpers it may call. Everything kernels may
hold is in it: checked arithmetic, lets that are used or not, `if`, `match` with guards and literals, records, tuples,
variants, Results, `?:`, closures, recursion of both kinds, folds and pipelines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

HELPERS = """
type P = { a: int, b: float }
type V = One(int) | Two { left: int, right: float } | None0
let numbers = toGpu([3, 0, -2, 7])
let reals = toGpu([0.5, -0.0, 2.0])
fn pass(n: int, m: int) -> int = m
fn swap(p: P) -> P = P { a: toInt(p.b), b: toFloat(p.a) }
fn count(n: int, m: int) -> int = if n <= 0 { m } else { count(n - 1, m + n) }
fn tower(n: int, m: int) -> int = if n <= 0 { intDiv(m, 3) } else { 1 + tower(n - 1, m * 2) }
fn inverse(n: int) -> Result<int, MathError> = intDiv(60, n)
fn ping(n: int) -> int = if n <= 0 { 1 } else { pong(n - 2) }
fn pong(n: int) -> int = if n <= 0 { 2 } else { ping(n + 1) }
fn use(f: (int) -> int, n: int) -> int = f(n) + f(n + 1)
fn variant(n: int, y: float) -> V = if n < 0 { None0 } else { if n < 5 { One(n) } else { Two { left: n, right: y } } }
"""

INT_LITERALS = ["0", "1", "2", "3", "7", "63", "9223372036854775807", "(-1)", "(-9223372036854775808)"]
FLOAT_LITERALS = ["0.0", "(-0.0)", "1.5", "(-2.5)", "1e300", "inf", "nan", "5e-324"]


class Writer:
    """Draws text. scope: names by type."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.scope: list[tuple[str, str]] = [("i", "int"), ("x", "float")]
        self.names = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def leaf(self, t: str) -> str:
        known = [n for n, u in self.scope if u == t]
        if known and self.pick(True, True, False):
            return self.pick(*known)
        return self.pick(*{"int": INT_LITERALS, "float": FLOAT_LITERALS, "bool": ["true", "false"]}[t])

    def inside(self, names: list[tuple[str, str]], write: Callable[[], str]) -> str:
        before = list(self.scope)
        self.scope += names
        text = write()
        self.scope = before
        return text

    def expression(self, t: str, depth: int) -> str:
        if depth <= 0:
            return self.leaf(t)
        if self.pick(True, False):
            return self.common(t, depth - 1)
        return {"int": self._int, "float": self._float, "bool": self._bool}[t](depth - 1)

    def common(self, t: str, d: int) -> str:
        e = self.expression
        match self.pick(
            "leaf", "if", "let", "match", "recover", "tuple", "record", "variant", "result", "closure", "fold"
        ):
            case "if":
                return f"(if {e('bool', d)} {{ {e(t, d)} }} else {{ {e(t, d)} }})"
            case "let":
                u, name = self.pick("int", "float", "bool"), self.fresh()
                value = e(u, d)
                return f"({{ let {name} = {value}\n{self.inside([(name, u)], lambda: e(t, d))} }})"
            case "match":
                name = self.fresh()
                guard = self.inside([(name, "int")], lambda: e("bool", d))
                then = self.inside([(name, "int")], lambda: e(t, d))
                return f"(match {e('int', d)} {{ 0 => {e(t, d)}\n{name} if {guard} => {then}\n_ => {e(t, d)} }})"
            case "recover":
                return f"({e(t, d)} ?: {e(t, d)})"
            case "tuple":
                a, b = self.fresh(), self.fresh()
                pair = f"({e('int', d)}, {e(t, d)})"
                rest = self.inside([(a, "int"), (b, t)], lambda: e(t, d))
                return f"({{ let ({a}, {b}) = {pair}\n{rest} }})"
            case "record":
                name = self.fresh()
                fields = [(f"{name}.a", "int"), (f"{name}.b", "float")]
                made = self.pick("P", "swap")
                record = f"P {{ a: {e('int', d)}, b: {e('float', d)} }}"
                record = record if made == "P" else f"swap({record})"
                return f"({{ let {name} = {record}\n{self.inside(fields, lambda: e(t, d))} }})"
            case "variant":
                n, left, right = self.fresh(), self.fresh(), self.fresh()
                one = self.inside([(n, "int")], lambda: e(t, d))
                two = self.inside([(left, "int"), (right, "float")], lambda: e(t, d))
                value = f"variant({e('int', d)}, {e('float', d)})"
                arms = f"One({n}) => {one}\nTwo {{ left: {left}, right: {right} }} => {two}\nNone0 => {e(t, d)}"
                return f"(match {value} {{ {arms} }})"
            case "result":
                n = self.fresh()
                value = self.pick(f"inverse({e('int', d)})", f"gpuGet(numbers, {e('int', d)})")
                then = self.inside([(n, "int")], lambda: e(t, d))
                return f"(match {value} {{ Success {{ value: {n} }} => {then}\nError {{ message: _ }} => {e(t, d)} }})"
            case "closure":
                f, n = self.fresh(), self.fresh()
                body = self.inside([(n, "int")], lambda: e(t, d))
                call = f"{f}({e('int', d)})"
                return f"({{ let {f} = fn({n}: int) => {body}\n{call} }})"
            case "fold":
                acc, k = self.fresh(), self.fresh()
                start = e(t, d)
                step = self.inside([(acc, t), (k, "int")], lambda: e(t, d))
                return f"gpuFold({self.buffer(d)}, {start}, fn({acc}: {t}, {k}: int) => {step})"
        return self.leaf(t)

    def buffer(self, d: int) -> str:
        """A buffer of ints."""
        e = self.expression
        name = self.fresh()
        match self.pick("iota", "numbers", "map", "filter", "zip"):
            case "iota":
                return f"gpuIota(bitAnd({e('int', d - 1)}, 3))"
            case "map" if d > 0:
                body = self.inside([(name, "int")], lambda: e("int", d - 1))
                return f"gpuMap({self.buffer(d - 1)}, fn({name}) => {body})"
            case "filter" if d > 0:
                keep = self.inside([(name, "int")], lambda: e("bool", d - 1))
                return f"gpuFilter({self.buffer(d - 1)}, fn({name}) => {keep})"
            case "zip" if d > 0:
                other = self.fresh()
                step = self.inside([(name, "int"), (other, "int")], lambda: e("int", d - 1))
                return f"gpuZipWith(numbers, gpuIota(3), fn({name}, {other}) => {step})"
        return "numbers"

    def _int(self, d: int) -> str:
        e = self.expression
        a, b = e("int", d), e("int", d)
        n = f"bitAnd({a}, 7)"
        return str(
            self.pick(
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"intDiv({a}, {b})", f"({a} % {b})", f"(-{a})",
                f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"shiftLeft({a}, {b})", f"bitXor({a}, {b})",
                f"wrapMul({a}, {b})", f"toInt({e('float', d)})", f"floatBits({e('float', d)})", f"pass({a}, {b})",
                f"count({n}, {b})", f"tower({n}, {b})", f"ping({n})", f"use(fn(q: int) => q - {b}, {a})",
                f"(gpuGet(numbers, {a}) ?: {b})", f"(inverse({a}) ?: {b})", f"gpuLength({self.buffer(d)})",
            )
        )  # fmt: skip

    def _float(self, d: int) -> str:
        e = self.expression
        a, b = e("float", d), e("float", d)
        return str(
            self.pick(
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} % {b})", f"(-{a})",
                f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"sqrt({a})", f"floor({a})", f"ieeeDiv({a}, {b})",
                f"toFloat({e('int', d)})", f"(gpuGet(reals, {e('int', d)}) ?: {b})",
            )
        )  # fmt: skip

    def _bool(self, d: int) -> str:
        t = self.pick("int", "float")
        a, b = self.expression(t, d), self.expression(t, d)
        p, q = self.expression("bool", d), self.expression("bool", d)
        op = self.pick("==", "!=", "<", "<=", ">", ">=")
        return str(self.pick(f"({a} {op} {b})", f"({a} {op} {b})", f"({p} && {q})", f"({p} || {q})", f"(!{p})"))


@st.composite
def functions(draw: Callable[..., Any], depth: int = 3) -> str:
    writer = Writer(draw)
    t = draw(st.sampled_from(["int", "float", "bool"]))
    return f"{HELPERS}fn k(i: int, x: float) -> {t} = {writer.expression(t, depth)}\n"
