"""`osprey check PROGRAM`: everything short of running it."""

from __future__ import annotations

from pathlib import Path

from osprey_py.cli.options import Parser, report


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey check", description="Check a program: syntax, names, types, effects, and that every kernel is pure."
    )
    parser.add_argument("program", type=Path, help="an .osp file")
    parser.add_argument("--stats", action="store_true", help="say how many kernels were proven pure")
    parser.add_argument("--json", action="store_true", help="diagnostics as a JSON list on standard output, for tools")
    options = parser.parse_args(argv)

    from osprey_py.check import load_program

    program, diagnostics = load_program(options.program)
    if options.json:
        import json

        from osprey_py.source.render import to_json

        print(json.dumps([to_json(d) for d in diagnostics], indent=2, ensure_ascii=False))
    else:
        report(diagnostics)
    if program is None:
        return 1
    if options.stats and not options.json:
        print(f"GPU kernels: {program.kernels} pure")
    return 0
