"""Stopped, killed, or out of room: a run goes on from a whole checkpoint and ends at the same bytes (TR13-TR15)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from osprey_py.training import checkpoint
from osprey_py.training.checkpoint import NAME
from tests.training.support import BIGRAM, Train, process, text

STEPS = 240
OPTIONS = ("--steps", STEPS, "--every", 3, "--threads", 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "text.txt"
    path.write_text(text(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, str]:
    """Log, checkpoint and sample of a run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    return ended(begun(folder, data), folder)


def begun(folder: Path, data: Path, *words: Any, **how: Any) -> subprocess.Popen[str]:
    given = ["--data", data, "--checkpoint", folder / "kept", "--log", folder / "log", "--resume", *words]
    return process(BIGRAM, *OPTIONS, *given, **how)


def ended(run: subprocess.Popen[str], folder: Path) -> tuple[bytes, bytes, str]:
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    return (folder / "log").read_bytes(), (folder / "kept" / NAME).read_bytes(), out.partition("\n\n")[2]


def wait_for_steps(folder: Path, count: int) -> None:
    """Until the log has that many lines."""
    until = time.monotonic() + 60
    while not (folder / "log").exists() or (folder / "log").read_bytes().count(b"\n") < count:
        assert time.monotonic() < until, "the run does not begin"
        time.sleep(0.002)


def steps_kept(folder: Path) -> int:
    with safe_open(folder / "kept" / NAME, "np") as file:
        return int(file.get_tensor("train/losses").shape[0])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_step_and_saves(
    tmp_path: Path, data: Path, whole: tuple[bytes, bytes, str], number: signal.Signals, code: int
) -> None:
    """TR14"""
    run = begun(tmp_path, data)
    wait_for_steps(tmp_path, 20)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == code and "Traceback" not in err, err
    kept = steps_kept(tmp_path)
    assert out.endswith(f"stopped after {kept} of {STEPS} steps; --resume goes on\n")
    assert (tmp_path / "log").read_bytes().count(b"\n") == 1 + kept
    assert ended(begun(tmp_path, data), tmp_path) == whole


def test_a_second_signal_ends_the_run_at_once(tmp_path: Path, data: Path) -> None:
    """TR14: here while the text is learnt, which would never end."""
    source = BIGRAM.read_text(encoding="utf-8").replace("export fn learn(", "fn unused(")
    program = tmp_path / "endless.osp"
    endless = (
        "fn spin(n: int) -> Vocabulary = spin(wrapAdd(n, 1))\nexport fn learn(o: Options, text: string) = spin(0)\n"
    )
    program.write_text(f'{source}\n{endless}print("ready")\n', encoding="utf-8")
    run = process(program, "--data", data)
    assert run.stdout is not None and run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=30)
    assert (run.returncode, err) == (130, "")


def test_a_stop_without_a_checkpoint_says_so(tmp_path: Path, data: Path) -> None:
    """TR14"""
    run = process(BIGRAM, "--data", data, "--steps", 100000, "--log", tmp_path / "log")
    wait_for_steps(tmp_path, 5)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 130 and "nothing was kept, for there is no --checkpoint" in out


def test_killed_again_and_again_it_ends_at_the_same_bytes(
    tmp_path: Path, data: Path, whole: tuple[bytes, bytes, str]
) -> None:
    """TR13, TR15: SIGKILL after some steps each time, wherever the run is then; a checkpoint is there every third step."""
    for more in (2, 31, 17, 45):
        before = steps_kept(tmp_path) if (tmp_path / "kept" / NAME).exists() else 0
        (tmp_path / "log").unlink(missing_ok=True)
        run = begun(tmp_path, data)
        wait_for_steps(tmp_path, 1 + before + more)
        run.kill()
        run.communicate(timeout=60)
        if (tmp_path / "kept" / NAME).exists():
            assert steps_kept(tmp_path) >= before
    (tmp_path / "kept" / f"{NAME}.12345.part").write_bytes(b"what a killed run may leave")
    assert ended(begun(tmp_path, data), tmp_path) == whole
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [NAME]


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, data: Path, whole: tuple[bytes, bytes, str]) -> None:
    """TR15: no file may grow beyond a limit (RLIMIT_FSIZE) that lies between the sizes of two checkpoints."""
    assert begun(tmp_path, data, "--until", 10).wait(timeout=60) == 0
    size = (tmp_path / "kept" / NAME).stat().st_size
    (tmp_path / "log").unlink()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8, size + 8))

    run = process(BIGRAM, *OPTIONS, "--data", data, "--checkpoint", tmp_path / "kept", "--resume", preexec_fn=limit)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 1 and "file too large; the checkpoint of step" in err and "Traceback" not in err, err
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [NAME]
    assert 10 <= steps_kept(tmp_path) < STEPS
    assert ended(begun(tmp_path, data), tmp_path) == whole


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_an_error_at_any_point_of_writing_leaves_the_checkpoint_before(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """TR15: the disk says no while the file is written, brought to the disk, or renamed."""
    kept = ("--checkpoint", tmp_path / "kept", "--every", 2)
    assert train(*kept, "--until", 4, "--steps", 9).code == 0
    before = (tmp_path / "kept" / NAME).read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if call == "write":
            patched.setattr(checkpoint, "save_tensors", failing_writer(full))
        else:
            patched.setattr(os, call, full)
        found = train(*kept, "--steps", 9, "--resume")
    path = tmp_path / "kept" / NAME
    assert (found.code, found.err) == (
        1,
        f"osprey train: {path}: no space left on device; the checkpoint of step 4 stands\n",
    )
    assert path.read_bytes() == before and list((tmp_path / "kept").iterdir()) == [path]


def failing_writer(full: Any) -> Any:
    """save_tensors with files that cannot be written to."""
    from osprey_py.tensors import safetensors

    class Full:
        def __init__(self, opened: Any) -> None:
            self.opened = opened

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.opened.close()

        def write(self, _data: Any) -> None:
            full()

    def save(*args: Any) -> None:
        vars(safetensors)["open"] = lambda *a: Full(Path(a[0]).open(*a[1:]))  # noqa: SIM115
        try:
            safetensors.save_tensors(*args)
        finally:
            del vars(safetensors)["open"]

    return save


def test_a_log_that_cannot_be_written_is_told(train: Train, tmp_path: Path) -> None:
    """TR15"""
    found = train("--steps", 3, "--log", "/dev/full")
    assert (found.code, found.err) == (1, "osprey train: /dev/full: no space left on device\n")


def test_a_folder_is_kept_by_one_run_at_a_time(train: Train, tmp_path: Path, data: Path) -> None:
    """TR15"""
    run = process(
        BIGRAM, "--data", data, "--steps", 1000000, "--checkpoint", tmp_path / "kept", "--log", tmp_path / "log"
    )
    try:
        wait_for_steps(tmp_path, 3)
        found = train("--checkpoint", tmp_path / "kept", "--resume")
        assert found.code == 1 and "another `osprey train` keeps its checkpoints there now" in found.err
    finally:
        run.kill()
        run.communicate(timeout=60)
