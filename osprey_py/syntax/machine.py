"""The LR machine: runs the parse tables over a token list and goes on after an error.

Comes in: tables, tokens with their refined kinds, a builder of values, and a function that is told of each error. Goes
out: the value of the whole file. No recursion: the depth of a program is only the length of a list.

After an error the machine gives up the statement or arm it was in and looks for the next place where one can begin: the
brace that closes the list, a line that begins no further right than the one given up, or a word that only begins
declarations. What was given up is put on the stack as one ERROR (the alternatives `broken` of the grammar).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from osprey_py.source.span import Source
from osprey_py.syntax.tables import Tables
from osprey_py.syntax.tokens import END, Token

_OPENING = frozenset("LPAR CALL_LPAR LSQB INDEX_LSQB STRING_BEGIN".split())
_CLOSING = frozenset(("RPAR", "RSQB", "STRING_END"))
_BRACES = frozenset("LBRACE HEAD_LBRACE NAME_LBRACE FIELDS_LBRACE MAP_LBRACE".split())
_STATEMENT_WORDS = frozenset("LET MUT TYPE EFFECT MODULE IMPORT EXPORT NAMESPACE".split())
_STEPPED_OVER = frozenset((END, "RBRACE"))

Action = Callable[[list[Any], int, int], Any]


class Builder(Protocol):
    def action(self, name: str) -> Action:
        """The function that makes the value of the alternative `name` from its children, its start and its end."""


class ErrorSink(Protocol):
    def __call__(self, states: Sequence[int], stack: Sequence[Any], at: int) -> None:
        """Told that tokens[at] cannot follow. states: as they were when the token came, so that they tell all that could
        have followed; stack: the values of the symbols so far. Both are read only."""


def accepts(tables: Tables, states: Sequence[int], kind: str) -> bool:
    """Whether a token of this kind can come next."""
    steps, rules = tables.steps, tables.rules
    depth, top = len(states), [states[-1]]  # the stack is states[: depth - 1] + top
    while True:
        step = steps[top[-1]].get(kind)
        if step is None:
            return False
        if step >= 0:
            return True
        rule = rules[-1 - step]
        if rule.length < len(top):
            del top[len(top) - rule.length :]
        else:
            depth -= rule.length - len(top) + 1
            top = [states[depth - 1]]
        top.append(steps[top[-1]][rule.origin])


class Machine:
    """One run over one token list."""

    def __init__(
        self, tables: Tables, source: Source, tokens: list[Token], kinds: list[str], builder: Builder, sink: ErrorSink
    ) -> None:
        self.tables = tables
        self.source = source
        self.tokens = tokens
        self.kinds = kinds
        self.sink = sink
        self.states = [tables.start]
        self.values: list[Any] = []
        self.spans: list[tuple[int, int]] = []
        # What reductions have taken off the states since the last token; each left one state in their place.
        self.taken: list[list[int]] = []
        self.actions = [builder.action(r.name) if r.name and not r.repeats else None for r in tables.rules]

    def run(self) -> Any:
        steps, states, values, spans = self.tables.steps, self.states, self.values, self.spans
        tokens, kinds = self.tokens, self.kinds
        at = 0
        while True:
            kind = kinds[at]
            step = steps[states[-1]].get(kind)
            if step is None:
                if not self.split(at):
                    self.sink(self.states_before(), values, at)
                    self.taken.clear()
                    at = self.recover(at)
            elif step < 0:
                self.reduce(-1 - step, at)
            elif kind == END:
                return values[-1]
            else:
                token = tokens[at]
                states.append(step)
                values.append(token)
                spans.append((token.start, token.end))
                self.taken.clear()
                at += 1

    def reduce(self, number: int, at: int) -> None:
        rule = self.tables.rules[number]
        length, states, values, spans = rule.length, self.states, self.values, self.spans
        if not rule.name:
            self.taken.append([states.pop()])
            states.append(self.tables.steps[states[-1]][rule.origin])
            return
        if length:
            children = values[-length:]
            span = (spans[-length][0], spans[-1][1])
            self.taken.append(states[-length:])
            del values[-length:], spans[-length:], states[-length:]
        else:
            children = []
            self.taken.append([])
            start = self.tokens[at].start
            span = (start, start)
        if rule.repeats:
            if rule.spliced:
                value = children[0]
                value.extend(children[1:])
            else:
                value = children
        else:
            if rule.spliced or any(rule.gaps):
                children = _arrange(children, rule.gaps, rule.spliced)
            action = self.actions[number]
            assert action is not None
            value = action(children, span[0], span[1])
        values.append(value)
        spans.append(span)
        states.append(self.tables.steps[states[-1]][rule.origin])

    def states_before(self) -> list[int]:
        """The states before the reductions that the current token led to. The tables merge contexts, so a token that
        cannot follow may still lead to some, and what could have followed is forgotten with each."""
        states = list(self.states)
        for taken in reversed(self.taken):
            states.pop()
            states.extend(taken)
        return states

    def split(self, at: int) -> bool:
        """Takes `>=` apart where only the `>` of a type can stand, as in `let x: List<int>= xs`."""
        if self.kinds[at] != "GE" or not accepts(self.tables, self.states, "GT"):
            return False
        token = self.tokens[at]
        middle = token.start + 1
        self.tokens[at : at + 1] = [
            Token("GT", token.start, middle, "", token.starts_line),
            Token("ASSIGN", middle, token.end),
        ]
        self.kinds[at : at + 1] = ["GT", "ASSIGN"]
        return True

    # --- recovery --------------------------------------------------------------------------------------------------

    def recover(self, at: int) -> int:
        """Drops what is broken from the stack and returns the token to go on with."""
        steps = self.tables.steps
        # Where a statement or arm could be given up, innermost first, each with the column it began at.
        places: list[tuple[int, int]] = []
        for height in range(len(self.states) - 1, -1, -1):
            if steps[self.states[height]].get("ERROR", -1) >= 0:
                start = self.spans[height][0] if height < len(self.spans) else self.tokens[at].start
                places.append((height, self.source.position(start)[1]))
        innermost = places[0][0]
        braces = sum(1 for v in self.values[innermost:] if isinstance(v, Token) and v.kind == "LBRACE")
        depth = 0
        began = self.spans[innermost][0] if innermost < len(self.spans) else -1
        while True:
            kind, token = self.kinds[at], self.tokens[at]
            if kind == END:
                height = next(h for h, _ in places if self.can_resume(h, kind))
                return self.resume(height, at)
            if token.starts_line and token.start > began and kind not in _STEPPED_OVER:
                column = self.source.position(token.start)[1]
                for height, limit in places:
                    if column <= limit and self.can_resume(height, kind):
                        return self.resume(height, at)
            if depth == 0 and (kind in _STATEMENT_WORDS or (kind == "FN" and self.kinds[at + 1] == "NAME")):
                for height, _ in places:
                    if self.can_resume(height, kind):
                        return self.resume(height, at)
            if kind in _OPENING or kind in _BRACES:
                depth += 1
            elif kind in _CLOSING or kind == "RBRACE":
                if depth:
                    depth -= 1
                elif kind == "RBRACE":
                    if braces:
                        braces -= 1
                    elif self.can_resume(innermost, kind):
                        return self.resume(innermost, at)
            at += 1

    def can_resume(self, height: int, kind: str) -> bool:
        states = self.states[: height + 1]
        states.append(self.tables.steps[states[-1]]["ERROR"])
        return accepts(self.tables, states, kind)

    def resume(self, height: int, at: int) -> int:
        """Puts one ERROR in place of everything above `height`."""
        start = self.spans[height][0] if height < len(self.spans) else self.tokens[at].start
        end = max(start, self.tokens[at - 1].end if at else 0)
        del self.states[height + 1 :], self.values[height:], self.spans[height:]
        self.states.append(self.tables.steps[self.states[-1]]["ERROR"])
        self.values.append(Token("ERROR", start, end))
        self.spans.append((start, end))
        return at


def _arrange(children: list[Any], gaps: tuple[int, ...], spliced: tuple[int, ...]) -> list[Any]:
    """The children with None for absent optional parts and repetitions laid open."""
    arranged: list[Any] = [None] * gaps[0]
    for k, child in enumerate(children):
        if k in spliced:
            arranged.extend(child)
        else:
            arranged.append(child)
        arranged.extend([None] * gaps[k + 1])
    return arranged
