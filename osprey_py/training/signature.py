"""What a training program exports, and whether it does (spec/training TR1, TR2).

Comes in: a checked program and its project. Goes out: `Signature`, the functions by name with the schemas of Options,
Vocabulary, State and the default data; or diagnostics that name each function that is not as wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from osprey_py.check.core import Program
from osprey_py.check.types import FLOAT, INT, STRING, FunctionType, Named, TupleType, Type, TypeVar
from osprey_py.modules.project import Project
from osprey_py.modules.spaces import Symbol
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import Source, Span
from osprey_py.training.plain import Leaf, NotPlain, RecordOf, Schema, schema_of

REQUIRED = "options learn vocabularySize encode window init parameters step evaluate sample".split()
OPTIONAL = "data complaint".split()


@dataclass(frozen=True, slots=True)
class Function:
    """An exported function: its key in Program.functions, its type, where its name stands."""

    key: str
    type: FunctionType
    span: Span


@dataclass(frozen=True, slots=True)
class Signature:
    functions: dict[str, Function]
    options: RecordOf
    vocabulary: Schema
    state: Schema
    learnt: Schema
    data: RecordOf | None


DATA_FIELDS = {"file": Leaf(str), "url": Leaf(str), "bytes": Leaf(int), "sha256": Leaf(str)}


def signature_of(program: Program, project: Project) -> Signature:
    """Raises OspreyError with every complaint."""
    assert project.entry is not None and project.entry.space.parent is not None
    names = project.entry.space.parent.names["value"]
    path = Span(Source(project.entry.file.source.path, ""), 0, 0)
    found: dict[str, Function] = {}
    told: list[Diagnostic] = []
    wanted = _wanted({n: _type(program, names.get(n)) for n in REQUIRED})
    for name in [*REQUIRED, *OPTIONAL]:
        symbol = names.get(name)
        if symbol is None or not (symbol.exported or name in REQUIRED):
            if name in REQUIRED:
                told.append(_missing(name, wanted[name], path))
            continue
        type_ = _type(program, symbol)
        complaint = _complaint(symbol, type_, wanted[name])
        if complaint is not None:
            told.append(complaint)
        elif type_ is not None:
            found[name] = Function(symbol.key, type_, symbol.span)
    if told:
        raise OspreyError(told)
    return _schemas(program, found)


def _type(program: Program, symbol: Symbol | None) -> FunctionType | None:
    function = program.functions.get(symbol.key) if symbol is not None else None
    return function.type if function is not None and isinstance(function.type, FunctionType) else None


def _wanted(found: dict[str, FunctionType | None]) -> dict[str, FunctionType]:
    """The types of all functions. Options, Vocabulary and State are what the program's own functions give; where they
    give nothing that can be, a name stands for any type."""

    def given(name: str, params: int, otherwise: str) -> Type:
        t = found[name]
        return t.result if t is not None and len(t.params) == params else TypeVar(otherwise, -1)

    o, v, s = given("options", 0, "Options"), given("learn", 2, "Vocabulary"), given("init", 3, "State")
    ints = Named("GpuBuffer", (INT,))
    tokens = Named("Result", (Named("List", (INT,)), STRING))
    return {
        "options": FunctionType((), o),
        "learn": FunctionType((o, STRING), v),
        "vocabularySize": FunctionType((v,), INT),
        "encode": FunctionType((v, STRING), tokens),
        "window": FunctionType((o,), TupleType((INT, INT))),
        "init": FunctionType((o, v, INT), s),
        "parameters": FunctionType((s,), TypeVar("P", -1)),
        "step": FunctionType((o, s, INT, ints, ints), TupleType((s, FLOAT))),
        "evaluate": FunctionType((o, s, ints, ints), FLOAT),
        "sample": FunctionType((o, v, s, INT), STRING),
        "data": FunctionType((), TypeVar("D", -1)),
        "complaint": FunctionType((o,), STRING),
    }


def _missing(name: str, wanted: FunctionType, path: Span) -> Diagnostic:
    return Diagnostic(
        "E0601",
        f"a training program exports `{name}`, and this file has no function of that name",
        path,
        help=f"it is a function {wanted}; spec/training.md lists them all",
    )


def _complaint(symbol: Symbol, found: FunctionType | None, wanted: FunctionType) -> Diagnostic | None:
    name = symbol.name
    if found is None:
        return Diagnostic(
            "E0601", f"`{name}` of a training program is a function", symbol.span, "this is none", help=f"{wanted}"
        )
    if not symbol.exported:
        return Diagnostic(
            "E0601", f"`{name}` is not exported", symbol.span, "training calls it", help="write `export` before it"
        )
    if found.effects:
        return Diagnostic(
            "E0601",
            f"`{name}` of a training program is pure",
            symbol.span,
            f"it performs {', '.join(sorted(found.effects))}",
            help="the command reads, prints and saves; the functions only compute",
        )
    if not matches(found, wanted):
        notes = (f"wanted: {wanted}", f"found:  {found}")
        return Diagnostic(
            "E0601", f"`{name}` has not the type that training wants", symbol.span, "declared here", notes=notes
        )
    return None


def matches(found: Type, wanted: Type, bound: dict[TypeVar, Type] | None = None) -> bool:
    """Whether a function of type `found` can be called where `wanted` is asked for. A variable in `found` may be any
    type, the same one everywhere; one in `wanted` is a type nothing is known of."""
    bound = {} if bound is None else bound
    if isinstance(wanted, TypeVar):
        return True
    match found, wanted:
        case TypeVar(), _:
            return bound.setdefault(found, wanted) == wanted
        case Named(name=a, args=xs), Named(name=b, args=ys):
            return a == b and _all(xs, ys, bound)
        case TupleType(items=xs), TupleType(items=ys):
            return _all(xs, ys, bound)
        case FunctionType(params=xs, result=x), FunctionType(params=ys, result=y):
            return _all((*xs, x), (*ys, y), bound)
    return found == wanted


def _all(xs: tuple[Type, ...], ys: tuple[Type, ...], bound: dict[TypeVar, Type]) -> bool:
    return len(xs) == len(ys) and all(matches(x, y, bound) for x, y in zip(xs, ys, strict=True))


# --- what can be kept ---------------------------------------------------------------------------------------------------


def _schemas(program: Program, found: dict[str, Function]) -> Signature:
    told: list[Diagnostic] = []

    def read(name: str, path: str, what: str, **allowed: bool) -> Schema:
        function = found[name]
        try:
            return schema_of(function.type.result, program.types, path, **allowed)
        except NotPlain as e:
            title = f"`{e.path}` is of type `{e.type}`, which is not plain data"
            told.append(Diagnostic("E0602", title, function.span, f"`{name}` gives it", help=what))
            return Leaf(int)

    options = read("options", "options", "an option is an int, a float, a bool or a string")
    vocabulary = read(
        "learn",
        "vocabulary",
        "a vocabulary is made of int, float, bool and string, in records, tuples, lists and maps",
        maps=True,
    )
    kept = "it is made of int, float, bool, string and buffers, in records, tuples and lists"
    state = read("init", "state", kept, buffers=True)
    learnt = read("parameters", "parameters", kept, buffers=True)
    data = read("data", "data", "data() gives a record with file, url, bytes and sha256") if "data" in found else None
    told.extend(_wrong_records(options, data, found))
    if told:
        raise OspreyError(told)
    assert isinstance(options, RecordOf) and (data is None or isinstance(data, RecordOf))
    return Signature(found, options, vocabulary, state, learnt, data)


def _wrong_records(options: Schema, data: Schema | None, found: dict[str, Function]) -> Iterator[Diagnostic]:
    if not isinstance(options, RecordOf) or not all(isinstance(s, Leaf) for _, s in options.fields):
        yield Diagnostic(
            "E0602",
            "the options are no record of ints, floats, bools and strings",
            found["options"].span,
            f"it gives {found['options'].type.result}",
            help="each field is an option of the command",
        )
    if data is not None and not (isinstance(data, RecordOf) and dict(data.fields) == DATA_FIELDS):
        yield Diagnostic(
            "E0602",
            "`data` gives a record { file: string, url: string, bytes: int, sha256: string }",
            found["data"].span,
            f"it gives {found['data'].type.result}",
        )
