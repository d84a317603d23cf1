"""The state of generating one Python function, and its module-wide surroundings as seen from there.

Comes in: nothing. Goes out: `Body`, `Dest`, names of variables. The rules of generation are in generate/*.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from osprey_py.check import core as c
from osprey_py.check.types import Type
from osprey_py.eval.emit import Lines, P
from osprey_py.eval.instances import NOTHING, Substitution
from osprey_py.eval.liveness import Liveness

if TYPE_CHECKING:
    from osprey_py.eval.unit import Instance, Unit


def plain(name: str) -> str:
    """An ASCII identifier part that resembles a name."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name.rsplit("::", 1)[-1])


def local_name(v: c.Var) -> str:
    """The Python name of a local variable. Nothing else in generated code begins with `v_`."""
    return f"v_{plain(v.name)}_{v.uid}"


@dataclass(frozen=True, slots=True)
class Dest:
    """Where a value goes: returned, into a name, or nowhere."""

    kind: Literal["return", "name", "ignore"]
    name: str = ""


RETURN = Dest("return")
IGNORE = Dest("ignore")


@dataclass(eq=False, slots=True)
class Body:
    """self_name, self_var: what a self tail call calls (a global function, or a local that names its own lambda).
    loops: self tail calls become jumps; again: they are handed to the enclosing function (an outlined part of it).
    counted: its frame counts towards the depth limit, and is uncounted where it returns.
    group: functions whose tail calls go to the trampoline. arm: a resuming handler arm."""

    unit: Unit
    lines: Lines
    live: Liveness
    subst: Substitution = NOTHING
    params: tuple[c.Var, ...] = ()
    self_name: str | None = None
    self_var: c.Var | None = None
    loops: bool = False
    again: bool = False
    counted: bool = False
    group: frozenset[str] = frozenset()
    arm: bool = False
    globals_: set[str] = field(default_factory=set)

    def name(self, v: c.Var) -> str:
        found = self.unit.global_lets.get(v)
        if found is not None:
            self.globals_.add(found)
            return found
        return local_name(v)

    def type_of(self, e: c.Expr) -> Type:
        """An expression's type in this instance of the code."""
        return self.subst(e.type)

    def holds(self, t: Type) -> bool:
        """A value of this type may keep a buffer alive."""
        return self.unit.holds_buffers(self.subst(t))

    def instance(self, e: c.GlobalRef) -> Instance:
        return self.unit.instance(e.name, self.type_of(e))

    def emit(self, text: str) -> None:
        self.lines.emit(text)

    def clear(self, variables: Iterable[c.Var]) -> None:
        for v in sorted(variables, key=lambda v: v.uid):
            self.emit(f"{local_name(v)} = None")

    def deliver(self, p: P, dest: Dest) -> None:
        """Put a value where it goes."""
        if dest.kind == "name":
            if p.text != dest.name:
                self.emit(f"{dest.name} = {p.text}")
        elif dest.kind == "return":
            if self.counted:
                if not p.stable:
                    p = self.lines.spill(P(p.text))
                self.emit("W.depth -= 1")
            self.emit(f"return {p.text}")
        elif not p.stable and not p.text.isidentifier():
            self.emit(p.text)
