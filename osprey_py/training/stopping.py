"""Ctrl-C and `kill` end a run after the step they fall in (spec/training TR14).

Comes in: SIGINT and SIGTERM. Goes out: `Stopping.signal`, which the loop looks at; a second signal has its usual effect.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """signal: the number of the one that came, 0 for none."""

    def __init__(self) -> None:
        self.signal = 0

    def __call__(self, number: int, _frame: Any) -> None:
        self.signal = number
        _usual()


def _usual() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def stopping() -> Iterator[Stopping]:
    """Called in the main thread, around the run."""
    stop = Stopping()
    before = [signal.signal(number, stop) for number in SIGNALS]
    try:
        yield stop
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
