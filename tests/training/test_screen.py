"""What is seen on a terminal, and the plot."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

from tests.training.support import BIGRAM, ROOT, Train, command, text


def test_a_terminal_has_a_bar(tmp_path: Path) -> None:
    """Losses, tokens a second and the time left; the lines stay on standard output."""
    (tmp_path / "text.txt").write_text(text(), encoding="utf-8")
    ours, theirs = pty.openpty()
    words = command(BIGRAM, "--data", tmp_path / "text.txt", "--steps", 300, "--every", 100)
    run = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    assert run.stdout is not None
    out = run.stdout.read().decode()
    assert run.wait(timeout=60) == 0
    bars = shown.decode().replace("\r", "\n")
    assert re.search(r"\d+% .*\d+/300, train \d\.\d{3}  val \d\.\d{3}  [\d,]+ tokens/s .*gone, .*left", bars), bars
    assert re.findall(r"step +(\d+)  train", out) == ["0", "100", "200", "299"]


def test_the_plot_is_a_picture_of_the_whole_run(train: Train, tmp_path: Path) -> None:
    plot, kept = tmp_path / "plot.png", tmp_path / "kept"
    assert train("--plot", plot, "--checkpoint", kept, "--steps", 9, "--every", 2, "--until", 4).code == 0
    first = plot.read_bytes()
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert train("--plot", plot, "--checkpoint", kept, "--steps", 9, "--every", 2, "--resume").code == 0
    assert plot.read_bytes() != first
    assert train("--plot", tmp_path / "whole.png", "--steps", 9, "--every", 2).code == 0
    assert plot.read_bytes() == (tmp_path / "whole.png").read_bytes()
    assert not list(tmp_path.glob("*.part"))
