"""The native pool: order of steps, every unit once, threads, forks, control words."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from functools import cache

import numpy as np
import pytest

from osprey_py.backends.host.native import Library, machine
from osprey_py.backends.host.pool import Plan, Pool

# out[i] = 2 * in[n - 1 - i] + 1 for the units; args: {in, out, n}. Any unit needs any unit of the step before.
_MIX = """
define void @mix(ptr %args, i64 %lo, i64 %hi, ptr %scratch) {
entry:
  %in = load ptr, ptr %args
  %out.at = getelementptr i8, ptr %args, i64 8
  %out = load ptr, ptr %out.at
  %n.at = getelementptr i8, ptr %args, i64 16
  %n = load i64, ptr %n.at
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %j, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %r = sub i64 %n, %i
  %m = sub i64 %r, 1
  %p = getelementptr i64, ptr %in, i64 %m
  %x = load i64, ptr %p
  %y = mul i64 %x, 2
  %z = add i64 %y, 1
  %q = getelementptr i64, ptr %out, i64 %i
  store i64 %z, ptr %q
  store i64 %z, ptr %scratch
  %j = add i64 %i, 1
  br label %loop
done:
  ret void
}

define void @busy(ptr %args, i64 %lo, i64 %hi, ptr %scratch) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  store volatile i64 %i, ptr %scratch
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, 50000000
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @tiny(ptr %args, i64 %lo, i64 %hi, ptr %scratch) {
entry:
  %p = getelementptr double, ptr %args, i64 %lo
  %x = load volatile double, ptr %p
  %y = fmul double %x, 5.0e-1
  store double %y, ptr %p
  ret void
}
"""


@cache
def code() -> dict[str, int]:
    """Addresses of the functions above; the library lives as long as this module."""
    _kept.append(machine().load(_MIX, ("mix", "busy", "tiny")))
    return _kept[0].addresses


_kept: list[Library] = []


def chain(steps: int, n: int, grain: int) -> tuple[Plan, np.ndarray, np.ndarray, list[np.ndarray]]:
    function = code()["mix"]
    a, b = np.arange(n, dtype=np.int64), np.zeros(n, np.int64)
    words = [
        np.array([x.ctypes.data, y.ctypes.data, n], np.int64)
        for x, y in [(a, b) if s % 2 == 0 else (b, a) for s in range(steps)]
    ]
    plan = Plan(room=4)
    for w in words:
        plan.add(function, w.ctypes.data, n, grain)
    return plan, a, b, words


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(("n", "grain"), [(1, 1), (2, 1), (7, 2), (64, 8), (1000, 1)])
def test_steps_see_what_those_before_wrote(threads: int, n: int, grain: int) -> None:
    """C6: order between steps, whatever the threads and the grain."""
    pool = Pool(threads)
    plan, a, b, words = chain(50, n, grain)
    for _ in range(10):
        a[:] = np.arange(n)
        pool.run(plan, 64)
        x = np.arange(n, dtype=np.int64)
        for _ in words:
            x = 2 * x[::-1] + 1
        assert (a == x).all()
    assert len(b) == n
    pool.close()


def test_empty_plans_and_empty_steps() -> None:
    pool = Pool(2)
    plan = Plan()
    pool.run(plan)
    a, b = np.arange(4), np.zeros(4, np.int64)
    words = [np.array([x.ctypes.data, y.ctypes.data, 4], np.int64) for x, y in ((a, b), (b, a), (a, b))]
    for w, units in zip(words, (4, 0, 4), strict=True):
        plan.add(code()["mix"], w.ctypes.data, units, 1)
    pool.run(plan, 64)
    assert a.tolist() == [0, 1, 2, 3]  # the middle step was to write a
    assert b.tolist() == [7, 5, 3, 1]
    plan.clear()
    pool.run(plan, 64)
    assert (plan.steps, plan.shared) == (0, False)
    with pytest.raises(ValueError, match="one thread"):
        Pool(0)


def test_callers_take_turns() -> None:
    """Two Python threads may use one pool."""
    pool = Pool(2)
    cases = [chain(40, 30, 3) for _ in range(2)]
    workers = [threading.Thread(target=lambda p=p: [pool.run(p, 64) for _ in range(50)]) for p, *_ in cases]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert cases[0][1].tobytes() == cases[1][1].tobytes()
    pool.close()


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("pause", [0.0, 0.001])
def test_a_plan_runs_while_it_is_written(threads: int, pause: float) -> None:
    """C6: whenever steps come, each sees what those before it wrote. Workers wait for them, awake or asleep, and scratch
    memory grows between steps."""
    pool = Pool(threads)
    for portion in (1, 3, 50):
        whole, a, b, words = chain(50, 40, 3)
        plan = Plan(room=64)
        pool.begin(plan)
        for at, w in enumerate(words):
            plan.add(code()["mix"], w.ctypes.data, 40, 3)
            if plan.steps % portion == 0:
                pool.publish(plan, 64 * (at + 1))
                time.sleep(pause)
        pool.finish(plan, 1 << 16)
        x = np.arange(40, dtype=np.int64)
        for _ in words:
            x = 2 * x[::-1] + 1
        assert (a == x).all()
        # The same plan, as it is, serves again.
        a[:] = np.arange(40)
        pool.run(plan, 64)
        assert (a == x).all()
        assert whole.steps == 50 and len(b) == 40
    pool.close()


def test_steps_keep_the_scratch_memory_that_they_began_with() -> None:
    """It is given back when nobody is inside any more."""
    pool = Pool(2)
    plan = Plan()
    plan.add(code()["busy"], 0, 2, 1)
    pool.begin(plan)
    pool.publish(plan, 1 << 22)
    time.sleep(0.005)
    pool.publish(plan, 1 << 23)
    pool.finish(plan, 1 << 24)
    assert pool._workers is not None and pool._workers.outgrown == []
    pool.close()


def test_plans_of_which_nothing_is_published() -> None:
    pool = Pool(3)
    for _ in range(200):
        plan = Plan()
        pool.begin(plan)
        pool.finish(plan)
    plan, a, *_keep = chain(4, 100, 1)
    pool.begin(plan)
    pool.finish(plan, 64)
    assert a.tolist() == [16 * x + 15 for x in range(100)]
    pool.close()


def test_a_growing_plan_has_the_pool_to_itself() -> None:
    pool = Pool(2)
    plan, a, *_keep = chain(4, 100, 1)
    other, c, *_more = chain(4, 100, 1)
    pool.begin(plan)
    thread = threading.Thread(target=pool.run, args=(other, 64))
    thread.start()
    thread.join(0.05)
    assert thread.is_alive() and c.tolist() == list(range(100))
    pool.finish(plan, 64)
    thread.join()
    assert a.tolist() == c.tolist() == [16 * x + 15 for x in range(100)]
    pool.close()


def test_workers_who_are_roused_in_vain_go_back_to_sleep() -> None:
    pool = Pool(3)
    pool.rouse()  # nobody is there yet
    plan, a, b, words = chain(10, 100, 1)
    for _ in range(20):
        pool.run(plan, 64)
        pool.rouse()
    time.sleep(0.3)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1
    again, c, d, more = chain(10, 100, 1)
    for _ in range(20):
        pool.rouse()
        pool.run(again, 64)
    assert (a.tobytes(), b.tobytes()) == (c.tobytes(), d.tobytes())
    assert len(words) == len(more) == 10
    pool.close()


def test_a_forked_child_makes_its_own_threads() -> None:
    pool = Pool(3)
    plan, a, *_keep = chain(20, 30, 1)
    pool.run(plan, 64)
    first = a.copy()
    child = os.fork()
    if child == 0:
        a[:] = np.arange(30)
        pool.run(plan, 64)
        os._exit(0 if a.tobytes() == first.tobytes() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    pool.close()


def test_threads_end_with_their_pool() -> None:
    """A process that makes many backends has the threads of those that it still has."""
    pool = Pool(3)
    plan, _a, *_keep = chain(2, 30, 1)
    pool.run(plan, 64)
    workers = pool._workers
    assert workers is not None and len(workers._handles) == 2
    del pool
    assert workers._handles == []


def test_a_closed_pool_starts_again() -> None:
    pool = Pool(2)
    plan, a, *_keep = chain(2, 10, 1)
    for _ in range(3):
        a[:] = np.arange(10)
        pool.run(plan, 64)
        pool.close()
    assert a.tolist() == [4 * x + 3 for x in range(10)]


_CONTROL = {
    "x86": (
        """
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse.stmxcsr(ptr)
define void @set(ptr %p) {
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
define void @get(ptr %p) {
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  ret void
}
""",
        0x9FC0,
        0x8040,
        0x1F80,
    ),
    "arm": (
        """
declare void @llvm.aarch64.set.fpcr(i64)
declare i64 @llvm.aarch64.get.fpcr()
define void @set(ptr %p) {
  %v = load i64, ptr %p
  call void @llvm.aarch64.set.fpcr(i64 %v)
  ret void
}
define void @get(ptr %p) {
  %v = call i64 @llvm.aarch64.get.fpcr()
  store i64 %v, ptr %p
  ret void
}
""",
        1 << 24,
        1 << 24,
        0,
    ),
}
"""How to write and read the control word; flushing subnormals, the bits to look at, the default."""


def test_subnormals_are_kept_whatever_the_caller_has_set() -> None:
    """C6, N1: every thread, the caller's too, computes with the default control word; the caller's own comes back."""
    arm = machine().triple.startswith(("arm64", "aarch64"))
    text, flushing, bits, normal = _CONTROL["arm" if arm else "x86"]
    words = machine().load(text, ("set", "get"))
    put, get = (ctypes.CFUNCTYPE(None, ctypes.c_void_p)(words.addresses[n]) for n in ("set", "get"))
    values, plan = np.full(64, 2.0**-1022), Plan()
    plan.add(code()["tiny"], values.ctypes.data, 64, 1)
    pool = Pool(3)
    word, after = ctypes.c_uint64(flushing), ctypes.c_uint64(0)
    put(ctypes.addressof(word))
    try:
        pool.run(plan, 64)
        get(ctypes.addressof(after))
    finally:
        word.value = normal
        put(ctypes.addressof(word))
    assert values.tolist() == [2.0**-1023] * 64
    assert after.value & bits == bits
    pool.close()


def test_the_process_ends_while_threads_wait() -> None:
    """Exit joins the threads: no crash, no hang."""
    script = (
        "from tests.host.test_pool import chain\n"
        "from osprey_py.backends.host.pool import Pool\n"
        "p = Pool(4); plan, *keep = chain(5, 30, 1)\n"
        "for _ in range(20): p.run(plan, 64)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
