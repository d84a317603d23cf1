"""Ratchets on the host: counts that do not depend on the machine's mood. A number that gets worse fails; one that gets
better is written down here."""

from __future__ import annotations

import gc
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.host.compiled import Compiled
from osprey_py.backends.protocol import Kind, Report, Scalar, Script, Step, StepOp, Storage
from osprey_py.check import load_program
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import Kernel
from tests.gpt2.support import PROGRAM, make_weights

SIZES = "--layers 2 --width 128 --heads 2 --vocab 257 --context 64 --dtype F16"
"""Without a merge, so that a prompt has as many tokens as bytes. 0.43 million parameters, 3.5 MB in binary64."""
PROMPT = "to be or no"


class Counting(HostBackend):
    """On one thread. kernels: compiled, each once for the kinds of its slots; steps: run; contracted: of these, by the
    matrix kernels; asked: bytes of all buffers that were asked for; peak: bytes in use, at most."""

    begin = None  # type: ignore[assignment]  # steps come to `run`, all together

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.kernels = self.steps = self.contracted = self.asked = self.peak = 0

    def compile(self, op: StepOp, kernel: Kernel | None, kinds: tuple[Kind, ...], example: Step) -> Compiled:
        self.kernels += 1
        return super().compile(op, kernel, kinds, example)

    def allocate(self, kind: Kind, n: int) -> Storage:
        self.asked += n * kind.itemsize
        return super().allocate(kind, n)

    def run(self, steps: Sequence[Step]) -> Report:
        self.count(len(steps), _contracted(steps))
        return super().run(steps)

    def script(self, steps: Sequence[Step], storages: Sequence[Storage]) -> Script | None:
        made = super().script(steps, storages)
        return None if made is None else Counted(self, made, len(steps), _contracted(steps))

    def count(self, steps: int, contracted: int) -> None:
        self.steps += steps
        self.contracted += contracted
        self.peak = max(self.peak, sum(size for _, _, size in self._blocks._used.values()))


def _contracted(steps: Sequence[Step]) -> int:
    known = [(s, s.compiled._contractions) for s in steps if s.n > 0]
    return sum(found is not None and found.of(s) is not None for s, found in known)


@dataclass(frozen=True)
class Counted:
    """A script whose runs count as its steps do."""

    backend: Counting
    script: Script
    steps: int
    contracted: int

    def ready(self, uniforms: Sequence[Scalar]) -> bool:
        return self.script.ready(uniforms)

    def run(self, storages: Sequence[Storage], uniforms: Sequence[Scalar]) -> Report:
        self.backend.count(self.steps, self.contracted)
        return self.script.run(storages, uniforms)


def counted(program: str, *words: str) -> tuple[Counting, Runtime]:
    loaded, diagnostics = load_program(PROGRAM.parent / program)
    assert loaded is not None, diagnostics
    backend = Counting()
    runtime = Runtime(backend)
    out = io.StringIO()
    # What Python's collector finds late is held longer, and a plan knows what is held.
    gc.collect()
    gc.disable()
    try:
        assert run_program(loaded, args=words, runtime=runtime, stdout=out, stderr=out) == 0, out.getvalue()
    finally:
        gc.enable()
    return backend, runtime


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("weights"), SIZES)


@dataclass(frozen=True)
class Most:
    """What a run may take at most; contracted: how many steps must go to the matrix kernels, of as many steps."""

    launches: int
    planned: int
    steps: int
    kernels: int
    contracted: int
    asked: int
    peak: int


KB = 1 << 10


@pytest.mark.late_recording
@pytest.mark.parametrize(
    ("program", "words", "most"),
    [
        # Twelve tokens after eleven: a plan for the prompt and one for a token; so few calls are not worth a recording.
        ("gpt2.osp", "--tokens 12", Most(1305, 2, 537, 19, 156, 351 * KB, 281 * KB)),
        # Each length has temporaries of its own, which stay at hand.
        ("gpt2.osp", "--tokens 12 --no-kv-cache", Most(1272, 1, 540, 17, 156, 2745 * KB, 1663 * KB)),
        # Each sum of a gradient is printed when it is asked for, and only then made: six small plans.
        ("train.osp", "", Most(454, 10, 249, 49, 48, 4509 * KB, 3858 * KB)),
        # Updates come right behind the sums that they need, and an old parameter makes room for a new one.
        ("descend.osp", "--steps 6", Most(1996, 7, 914, 56, 223, 24633 * KB, 4326 * KB)),
        ("descend.osp", "--steps 6 --by language", Most(1726, 5, 866, 75, 247, 22989 * KB, 4287 * KB)),
    ],
)
def test_counts_do_not_get_worse(program: str, words: str, most: Most, weights: Path) -> None:
    backend, runtime = counted(program, "--weights", str(weights), "--prompt", PROMPT, *words.split())
    found = Most(
        runtime.stats.launches,
        runtime.stats.planned,
        backend.steps,
        backend.kernels,
        backend.contracted,
        backend.asked,
        backend.peak,
    )
    worse = {
        name: (value, bound)
        for (name, value), bound in zip(vars(found).items(), vars(most).values(), strict=True)
        if (value < bound if name == "contracted" else value > bound)
    }
    assert not worse, f"(found, allowed): {worse}"


@pytest.mark.parametrize("way", ["hand", "language"])
def test_more_steps_make_no_more_plans_and_no_more_kernels(way: str, weights: Path) -> None:
    """Nothing is planned once a step has been replayed and met its replay again; and memory does not grow."""
    words = ("--weights", str(weights), "--prompt", PROMPT, "--by", way)
    few, more = (counted("descend.osp", *words, "--steps", n) for n in ("5", "8"))
    assert more[1].stats.planned == few[1].stats.planned
    assert more[0].kernels == few[0].kernels
    assert more[0].peak == few[0].peak
    assert more[1].stats.replays > few[1].stats.replays > 0
