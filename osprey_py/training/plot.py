"""A picture of both losses, by matplotlib (the extra `osprey-py[plot]`).

Comes in: the history of a run. Goes out: a PNG file, written aside and renamed.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from osprey_py.training.checkpoint import History
from osprey_py.training.errors import TrainingError, reason


def ensure_plots(path: Path) -> None:
    """Before a run: whether there will be a plot at its end."""
    if find_spec("matplotlib") is None:
        raise TrainingError("--plot wants matplotlib, which is not installed: pip install 'osprey-py[plot]'")
    if not path.parent.is_dir():
        raise TrainingError(f"{path}: there is no folder {path.parent}")


def draw(history: History, path: Path, title: str) -> None:
    """Training losses as points, validation losses as a line over them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(range(history.done), history.losses, ".", color="#9db4c8", markersize=3, label="training, each batch")
    steps, losses = [s for s, _ in history.validations], [x for _, x in history.validations]
    axes.plot(steps, losses, "o-", color="#b03a2e", markersize=4, label="validation")
    axes.set(xlabel="step", ylabel="loss", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    aside = path.with_name(f"{path.name}.part")
    try:
        figure.savefig(aside, format="png", dpi=120)
        os.replace(aside, path)
    except OSError as e:
        aside.unlink(missing_ok=True)
        raise TrainingError(f"{path}: {reason(e)}") from None
