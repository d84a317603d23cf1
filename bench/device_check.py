#!/usr/bin/env python3
"""The whole check of a device: conformance, GPT-2 held to the host by bytes, times, and PyTorch beside it.

    device_check.py --device cuda [--torch PYTHON] [--weights DIR] [--tokens 20] [--generated 100] [--json FILE]
    device_check.py --device opencl --small

On a machine with an NVIDIA device, `pip install '.[cuda]'` and the first line are all; it takes a few minutes, most of
them the host's, and nothing from a network. Without --weights the seeded 124M model is made in a temporary folder; with
--small the repository's small model serves. PYTHON has torch and safetensors: its CUDA generation in binary64 and binary32
is timed too. --json keeps what is known after each part. Exit code 1 when a byte differs or a part fails.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from measure import OSPREY, PEERS, PROMPT, ROOT, machine, seconds

sys.path.insert(0, str(ROOT))

_ON_CUDA = "import runpy, sys, torch; torch.set_default_device('cuda'); sys.argv = sys.argv[1:]; "
_ON_CUDA += "runpy.run_path(sys.argv[0], run_name='__main__')"
MERGES = (ROOT / "examples" / "gpt2" / "weights" / "merges.txt", ROOT / "examples" / "gpt2" / "small" / "merges.txt")


@dataclass(frozen=True)
class Done:
    """seconds of a run; trace: every number the program told of; digest: of the gradients, if it wrote them; launches, and
    bytes to the device and from it."""

    seconds: float
    trace: bytes
    digest: str
    launches: int
    moved: tuple[int, int]


def program(name: str, words: list[str], backend: Any, *, gradients: bool = False) -> Done:
    """One of GPT-2's programs on a backend, in this process. gradients: whether it writes every one of them whole."""
    from osprey_py.check import load_program
    from osprey_py.eval.run import run_program
    from osprey_py.graph.runtime import Runtime

    path = ROOT / "examples" / "gpt2" / name
    checked, _ = load_program(path)
    assert checked is not None
    launched, moved = getattr(backend, "launched", 0), getattr(backend, "moved", (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        trace, written = Path(folder) / "trace", Path(folder) / "gradients"
        words = [*words, "--trace", str(trace), *(("--gradients", str(written)) if gradients else ())]
        start = time.perf_counter()
        runtime = Runtime(backend)
        code = run_program(checked, args=words, runtime=runtime, stdout=io.StringIO(), folder=str(path.parent))
        took = time.perf_counter() - start
        if code:
            raise SystemExit(f"{name} failed on {backend.name}")
        digest = ""
        if gradients:
            with written.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        launched = getattr(backend, "launched", 0) - launched
        after = getattr(backend, "moved", (0, 0))
        return Done(took, trace.read_bytes(), digest, launched, (after[0] - moved[0], after[1] - moved[1]))


def compared(name: str, words: list[str], host: Any, device: Any, *, gradients: bool = False) -> dict[str, Any]:
    """A program on the host, then twice on the device: with all that is compiled, and without. Times are of runs that write
    no gradients."""
    first = program(name, words, device, gradients=gradients)
    right = program(name, words, host, gradients=gradients)
    tested = program(name, words, device)
    alone = program(name, words, host) if gradients else right
    return {
        "equal": right.trace == first.trace == tested.trace and right.digest == first.digest,
        "trace bytes": len(right.trace),
        "host s": alone.seconds,
        "device first s": first.seconds,
        "device s": tested.seconds,
        "launches": tested.launches,
        "bytes to the device": tested.moved[0],
        "bytes from it": tested.moved[1],
    }


def generation(
    o: argparse.Namespace, words: list[str], host: Any, device: Any, limits: Any, size: int
) -> dict[str, Any]:
    """A token's seconds and launches are those of a run less one that generates a single token. What it takes at least is
    reading every weight once. size: bytes of the weights."""
    told = compared("gpt2.osp", [*words, "--tokens", str(o.tokens)], host, device)
    one = program("gpt2.osp", [*words, "--tokens", "1"], device)
    more = max(o.tokens - 1, 1)
    told["a token s"] = (told["device s"] - one.seconds) / more
    told["launches a token"] = (told["launches"] - one.launches) / more
    told["share of the rate of memory"] = limits.traffic(size) / told["a token s"]
    return told


def training(words: list[str], host: Any, device: Any, limits: Any, size: int, parameters: int) -> dict[str, Any]:
    """What it takes at least: for each parameter and token a product forward and two backward; weights read twice, each
    derivative written and read, each new weight written."""
    told = compared("train.osp", words, host, device, gradients=True)
    trace = program("gpt2.osp", [*words, "--tokens", "1"], device).trace
    tokens = len(json.loads(trace.split(b"\n")[0])["ids"])
    told["share of the rate of operations"] = limits.arithmetic(6 * parameters * tokens) / told["device s"]
    told["share of the rate of memory"] = limits.traffic(2 * size + 24 * parameters) / told["device s"]
    return told


def torch(python: str, weights: str, tokens: int) -> dict[str, Any]:
    """PyTorch's seconds for the same generation, of the whole process less one that generates a single token."""
    told: dict[str, Any] = {}
    for dtype in ("float64", "float32"):
        took = []
        for n in (1, tokens):
            command = [python, "-c", _ON_CUDA, str(PEERS / "gpt2_torch.py"), "generate", weights]
            command += ["--prompt", PROMPT, "--tokens", str(n), "--dtype", dtype, "--cache"]
            start = time.perf_counter()
            ran = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
            took.append(time.perf_counter() - start)
            if ran.returncode:
                return told | {"failed": ran.stderr.strip().split("\n")[-1]}
        told[f"{dtype}, a token s"] = (took[1] - took[0]) / max(tokens - 1, 1)
    return told


def weights_folder(o: argparse.Namespace, folder: Path) -> Path:
    """--weights, the small model's, or the seeded 124M ones, made in the folder."""
    if o.weights or o.small:
        return Path(o.weights or MERGES[1].parent)
    subprocess.run([sys.executable, str(ROOT / "bench" / "make_gpt2_weights.py"), str(folder)], check=True)
    (folder / "merges.txt").write_bytes(next(m for m in MERGES if m.exists()).read_bytes())
    return folder


class Parts:
    """What is known so far, shown and kept after each part."""

    def __init__(self, keep: Path | None) -> None:
        self.told: dict[str, Any] = {}
        self.keep = keep
        self.start = time.perf_counter()

    def add(self, name: str, told: Any) -> None:
        self.told[name] = told
        shown = told if not isinstance(told, dict) else ", ".join(f"{k} {_shown(v)}" for k, v in told.items())
        print(f"[{time.perf_counter() - self.start:5.1f} s] {name}: {shown}", flush=True)
        if self.keep:
            self.keep.write_text(json.dumps(self.told, indent=1) + "\n")


def _shown(value: object) -> str:
    return seconds(value) if isinstance(value, float) else str(value)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--weights")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--generated", type=int, default=100)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> int:
    o = parsed()
    from device_limits import measured

    from osprey_py.cli.options import make_backend
    from osprey_py.tensors.safetensors import open_tensors

    parts = Parts(o.json)
    device, host = make_backend(o.device, None), make_backend("host", None)
    parts.add("machine", machine())
    parts.add("device", device.capabilities.description)
    limits = measured(device)
    parts.add("limits", limits.described)
    with tempfile.TemporaryDirectory() as made:
        folder = weights_folder(o, Path(made))
        words = ["--weights", str(folder), "--prompt", PROMPT]
        size = (folder / "model.safetensors").stat().st_size
        parts.add("generation", generation(o, words, host, device, limits, size))
        file = open_tensors(str(folder / "model.safetensors"))
        parameters = sum(prod(file.shape(name)) for name in file.names if not name.endswith(".attn.bias"))
        parts.add("training", training(words, host, device, limits, size, parameters))
        if o.torch:
            parts.add("PyTorch", torch(o.torch, str(folder), o.tokens))
    conform = [*OSPREY, "conform", "--device", o.device, "--against", "host", "--generated", str(o.generated)]
    ran = subprocess.run([*conform, "--points", str(o.points)], check=False, cwd=ROOT)
    parts.add("conforms", ran.returncode == 0)
    told = parts.told
    return 0 if told["conforms"] and told["generation"]["equal"] and told["training"]["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
