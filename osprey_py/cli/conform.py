"""`osprey conform`: does a backend give the oracle's bytes?"""

from __future__ import annotations

import sys

from osprey_py.cli.options import Parser, add_backend_options, make_backend


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey conform",
        description="Run the conformance launches on a backend and compare with the oracle, byte for byte.",
    )
    add_backend_options(parser)
    parser.add_argument("--verbose", action="store_true", help="name every case")
    options = parser.parse_args(argv)

    from osprey_py.backends.oracle import OracleBackend
    from osprey_py.conformance.cases import cases
    from osprey_py.conformance.compare import difference

    oracle, tested = OracleBackend(), make_backend(options.device, options.threads)
    total = failed = 0
    for case in cases():
        total += 1
        found = difference(case, oracle, tested)
        if found is not None:
            failed += 1
            print(f"differs: {case.name}: {found}", file=sys.stderr)
        elif options.verbose:
            print(f"equal: {case.name}")
    print(f"{tested.name}: {total - failed} of {total} cases equal to the oracle's bytes")
    return 1 if failed else 0
