"""A thread with a stack deep enough for MAX_DEPTH frames of a kernel's recursion."""

from __future__ import annotations

import threading
from collections.abc import Callable

STACK = 1 << 30
"""Bytes; only what is touched is ever backed by memory. 100,000 frames of ten kilobytes fit."""

_lock = threading.Lock()


def on_deep_stack(work: Callable[[], object]) -> None:
    """Run it on a thread of its own and wait."""
    with _lock:
        before = threading.stack_size(STACK)
        try:
            thread = threading.Thread(target=work)
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
