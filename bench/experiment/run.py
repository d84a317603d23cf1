"""The first experiment: does the shape of the thing hold? Prints a table; `docs/first-experiment.md` keeps one.

python bench/experiment/run.py
"""

from __future__ import annotations

import io
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Report, Step
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime

HERE = Path(__file__).parent


class Spy(HostBackend):
    """The host, counting steps, those that went to the matrix kernels, and bytes asked for."""

    begin = None  # type: ignore[assignment]  # steps come to `run`, all together

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.steps = self.contracted = self.bytes = 0

    def live(self) -> int:
        """Bytes in blocks that are in use."""
        return sum(size for _, _, size in self._blocks._used.values())

    def run(self, steps: Sequence[Step]) -> Report:
        self.steps += len(steps)
        for step in steps:
            self.bytes += step.output.data.nbytes
            found = getattr(step.compiled, "_contractions", None)
            self.contracted += bool(found is not None and step.n > 0 and found.of(step))
        return super().run(steps)


def run(name: str, runtime: Runtime) -> tuple[str, str]:
    """(standard output, standard error) of a program of this folder."""
    program, diagnostics = load_program(HERE / name)
    assert program is not None, diagnostics
    out, err = io.StringIO(), io.StringIO()
    run_program(program, runtime=runtime, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


class Meter(io.StringIO):
    """Standard output that notes the bytes live at each line."""

    def __init__(self, spy: Spy) -> None:
        super().__init__()
        self.spy = spy
        self.seen: list[int] = []

    def write(self, text: str) -> int:
        self.seen.append(self.spy.live())
        return super().write(text)


def flat_memory() -> str:
    program, _ = load_program(HERE / "steps.osp")
    assert program is not None
    spy = Spy()
    meter = Meter(spy)
    run_program(program, args=["200", "24"], runtime=Runtime(spy), stdout=meter)
    lines = [n for n, text in zip(meter.seen, meter.getvalue().splitlines(), strict=False) if text]
    return f"{lines[10]:,} and {lines[199]:,}"


def replay_cost() -> float:
    """Seconds of processor time a step that are not spent in the backend, where the kernels have next to nothing to do."""
    program, _ = load_program(HERE / "steps.osp")
    assert program is not None

    class Timed(HostBackend):
        begin = None  # type: ignore[assignment]  # steps come to `run`, all together
        inside = 0.0

        def run(self, steps: Sequence[Step]) -> Report:
            begin = time.process_time()
            report = super().run(steps)
            self.inside += time.process_time() - begin
            return report

    seconds = []
    for count in (50, 250):
        backend = Timed(threads=1)
        begin = time.process_time()
        run_program(program, args=[str(count), "1"], runtime=Runtime(backend), stdout=io.StringIO())
        seconds.append(time.process_time() - begin - backend.inside)
    return (seconds[1] - seconds[0]) / 200


def main() -> None:
    rows: list[tuple[str, str]] = []
    expected = run("block.osp", Runtime(OracleBackend(), fusion=False, replay=False))[0]
    variants: dict[str, Runtime] = {
        "host, 1 thread": Runtime(HostBackend(threads=1)),
        "host, 2 threads": Runtime(HostBackend(threads=2)),
        "host, 7 threads": Runtime(HostBackend(threads=7)),
        "host, unfused": Runtime(HostBackend(), fusion=False),
        "host, no loop nests": Runtime(HostBackend(nests=False)),
        "host, no matrix kernels": Runtime(HostBackend(contractions=False)),
        "host, no replay": Runtime(HostBackend(), replay=False),
        "oracle, fused": Runtime(OracleBackend()),
    }
    for name, runtime in variants.items():
        same = run("block.osp", runtime)[0] == expected
        rows.append((f"bytes of {name}", "equal to the oracle's" if same else "DIFFERENT"))

    told = {run("fault.osp", Runtime(HostBackend(), fusion=fusion))[1] for fusion in (True, False)}
    told |= {run("fault.osp", Runtime(OracleBackend(), fusion=False))[1]}
    right = len(told) == 1 and "element 700" in next(iter(told))
    rows.append(("faults in order under fusion", "the first launch's element 700, every way" if right else "DIFFERENT"))

    spy = Spy()
    runtime = Runtime(spy)
    run("block.osp", runtime)
    stats = runtime.stats
    rows.append(("launches, 20 lengths", f"{stats.launches} in {stats.steps} steps after fusion"))
    rows.append(
        (
            "plans for lengths 5 to 24",
            f"{stats.planned} of {stats.forces} forces planned; calls replayed: {stats.replays}",
        )
    )
    rows.append(("steps run by the matrix kernels", f"{spy.contracted} of {spy.steps}"))

    rows.append(("bytes live after 10 and after 200 steps", flat_memory()))
    rows.append(("a step of 264 launches, replayed", f"{replay_cost() * 1e6:.0f} µs in Python beside its kernels"))

    times = []
    for _ in range(5):
        begin = time.perf_counter()
        run("block.osp", Runtime(HostBackend()))
        times.append(time.perf_counter() - begin)
    rows.append(
        ("the whole program, warm code cache", f"median {statistics.median(times):.2f} s, best {min(times):.2f} s")
    )

    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name.ljust(width)}  {value}")


if __name__ == "__main__":
    main()
