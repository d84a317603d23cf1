"""The expressions directly inside a core expression.

Comes in: a core expression or statement. Goes out: its parts, in evaluation order.
"""

from __future__ import annotations

from collections.abc import Iterator

from osprey_py.check import core


def parts(e: core.Expr) -> Iterator[core.Expr]:
    match e:
        case core.Call(callee=callee, args=args):
            yield callee
            yield from args
        case core.Unary(operand=a) | core.Attempt(value=a) | core.Field(record=a) | core.Resume(value=a):
            yield a
        case core.Binary(left=a, right=b) | core.Logic(left=a, right=b):
            yield a
            yield b
        case core.Recover(value=a, default=b) | core.Index(container=a, index=b):
            yield a
            yield b
        case core.Interpolate(parts=inner):
            yield from (p for p in inner if not isinstance(p, str))
        case core.If(condition=c, then=a, otherwise=b):
            yield from (c, a, b)
        case core.Match(scrutinee=s, arms=arms):
            yield s
            for arm in arms:
                if arm.guard is not None:
                    yield arm.guard
                yield arm.body
        case core.Block(statements=statements, result=result):
            yield from map(statement_value, statements)
            yield result
        case core.RecordNew(fields=fields):
            yield from (v for _, v in fields)
        case core.RecordUpdate(record=record, fields=fields):
            yield record
            yield from (v for _, v in fields)
        case core.TupleNew(items=items) | core.ListNew(items=items) | core.Perform(args=items):
            yield from items
        case core.MapNew(entries=entries):
            for k, v in entries:
                yield k
                yield v
        case core.Handle(arms=handlers, body=body):
            yield from (h.body for h in handlers)
            yield body
        case core.Lambda(function=f):
            yield f.body


def statement_value(s: core.Statement) -> core.Expr:
    assert isinstance(s, (core.Bind, core.Assign, core.Do))
    return s.value


def statements_in(e: core.Expr) -> Iterator[core.Statement]:
    """The statements of the blocks anywhere in `e`. Needs no Python stack."""
    stack = [e]
    while stack:
        x = stack.pop()
        if isinstance(x, core.Block):
            yield from x.statements
        stack.extend(parts(x))
