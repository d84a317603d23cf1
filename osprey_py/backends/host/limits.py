"""What this machine can do at most, measured: operations on floats and bytes read a second, on so many threads.

Comes in: a pool's number of threads. Goes out: `Limits`. Measuring takes about a second, so it is done once: the figures
lie beside the object cache, for this processor and this number of threads. Whoever measured while the machine was busy
removes the file that `Limits.described` names.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from osprey_py.backends.host import objects
from osprey_py.backends.host.native import Library, machine
from osprey_py.backends.host.pool import Plan, Pool, aligned
from osprey_py.backends.limits import Limits

CHAINS = 12
"""Sums side by side: enough to hide the adder's latency, few enough for 16 registers."""
TURNS = 4096
SIZES = (1 << 18, 1 << 22, 1 << 28)
"""Bytes to read: within a core's cache, within the shared one, far beyond both."""
CHUNK = 1 << 14
"""Bytes that one unit reads."""
TRIES = 7
LONG = 0.2
"""Seconds for which the quickest is looked for at least: threads that begin on one processor take a while to part."""


def text(lanes: int) -> str:
    """Two steps. `arithmetic` (args: 16 vectors of doubles): a unit is TURNS turns of CHAINS products, each rounded and
    added to a sum of its own, and an addition that makes the next factor. `reading` (args: a pointer): a unit adds up
    CHUNK bytes."""
    vector = f"<{lanes} x double>"
    size = 8 * lanes
    head, turn, tail = [], [], []
    for c in range(CHAINS):
        head.append(f"  %p{c} = getelementptr i8, ptr %args, i64 {c * size}")
        turn += [
            f"  %y{c} = load {vector}, ptr %p{c}, align 8",
            f"  %m{c} = fmul {vector} %x, %y{c}",
            f"  %b{c} = fadd {vector} %a{c}, %m{c}",
        ]
        tail.append(f"  %o{c} = getelementptr i8, ptr %scratch, i64 {c * size}")
        tail.append(f"  store {vector} %b{c}, ptr %o{c}, align 8")
    sums = "\n".join(f"  %a{c} = phi {vector} [ zeroinitializer, %entry ], [ %b{c}, %turn ]" for c in range(CHAINS))
    streams = 8
    phis = "\n".join(f"  %s{c} = phi {vector} [ zeroinitializer, %entry ], [ %t{c}, %turn ]" for c in range(streams))
    reads = "\n".join(
        f"  %q{c} = getelementptr i8, ptr %at, i64 {c * size}\n"
        f"  %v{c} = load {vector}, ptr %q{c}, align 8\n"
        f"  %t{c} = fadd {vector} %s{c}, %v{c}"
        for c in range(streams)
    )
    stores = "\n".join(
        f"  %w{c} = getelementptr i8, ptr %scratch, i64 {c * size}\n  store {vector} %t{c}, ptr %w{c}, align 8"
        for c in range(streams)
    )
    return f"""
define void @arithmetic(ptr %args, i64 %lo, i64 %hi, ptr %scratch) {{
entry:
  %units = sub i64 %hi, %lo
  %turns = mul i64 %units, {TURNS}
{chr(10).join(head)}
  %d = load {vector}, ptr %args, align 8
  br label %turn
turn:
  %i = phi i64 [ 0, %entry ], [ %i1, %turn ]
  %x = phi {vector} [ zeroinitializer, %entry ], [ %x1, %turn ]
{sums}
{chr(10).join(turn)}
  %x1 = fadd {vector} %x, %d
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %turns
  br i1 %more, label %turn, label %out
out:
{chr(10).join(tail)}
  ret void
}}

define void @reading(ptr %args, i64 %lo, i64 %hi, ptr %scratch) {{
entry:
  %base = load ptr, ptr %args, align 8
  %begin = mul i64 %lo, {CHUNK}
  %end = mul i64 %hi, {CHUNK}
  br label %turn
turn:
  %i = phi i64 [ %begin, %entry ], [ %i1, %turn ]
{phis}
  %at = getelementptr i8, ptr %base, i64 %i
{reads}
  %i1 = add i64 %i, {streams * size}
  %more = icmp ult i64 %i1, %end
  br i1 %more, label %turn, label %out
out:
{stores}
  ret void
}}
"""


def measured(threads: int, clock: Callable[[], float] = time.perf_counter) -> Limits:
    """The limits on so many threads, from the file or, the first time, by measuring."""
    host = machine()
    name = hashlib.sha256(f"{host.cpu} {host.features} {host.lanes} {threads} {text(host.lanes)}".encode()).hexdigest()
    path = objects.folder().parent / "limits" / f"{name[:16]}.json"
    found = _read(path)
    if found is None:
        found = _measure(threads, clock)
        _write(path, found)
    operations, rates = found
    many = f"{threads} thread{'s' if threads > 1 else ''}"
    described = f"this machine on {many}, measured once ({path})"
    return Limits(operations, rates, described)


Figures = tuple[float, tuple[tuple[int, float], ...]]


def _read(path: Path) -> Figures | None:
    try:
        found = json.loads(path.read_text("utf-8"))
        rates = tuple((int(size), float(rate)) for size, rate in found["rates"])
        operations = float(found["operations"])
        return (operations, rates) if operations > 0 and rates and all(r > 0 for _, r in rates) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, figures: Figures) -> None:
    """Whole or not at all; no file when the disk does not allow it."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps({"operations": figures[0], "rates": figures[1]}) + "\n", "utf-8")
        os.replace(aside, path)


def _measure(threads: int, clock: Callable[[], float]) -> Figures:
    lanes = machine().lanes
    library = machine().load(text(lanes), ("arithmetic", "reading"))
    pool = Pool(threads)
    try:
        # A vector that lies across two cache lines takes two loads.
        numbers = aligned(8 * 16 * lanes).view(np.float64)
        numbers[:] = np.linspace(1.0, 2.0, 16 * lanes)
        units = 64 * threads
        took = _best(pool, library, "arithmetic", numbers.ctypes.data, units, clock)
        operations = units * TURNS * lanes * (2 * CHAINS + 1) / took
        rates = []
        for size in SIZES:
            # A core's own cache is measured for each core.
            whole = size * threads if size == SIZES[0] else size
            data = aligned(whole).view(np.float64)
            data[:] = 1.0
            place = np.array([data.ctypes.data], np.int64)
            took = _best(pool, library, "reading", place.ctypes.data, whole // CHUNK, clock)
            rates.append((whole, whole / took))
    finally:
        pool.close()
    return operations, tuple(rates)


def _best(pool: Pool, library: Library, name: str, args: int, units: int, clock: Callable[[], float]) -> float:
    """Seconds of the quickest of some runs, each repeated until it lasts."""
    grain = max(1, units // (4 * pool.threads))
    plan = Plan()
    repeats, best = 1, float("inf")
    tries, end = 0, clock() + LONG
    while tries < TRIES or clock() < end:
        tries += 1
        while True:
            plan.clear()
            for _ in range(repeats):
                plan.add(library.addresses[name], args, units, grain)
            begin = clock()
            pool.run(plan, 4096)
            took = clock() - begin
            if took >= 2e-3 or repeats >= 4096:
                break
            repeats *= 2
        best = min(best, took / repeats)
    return best
