"""Names, types, effects and purity, match coverage: from source to the typed program.

load_program(path)   a file (or a folder with one program) and all it imports
load_checked(path)   the same with the project, for those who look for declarations
check_source(text)   one text, for tests and tools
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from osprey_py.source.deep import call_deep
from osprey_py.source.diagnostic import Diagnostic
from osprey_py.source.span import Source

if TYPE_CHECKING:
    from osprey_py.check.core import Program
    from osprey_py.modules.project import Project


@contextmanager
def _no_collection() -> Iterator[None]:
    """Checking makes many long-lived objects and little garbage: looking for cycles meanwhile doubles its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def load_program(path: Path) -> tuple[Program | None, list[Diagnostic]]:
    """The typed program of an entry file, None when there are errors; and all diagnostics, warnings too."""
    program, diagnostics, _ = load_checked(path)
    return program, diagnostics


def load_checked(path: Path) -> tuple[Program | None, list[Diagnostic], Project]:
    """As `load_program`, with the project that was checked."""
    from osprey_py.check.program import check_project
    from osprey_py.modules.project import load_project

    def load() -> tuple[Program | None, list[Diagnostic], Project]:
        project = load_project(path)
        return *check_project(project), project

    with _no_collection():
        return call_deep(load)


def check_source(
    text: str, name: str = "test.osp", folder: Path | None = None
) -> tuple[Program | None, list[Diagnostic]]:
    """The typed program of a text. folder: where files beside it are looked for, None for nowhere."""
    from osprey_py.check.program import check_project
    from osprey_py.modules.project import load_source

    with _no_collection():
        return call_deep(lambda: check_project(load_source(Source(name, text), folder)))
