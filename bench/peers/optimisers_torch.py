"""Optimisers in PyTorch, float64: parameters after so many steps, as JSON.

    python bench/peers/optimisers_torch.py FILE STEPS

FILE holds the parameters, little-endian binary64. A step's gradient is 2.5 p^3 - 0.75 p, clipped to the global norm 1
(PyTorch divides by the norm and 1e-6), and its rate 0.05 / step. Prints {"sgd": [...], "adamw": [...]}.
"""

from __future__ import annotations

import array
import json
import sys
from pathlib import Path

import torch


def descend(name: str, start: list[float], steps: int) -> list[float]:
    """Through the optimiser's own classes, with the options of bench/optimisers.py."""
    parameter = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimiser: torch.optim.Optimizer = (
        torch.optim.SGD([parameter], lr=0.05, momentum=0.9)
        if name == "sgd"
        else torch.optim.AdamW([parameter], lr=0.05, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    )
    for step in range(1, steps + 1):
        optimiser.param_groups[0]["lr"] = 0.05 / step
        optimiser.zero_grad()
        (0.625 * parameter**4 - 0.375 * parameter**2).sum().backward()
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        optimiser.step()
    return parameter.detach().tolist()


def main() -> None:
    numbers = array.array("d", Path(sys.argv[1]).read_bytes()).tolist()
    print(json.dumps({name: descend(name, numbers, int(sys.argv[2])) for name in ("sgd", "adamw")}))


if __name__ == "__main__":
    main()
