"""A whole program as one Python module: functions, factories of closures, shared constants.

Comes in: a Program. Goes out: `Unit.instantiate(world)`, which gives the module's namespace (spec/evaluation V1).

Every lambda is made by a factory, `def _mk7(v_x_3): def lambda_7(v_a_5): …; return lambda_7`: its captured values sit
in fresh closure cells of exactly its free variables, and the maker's own locals stay plain locals that can be cleared.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from osprey_py.check import core as c
from osprey_py.check.types import UNIT, Type
from osprey_py.eval import closures
from osprey_py.eval.body import RETURN, Body, local_name, plain
from osprey_py.eval.callgraph import CallGraph, tail_expressions
from osprey_py.eval.emit import Lines
from osprey_py.eval.generate import arithmetic, calls, control, effects, expressions, regions  # noqa: F401
from osprey_py.eval.generate.base import branch
from osprey_py.eval.generate.control import statement
from osprey_py.eval.instances import Substitution, scalars_of
from osprey_py.eval.liveness import Liveness
from osprey_py.eval.prelude import PRELUDE
from osprey_py.eval.registry import BUILTINS, CONSTANTS
from osprey_py.eval.values import class_of
from osprey_py.eval.walk import RESUME, BufferTypes, FreeVariables, children, pattern_vars, walk
from osprey_py.eval.world import MAX_DEPTH, World
from osprey_py.source.span import NO_SPAN, Span

_module_numbers = count(1)


MAX_INSTANCES = 16
"""Of one function, besides its general code."""


@dataclass(frozen=True, eq=False, slots=True)
class Instance:
    """The code of a declared function for some types. name: what is called; inner: what its trampoline runs, where it
    has one."""

    function: str
    name: str
    inner: str
    subst: Substitution

    @property
    def key(self) -> Any:
        return self.subst.key


class Unit:
    """The module of one program. text: its Python source. It has the functions that startup code, main and `roots` can
    reach."""

    def __init__(self, program: c.Program, roots: Iterable[str] = ()) -> None:
        self.program = program
        self.graph = CallGraph(program)
        self.holds_buffers = BufferTypes(program.types)
        self.global_lets = {v: f"G{k}_{plain(name)}" for k, (name, v) in enumerate(program.globals.items())}
        # What a region puts back when a fault ends it: only what this program changes.
        handles = counts = False
        for e in _everything(program):
            handles = handles or isinstance(e, c.Handle | c.Perform)
            counts = counts or (isinstance(e, c.Block) and any(map(_names_itself, e.statements)))
        counts = counts or handles or bool(self.graph.counted)
        self.dynamic_state = (["depth"] if counts else []) + (["handlers"] if handles else [])
        self.free = FreeVariables(self.global_lets)
        self.function_names = {name: f"F{k}_{plain(name)}" for k, name in enumerate(program.functions)}
        self._instances: dict[tuple[str, Any], Instance] = {}
        self._todo: list[Instance] = []
        self._parts: list[str] = []
        self._namespace: dict[str, Any] = {}
        self._shared: dict[Any, str] = {}
        self._makers: dict[object, str] = {}
        self._variables: dict[str, c.Var] = {}
        # Python function name -> (the factory it lies in, its Core code).
        self._codes: list[tuple[str, str | None, c.Function]] = []
        self._bound: list[tuple[str, Callable[[World], Any]]] = []
        self._startup()
        for name in roots:
            self.instance(name, program.functions[name].type)
        while self._todo:
            self._function(self._todo.pop())
        self.text = "\n".join(self._parts)
        self._path = f"<osprey module {next(_module_numbers)}>"
        self._code = compile(self.text, self._path, "exec", dont_inherit=True)

    # --- shared objects -------------------------------------------------------------------------------------

    def shared(self, key: Any, value: Any, make: Callable[[], Any] | None = None) -> str:
        """The name of an object in the module's namespace, one for each key; make builds it when given."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = f"{key if isinstance(key, str) else 'X'}_{len(self._shared)}"
            self._namespace[found] = value if make is None else make()
        return found

    def constant(self, kind: str, value: Any) -> str:
        """The name of a value that is itself the key (types, classes)."""
        found = self._shared.get((kind, value))
        if found is None:
            found = self._shared[kind, value] = f"{kind}{len(self._shared)}"
            self._namespace[found] = value
        return found

    def span(self, span: Span) -> str:
        return self.constant("S", span)

    def class_name(self, constructor: c.Constructor) -> str:
        return self.constant("C", class_of(constructor))

    def siblings(self, constructor: c.Constructor) -> int:
        """How many constructors the type of this one has."""
        if constructor in (c.SUCCESS, c.ERROR):
            return 2
        info = self.program.types.get(constructor.type_name)
        return len(info.constructors) if info is not None else 2

    def constructor_function(self, constructor: c.Constructor) -> str:
        made = closures.ConstructorFunction(constructor, class_of(constructor))
        return self.shared(("constructor", constructor), made)

    def builtin_value(self, e: c.BuiltinRef, t: Type) -> str:
        """A built-in as a value: a constant, or a function that knows where it was named."""
        if e.name in CONSTANTS:
            return f"_{e.name}"
        built = BUILTINS[e.name]
        name = self.shared(("builtin", e.name, e.span, t), None)
        result = getattr(t, "result", t)

        def bind(w: World) -> Any:
            before = (w,) if built.world else ()
            after = ((e.span,) if built.span else ()) + ((result,) if built.typed else ())
            call = built.call if not (before or after) else lambda *args: built.call(*before, *args, *after)
            return closures.BuiltinFunction(e.name, call)

        self._bound.append((name, bind))
        return name

    # --- functions --------------------------------------------------------------------------------------------

    def instance(self, name: str, used: Type) -> Instance:
        """The code of a function for a use at this type; the general code where no variable is a scalar, and when
        there are many instances already."""
        f = self.program.functions[name]
        subst = Substitution(scalars_of(f.type, used))
        found = self._instances.get((name, subst.key))
        if found is None:
            outer = self.function_names[name]
            if subst.key:
                # The general code is there for those who find a function by its name.
                general = self.instance(name, f.type)
                count = sum(1 for n, _ in self._instances if n == name)
                if count > MAX_INSTANCES:
                    return general
                outer = f"{outer}__{count}"
            found = self._instances[name, subst.key] = Instance(name, outer, f"{outer}__inner", subst)
            self._todo.append(found)
        return found

    def names_of(self, name: str) -> list[str]:
        """The Python names of all code of a declared function: the general one and the instances."""
        return [made.name for made in self._instances.values() if made.function == name]

    def _function(self, made: Instance) -> None:
        """A declared function; one of a mutually tail-recursive group also gets the trampoline."""
        name, outer = made.function, made.name
        f = self.program.functions[name]
        counted = name in self.graph.counted
        mutual = name in self.graph.mutual
        python_name = made.inner if mutual else outer
        lines = self._code_of(
            python_name,
            f.params,
            f.body,
            (),
            span=f.span,
            subst=made.subst,
            self_name=name,
            counted=counted and not mutual,
            group=self.graph.group[name] if mutual else frozenset(),
        )
        self._add(lines)
        self._codes.append((python_name, None, f))
        if mutual:
            params = ", ".join(map(local_name, f.params))
            shell = [f"def {outer}({params}):"]
            if counted:
                shell += ["    W.depth += 1", f"    if W.depth > {MAX_DEPTH}: raise _too_deep({self.span(f.span)})"]
            shell += [
                f"    r = {python_name}({params})",
                "    while r.__class__ is _TailCall:",
                "        r = r.target(*r.args)",
            ]
            shell += ["    W.depth -= 1"] if counted else []
            self._parts += [*shell, "    return r"]
            self._codes.append((outer, None, f))

    def _code_of(
        self,
        python_name: str,
        params: tuple[c.Var, ...],
        body: c.Expr,
        captured: tuple[c.Var, ...],
        *,
        span: Span,
        subst: Substitution,
        self_name: str | None = None,
        self_var: c.Var | None = None,
        counted: bool = False,
        group: frozenset[str] = frozenset(),
        arm: bool = False,
        outer: Body | None = None,
        indent: int = 0,
    ) -> Lines:
        """The lines of one Python function. outer: the body that this is an outlined part of."""
        lines = Lines(indent=indent + 1)
        not_owned = (*self.global_lets, *captured, *(() if self_var is None else (self_var,)))
        live = Liveness(body, params, not_owned, lambda t: self.holds_buffers(subst(t)), self.free)
        loops = outer is None and _calls_itself(body, self_name, self_var)
        b = Body(self, lines, live, subst, params, self_name, self_var, loops, False, counted, group, arm)
        if outer is not None:
            b.params, b.self_name, b.self_var, b.group = outer.params, outer.self_name, outer.self_var, outer.group
            b.again, b.arm = outer.loops or outer.again, outer.arm
        names = [local_name(v) for v in params] + ([local_name(RESUME)] if arm else [])
        lines.out.append((indent, f"def {python_name}({', '.join(names)}):"))
        if counted:
            b.emit("W.depth += 1")
            b.emit(f"if W.depth > {MAX_DEPTH}: raise _too_deep({self.span(span)})")
        if loops:
            b.emit("while True:")
            lines.indent += 1
            lines.blocks += 1
        for v in params:
            if v.mutable:
                b.emit(f"{local_name(v)} = _Cell({local_name(v)})")
        branch(b, body, RETURN)
        return lines

    def _add(self, lines: Lines) -> None:
        self._parts.append(lines.text())

    def _maker(
        self,
        key: object,
        kind: str,
        captured: tuple[c.Var, ...],
        subst: Substitution,
        own: c.Var | None = None,
        **how: Any,
    ) -> str:
        """A factory (or, when nothing is captured, the function itself) for a piece of code."""
        found = self._makers.get((key, own, subst.key))
        if found is not None:
            return found
        number = len(self._makers)
        self._makers[key, own, subst.key] = found = f"_mk{number}"
        for v in captured:
            self._variables[local_name(v)] = v
        inner = found
        if captured or own is not None:
            inner = local_name(own) if own is not None else f"_{kind}{number}"
        function = how.pop("function", None)
        lines = self._code_of(inner, captured=captured, subst=subst, indent=0 if inner == found else 1, **how)
        if inner != found:
            lines.out.insert(0, (0, f"def {found}({', '.join(map(local_name, captured))}):"))
            lines.out.append((1, f"return {inner}"))
        self._add(lines)
        if function is not None:
            self._codes.append((inner, None if inner == found else found, function))
        return found

    def lambda_maker(self, f: c.Function, subst: Substitution, own: c.Var | None = None) -> str:
        """own: the local variable that the lambda is bound to, when it names itself."""
        free = self.free.of_function(f)
        captured = tuple(v for v in free if v is not own)
        if own is not None:
            self._variables[local_name(own)] = own
        counted = own is not None and _names_itself_elsewhere(f.body, own)
        return self._maker(
            f,
            "lambda",
            captured,
            subst,
            own,
            params=f.params,
            body=f.body,
            span=f.span,
            self_var=own,
            counted=counted,
            function=f,
        )

    def arm_maker(self, arm: c.HandlerArm, subst: Substitution) -> str:
        captured = self.free.of_arm(arm)
        return self._maker(
            arm, "arm", captured, subst, params=arm.params, body=arm.body, span=arm.span, arm=arm.resumes
        )

    def part_maker(self, e: c.Expr, captured: tuple[c.Var, ...], subst: Substitution, outer: Body | None) -> str:
        """Code without parameters: the body of a resuming handler, or an outlined piece (outer: the body in whose tail
        position it stands, if it does)."""
        return self._maker(e, "part", captured, subst, params=(), body=e, span=e.span, outer=outer)

    # --- the program ------------------------------------------------------------------------------------------

    def _startup(self) -> None:
        """File-scope code, statement by statement, as one function without parameters."""
        lines = Lines()
        result = c.Literal(NO_SPAN, UNIT, ())
        block = c.Block(NO_SPAN, UNIT, self.program.startup, result)
        live = Liveness(block, (), tuple(self.global_lets), self.holds_buffers, self.free)
        b = Body(self, lines, live)
        dying = self._last_statements()
        for s in self.program.startup:
            statement(b, s)
            for v in dying.get(s, ()):
                b.emit(f"{b.name(v)} = None")
        if self.program.main is not None:
            main = self.program.functions[self.program.main]
            b.emit(f"{self.instance(self.program.main, main.type).name}()")
        head = Lines()
        head.out.append((0, "def startup():"))
        if b.globals_:
            head.emit(f"global {', '.join(sorted(b.globals_))}")
        head.out += lines.out or [(1, "pass")]
        self._add(head)

    def _last_statements(self) -> dict[c.Statement, list[c.Var]]:
        """For file-scope lets that may hold buffers and that only file-scope code itself reads: the statement after
        which nothing reads them (spec V5.2)."""
        by_name = {n: v for n, v in self.program.globals.items() if not v.mutable and self.holds_buffers(v.type)}
        candidates = {v: v for v in by_name.values()}

        def read(root: c.Expr, inside: bool) -> Iterator[c.Var]:
            """Candidates read in root; inside: only in the bodies of its lambdas, arms and the like."""
            direct = set(map(id, _same_body(root))) if inside else set()
            for e in walk(root):
                if id(e) in direct:
                    continue
                if isinstance(e, c.GlobalRef) and e.name in by_name:
                    yield by_name[e.name]
                elif isinstance(e, c.LocalRef) and e.var in candidates:
                    yield e.var

        for f in self.program.functions.values():
            for v in read(f.body, inside=False):
                candidates.pop(v, None)
        last: dict[c.Var, c.Statement] = {}
        for s in self.program.startup:
            if not isinstance(s, c.Bind | c.Assign | c.Do):
                continue
            for v in list(read(s.value, inside=True)):
                candidates.pop(v, None)
            for v in [*read(s.value, inside=False), *(pattern_vars(s.pattern) if isinstance(s, c.Bind) else ())]:
                last[v] = s
        found: dict[c.Statement, list[c.Var]] = {}
        for v, s in last.items():
            if v in candidates:
                found.setdefault(s, []).append(v)
        return found

    def instantiate(self, world: World) -> dict[str, Any]:
        """The module's namespace for one run; `startup` in it runs the program."""
        namespace: dict[str, Any] = {**PRELUDE, **self._namespace, "W": world}
        for name, built in BUILTINS.items():
            namespace[f"B_{name}"] = built.call
        for name, value in CONSTANTS.items():
            namespace[f"_{name}"] = value
        names = {n: self.global_lets[v] for n, v in self.program.globals.items()}
        namespace[closures.GLOBALS] = {**self.function_names, **names}
        for name, bind in self._bound:
            namespace[name] = bind(world)
        lines = self.text.splitlines(keepends=True)
        linecache.cache[self._path] = (len(self.text), None, lines, self._path)
        exec(self._code, namespace)
        for name, factory, function in self._codes:
            if factory is None:
                closures.register(namespace[name].__code__, function)
            else:
                consts = namespace[factory].__code__.co_consts
                code = next(k for k in consts if getattr(k, "co_name", None) == name)
                closures.register(code, function)
        closures.register_variables(self._variables)
        return namespace


