"""`if`, `match`, blocks, `&&` and `||`."""

from __future__ import annotations

from osprey_py.check import core as c
from osprey_py.eval.body import IGNORE, RETURN, Body, Dest
from osprey_py.eval.emit import P, moved
from osprey_py.eval.generate.base import MAX_INDENT, TO, VALUE, branch, indented, through_name, to, value
from osprey_py.eval.generate.expressions import closure
from osprey_py.eval.generate.patterns import bind, lookup_subject, matching, subject_of

_PLAIN = (
    c.Literal,
    c.LocalRef,
    c.GlobalRef,
    c.Field,
    c.Binary,
    c.Unary,
    c.Call,
    c.Interpolate,
    c.TupleNew,
    c.RecordNew,
)


def _if_value(b: Body, e: c.If) -> P:
    """`a if c else b` where both branches are plain expressions."""
    if not (_plain(b, e.then) and _plain(b, e.otherwise)):
        return through_name(b, e)
    condition = value(b, e.condition)
    lines, (then, otherwise) = _apart(b, [e.then, e.otherwise])
    if not any(lines):
        text = f"({then.text} if {condition.text} else {otherwise.text})"
        return P(text, nest=1 + max(then.nest, condition.nest, otherwise.nest))
    name = b.lines.temp()
    b.emit(f"if {condition.text}:")
    for word, some, p in (("", lines[0], then), ("else:", lines[1], otherwise)):
        if word:
            b.emit(word)
        b.lines.out.extend(some)
        b.lines.out.append((b.lines.indent + 1, f"{name} = {p.text}"))
    return P(moved(name), nest=1, moves=True) if b.holds(e.type) else P(name, stable=True)


def _plain(b: Body, e: c.Expr) -> bool:
    return isinstance(e, _PLAIN) and not b.live.drops.get(e)


def _apart(b: Body, es: list[c.Expr]) -> tuple[list[list[tuple[int, str]]], list[P]]:
    """Expressions generated one level in, with their statements apart."""
    lines, ps = [], []
    b.lines.indent += 1
    for e in es:
        before = b.lines.begin()
        ps.append(value(b, e))
        lines.append(b.lines.end(before))
    b.lines.indent -= 1
    return lines, ps


def _if_to(b: Body, e: c.If, dest: Dest) -> None:
    _if_rest(b, e, value(b, e.condition), dest)


def _if_rest(b: Body, e: c.If, condition: P, dest: Dest) -> None:
    """The rest of an `if` whose condition is evaluated; a chain of `else if` becomes `elif` where it can."""
    word = "if"
    while True:
        b.emit(f"{word} {condition.text}:")
        indented(b, e.then, dest)
        rest = e.otherwise
        if dest is RETURN:
            # The branch above has returned: what follows needs no `else`, and long chains no indentation.
            branch(b, rest, dest)
            return
        if not isinstance(rest, c.If) or b.live.drops.get(rest) or b.lines.indent >= MAX_INDENT:
            b.emit("else:")
            indented(b, rest, dest)
            return
        (lines,), (condition,) = _apart(b, [rest.condition])
        if lines:
            b.emit("else:")
            b.lines.out.extend(lines)
            b.lines.indent += 1
            _if_rest(b, rest, condition, dest)
            b.lines.indent -= 1
            return
        e, word = rest, "elif"


def _logic(b: Body, e: c.Logic) -> P:
    word = "and" if e.op == "&&" else "or"
    left = value(b, e.left)
    (lines,), (right,) = _apart(b, [e.right])
    if not lines:
        return P(f"({left.text} {word} {right.text})", left.stable and right.stable, 1 + max(left.nest, right.nest))
    name = b.lines.temp()
    b.emit(f"{name} = {left.text}")
    b.emit(f"if {name}:" if word == "and" else f"if not {name}:")
    b.lines.out.extend(lines)
    b.lines.out.append((b.lines.indent + 1, f"{name} = {right.text}"))
    return P(name, stable=True)


def _block_to(b: Body, e: c.Block, dest: Dest) -> None:
    for s in e.statements:
        statement(b, s)
    to(b, e.result, dest)


def statement(b: Body, s: c.Statement) -> None:
    match s:
        case c.Do(value=x):
            to(b, x, IGNORE)
        case c.Assign(var=v, value=x):
            b.emit(f"{b.name(v)}.v = {value(b, x).text}")
        case c.Bind(pattern=c.PWild(), value=x):
            to(b, x, IGNORE)
        case c.Bind(pattern=c.PVar(var=v), value=x):
            _bind_variable(b, v, x)
        case c.Bind(pattern=pattern, value=x):
            subject = subject_of(b, x)
            bind(b, pattern, subject)
            subject.clear(b)


def _bind_variable(b: Body, v: c.Var, x: c.Expr) -> None:
    name = b.name(v)
    if v.mutable:
        b.emit(f"{name} = _Cell({value(b, x).text})")
    elif isinstance(x, c.Lambda) and v in b.unit.free.of_function(x.function):
        # A local function that calls itself: its factory binds the name, as a cell of the closure itself.
        others = tuple(w for w in b.unit.free.of_function(x.function) if w is not v)
        maker = b.unit.lambda_maker(x.function, b.subst, own=v)
        p = closure(b, maker, others, x)
        b.emit(f"{name} = {p.text}" if others else f"{name} = {maker}()")
    elif v in b.live.unused:
        to(b, x, IGNORE)
    else:
        to(b, x, Dest("name", name))


def _match_to(b: Body, e: c.Match, dest: Dest) -> None:
    subject = lookup_subject(b, e) or subject_of(b, e.scrutinee, recovers=e.recovers)
    last = len(e.arms) - 1
    tests = []
    for k, arm in enumerate(e.arms):
        found = [] if k == last and arm.guard is None else matching(b, arm.pattern, subject)
        tests.append(found)
    first_sure = next((k for k, arm in enumerate(e.arms) if not tests[k] and arm.guard is None), last)
    arms = e.arms[: first_sure + 1]
    guards = any(arm.guard is not None for arm in arms)
    jumps = guards and dest is not RETURN
    if jumps:
        b.emit("while True:")
        b.lines.indent += 1
        b.lines.blocks += 1
    chained = not guards and dest is not RETURN
    for k, arm in enumerate(arms):
        levels = 0
        sure = not tests[k]
        if not sure or (chained and k):
            word = "if" if not chained or not k else "elif"
            b.emit("else:" if sure else f"{word} {' and '.join(tests[k])}:")
            b.lines.indent += 1
            levels += 1
        begin = len(b.lines.out)
        bind(b, arm.pattern, subject)
        if arm.guard is not None:
            b.emit(f"if {value(b, arm.guard).text}:")
            b.lines.indent += 1
            levels += 1
            begin = len(b.lines.out)
        subject.clear(b)
        branch(b, arm.body, dest)
        if jumps:
            b.emit("break")
        if len(b.lines.out) == begin:
            b.emit("pass")
        b.lines.indent -= levels
    if jumps:
        b.lines.indent -= 1
        b.lines.blocks -= 1


VALUE.update({c.If: _if_value, c.Logic: _logic})
TO.update({c.If: _if_to, c.Block: _block_to, c.Match: _match_to})
