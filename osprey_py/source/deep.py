"""Running a recursive function on deeply nested input.

Comes in: a function and its arguments. Goes out: its result or its exception. The function runs in a thread with a large
stack and a raised recursion limit, so that source nested thousands deep needs no rewriting of every pass into loops.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

STACK_BYTES = 512 * 1024 * 1024
RECURSION_LIMIT = 400_000

_running = threading.local()


def call_deep(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """fn(*args, **kwargs) with room for deep recursion. Calls inside such a call run directly."""
    if getattr(_running, "deep", False):
        return fn(*args, **kwargs)
    results: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        _running.deep = True
        try:
            results.append(fn(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    limit = sys.getrecursionlimit()
    size = threading.stack_size(STACK_BYTES)
    try:
        sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
        thread = threading.Thread(target=run, name="deep")
        thread.start()
    finally:
        threading.stack_size(size)
    try:
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]
