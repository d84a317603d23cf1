"""A ratchet on the GPT-2 example: how many steps a token takes, and what is one launch. A number that grows fails."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from osprey_py.backends.oracle import OracleBackend
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime

ROOT = Path(__file__).parents[2]


def test_launches_and_steps_of_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program, _ = load_program(ROOT / "examples/gpt2/gpt2.osp")
    assert program is not None
    rt = Runtime(OracleBackend(), profile=True)
    args = ("--weights", "examples/gpt2/small", "--prompt", "a b", "--tokens", "3")
    assert run_program(program, args=args, runtime=rt, stdout=io.StringIO(), stderr=io.StringIO()) == 0
    assert rt.stats.forces == 3, "once a token"
    assert rt.stats.planned <= 3, "the prompt, the tokens after it, and those replayed"
    assert rt.stats.replays >= 1
    assert rt.stats.steps <= 46 + 2 * 50, "two layers, a prompt and two tokens"
    assert rt.profile is not None
    kernels = [r.kernel for r in rt.profile.records]
    fused = sorted({k for k in kernels if "gpuMatMul" in k})
    assert fused == [
        "gpuMatMul+map lambda",
        "gpuMatMul+map lambda+map gelu",
    ], "bias, activation and residual stand behind the product"
    assert not any(k in ("iota", "gpuMatMul") for k in kernels), "no index and no bare product is stored"
