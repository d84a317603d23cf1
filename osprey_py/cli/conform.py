"""`osprey conform`: does a backend give the oracle's bytes?"""

from __future__ import annotations

import sys

from osprey_py.backends.discovery import names as backend_names
from osprey_py.backends.protocol import Backend
from osprey_py.cli.options import Parser, make_backend, positive


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey conform",
        description="Run the conformance launches and compare with the oracle, byte for byte.",
    )
    parser.add_argument("--device", metavar="NAME", help="one backend (default: every one that is installed)")
    parser.add_argument(
        "--threads", metavar="N", type=positive, help="threads of the host backend (default: every core)"
    )
    parser.add_argument("--verbose", action="store_true", help="name every case")
    options = parser.parse_args(argv)
    names = [options.device] if options.device else [name for name in backend_names() if name != "oracle"]
    # Each is tried, whatever became of the ones before.
    return max([conform(make_backend(name, options.threads), options.verbose) for name in names])


def conform(tested: Backend, verbose: bool) -> int:
    """Compare one backend, case by case; the exit code."""
    from osprey_py.backends.oracle import OracleBackend
    from osprey_py.conformance.cases import cases
    from osprey_py.conformance.compare import difference

    oracle = OracleBackend()
    total = failed = 0
    for case in cases():
        total += 1
        found = difference(case, oracle, tested)
        if found is not None:
            failed += 1
            print(f"differs: {case.name}: {found}", file=sys.stderr)
        elif verbose:
            print(f"equal: {case.name}")
    print(f"{tested.name}: {total - failed} of {total} cases equal to the oracle's bytes")
    return 1 if failed else 0
