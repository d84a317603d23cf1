#!/usr/bin/env python3
"""The whole check of a device: conformance, GPT-2 held to the host by bytes, times, and PyTorch beside it.

    device_check.py --device cuda [--torch PYTHON] [--weights DIR] [--tokens 20] [--generated 100] [--json FILE]
    device_check.py --device opencl --small

On a machine with an NVIDIA device, `pip install '.[cuda]'` and the first line are all; it takes a few minutes, most of
them the host's. Without --weights the seeded 124M model is made in a temporary folder; with --small the repository's small
model serves. PYTHON has torch and safetensors: its CUDA generation in binary64 and binary32 is timed too. Exit code 1 when
a byte differs.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import OSPREY, PEERS, PROMPT, ROOT, machine

sys.path.insert(0, str(ROOT))

_ON_CUDA = "import runpy, sys, torch; torch.set_default_device('cuda'); sys.argv = sys.argv[1:]; "
_ON_CUDA += "runpy.run_path(sys.argv[0], run_name='__main__')"


@dataclass(frozen=True)
class Done:
    """seconds of the runs, the first with all that is compiled; trace: every number the program told of."""

    seconds: list[float]
    trace: bytes


def program(name: str, args: list[str], backend: Any, runs: int) -> Done:
    """Runs of one of the examples on one backend, in this process."""
    from osprey_py.check import load_program
    from osprey_py.eval.run import run_program
    from osprey_py.graph.runtime import Runtime

    path = ROOT / "examples" / "gpt2" / name
    checked, _ = load_program(path)
    assert checked is not None
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        for _ in range(runs):
            start = time.perf_counter()
            out = io.StringIO()
            words = [*args, "--trace", str(trace)]
            code = run_program(checked, args=words, runtime=Runtime(backend), stdout=out, folder=str(path.parent))
            seconds.append(time.perf_counter() - start)
            if code:
                raise SystemExit(f"{name} failed on {backend.name}")
        return Done(seconds, trace.read_bytes())


def compare(o: argparse.Namespace, weights: str) -> dict[str, Any]:
    """Generation and a training step on the host and on the device."""
    from osprey_py.backends.discovery import open_device

    host, device = open_device("host"), open_device(o.device)
    told: dict[str, Any] = {}
    for name, args in (("gpt2.osp", ["--tokens", str(o.tokens)]), ("train.osp", [])):
        words = ["--weights", weights, "--prompt", PROMPT, *args]
        right = program(name, words, host, 1)
        moved, launched = list(getattr(device, "moved", [])), getattr(device, "launched", 0)
        tested = program(name, words, device, 2)
        same = right.trace == tested.trace
        told[name] = {
            "equal": same,
            "trace bytes": len(right.trace),
            "host s": right.seconds[0],
            "device first s": tested.seconds[0],
            "device s": tested.seconds[-1],
            "launches a run": (getattr(device, "launched", 0) - launched) // 2,
            "bytes to and from, both runs": [b - a for a, b in zip(moved, getattr(device, "moved", []), strict=True)],
        }
        print(f"{name}: {'the same bytes' if same else 'DIFFERS'}, {told[name]}", flush=True)
    return told


def torch(python: str, weights: str, tokens: int) -> dict[str, float]:
    """PyTorch's seconds for the same generation, of the whole process less one that generates a single token."""
    told = {}
    for dtype in ("float64", "float32"):
        seconds = []
        for n in (1, tokens):
            command = [python, "-c", _ON_CUDA, str(PEERS / "gpt2_torch.py"), "generate", weights]
            command += ["--prompt", PROMPT, "--tokens", str(n), "--dtype", dtype, "--cache"]
            start = time.perf_counter()
            subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        told[dtype] = seconds[1] - seconds[0]
        print(f"PyTorch CUDA {dtype}, {tokens - 1} more tokens: {told[dtype]:.2f} s", flush=True)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--weights")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--generated", type=int, default=100)
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--json", type=Path)
    o = parser.parse_args()
    print(machine())
    conform = [*OSPREY, "conform", "--device", o.device, "--against", "host", "--generated", str(o.generated)]
    told: dict[str, Any] = {"conforms": subprocess.run(conform, check=False, cwd=ROOT).returncode == 0}
    with tempfile.TemporaryDirectory() as folder:
        weights = o.weights or (str(ROOT / "examples" / "gpt2" / "small") if o.small else folder)
        if weights == folder:
            subprocess.run([sys.executable, str(ROOT / "bench" / "make_gpt2_weights.py"), folder], check=True)
            merges = ROOT / "examples" / "gpt2" / "weights" / "merges.txt"
            small = ROOT / "examples" / "gpt2" / "small" / "merges.txt"
            (Path(folder) / "merges.txt").write_bytes((merges if merges.exists() else small).read_bytes())
        told |= compare(o, weights)
        if o.torch:
            told["PyTorch"] = torch(o.torch, weights, o.tokens)
    if o.json:
        o.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0 if told["conforms"] and told["gpt2.osp"]["equal"] and told["train.osp"]["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
