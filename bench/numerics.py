"""The host's exp, ln and tanh: correct against MPFR on many random points, and timed beside numpy's.

    python bench/numerics.py [--points 1000000] [--seed 0] [--threads 1]

One line a function, then all as one line of JSON: differences from MPFR (there must be none), the share of numpy's results
that differ, and medians in nanoseconds an element over a million elements from [-5, 5] (ln: (0, 10]). numpy's functions use
one thread, whatever ours use. Needs gmpy2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gmpy2
import numpy as np

from osprey_py.backends.host import HostBackend
from osprey_py.backends.protocol import Kind, Step, Storage
from osprey_py.kernel.ir import FLOAT, Kernel, Node, index, load

PEERS: dict[str, tuple[Any, Any]] = {
    "exp": (gmpy2.exp, np.exp),
    "ln": (gmpy2.log, np.log),
    "tanh": (gmpy2.tanh, np.tanh),
}


def launch(name: str, points: Any, threads: int) -> Callable[[], Any]:
    """A function that runs the host's map of one of the functions over the points."""
    backend = HostBackend(threads)
    kernel = Kernel((FLOAT,), (), Node(name, FLOAT, (load(0, FLOAT, index()),)))
    source, output = Storage(Kind.F64, points), backend.allocate(Kind.F64, len(points))
    bare = Step("map", kernel, (source,), (), len(points), output, None)
    compiled = backend.compile("map", kernel, (Kind.F64,), bare)
    step = Step("map", kernel, (source,), (), len(points), output, compiled)

    def run() -> Any:
        backend.run([step])
        return output.data

    return run


def points_for(name: str, n: int, rng: np.random.Generator) -> Any:
    """Where models compute, around 1 and 0, and everywhere."""
    parts = [
        rng.uniform(-30, 30, n // 2),
        rng.integers(-(2**63), 2**63 - 1, n // 8).view(np.float64),
        rng.uniform(0.5, 2.0, n // 8),
        rng.uniform(-1, 1, n // 8) * 2.0 ** rng.integers(-60, 0, n // 8),
        rng.uniform(-746, 710, n // 8),
    ]
    x = np.concatenate(parts)
    x = x[~np.isnan(x)]
    return np.abs(x) if name == "ln" else x


def median_ns(f: Callable[[], Any], n: int) -> float:
    times = []
    for _ in range(31):
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / n * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    gmpy2.set_context(gmpy2.context(precision=53, emax=1024, emin=-1073, subnormalize=True))
    report: dict[str, dict[str, float]] = {}
    for name, (truth, peer) in PEERS.items():
        x = points_for(name, options.points, rng)
        ours = launch(name, x, 1)().copy()
        right = np.array([float(truth(gmpy2.mpfr(v))) for v in x.tolist()])
        with np.errstate(all="ignore"):
            theirs = peer(x)
        wrong = int(np.count_nonzero((ours != right) & ~(np.isnan(ours) & np.isnan(right))))
        share = np.count_nonzero((theirs != right) & ~(np.isnan(theirs) & np.isnan(right))) / len(x)
        y = rng.uniform(-5, 5, 1_000_000)
        y = np.abs(y) * 2 if name == "ln" else y
        run, out = launch(name, y, options.threads), np.empty_like(y)
        run()
        mine, other = median_ns(run, len(y)), median_ns(partial(peer, y, out=out), len(y))
        print(
            f"{name:5} {len(x):,} points: {wrong} differ from MPFR (numpy: {share:.2%});"
            f" {mine:.2f} ns an element (numpy {other:.2f})",
            flush=True,
        )
        report[name] = {"osprey_ns": mine, "numpy_ns": other, "wrong": wrong, "numpy_wrong": share}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
