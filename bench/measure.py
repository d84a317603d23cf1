"""What the benchmarks share: whole processes measured, programs taking turns, the machine described, tables.

Comes in: commands. Goes out: seconds, processor time and peak memory of each run; Markdown tables. Nothing here knows what
is measured.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers"
PROMPT = "The capital of France is"
OSPREY = [sys.executable, "-c", "import sys; from osprey_py.cli.main import main; sys.exit(main(sys.argv[1:]))"]
"""The command `osprey`, under the Python that runs the benchmark."""

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_RSS = 1 << 20 if platform.system() == "Darwin" else 1 << 10


@dataclass(frozen=True, slots=True)
class Run:
    """One process: seconds by the clock and of processors, the largest resident size, the lines that it printed, and how
    long after the start each came."""

    seconds: float
    cpu: float
    peak_mb: int
    lines: tuple[str, ...]
    times: tuple[float, ...]

    @property
    def last(self) -> str:
        return self.lines[-1] if self.lines else ""


def run(command: Sequence[str], threads: int, more: Mapping[str, str] | None = None) -> Run:
    """A process from start to end, from the root of the repository. threads: of libraries that read POOLS.
    more: further variables of its environment. SystemExit when it fails."""
    environment = os.environ | dict.fromkeys(POOLS, str(threads)) | dict(more or {})
    # An installed package has its modules compiled, as the peers have.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    lines, times = [], []
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True, encoding="utf-8")
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            times.append(time.perf_counter() - begin)
            lines.append(line.removesuffix("\n"))
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(seconds, cpu, usage.ru_maxrss // _RSS, tuple(lines), tuple(times))


def record(command: Sequence[str], threads: int) -> dict[str, Any]:
    """What a peer's process says in the JSON of its last line, and its peak memory."""
    ran = run(command, threads)
    found: dict[str, Any] = json.loads(ran.last)
    return found | {"peak_mb": ran.peak_mb}


def machine(python: str | None = None) -> str:
    """The machine and the versions, in one line. python: whose packages are meant, when it is another's."""
    words = [_processor(), f"{os.cpu_count()} cores", platform.system(), f"Python {platform.python_version()}"]
    for package in ("numpy", "llvmlite"):
        words.append(f"{package} {importlib.metadata.version(package)}")
    if python is not None:
        code = "import importlib.util as u, importlib.metadata as m; " + "".join(
            f"print(u.find_spec('{p}') and '{p} ' + m.version('{p}') or ''); " for p in ("torch", "jax")
        )
        words += subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    return ", ".join(word for word in words if word)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def seconds(value: float) -> str:
    """So many decimals that two or three digits count."""
    digits = next((d for d, least in enumerate((100, 10, 0.1, 0.01)) if value >= least), 4)
    return f"{value:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)
