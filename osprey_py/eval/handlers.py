"""Effect handlers at run time: a list of handlers, arms that return a value, arms that resume (spec/evaluation V6).

Comes in: arms as Python functions. Goes out: what `perform` and `handle` mean. The body of a handler with a resuming
arm runs in a greenlet of its own; a resuming arm runs where the `handle` stands and switches back to go on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeGuard

from greenlet import GreenletExit, getcurrent, greenlet

from osprey_py.eval.world import MAX_DEPTH, World, too_deep
from osprey_py.kernel.fault import MathFault
from osprey_py.source.span import Span


class Handler:
    """One `handle` that is active. arms: operation -> (function, resumes). parent: the next handler outwards, as seen
    from where the computation was last resumed. driver: the greenlet in which resuming arms run, None where the computation
    does not run."""

    __slots__ = ("arms", "driver", "effect", "parent")

    def __init__(self, effect: str, arms: dict[str, tuple[Callable[..., Any], bool]], parent: Handler | None) -> None:
        self.effect = effect
        self.arms = arms
        self.parent = parent
        self.driver: greenlet | None = None


class Resumption:
    """What an arm returns whose `resume` is its last act: the driver goes on without growing the stack."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Request:
    """What a performing computation hands to its driver."""

    __slots__ = ("args", "arm", "performer")

    def __init__(self, arm: Callable[..., Any], args: tuple[Any, ...], performer: greenlet) -> None:
        self.arm = arm
        self.args = args
        self.performer = performer


class _Suspend:
    """A resuming arm as it is called: hands the call to the driver and waits to be resumed."""

    __slots__ = ("arm", "driver", "w")

    def __init__(self, w: World, driver: greenlet, arm: Callable[..., Any]) -> None:
        self.w = w
        self.driver = driver
        self.arm = arm

    def __call__(self, *args: Any) -> Any:
        w = self.w
        depth = w.depth
        value = self.driver.switch(_Request(self.arm, args, getcurrent()))
        w.depth = depth
        return value


def find(w: World, effect: str, operation: str, span: Span) -> Callable[..., Any]:
    """The arm that handles an operation, as a function of its arguments. Handlers are set to those outside of the
    arm's: the caller puts back its own afterwards. Launches that may fault run first, as the arm is an effect."""
    w.runtime.barrier()
    h = w.handlers
    while h is not None:
        if h.effect == effect:
            found = h.arms.get(operation)
            if found is not None:
                arm, resumes = found
                if not resumes:
                    w.handlers = h.parent
                    return arm  # type: ignore[no-any-return]
                if not _runs_in(h.driver):
                    break
                return _Suspend(w, h.driver, arm)
        h = h.parent
    name = f"{effect.rsplit('::', 1)[-1]}.{operation}"
    raise MathFault(f"{name} is performed outside of its handler", span, recoverable=False)


def _runs_in(driver: greenlet | None) -> TypeGuard[greenlet]:
    """Whether what runs now is the driver's computation, or a part of it. It is not when a stage of a pipeline outlives
    the computation, or is called by the arm of a handler around it."""
    at: greenlet | None = getcurrent() if driver is not None else None
    while at is not None and at is not driver:
        at = at.parent
    return at is not None


def handled_here(w: World, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`f`, which performs under the handlers that are active now, whenever it is called: a stage of a pipeline (its
    effects are those of the call of `map` or `filter`)."""
    handlers = w.handlers
    if handlers is None:
        return f

    def under(x: Any) -> Any:
        caller = w.handlers
        w.handlers = handlers
        y = f(x)
        w.handlers = caller
        return y

    return under


def run(
    w: World, effect: str, arms: dict[str, tuple[Callable[..., Any], bool]], body: Callable[[], Any], span: Span
) -> Any:
    """`handle` with a resuming arm: run body in a greenlet, serve what it performs, give the answer."""
    h = Handler(effect, arms, w.handlers)

    def start(_: Any) -> Any:
        w.handlers = h
        return body()

    first = greenlet(start)
    return _drive(w, h, first, first, (), span)


def _drive(w: World, h: Handler, first: greenlet, target: greenlet, value: Any, span: Span) -> Any:
    """Go on at target with value until the whole computation ends or an arm gives its answer. first: the greenlet in
    which the computation began, and whose end is its end."""
    while True:
        outer, depth = w.handlers, w.depth
        h.parent = outer
        h.driver = first.parent = getcurrent()
        got = target.switch(value)
        h.driver = None
        w.handlers, w.depth = outer, depth
        if isinstance(got, GreenletExit):
            raise got
        if type(got) is not _Request:
            return got
        performer = got.performer
        resume = _Resume(w, h, first, performer, span)
        try:
            answer = got.arm(*got.args, resume)
        except BaseException:
            _abandon(w, resume)
            raise
        if type(answer) is Resumption:
            target, value = performer, answer.value
            resume.used = True
            continue
        if sys.getrefcount(resume) <= 2:  # nobody kept it to resume later
            _abandon(w, resume)
        return answer


class _Resume:
    """`resume` as a value: goes on with the computation, at most once."""

    __slots__ = ("first", "handler", "performer", "span", "used", "w")

    def __init__(self, w: World, handler: Handler, first: greenlet, performer: greenlet, span: Span) -> None:
        self.w = w
        self.handler = handler
        self.first = first
        self.performer = performer
        self.span = span
        self.used = False

    def __call__(self, value: Any) -> Any:
        w = self.w
        if self.used:
            raise MathFault("resume is called a second time", self.span, recoverable=False)
        self.used = True
        depth = w.depth
        if depth >= MAX_DEPTH:
            raise too_deep(self.span)
        w.depth = depth + 1
        answer = _drive(w, self.handler, self.first, self.performer, value, self.span)
        w.depth = depth
        return answer


def _abandon(w: World, resume: _Resume) -> None:
    """End a computation that nobody will resume, so that what it holds dies now."""
    if resume.used:
        return
    resume.used = True
    handlers, depth = w.handlers, w.depth
    resume.first.parent = getcurrent()
    resume.performer.throw(GreenletExit)
    w.handlers, w.depth = handlers, depth
