"""Projects of several files: L7.1 to L7.9."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.check import load_program
from osprey_py.check.core import Bind, Program, PVar
from osprey_py.modules.paths import namespace_of, stdlib_path
from osprey_py.source.diagnostic import Diagnostic


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "main.osp"


def accepted(folder: Path, files: dict[str, str]) -> Program:
    program, told = load_program(write(folder, files))
    assert program is not None, [d.title for d in told]
    return program


def refused(folder: Path, files: dict[str, str]) -> list[Diagnostic]:
    program, told = load_program(write(folder, files))
    assert program is None
    return told


LAYERS = """// a library
namespace gpt2;
export module Layers {
    fn half(x) = x / 2.0
    export fn linear(x) = half(x) + 1.0
    export type Layer = { width: int }
    export effect Log { write: fn(string) -> Unit }
}
export fn top(x) = x
fn hidden(x) = x
export type Shape = Circle { radius: float } | Empty
export let scale = 2.0
"""


def test_import_forms(tmp_path: Path) -> None:
    """L7.3: a module, a renamed item, a namespace, types, effects and variants come in by import."""
    program = accepted(
        tmp_path,
        {
            "layers.osp": LAYERS,
            "main.osp": """
import gpt2
import gpt2::Layers
import gpt2::Layers as L
import gpt2::Layers::{linear as lin, Layer, Log}
import gpt2::{Shape, Circle, scale}
fn f(layer: Layer, other: L::Layer) = { perform Log.write("x")  layer.width + other.width }
print(lin(1.0) + Layers::linear(2.0) + L::linear(3.0) + gpt2::Layers::linear(4.0) + scale)
handle Log write m => print(m) in print(f(Layer { width: 1 }, L::Layer { width: 2 }))
match (Circle { radius: 1.0 }) { Circle { radius } => print(radius)  gpt2::Empty => print("none") }
print(gpt2::top(1))
""",
        },
    )
    assert "gpt2::Layers::linear" in program.functions
    assert "gpt2::scale" in program.globals
    assert program.types["gpt2::Shape"].constructors[0].name == "Circle"


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    """L7.2: a file that nothing needs may be broken."""
    program = accepted(
        tmp_path,
        {
            "broken.osp": "namespace broken;\nfn f( = 1",
            "other.osp": "let z = zz",
            "layers.osp": LAYERS,
            "main.osp": "import gpt2::Layers::{linear}\nprint(linear(1.0))",
        },
    )
    assert "z" not in program.globals


def test_imports_of_imports_run_first(tmp_path: Path) -> None:
    """L7.9: dependencies first, each file in written order."""
    program = accepted(
        tmp_path,
        {
            "a.osp": "namespace a;\nimport b::{two}\nexport let three = two + 1\nexport let four = three + 1",
            "b.osp": "namespace b;\nexport let two = 2",
            "main.osp": "import a::{four}\nlet five = four + 1\nprint(five)",
        },
    )
    names = [s.pattern.var.name for s in program.startup if isinstance(s, Bind) and isinstance(s.pattern, PVar)]
    assert names == ["two", "three", "four", "five"]


def test_one_namespace_in_several_files(tmp_path: Path) -> None:
    """L7.1: files of one namespace see each other's names, private ones too; other programs beside are left out."""
    program = accepted(
        tmp_path,
        {
            "part.osp": "namespace app;\nfn helper(x) = x + 1",
            "program.osp": "namespace app;\nfn main() = print(1)\nfn helper(x) = x",
            "broken.osp": "namespace app;\nprint(1)\nlet x = (",
            "main.osp": "namespace app;\nfn main() = print(helper(1))",
        },
    )
    assert set(program.functions) == {"app::helper", "app::main"}
    assert program.main == "app::main"


def test_private_across_namespaces(tmp_path: Path) -> None:
    """L7.5: what a namespace does not export is private to it."""
    told = refused(tmp_path, {"layers.osp": LAYERS, "main.osp": "import gpt2\nprint(gpt2::hidden(1))"})
    assert [(d.code, d.title) for d in told] == [("E0102", "function `hidden` is private")]
    told = refused(tmp_path, {"main.osp": "import gpt2::{hidden}\nprint(hidden(1))"})
    assert [(d.code, d.title) for d in told] == [("E0102", "function `hidden` is private to `gpt2`")]


def test_ambiguous_import(tmp_path: Path) -> None:
    """L7.6: a name brought in twice is ambiguous where it is used, and only there."""
    files = {
        "a.osp": "namespace a;\nexport fn f(x) = x",
        "b.osp": "namespace b;\nexport fn f(x) = x + 1",
        "main.osp": "import a::{f}\nimport b::{f}\nprint(1)",
    }
    accepted(tmp_path, files)
    told = refused(tmp_path, {"main.osp": files["main.osp"] + "\nprint(f(1))"})
    assert [d.code for d in told] == ["E0103"]
    assert {label.text for label in told[0].labels} == {"`a::f`", "`b::f`"}


def test_same_thing_twice_is_not_ambiguous(tmp_path: Path) -> None:
    """L7.6: two imports of one declaration are one name."""
    accepted(
        tmp_path,
        {
            "a.osp": "namespace a;\nexport fn f(x) = x",
            "main.osp": "import a::{f}\nimport a::{f}\nprint(f(1))",
        },
    )


