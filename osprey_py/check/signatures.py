"""Types of built-ins: from the signature strings of check/builtins.py to schemes.

Comes in: a name. Goes out: its scheme, read the first time it is used. Kernel slots (`pure`) and what is differentiated
(`proven`) become bounds that admit nothing; `() -> Unit !IO` as a parameter becomes a bound that admits IO (spec:
types-and-effects L5.4, L5.6).
"""

from __future__ import annotations

import re

from osprey_py.check.builtins import SIGNATURES
from osprey_py.check.context import Context
from osprey_py.check.effects import IO, NOTHING, EffVar, Reason
from osprey_py.check.schemes import Flow, Scheme
from osprey_py.check.terms import ELEMENT, NUMBER, SEQUENCE, SIZED, Kind, Need, TCon, Term, TFun, TTuple, TVar
from osprey_py.modules.spaces import BUILTINS, builtin_symbol
from osprey_py.source.span import NO_SPAN

TYPE_ARITY = {
    "int": 0,
    "float": 0,
    "bool": 0,
    "string": 0,
    "Unit": 0,
    "Error": 0,
    "MathError": 0,
    "List": 1,
    "Map": 2,
    "Iterator": 1,
    "Result": 2,
    "GpuBuffer": 1,
}
"""The built-in types and how many arguments each takes. `Error` is another name of string (L6.9)."""

_KINDS: dict[str, Kind] = {"number": NUMBER, "element": ELEMENT, "sized": SIZED}
_BOUNDS = {"pure": "kernel", "proven": "differentiated"}
"""Words before a parameter's function type that forbid every effect, and what a sink calls such a function."""
_TOKEN = re.compile(r"\s*(->|[A-Za-z]\w*|[<>(),:!])")
_GENERIC = 1_000_000
"""The level of variables in built-in schemes: inside every binding."""


def fill_builtin_names() -> None:
    """Puts every built-in into the outermost space of names."""
    for name in SIGNATURES:
        BUILTINS.names["value"][name] = builtin_symbol(name, "value")
    for name in TYPE_ARITY:
        BUILTINS.names["type"][name] = builtin_symbol(name, "type")
    BUILTINS.names["effect"]["IO"] = builtin_symbol("IO", "effect")


fill_builtin_names()


def kernel_slots(name: str) -> int:
    """How many kernels a built-in takes."""
    return SIGNATURES[name].count("pure (")


def takes_proven(name: str) -> bool:
    """Whether a built-in's first argument is a function of the host that performs nothing."""
    return "proven (" in SIGNATURES[name]


def builtin_scheme(cx: Context, name: str) -> Scheme:
    known = cx.builtin_schemes.get(name)
    if known is None:
        known = cx.builtin_schemes[name] = _Reader(cx, name).read()
    return known


class _Reader:
    def __init__(self, cx: Context, name: str) -> None:
        self.cx = cx
        self.name = name
        self.tokens: list[str] = _TOKEN.findall(SIGNATURES[name])
        self.at = 0
        self.vars: dict[str, TVar] = {}
        self.effects: dict[str, EffVar] = {}
        self.effs: list[EffVar] = []
        self.flows: list[Flow] = []

    def read(self) -> Scheme:
        if self.peek() == "<":
            self._type_parameters()
        result = self.type(top=True)
        assert self.at == len(self.tokens), self.name
        return Scheme(result, tuple(self.vars.values()), tuple(self.effs), tuple(self.flows))

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, expected: str = "") -> str:
        token = self.tokens[self.at]
        assert not expected or token == expected, (self.name, token, expected)
        self.at += 1
        return token

    def _type_parameters(self) -> None:
        self.next("<")
        waiting: list[tuple[TVar, int]] = []
        while self.peek() != ">":
            v = self.vars[self.next()] = TVar(_GENERIC)
            if self.peek() == ":":
                self.next()
                kind = self.next()
                if kind in ("equal", "differentiable"):
                    v.needs = {(kind, ""): Need(kind, "", (), NO_SPAN)}
                elif kind == "sequence":
                    v.kind = SEQUENCE
                    self.next("<")
                    waiting.append((v, self.at))
                    self._skip_type()
                    self.next(">")
                else:
                    v.kind = _KINDS[kind]
            if self.peek() == ",":
                self.next()
        self.next(">")
        end = self.at
        for v, place in waiting:
            self.at = place
            need = Need("element", "", (self.type(),), NO_SPAN)
            v.needs = {need.key: need}
        self.at = end

    def _skip_type(self) -> None:
        """A type whose names may be declared later."""
        self.next()

    def type(self, top: bool = False) -> Term:
        bound = self.next() if self.peek() in _BOUNDS else ""
        if self.peek() != "(":
            return self._named()
        items = self._items()
        if self.peek() != "->":
            return items[0] if len(items) == 1 else TTuple(tuple(items))
        self.next("->")
        result = self.type()
        return TFun(tuple(items), result, self._effect(bound, top))

    def _items(self) -> list[Term]:
        self.next("(")
        items = []
        while self.peek() != ")":
            items.append(self.type())
            if self.peek() == ",":
                self.next()
        self.next(")")
        return items

    def _named(self) -> Term:
        name = self.next()
        if name in self.vars:
            return self.vars[name]
        args = []
        if self.peek() == "<":
            self.next()
            while self.peek() != ">":
                args.append(self.type())
                if self.peek() == ",":
                    self.next()
            self.next(">")
        if name == "Error":
            return TCon("string")
        if name in TYPE_ARITY:
            return TCon(name, tuple(args))
        return TCon(next((key for key in self.cx.types if key.rsplit("::", 1)[-1] == name), name), tuple(args))

    def _effect(self, bound: str, top: bool) -> EffVar:
        """The effect of an arrow: written, a bound (a key of _BOUNDS), or any."""
        written = ""
        if self.peek() == "!":
            self.next()
            written = self.next()
        if written and written != "IO":
            e = self.effects.get(written)
            if e is None:
                e = self.effects[written] = self._new()
            return e
        e = self._new()
        if top and written == "IO":
            e.labels[IO] = Reason(NO_SPAN, self.name)
        elif not top:
            what = f"{_BOUNDS.get(bound, 'argument')} {self.name}"
            sink = self.cx.bound(frozenset(), io=written == "IO", cells=not bound, span=NO_SPAN, what=what)
            self.flows.append(Flow(e, sink, NOTHING))
        return e

    def _new(self) -> EffVar:
        e = EffVar(_GENERIC)
        self.effs.append(e)
        return e
