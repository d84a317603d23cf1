"""Python text under construction: lines, indentation, temporaries, and operands in their order.

Comes in: pieces of Python. Goes out: the lines of one function body. Knows nothing of Core.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class P:
    """A Python expression. stable: evaluating it later, or twice, changes nothing (a constant, or a local that nothing
    clears). nest: how deep its parentheses go. moves: a temporary made of it must be moved out of when it is used."""

    text: str
    stable: bool = False
    nest: int = 0
    moves: bool = False


UNIT = P("()", stable=True)


def moved(name: str) -> str:
    """The value of a local that is cleared as it is read."""
    return f"({name}, {name} := None)[0]"


@dataclass(slots=True)
class Lines:
    """indent: current level. blocks: how many `try` and `while` are open (Python allows 20)."""

    out: list[tuple[int, str]] = field(default_factory=list)
    indent: int = 1
    blocks: int = 0
    _temps: int = 0

    def emit(self, text: str) -> None:
        self.out.append((self.indent, text))

    def temp(self) -> str:
        self._temps += 1
        return f"_t{self._temps}"

    def spill(self, p: P, at: int | None = None) -> P:
        """p's value kept in a temporary, assigned at line `at` (default: here)."""
        name = self.temp()
        self.out.insert(len(self.out) if at is None else at, (self.indent, f"{name} = {p.text}"))
        return P(moved(name), nest=1, moves=True) if p.moves else P(name, stable=True)

    def begin(self) -> list[tuple[int, str]]:
        """Collect what is emitted from now on apart; `end` gives it back."""
        before, self.out = self.out, []
        return before

    def end(self, before: list[tuple[int, str]]) -> list[tuple[int, str]]:
        apart, self.out = self.out, before
        return apart

    def text(self) -> str:
        return "\n".join("    " * level + line for level, line in self.out)
