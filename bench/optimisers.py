"""The optimisers of the standard library beside PyTorch's in float64: the largest difference of a parameter.

    python bench/optimisers.py --torch PYTHON [--steps 50] [--parameters 1000]

PYTHON is one that has torch; without it nothing is compared, and that is said. Exit code 1 when the difference is above
1e-9 of the largest parameter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

from measure import OSPREY, PEERS, ROOT

PROGRAM = """
import optim::{adamW, adamWStart, adamWStep, Sgd, sgdStart, sgdStep, clipByGlobalNorm}
let start = [gpuLoad("FILE") ?: toGpu([])]
let sgd = Sgd { momentum: 0.9 }
fn slope(p) = clipByGlobalNorm(mapBuffers(p, fn(b) => gpuMap(b, fn(x) => 2.5 * x * x * x - 0.75 * x)), 1.0)
fn descend(t, p, state, step) = if t > STEPS { p } else {
    let (next, after) = step(0.05 / toFloat(t), state, p, slope(p))
    descend(t + 1, next, after, step)
}
print(descend(1, start, sgdStart(start), fn(rate, s, p, g) => sgdStep(sgd, rate, s, p, g)) |> map(fromGpu))
print(descend(1, start, adamWStart(start), fn(rate, s, p, g) => adamWStep(adamW, rate, s, p, g)) |> map(fromGpu))
"""


def osprey(numbers: Path, steps: int) -> dict[str, list[float]]:
    program = numbers.with_suffix(".osp")
    program.write_text(PROGRAM.replace("FILE", str(numbers)).replace("STEPS", str(steps)), encoding="utf-8")
    out = subprocess.run([*OSPREY, "run", str(program)], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    sgd, adamw = (json.loads(line)[0] for line in out.splitlines())
    return {"sgd": sgd, "adamw": adamw}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--parameters", type=int, default=1000)
    o = parser.parse_args()
    if not o.torch or subprocess.run([o.torch, "-c", "import torch"], capture_output=True).returncode:
        print("not run: no torch")
        return
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder) / "start.f64"
        numbers.write_bytes(array("d", ((i * 7919 % 1009 - 504) / 250 for i in range(o.parameters))).tobytes())
        ours = osprey(numbers, o.steps)
        peer = [o.torch, str(PEERS / "optimisers_torch.py"), str(numbers), str(o.steps)]
        theirs = json.loads(subprocess.run(peer, check=True, capture_output=True, text=True).stdout)
    far = False
    for name, values in ours.items():
        largest = max(map(abs, values))
        off = max(abs(a - b) for a, b in zip(values, theirs[name], strict=True))
        far |= not off <= 1e-9 * largest
        print(f"{name}: {o.steps} steps, largest parameter {largest:.6g}, largest difference {off / largest:.2g} of it")
    sys.exit(far)


if __name__ == "__main__":
    main()
