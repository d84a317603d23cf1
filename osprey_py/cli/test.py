"""`osprey test [PATH …]`: every `*.test.osp` below a folder, as one TAP stream."""

from __future__ import annotations

import sys
from pathlib import Path

from osprey_py.cli.options import Parser, add_backend_options, make_backend, report


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey test",
        description="Run the tests in every `*.test.osp` file below the given folders (default: the working directory).",
    )
    add_backend_options(parser)
    parser.add_argument(
        "--filter", metavar="TEXT", help="run the tests whose names contain this; the others are skipped"
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="folders, or single files")
    options = parser.parse_args(argv)
    files: list[Path] = []
    for path in options.paths or [Path()]:
        if not path.exists():
            print(f"osprey test: there is no {path}", file=sys.stderr)
            return 1
        files += [path] if path.is_file() else sorted(path.rglob("*.test.osp"))
    if not files:
        print(
            "osprey test: no file is named *.test.osp here; one holds calls of `test(name, fn() => …)`", file=sys.stderr
        )
        return 1

    from osprey_py.check import load_program
    from osprey_py.eval.library.tests import Harness
    from osprey_py.eval.run import run_program
    from osprey_py.graph.runtime import Runtime

    harness = Harness(shared=True, only=options.filter)
    backend = make_backend(options.device, options.threads)
    for file in files:
        print(f"# {file}", flush=True)
        program, diagnostics = load_program(file)
        report(diagnostics)
        ended = program is not None and not run_program(
            program,
            runtime=Runtime(backend),
            harness=harness,
            folder=str(file.parent),
        )
        if not ended:
            # It ended before its tests did: a file that does not check, or a fault outside of every test.
            harness.count += 1
            print(f"not ok {harness.count} - {file} runs to its end", flush=True)
    print(harness.summary(), flush=True)
    return 1 if harness.failed or harness.stray else 0
