#!/usr/bin/env python3
"""Matrix products in PyTorch, for comparison.

    gemm_torch.py M K N [--turned] [--threads 2] [--seconds 1]

Prints one line of JSON: seconds of each call of [M, K] times [K, N] (turned: the right operand lies as [N, K]), in float64
and in float32.
"""

from __future__ import annotations

import argparse
import json
import time

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sizes", type=int, nargs=3)
    parser.add_argument("--turned", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    m, k, n = o.sizes
    times: dict[str, list[float]] = {}
    with torch.inference_mode():
        for dtype in (torch.float64, torch.float32):
            a = torch.randn(m, k, dtype=dtype)
            b = torch.randn(n, k, dtype=dtype).T if o.turned else torch.randn(k, n, dtype=dtype)
            for _ in range(3):
                a @ b
            found = times[str(dtype).split(".")[1]] = []
            end = time.perf_counter() + o.seconds / 2
            while time.perf_counter() < end or len(found) < 5:
                begin = time.perf_counter()
                a @ b
                found.append(time.perf_counter() - begin)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
