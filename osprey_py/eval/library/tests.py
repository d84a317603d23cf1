"""Tests in the language: soft assertions, reported as TAP (spec/library B6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from osprey_py.eval.equality import equal
from osprey_py.eval.formatting import quote, to_string
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import List
from osprey_py.eval.world import World
from osprey_py.kernel.fault import MathFault
from osprey_py.source.span import Span


@dataclass(slots=True)
class Harness:
    """failures: complaints of the running test, or of the file outside of tests. shared: several files report into it,
    and who started them says the plan and the summary. only: run just the tests whose names contain it."""

    count: int = 0
    passed: int = 0
    skipped: int = 0
    stray: int = 0
    running: str | None = None
    failures: list[str] = field(default_factory=list)
    shared: bool = False
    only: str | None = None

    @property
    def failed(self) -> int:
        return self.count - self.passed - self.skipped

    def summary(self) -> str:
        """The plan and the counts."""
        counts = f"passed={self.passed} failed={self.failed} skipped={self.skipped}"
        return f"1..{self.count}\n# tests={self.count} {counts}"


def harness(w: World) -> Harness:
    if w.tests is None:
        w.tests = Harness()
    found: Harness = w.tests
    return found


def _say(w: World, line: str) -> None:
    w.runtime.barrier()
    w.stdout.write(line + "\n")
    w.stdout.flush()


def shown(v: Any) -> str:
    return quote(v) if type(v) is str else to_string(v)


@builtin("test", world=True)
def run_test(w: World, name: str, body: Callable[[], Any]) -> tuple[()]:
    h = harness(w)
    h.count += 1
    number = h.count
    if h.only is not None and h.only not in name:
        h.skipped += 1
        _say(w, f"ok {number} - {name} # SKIP")
        return ()
    outer = h.running, h.failures
    h.running, h.failures = name, []
    depth, handlers, mark = w.depth, w.handlers, w.runtime.mark()
    try:
        body()
        w.runtime.settle(mark)
    except MathFault as f:
        w.depth, w.handlers = depth, handlers
        fault = w.runtime.caught(f, mark)
        h.failures.append(f"{fault.message} at {fault.span.place}")
    failures = h.failures
    h.running, h.failures = outer
    if not failures:
        h.passed += 1
    _say(w, f"{'not ' if failures else ''}ok {number} - {name}")
    for failure in failures:
        for line in failure.split("\n"):
            _say(w, f"  # {line}")
    return ()


def finish(w: World) -> bool:
    """The plan and the summary, when there were tests. False when something failed."""
    h: Harness | None = w.tests
    if h is None or h.shared:
        return True
    _say(w, h.summary())
    return h.failed == 0 and h.stray == 0


def _fail(w: World, text: str, span: Span) -> None:
    h = harness(w)
    text += f" at {span.place}"
    if h.running is None:
        h.stray += 1
        _say(w, f"# outside of a test: {text}")
    else:
        h.failures.append(text)


@builtin("expect", world=True, span=True)
def expect(w: World, actual: Any, expected: Any, span: Span) -> tuple[()]:
    if not equal(actual, expected):
        _fail(w, f"expected {shown(expected)}, got {shown(actual)}", span)
    return ()


@builtin("check", world=True, span=True)
def check(w: World, label: str, expected: Any, actual: Any, span: Span) -> tuple[()]:
    if not equal(actual, expected):
        _fail(w, f"{label}: expected {shown(expected)}, got {shown(actual)}", span)
    return ()


@builtin("checkAll", world=True, span=True)
def check_all(w: World, label: str, conditions: List, span: Span) -> tuple[()]:
    for k, holds in enumerate(conditions, 1):
        if not holds:
            _fail(w, f"{label}: condition {k} of {len(conditions)} does not hold", span)
    return ()


@builtin("expectAll", world=True, span=True)
def expect_all(w: World, conditions: List, span: Span) -> tuple[()]:
    for k, holds in enumerate(conditions, 1):
        if not holds:
            _fail(w, f"condition {k} of {len(conditions)} does not hold", span)
    return ()


@builtin("expectTrue", world=True, span=True)
def expect_true(w: World, condition: bool, span: Span) -> tuple[()]:
    if not condition:
        _fail(w, "expected true, got false", span)
    return ()


@builtin("expectFalse", world=True, span=True)
def expect_false(w: World, condition: bool, span: Span) -> tuple[()]:
    if condition:
        _fail(w, "expected false, got true", span)
    return ()


@builtin("checkTrue", world=True, span=True)
def check_true(w: World, label: str, condition: bool, span: Span) -> tuple[()]:
    if not condition:
        _fail(w, f"{label}: expected true, got false", span)
    return ()


@builtin("checkFalse", world=True, span=True)
def check_false(w: World, label: str, condition: bool, span: Span) -> tuple[()]:
    if condition:
        _fail(w, f"{label}: expected false, got true", span)
    return ()
