"""The LR machine: runs the parse tables over a token list and goes on after an error.

Comes in: tables, tokens with their refined kinds, a builder of values, and a function that is told of each error. Goes
out: the value of the whole file. No recursion: the depth of a program is only the length of a list.

After an error the machine gives up the statement or arm it was in and looks for the next place where one can begin: the
brace that closes the list, a line that begins no further right than the one given up, or a word that only begins
declarations. What was given up is put on the stack as one ERROR (the alternatives `broken` of the grammar).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from osprey_py.source.span import Source
from osprey_py.syntax.tables import Rule, Tables
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


def accepts(tables: Tables, states: Sequence[int], kind: str, height: int = -1, pushed: tuple[int, ...] = ()) -> bool:
    """Whether a token of this kind can come next, on the stack states[:height] (all of it when negative) + pushed."""
    steps, rules = tables.steps, tables.rules
    # The stack is states[:below] + top; only its top changes.
    below = len(states) if height < 0 else height
    top = list(pushed)
    while True:
        if not top:
            below -= 1
            top.append(states[below])
        step = steps[top[-1]].get(kind)
        if step is None:
            return False
        if step >= 0:
            return True
        rule = rules[-1 - step]
        if rule.length < len(top):
            del top[len(top) - rule.length :]
        else:
            below -= rule.length - len(top) + 1
            top = [states[below]]
        top.append(steps[top[-1]][rule.origin])


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do for one rule. action None: the items of a repetition, added to the list in front when `extends`."""

    length: int
    origin: str
    action: Action | None
    extends: bool
    gaps: tuple[int, ...]
    spliced: tuple[int, ...]


def _plan(rule: Rule, builder: Builder) -> _Plan | str:
    """The origin alone for a rule that passes its only child on."""
    if not rule.name:
        return rule.origin
    if rule.repeats:
        return _Plan(rule.length, rule.origin, None, bool(rule.spliced), (), ())
    gaps = rule.gaps if rule.spliced or any(rule.gaps) else ()
    return _Plan(rule.length, rule.origin, builder.action(rule.name), False, gaps, rule.spliced)


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
        self.plans = [_plan(rule, builder) for rule in tables.rules]

    def run(self) -> Any:
        steps, states, values, spans = self.tables.steps, self.states, self.values, self.spans
        tokens, kinds, plans, taken = self.tokens, self.kinds, self.plans, self.taken
        at = 0
        while True:
            kind = kinds[at]
            step = steps[states[-1]].get(kind)
            if step is None:
                if not self.split(at):
                    self.sink(self.states_before(), values, at)
                    taken.clear()
                    at = self.recover(at)
            elif step < 0:
                plan = plans[-1 - step]
                if isinstance(plan, str):
                    taken.append([states.pop()])
                    states.append(steps[states[-1]][plan])
                else:
                    self.reduce(plan, at)
            elif kind == END:
                return values[-1]
            else:
                token = tokens[at]
                states.append(step)
                values.append(token)
                spans.append((token.start, token.end))
                taken.clear()
                at += 1

    def reduce(self, plan: _Plan, at: int) -> None:
        length, states, values, spans = plan.length, self.states, self.values, self.spans
        if length:
            children = values[-length:]
            start, end = spans[-length][0], spans[-1][1]
            self.taken.append(states[-length:])
            del values[-length:], spans[-length:], states[-length:]
        else:
            children = []
            start = end = self.tokens[at].start
            self.taken.append([])
        if plan.action is not None:
            if plan.gaps:
                children = _arrange(children, plan.gaps, plan.spliced)
            values.append(plan.action(children, start, end))
        elif plan.extends:
            gathered = children[0]
            gathered.extend(children[1:])
            values.append(gathered)
        else:
            values.append(children)
        spans.append((start, end))
        states.append(self.tables.steps[states[-1]][plan.origin])

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
        kinds = [v.kind for v in self.values[innermost:] if isinstance(v, Token)]
        braces = kinds.count("LBRACE") - kinds.count("RBRACE")
        depth = 0
        began = self.spans[innermost][0] if innermost < len(self.spans) else -1
        if self.kinds[at - 1 : at + 1] == ["FN", "NAME"] and self.tokens[at - 1].start > began:
            at -= 1  # `1 +`, and on the next line `fn name`: the `fn` was taken for a lambda's
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
        state = self.states[height]
        return accepts(self.tables, self.states, kind, height + 1, (self.tables.steps[state]["ERROR"],))

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
