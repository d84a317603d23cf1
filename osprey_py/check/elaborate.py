"""From the AST and what inference found to the typed program's expressions.

Comes in: AST nodes with solved side tables. Goes out: core expressions without sugar, in evaluation order.
Spec: language (evaluation order), types-and-effects L4.3 to L4.5, L6.11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from osprey_py.check import core
from osprey_py.check.context import Context, Global, Local
from osprey_py.check.coverage import check_irrefutable, check_match
from osprey_py.check.elaborate_patterns import Patterns
from osprey_py.check.infer_control import is_result_pattern
from osprey_py.check.infer_operators import cannot_fail
from osprey_py.check.signatures import kernel_slots
from osprey_py.check.solved import Solved
from osprey_py.check.terms import TCon, Term, TVar, is_con
from osprey_py.check.types import BOOL, STRING, UNIT, FunctionType, Named, Type
from osprey_py.source.span import Span
from osprey_py.syntax import ast


class Elaborator:
    def __init__(self, cx: Context) -> None:
        self.cx = cx
        self.solved = Solved()
        self.patterns = Patterns(cx, self.var)
        self.kernels = 0
        self.lifted: dict[str, core.Function] = {}
        self._lifted_names: dict[Local, str] = {}
        self._rules: dict[type[ast.Expr], Callable[[Any], core.Expr]] = {
            ast.IntLiteral: self._literal,
            ast.FloatLiteral: self._literal,
            ast.BoolLiteral: self._literal,
            ast.UnitLiteral: self._unit,
            ast.StringLiteral: self._string,
            ast.Reference: self._reference,
            ast.Unary: self._unary,
            ast.Binary: self._binary,
            ast.Pipe: self._sugar,
            ast.MethodCall: self._sugar,
            ast.Recover: self._recover,
            ast.Call: self._call,
            ast.FieldAccess: self._field,
            ast.IndexAccess: self._index,
            ast.Lambda: self._lambda,
            ast.If: self._if,
            ast.Match: self._match,
            ast.Tuple: self._tuple,
            ast.ListLiteral: self._list,
            ast.MapLiteral: self._map,
            ast.RecordLiteral: self._record,
            ast.RecordUpdate: self._update,
            ast.Block: self._block,
            ast.Perform: self._perform,
            ast.Handle: self._handle,
            ast.Resume: self._resume,
        }

    def expr(self, e: ast.Expr) -> core.Expr:
        return self._rules[type(e)](e)

    def type(self, node: ast.Node) -> Type:
        return self.solved.type(self.cx.side.types[node])

    def var(self, binder: Local | Global) -> core.Var:
        """The variable of a binding; made when it is first met."""
        if binder.var is None:
            assert binder.scheme is not None
            t = self.solved.type(binder.scheme.type)
            if isinstance(binder, Local):
                binder.var = core.Var(binder.name, t, binder.cell is not None, binder.span)
            else:
                binder.var = core.Var(binder.symbol.name, t, binder.cell is not None, binder.symbol.span)
        return binder.var

    def _parameter(self, p: ast.Parameter) -> core.Var:
        binder = self.cx.side.binders.get(p)
        return core.Var("_", self.type(p), span=p.span) if binder is None else self.var(binder)

    # --- leaves -----------------------------------------------------------------------------------------------------

    def _literal(self, e: ast.IntLiteral | ast.FloatLiteral | ast.BoolLiteral) -> core.Expr:
        return core.Literal(e.span, self.type(e), e.value)

    def _unit(self, e: ast.UnitLiteral) -> core.Expr:
        return core.Literal(e.span, UNIT, ())

    def _string(self, e: ast.StringLiteral) -> core.Expr:
        if all(isinstance(p, str) for p in e.parts):
            return core.Literal(e.span, STRING, "".join(p for p in e.parts if isinstance(p, str)))
        return core.Interpolate(e.span, STRING, tuple(p if isinstance(p, str) else self.expr(p) for p in e.parts))

    def _reference(self, e: ast.Reference) -> core.Expr:
        target = self.cx.side.targets[e]
        t = self.type(e)
        if isinstance(target, Local) and target.captures is not None:
            return self._lifted_value(e, t, target)
        if isinstance(target, Local):
            return core.LocalRef(e.span, t, self.var(target))
        if isinstance(target, Global):
            return core.GlobalRef(e.span, t, target.symbol.key)
        if isinstance(target, str):
            self.kernels += kernel_slots(target)
            return core.BuiltinRef(e.span, t, target)
        if not target.fields:
            return core.RecordNew(e.span, t, target.core, ())
        return core.ConstructorRef(e.span, t, target.core)

    # --- operators --------------------------------------------------------------------------------------------------

    def _unary(self, e: ast.Unary) -> core.Expr:
        operand = self.expr(e.operand)
        return operand if e.op == "+" else core.Unary(e.span, self.type(e), e.op, operand)

    def _binary(self, e: ast.Binary) -> core.Expr:
        spine = [e]
        while isinstance(spine[-1].left, ast.Binary):
            spine.append(spine[-1].left)
        left = self.expr(spine[-1].left)
        for node in reversed(spine):
            right = self.expr(node.right)
            if node.op in ("&&", "||"):
                left = core.Logic(node.span, BOOL, node.op, left, right)
            else:
                left = core.Binary(node.span, self.type(node), node.op, left, right)
        return left

    def _recover(self, e: ast.Recover) -> core.Expr:
        t = self.cx.type_of(e.value)
        kind: Literal["result", "scalar", "either"] = "scalar"
        if is_con(t, "Result"):
            kind = "result"
        elif isinstance(t, TVar) and t.kind is None:
            kind = "either"
        elif cannot_fail(e.value):
            what = "this always has a value"
            self.cx.tell("W0401", "`?:` on what cannot fail", e.value.span, what, help="leave `?: …` out")
        return core.Recover(e.span, self.type(e), self.expr(e.value), self.expr(e.default), kind)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _sugar(self, e: ast.Pipe | ast.MethodCall) -> core.Expr:
        plain = self.cx.side.sugar[e]
        callee = plain.callee
        if isinstance(e, ast.Pipe) and not isinstance(callee, ast.Reference):
            return self._piped(e, plain)
        return self._call(plain)

    def _piped(self, e: ast.Pipe, plain: ast.Call) -> core.Expr:
        """What is piped was written before the callee, and is evaluated before it."""
        first = self._hold(self.expr(e.left))
        callee = self.expr(plain.callee)
        args = (first[1], *(self.expr(a.value) for a in plain.args[1:]))
        call = core.Call(plain.span, self.type(plain), callee, args)
        return core.Block(plain.span, call.type, (first[0],), call)

    def _hold(self, value: core.Expr) -> tuple[core.Bind, core.LocalRef]:
        var = core.Var("held", value.type, span=value.span)
        return core.Bind(value.span, core.PVar(var), value), core.LocalRef(value.span, value.type, var)

    def _call(self, e: ast.Call) -> core.Expr:
        t = self.type(e)
        found = self.cx.side.constructors.get(e)
        if found is not None:
            fields = tuple((n, self.expr(a.value)) for (n, _), a in zip(found.fields, e.args, strict=True))
            return core.RecordNew(e.span, t, found.core, fields)
        if e.callee not in self.cx.side.types:
            assert isinstance(e.callee, ast.Reference)
            success = e.callee.path[0].text == "Success"
            constructor, name = (core.SUCCESS, "value") if success else (core.ERROR, "message")
            return core.RecordNew(e.span, t, constructor, ((name, self.expr(e.args[0].value)),))
        callee, extra = self._callee(e.callee)
        order = self.cx.side.orders.get(e)
        written = [self.expr(a.value) for a in e.args]
        if order is None or list(order) == sorted(order):
            return core.Call(e.span, t, callee, (*extra, *written))
        held = [self._hold(a) for a in written]
        by_position = sorted(zip(order, held, strict=True), key=lambda pair: pair[0])
        call = core.Call(e.span, t, callee, (*extra, *(ref for _, (_, ref) in by_position)))
        return core.Block(e.span, t, tuple(bind for bind, _ in held), call)

    def _callee(self, e: ast.Expr) -> tuple[core.Expr, tuple[core.Expr, ...]]:
        """What a call calls, and the arguments that a lifted local function takes before the written ones."""
        target = self.cx.side.targets.get(e)
        if isinstance(target, Local) and target.captures is not None:
            return self._lifted_ref(e.span, self.type(e), target)
        return self.expr(e), ()

    # --- local functions --------------------------------------------------------------------------------------------

    def _lifted_name(self, local: Local) -> str:
        return self._lifted_names.setdefault(local, f"{local.name}#{len(self._lifted_names)}")

    def _captured(self, span: Span, local: Local) -> tuple[core.LocalRef, ...]:
        held = (self.var(c) for c in local.captures or ())
        return tuple(core.LocalRef(span, v.type, v) for v in held)

    def _lifted_ref(self, span: Span, t: Type, local: Local) -> tuple[core.Expr, tuple[core.Expr, ...]]:
        assert isinstance(t, FunctionType)
        extra = self._captured(span, local)
        whole = FunctionType((*(a.type for a in extra), *t.params), t.result, t.effects)
        return core.GlobalRef(span, whole, self._lifted_name(local)), extra

    def _lifted_value(self, e: ast.Expr, t: Type, local: Local) -> core.Expr:
        """A lifted function used as a value: a lambda that holds what it reads."""
        ref, extra = self._lifted_ref(e.span, t, local)
        if not extra:
            return ref
        assert isinstance(t, FunctionType)
        params = tuple(core.Var(f"a{k}", p, span=e.span) for k, p in enumerate(t.params))
        args = tuple(core.LocalRef(e.span, p.type, p) for p in params)
        body = core.Call(e.span, t.result, ref, (*extra, *args))
        return core.Lambda(e.span, t, core.Function(local.name, params, body, t, e.span))

    def local_function(self, d: ast.FunctionDecl) -> core.Statement | None:
        """A binding of a closure; None for a function that is lifted out."""
        local = self.cx.side.binders[d]
        assert isinstance(local, Local)
        t = local.scheme.type
        if local.captures is None:
            function = self.function(d, d.name.text, t)
            value = core.Lambda(d.span, function.type, function)
            return core.Bind(d.span, core.PVar(self.var(local)), value)
        name = self._lifted_name(local)
        outer = [self.var(c) for c in local.captures]
        for c, v in zip(local.captures, outer, strict=True):
            c.var = core.Var(v.name, v.type, span=v.span)
        held = tuple(self.var(c) for c in local.captures)
        inner = self.function(d, name, t)
        for c, v in zip(local.captures, outer, strict=True):
            c.var = v
        assert isinstance(inner.type, FunctionType)
        whole = FunctionType((*(v.type for v in held), *inner.type.params), inner.type.result, inner.type.effects)
        self.lifted[name] = core.Function(name, (*held, *inner.params), inner.body, whole, inner.span, inner.doc)
        return None

    # --- data -------------------------------------------------------------------------------------------------------

    def _tuple(self, e: ast.Tuple) -> core.Expr:
        return core.TupleNew(e.span, self.type(e), tuple(map(self.expr, e.items)))

    def _list(self, e: ast.ListLiteral) -> core.Expr:
        return core.ListNew(e.span, self.type(e), tuple(map(self.expr, e.items)))

    def _map(self, e: ast.MapLiteral) -> core.Expr:
        return core.MapNew(e.span, self.type(e), tuple((self.expr(k), self.expr(v)) for k, v in e.entries))

    def _record(self, e: ast.RecordLiteral) -> core.Expr:
        constructor: core.Constructor | None = None
        if e.path is not None:
            found = self.cx.side.constructors.get(e)
            name = e.path[-1].text
            constructor = found.core if found else core.SUCCESS if name == "Success" else core.ERROR
        return core.RecordNew(e.span, self.type(e), constructor, self._fields(e.fields))

    def _fields(self, fields: tuple[tuple[ast.Name, ast.Expr], ...]) -> tuple[tuple[str, core.Expr], ...]:
        return tuple((n.text, self.expr(v)) for n, v in fields)

    def _update(self, e: ast.RecordUpdate) -> core.Expr:
        return core.RecordUpdate(e.span, self.type(e), self.expr(e.record), self._fields(e.fields))

    def _field(self, e: ast.FieldAccess) -> core.Expr:
        return core.Field(e.span, self.type(e), self.expr(e.record), e.name.text)

    def _index(self, e: ast.IndexAccess) -> core.Expr:
        return core.Index(e.span, self.type(e), self.expr(e.container), self.expr(e.index))

    # --- functions --------------------------------------------------------------------------------------------------

    def function(self, f: ast.Lambda | ast.FunctionDecl, name: str, t: Term) -> core.Function:
        params = tuple(self._parameter(p) for p in f.params)
        body = self.attempt_tail(f.body) if f in self.cx.side.attempts else self.expr(f.body)
        doc = f.doc if isinstance(f, ast.FunctionDecl) else ""
        return core.Function(name, params, body, self.solved.type(t), f.span, doc)

    def _lambda(self, e: ast.Lambda) -> core.Expr:
        t = self.cx.side.types[e]
        return core.Lambda(e.span, self.solved.type(t), self.function(e, "<lambda>", t))

    def attempt_tail(self, e: ast.Expr) -> core.Expr:
        """An expression whose math faults become an Error: around the last expression, inside blocks."""
        if isinstance(e, ast.Block):
            statements = self._statements(e.statements)
            result = self.attempt_tail(e.result)
            return core.Block(e.span, result.type, statements, result)
        if e in self.cx.side.plain_leaves:
            value = self.expr(e)
            return core.Attempt(e.span, self._math_result(value.type), value, True)
        value = self._ends(e)
        return core.Attempt(e.span, value.type, value, False)

    def _math_result(self, t: Type) -> Type:
        return Named("Result", (t, Named("MathError")))

    def _ends(self, e: ast.Expr) -> core.Expr:
        """The expression with every end a Result."""
        if isinstance(e, ast.Block):
            statements = self._statements(e.statements)
            result = self._ends(e.result)
            return core.Block(e.span, result.type, statements, result)
        if isinstance(e, ast.If):
            then = self._ends(e.then)
            return core.If(e.span, then.type, self.expr(e.condition), then, self._ends(e.otherwise))
        if isinstance(e, ast.Match):
            return self._match(e, self._ends)
        value = self.expr(e)
        if e in self.cx.side.plain_leaves:
            return core.RecordNew(e.span, self._math_result(value.type), core.SUCCESS, (("value", value),))
        return value

    # --- control ----------------------------------------------------------------------------------------------------

    def _if(self, e: ast.If) -> core.Expr:
        condition = self.expr(e.condition)
        return core.If(e.span, self.type(e), condition, self.expr(e.then), self.expr(e.otherwise))

    def _match(self, e: ast.Match, body: Callable[[ast.Expr], core.Expr] | None = None) -> core.Expr:
        scrutinee = self.expr(e.scrutinee)
        met = self.cx.type_of(e.scrutinee)
        recovers = any(is_result_pattern(a.pattern) for a in e.arms)
        if recovers and not is_con(met, "Result"):
            scrutinee = core.Attempt(e.scrutinee.span, self._math_result(scrutinee.type), scrutinee, True)
            recovers = False
            met = TCon("Result", (met, TCon("MathError")))
        check_match(self.cx, e, met)
        arms = tuple(self._arm(a, body or self.expr) for a in e.arms)
        t = arms[0].body.type if body is not None and arms else self.type(e)
        return core.Match(e.span, t, scrutinee, arms, recovers)

    def _arm(self, a: ast.Arm, body: Callable[[ast.Expr], core.Expr]) -> core.Arm:
        pattern = self.patterns.pattern(a.pattern)
        guard = None if a.guard is None else self.expr(a.guard)
        return core.Arm(pattern, guard, body(a.body), a.span)

    def _block(self, e: ast.Block) -> core.Expr:
        statements = self._statements(e.statements)
        result = self.expr(e.result)
        return core.Block(e.span, self.type(e), statements, result) if statements else result

    def _statements(self, written: tuple[ast.Statement, ...]) -> tuple[core.Statement, ...]:
        done = (self.local_function(s) if isinstance(s, ast.FunctionDecl) else self.statement(s) for s in written)
        return tuple(s for s in done if s is not None)

    def statement(self, s: ast.Statement) -> core.Statement:
        match s:
            case ast.Let(pattern=pattern, value=value):
                core_value = self.attempt_tail(value) if s in self.cx.side.attempts else self.expr(value)
                check_irrefutable(self.cx, pattern)
                return core.Bind(s.span, self.patterns.pattern(pattern), core_value)
            case ast.Mut(value=value):
                return core.Bind(s.span, core.PVar(self.var(self.cx.side.binders[s])), self.expr(value))
            case ast.Assign(value=value):
                target = self.cx.side.targets[s]
                assert isinstance(target, (Local, Global))
                return core.Assign(s.span, self.var(target), self.expr(value))
            case ast.ExprStatement(value=value):
                return core.Do(s.span, self.expr(value))
        raise TypeError(s)

    # --- effects ----------------------------------------------------------------------------------------------------

    def _perform(self, e: ast.Perform) -> core.Expr:
        args = tuple(self.expr(a.value) for a in e.args)
        return core.Perform(e.span, self.type(e), self.cx.side.effects[e], e.operation.text, args)

    def _handle(self, e: ast.Handle) -> core.Expr:
        arms = tuple(self._handler_arm(a) for a in e.arms)
        return core.Handle(e.span, self.type(e), self.cx.side.effects[e], arms, self.expr(e.body))

    def _handler_arm(self, a: ast.HandlerArm) -> core.HandlerArm:
        params = tuple(self._parameter(p) for p in a.params)
        return core.HandlerArm(a.operation.text, params, self.expr(a.body), a in self.cx.side.resuming, a.span)

    def _resume(self, e: ast.Resume) -> core.Expr:
        value = core.Literal(e.span, UNIT, ()) if e.value is None else self.expr(e.value)
        return core.Resume(e.span, self.type(e), value)