def test_modules_see_outwards(tmp_path: Path) -> None:
    """L7.4: a module sees the names around it, and its own imports."""
    accepted(
        tmp_path,
        {
            "a.osp": "namespace a;\nexport fn f(x) = x",
            "main.osp": """
fn outer(x) = x + 1
module M {
    import a::{f as g}
    fn own(x) = outer(x)
    export fn go(x) = g(own(x))
    module Deep { export fn go(x) = own(x) }
    export fn deep(x) = Deep::go(x)
}
print(M::go(1) + M::deep(1))
""",
        },
    )
    told = refused(tmp_path, {"main.osp": "module M { import a::{f} }\nprint(f(1))"})
    assert [d.code for d in told] == ["E0101"]


def test_declarations_and_modules_see_what_their_file_imports(tmp_path: Path) -> None:
    """L7.3, L7.4: in the fields of records and unions, in aliases and effects, in modules; not in another file."""
    user = """
namespace b;
import a::{T, f}
export type R = { t: T }
type U = A(T) | B { t: List<T> }
type X = (T, int)
effect E { op: fn(T) -> X }
export module M {
    export type S = { t: T, r: R }
    export fn go(n) = f(n)
}
"""
    files = {
        "a.osp": "namespace a;\nexport type T = { n: int }\nexport fn f(x) = x",
        "b.osp": user,
        "main.osp": "import a::{T}\nimport b::{R}\nimport b::M\nprint(M::go(R { t: T { n: 1 } }.t.n))",
    }
    accepted(tmp_path, files)
    told = refused(tmp_path, {**files, "c.osp": "namespace b;\ntype Q = { t: T }"})
    assert [d.code for d in told] == ["E0111"]


def test_import_cycle(tmp_path: Path) -> None:
    """L7.2: namespaces may import each other."""
    accepted(
        tmp_path,
        {
            "a.osp": "namespace a;\nimport b\nexport fn even(n: int) -> bool = n == 0 ? true : b::odd(n - 1)",
            "b.osp": "namespace b;\nimport a\nexport fn odd(n: int) -> bool = n == 0 ? false : a::even(n - 1)",
            "main.osp": "import a\nprint(a::even(4))",
        },
    )


def test_nested_namespaces(tmp_path: Path) -> None:
    """L7.1: a namespace is a path."""
    accepted(
        tmp_path,
        {
            "a.osp": "namespace lib::maths;\nexport fn f(x) = x",
            "b.osp": "namespace lib;\nexport fn g(x) = x",
            "main.osp": "import lib::maths\nimport lib::maths::{f}\nimport lib::{g}\nprint(maths::f(f(g(1))))",
        },
    )


def test_errors_in_libraries_are_told_with_their_file(tmp_path: Path) -> None:
    """L7.2: what is wrong in an imported file is told there."""
    told = refused(tmp_path, {"a.osp": "namespace a;\nexport fn f() = 1 + true", "main.osp": "import a\nprint(a::f())"})
    assert told[0].span.source.path.endswith("a.osp")


def test_folder(tmp_path: Path) -> None:
    """L7.1: a folder with one program in it is a project."""
    write(tmp_path, {"layers.osp": LAYERS, "start.osp": "import gpt2\nprint(gpt2::top(1))"})
    program, _ = load_program(tmp_path)
    assert program is not None
    write(tmp_path, {"second.osp": "print(1)"})
    program, told = load_program(tmp_path)
    assert program is None
    assert told[0].code == "E0109"
    assert "second.osp, start.osp" in told[0].title


def test_missing_file(tmp_path: Path) -> None:
    program, told = load_program(tmp_path / "none.osp")
    assert program is None
    assert told[0].code == "E0017"


def test_prelude_is_everywhere(tmp_path: Path) -> None:
    """L7.7: the prelude's names need no import, and are taken."""
    accepted(tmp_path, {"main.osp": "namespace app;\nfn f(j: Json) = match j { JsonNull => 1  _ => 2 }"})
    told = refused(tmp_path, {"main.osp": "type Json = { x: int }\nprint(1)"})
    assert [d.code for d in told] == ["E0105"]


def test_test_names_may_be_redefined(tmp_path: Path) -> None:
    """L7.8: the names of the test built-ins are free."""
    accepted(tmp_path, {"main.osp": "fn check(x) = x + 1\nprint(check(1))"})


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        ("namespace a;\n", ("a",)),
        ("// c\n\n/// d\nnamespace a::b ;", ("a", "b")),
        ("let namespace2 = 1", ()),
        ("fn f() = 1\nnamespace a;", ()),
        ("", ()),
    ],
)
def test_namespace_scan(text: str, namespace: tuple[str, ...]) -> None:
    """L7.1"""
    assert namespace_of(text) == namespace


def test_stdlib_is_found() -> None:
    assert (stdlib_path() / "prelude.osp").is_file()


def test_the_prelude_itself_can_be_checked() -> None:
    """L7.7: it is a file like any other."""
    program, told = load_program(stdlib_path() / "prelude.osp")
    assert program is not None, told
