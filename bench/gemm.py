"""Matrix products against other libraries on the same machine, in the same run, in turns.

    python bench/gemm.py [--torch PYTHON] --threads 2 [--seconds 1.0] [--only 24x768x3072]

Prints a line for each case, then one line of JSON. Rates are GFLOP/s (a multiplication and an addition are two), medians
and best. Ours is binary64 in the contract's order with weights in the storage kind named; numpy's (OpenBLAS) and PyTorch's
results are in whatever order they choose. PyTorch runs in a process of its own, right after each case, when PYTHON has it.
A turn is a burst of calls, the first of which is not counted: it wakes the library's threads. Threads of one library that
spin after a call slow the next one's, so with more than one thread a pause lies between turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from measure import PEERS, run


@dataclass(frozen=True)
class Case:
    """A [m, k] x [k, n] product; turned: the right operand lies as [n, k]."""

    m: int
    k: int
    n: int
    turned: bool = False

    @property
    def name(self) -> str:
        return f"{self.m}x{self.k}x{self.n}" + ("t" if self.turned else "")

    @property
    def work(self) -> int:
        return 2 * self.m * self.k * self.n


CASES = (
    Case(1024, 1024, 1024),
    Case(24, 768, 3072),
    Case(24, 3072, 768),
    Case(5, 768, 3072),
    Case(1, 768, 3072),
    Case(1, 3072, 768),
    Case(1, 768, 50257, turned=True),
    Case(24, 768, 50257, turned=True),
    Case(1024, 64, 256),
    Case(64, 16, 64, turned=True),
)


def ours(case: Case, left: Any, right: Any, kind_name: str, threads: int) -> tuple[Callable[[], object], Any]:
    """(a call that computes the product, the array it writes)."""
    import numpy as np

    from osprey_py.backends.host import gemm
    from osprey_py.backends.host.pool import Plan, Pool
    from osprey_py.backends.protocol import Kind

    kind = Kind(kind_name)
    stored = np.ascontiguousarray(right, kind.dtype)
    out = np.zeros((case.m, case.n))
    b = (case.k, 1) if case.turned else (1, case.n)
    step = gemm.launch(
        gemm.Product(
            case.m,
            case.n,
            case.k,
            gemm.Operand(left.ctypes.data, Kind.F64, case.k, 1),
            gemm.Operand(stored.ctypes.data, kind, *b),
            out.ctypes.data,
            case.n,
        ),
        threads,
    )
    plan, pool = Plan(), Pool(threads)
    plan.add(step.function, step.address, step.units, step.grain)

    def call() -> object:
        pool.run(plan, step.scratch)
        return stored, out  # alive as long as this function

    return call, out


def peers(case: Case, left: Any, right: Any) -> dict[str, Callable[[], object]]:
    import numpy as np

    calls: dict[str, Callable[[], object]] = {}
    for dtype in ("float64", "float32"):
        a, b = left.astype(dtype), np.ascontiguousarray(right, dtype)
        b = b.T if case.turned else b
        calls[f"numpy {dtype}"] = lambda a=a, b=b: a @ b  # type: ignore[misc]
    return calls


def torch_times(case: Case, o: argparse.Namespace) -> dict[str, list[float]]:
    """Of PyTorch's products."""
    words = [str(case.m), str(case.k), str(case.n), *(["--turned"] if case.turned else [])]
    more = ["--threads", str(o.threads), "--seconds", str(o.seconds)]
    found = json.loads(run([o.torch, str(PEERS / "gemm_torch.py"), *words, *more], o.threads).last)
    return {f"torch {dtype}": times for dtype, times in found.items()}


BURST = 0.02
"""Seconds that a turn lasts, or six calls."""
PAUSE = 0.2
"""Seconds. OpenBLAS's threads spin for up to half of it; with less, who comes after it has one core."""


def measure(calls: dict[str, Callable[[], object]], seconds: float, threads: int) -> dict[str, list[float]]:
    """Seconds of each counted call of each, which take turns until they have had so many seconds together."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    spent, turns = 0.0, 0
    while spent < seconds or turns < 3:
        turns += 1
        for name, call in calls.items():
            call()
            found, begin = [], time.perf_counter()
            while len(found) < 6 or time.perf_counter() - begin < BURST:
                begun = time.perf_counter()
                call()
                found.append(time.perf_counter() - begun)
            spent += sum(found)
            times[name] += found
            if threads > 1:
                time.sleep(PAUSE)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long to measure each case")
    parser.add_argument("--only", help="one case, by name")
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    import numpy as np

    rng = np.random.default_rng(0)
    report: dict[str, Any] = {"threads": options.threads, "numpy": np.__version__, "cases": {}}
    for case in CASES:
        if options.only not in (None, case.name):
            continue
        left = rng.standard_normal((case.m, case.k))
        right = rng.standard_normal((case.n, case.k) if case.turned else (case.k, case.n))
        calls: dict[str, Callable[[], object]] = {}
        for kind in ("f64", "f32"):
            calls[f"osprey {kind}"], out = ours(case, left, right, kind, options.threads)
        calls |= peers(case, left, right)
        times = measure(calls, options.seconds, options.threads)
        if options.torch:
            times |= torch_times(case, options)
        wide = right.astype(np.float32).astype(np.float64)
        assert np.allclose(out, left @ (wide.T if case.turned else wide), rtol=1e-9, atol=1e-9)
        rates = {
            name: {
                "median": round(case.work / statistics.median(t) / 1e9, 2),
                "best": round(case.work / min(t) / 1e9, 2),
            }
            for name, t in times.items()
        }
        report["cases"][case.name] = rates
        shown = "  ".join(f"{name} {r['median']:.1f} ({r['best']:.1f})" for name, r in rates.items())
        print(f"{case.name:16} {shown}", flush=True)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
