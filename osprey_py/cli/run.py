"""`osprey run PROGRAM …`: check a program, then run it."""

from __future__ import annotations

import sys
from pathlib import Path

from osprey_py.cli.options import BACKEND_OPTIONS, Parser, add_backend_options, make_backend, report, split_at_program


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey run",
        usage="osprey run [OPTIONS] PROGRAM [ARGUMENTS OF THE PROGRAM]",
        description="Check a program and run it. What follows the program's path belongs to the program.",
    )
    add_backend_options(parser)
    parser.add_argument("--plan", action="store_true", help="afterwards, say what was launched (on standard error)")
    parser.add_argument(
        "--no-fusion", action="store_true", help="launch every buffer by itself; the bytes are the same"
    )
    parser.add_argument(
        "--profile", action="store_true", help="afterwards, say where the time went (on standard error)"
    )
    parser.add_argument(
        "--verify-device",
        metavar="NAME",
        help="run every launch on this device too and compare every buffer, byte for byte, as it is made",
    )
    own, rest = split_at_program(argv, (*BACKEND_OPTIONS, "--verify-device"))
    options = parser.parse_args(own)
    if not rest:
        parser.error("which program? give the path of an .osp file")

    from osprey_py.check import load_program

    program, diagnostics = load_program(Path(rest[0]))
    report(diagnostics)
    if program is None:
        return 1

    from osprey_py.backends.garbage import keep
    from osprey_py.eval.run import run_program
    from osprey_py.graph.runtime import Runtime

    watched = options.plan or options.profile
    backend = make_backend(options.device, options.threads)
    verifying = None
    if options.verify_device:
        from osprey_py.conformance.verify import Verifying

        backend = verifying = Verifying(backend, make_backend(options.verify_device, options.threads))
    runtime = Runtime(backend, fusion=not options.no_fusion, profile=watched)
    keep()
    code = run_program(program, args=rest[1:], runtime=runtime, folder=str(Path(rest[0]).parent))
    if options.plan:
        print(runtime.plan_text(), file=sys.stderr)
    if options.profile:
        print(runtime.profile_text(), file=sys.stderr)
    if verifying is not None:
        print(verifying.summary(), file=sys.stderr)
    return code