def _same_body(root: c.Expr) -> Iterator[c.Expr]:
    """The expressions of root that are of its own function."""
    todo = [root]
    while todo:
        e = todo.pop()
        yield e
        todo.extend(children(e))


def _everything(program: c.Program) -> Iterator[c.Expr]:
    for f in program.functions.values():
        yield from walk(f.body)
    for s in program.startup:
        if isinstance(s, c.Bind | c.Assign | c.Do):
            yield from walk(s.value)


def _names_itself(s: c.Statement) -> bool:
    """A local function that calls itself."""
    match s:
        case c.Bind(pattern=c.PVar(var=v), value=c.Lambda(function=f)):
            return _names_itself_elsewhere(f.body, v)
    return False


def _calls_itself(body: c.Expr, name: str | None, var: c.Var | None) -> bool:
    """Some tail call is of the function itself."""
    return any(
        isinstance(e, c.Call)
        and (
            (isinstance(e.callee, c.GlobalRef) and e.callee.name == name)
            or (isinstance(e.callee, c.LocalRef) and e.callee.var is var)
        )
        for e in tail_expressions(body)
    )


def _names_itself_elsewhere(body: c.Expr, own: c.Var) -> bool:
    """The function names itself other than as the callee of a tail call."""
    tails = {id(e.callee) for e in tail_expressions(body) if isinstance(e, c.Call)}
    return any(isinstance(e, c.LocalRef) and e.var is own and id(e) not in tails for e in walk(body))
