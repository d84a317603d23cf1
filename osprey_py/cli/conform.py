"""`osprey conform`: does a device give the right bytes?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from osprey_py.backends.protocol import Backend
from osprey_py.cli.options import Parser, make_backend, positive

if TYPE_CHECKING:
    from osprey_py.conformance.suite import Found

PARTS = ("launches", "mathematics", "programs", "generated", "examples")


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey conform",
        description="Run launches, functions, programs and examples on a device and compare with the oracle or the host, "
        "byte for byte. What differs first is named: the program, the launch, the line, the element, both values.",
    )
    parser.add_argument("--device", metavar="NAME", help="one device (default: every one that can be used)")
    parser.add_argument(
        "--against", choices=("oracle", "host"), default="oracle", help="what is right (default: the oracle)"
    )
    parser.add_argument(
        "--generated", metavar="N", type=positive, default=25, help="how many random programs (default: 25)"
    )
    parser.add_argument(
        "--points", metavar="N", type=positive, default=10_000, help="points of each function (default: 10000)"
    )
    parser.add_argument(
        "--seed", metavar="N", type=positive, default=1, help="of points, and the first random program's number"
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="this part only; may be given again")
    parser.add_argument("--only", metavar="TEXT", default="", help="what has this in its name")
    parser.add_argument("--first", action="store_true", help="stop at the first difference")
    parser.add_argument(
        "--threads", metavar="N", type=positive, help="threads of the host backend (default: every core)"
    )
    parser.add_argument("--verbose", action="store_true", help="name everything that is compared")
    options = parser.parse_args(argv)
    from osprey_py.conformance import suite

    right = make_backend(options.against, options.threads)
    # Where the oracle would take minutes, the host, which is held to it, takes its place.
    fast = _fast(right, options.threads)
    worst = 0
    for tested in [make_backend(options.device, options.threads)] if options.device else _every(options):
        parts: dict[str, Iterator[Found]] = {
            "launches": suite.launches(right, tested, options.only),
            "mathematics": suite.mathematics(fast, tested, options.points, options.seed, options.only),
            "programs": suite.programs(right, tested, options.only),
            "generated": suite.generated(right, tested, 0 if options.only else options.generated, options.seed),
            "examples": suite.examples(fast, tested, options.only),
        }
        found = chain.from_iterable(parts[name] for name in PARTS if name in (options.part or PARTS))
        worst = max(worst, report(tested.name, right.name, found, first=options.first, verbose=options.verbose))
    return worst


def _every(options: object) -> Iterator[Backend]:
    """Every device that can be used; of the others, why not."""
    from osprey_py.backends.discovery import choices, names, open_device
    from osprey_py.backends.protocol import Unusable

    for name in names():
        if name == getattr(options, "against", None) or name == "oracle":
            continue
        try:
            for device in choices(name):
                yield make_backend(device, getattr(options, "threads", None)) if name == "host" else open_device(device)
        except Unusable as error:
            print(f"{name}: cannot be used: {error.text}")


def _fast(right: Backend, threads: int | None) -> Backend:
    return make_backend("host", threads) if right.name == "oracle" else right


def report(device: str, right: str, found: Iterator[Found], *, first: bool = False, verbose: bool = False) -> int:
    """Count by operation, tell what differs; the exit code."""
    counts: dict[str, list[int]] = {}
    total = failed = refused = 0
    for one in found:
        total += 1
        count = counts.setdefault(one.operation, [0, 0])
        count[0] += 1
        refused += one.refused
        if one.difference is not None:
            failed += 1
            count[1] += 1
            print(f"differs: {one.name}: {one.difference}", file=sys.stderr)
            if first:
                break
        elif verbose:
            print(f"{'refused' if one.refused else 'equal'}: {one.name}")
    for operation, (all_of_it, wrong) in counts.items():
        if wrong:
            print(f"{device}: {operation}: {wrong} of {all_of_it} differ")
    if verbose:
        print(f"{device}: " + ", ".join(f"{operation} {n - wrong}/{n}" for operation, (n, wrong) in counts.items()))
    more = f", {refused} of them refused by name" if refused else ""
    print(f"{device}: {total - failed} of {total} equal to the {right}'s bytes{more}")
    return 1 if failed else 0
