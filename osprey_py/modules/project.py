"""From an entry file to all the files its program is made of, each with the names it sees.

Comes in: a path, or text. Goes out: a `Project` with its files dependencies first, and every complaint of reading, parsing
and importing. Only files that the entry needs are parsed. Spec: types-and-effects L7.1 to L7.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from osprey_py.modules.declare import declare, declared_types
from osprey_py.modules.imports import resolve_imports
from osprey_py.modules.paths import files_by_namespace, read_text, stdlib_path
from osprey_py.modules.spaces import BUILTINS, SORTS, Space, Symbol
from osprey_py.source.diagnostic import Diagnostic, Label, OspreyError
from osprey_py.source.load import read_source
from osprey_py.source.span import NO_SPAN, Source, Span
from osprey_py.syntax import ast
from osprey_py.syntax.parser import parse

Namespace = tuple[str, ...]
PRELUDE: Namespace = ("<prelude>",)


@dataclass(eq=False, slots=True)
class LoadedFile:
    """A parsed file and the space its top level is read in."""

    file: ast.File
    namespace: Namespace
    folder: Path | None
    space: Space


@dataclass(eq=False, slots=True)
class Project:
    """files: dependencies first, the prelude before all, the entry last."""

    files: list[LoadedFile] = field(default_factory=list)
    entry: LoadedFile | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)


def load_project(path: Path) -> Project:
    """The project of an entry file, or of a folder with one program in it."""
    loader = _Loader()
    if path.is_dir():
        found = loader.program_in(path)
        if found is None:
            return loader.project
        path = found
    file = loader.read(path, show=str(path))
    return loader.finish(file, path.parent)


def load_source(source: Source, folder: Path | None = None) -> Project:
    """The project of a text; `folder` is where the files beside it are looked for."""
    loader = _Loader()
    return loader.finish(loader.parse(source), folder)


def imports_of(statements: tuple[ast.Statement, ...]) -> Iterator[ast.Import]:
    """Every import, those in modules included."""
    for s in statements:
        if isinstance(s, ast.Import):
            yield s
        elif isinstance(s, ast.ModuleDecl):
            yield from imports_of(s.body)


def program_parts(file: ast.File) -> tuple[ast.Statement | None, ast.FunctionDecl | None]:
    """The first statement that runs and `fn main()`: a file with neither is a library."""
    runs = next((s for s in file.statements if isinstance(s, (ast.ExprStatement, ast.Assign))), None)
    main = next((s for s in file.statements if isinstance(s, ast.FunctionDecl) and s.name.text == "main"), None)
    return runs, main


class _Loader:
    def __init__(self) -> None:
        self.project = Project()
        self._spaces: dict[Namespace, Symbol] = {}
        self._loaded: dict[Namespace, list[LoadedFile]] = {}
        self._indexes: dict[Path, dict[Namespace, list[Path]]] = {}
        self._prelude = Space(("prelude",), BUILTINS, "prelude")

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self, path: Path, show: str) -> ast.File | None:
        try:
            source = read_source(path)
        except OspreyError as error:
            self.project.diagnostics.extend(error.diagnostics)
            return None
        return self.parse(Source(show, source.text))

    def parse(self, source: Source) -> ast.File | None:
        file, told = parse(source)
        for d in told:
            self._tell(d)
        return file

    def program_in(self, folder: Path) -> Path | None:
        """The one file of a folder that is a program."""
        programs = []
        for paths in files_by_namespace([folder]).values():
            for p in paths:
                file, _ = parse(Source(str(p), read_text(p)))
                if file is not None and any(program_parts(file)):
                    programs.append(p)
        if len(programs) == 1:
            return programs[0]
        names = ", ".join(sorted(p.name for p in programs))
        title = f"{folder} holds several programs: {names}" if programs else f"{folder} holds no program"
        hint = "name the file to run" if programs else "a program has statements at file scope, or `fn main()`"
        self._tell(Diagnostic("E0109", title, Span(Source(str(folder), ""), 0, 0), help=hint))
        return None

    # --- building ---------------------------------------------------------------------------------------------------

    def finish(self, file: ast.File | None, folder: Path | None) -> Project:
        self._load_prelude(file)
        if file is None:
            return self.project
        namespace = tuple(n.text for n in file.namespace)
        entry = LoadedFile(file, namespace, folder, self._file_space(namespace))
        self.project.entry = entry
        self._check_program(file)
        self._loaded[namespace] = [entry]
        if namespace and folder is not None:
            siblings = self._library_files(namespace, folder, file.source.path)
            self._loaded[namespace].extend(siblings)
            for sibling in siblings:
                self._needs(sibling)
        self._needs(entry)
        others = [f for f in self._loaded[namespace] if f is not entry]
        self.project.files = [*self.project.files, *others, entry]
        everything = self.project.files
        type_names = set(BUILTINS.names["type"])
        for f in everything:
            type_names.update(declared_types(f.file.statements))
        for f in everything:
            assert f.space.parent is not None
            for d in declare(f.file.statements, f.space.parent, f.space, type_names, self._prelude):
                self._tell(d)
            if f.namespace == PRELUDE:
                self._show_prelude(f.space.parent)
        for f in everything:
            for d in resolve_imports(f.file.statements, f.space, f.space.parent, self._spaces):
                self._tell(d)
        return self.project

    def _tell(self, d: Diagnostic) -> None:
        self.project.diagnostics.append(d)

    def _file_space(self, namespace: Namespace) -> Space:
        symbol = self._namespace(namespace)
        assert symbol.inside is not None
        space = Space(namespace, symbol.inside, "file")
        if namespace:
            space.bring(namespace[0], self._namespace(namespace[:1]))
        return space

    def _namespace(self, path: Namespace) -> Symbol:
        """The symbol of a namespace, made with its parents the first time."""
        symbol = self._spaces.get(path)
        if symbol is None:
            name = path[-1] if path else ""
            inside = Space(path, self._prelude, "namespace")
            symbol = Symbol(name, "::".join(path), "module", "namespace", NO_SPAN, None, inside=inside)
            self._spaces[path] = symbol
            if len(path) > 1:
                parent = self._namespace(path[:-1]).inside
                assert parent is not None
                parent.names["module"][name] = symbol
        return symbol

    def _needs(self, file: LoadedFile) -> None:
        """Loads what a file imports; what is loaded is appended, dependencies first."""
        for imported in imports_of(file.file.statements):
            path = tuple(n.text for n in imported.path)
            for cut in range(len(path), 0, -1):
                if path[:cut] in self._loaded or self._load(path[:cut], file.folder):
                    break

    def _index(self, folder: Path) -> dict[Namespace, list[Path]]:
        if folder not in self._indexes:
            self._indexes[folder] = files_by_namespace([folder])
        return self._indexes[folder]

    def _load(self, namespace: Namespace, folder: Path | None) -> bool:
        for place in (folder, stdlib_path()):
            if place is None or namespace not in self._index(place):
                continue
            files = self._library_files(namespace, place, "")
            self._loaded[namespace] = files
            for f in files:
                self._needs(f)
            self.project.files.extend(files)
            return bool(files)
        return False

    def _library_files(self, namespace: Namespace, folder: Path, entry: str) -> list[LoadedFile]:
        """The files of a namespace in a folder. A file that is itself a program is part of no other program."""
        files = []
        entry_path = Path(entry).resolve() if entry else None
        for path in self._index(folder).get(namespace, ()):
            if path.resolve() == entry_path:
                continue
            before = len(self.project.diagnostics)
            file = self.read(path, show=self._shown(path))
            if file is not None and any(program_parts(file)):
                del self.project.diagnostics[before:]
            elif file is not None:
                files.append(LoadedFile(file, namespace, folder, self._file_space(namespace)))
        return files

    def _shown(self, path: Path) -> str:
        library = stdlib_path()
        return f"stdlib/{path.name}" if path.parent == library else str(path)

    def _load_prelude(self, entry: ast.File | None) -> None:
        """The prelude's names are bare, like those of built-ins; it shares its space with no other file."""
        path = stdlib_path() / "prelude.osp"
        if entry is not None and Path(entry.source.path).resolve() == path:
            return
        file = self.read(path, show="stdlib/prelude.osp") if path.is_file() else None
        if file is None:
            return
        space = Space((), Space((), self._prelude, "namespace"), "file")
        loaded = LoadedFile(file, PRELUDE, path.parent, space)
        self._needs(loaded)
        self.project.files.append(loaded)

    def _show_prelude(self, space: Space) -> None:
        """What the prelude exports is seen everywhere."""
        for sort in SORTS:
            for name, symbol in space.names[sort].items():
                if symbol.exported:
                    self._prelude.bring(name, symbol)

    def _check_program(self, file: ast.File) -> None:
        runs, main = program_parts(file)
        if runs is not None and main is not None:
            self._tell(
                Diagnostic(
                    "E0107",
                    "a program has statements or `fn main()`, not both",
                    runs.span,
                    "this statement runs when the file does",
                    (Label(main.name.span, "`main` is declared here"),),
                    help="move the statements into `main`, or rename it",
                )
            )
