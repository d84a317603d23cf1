"""Native threads that run plans of native steps.

Comes in: a plan: for each step {function address, argument block, units, grain}. Goes out: all steps have run, each
seeing what those before it wrote. A plan costs one foreign call however many steps it has; or it runs while it is being
written, a few steps at a time. Units of a step may run in any order on any threads: what they compute must not depend on
it (and never does: threads split outputs, not sums).

Threads are made once, at the first plan that has work for two, and end with the pool or the process. After a fork the
child makes its own. One thread means no threads at all.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import threading
import weakref
from functools import cache

import numpy as np
import numpy.typing as npt

from osprey_py.backends.host import pool_ir
from osprey_py.backends.host.native import Library, machine

_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FINISH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
# These return at once: nobody needs to be let in meanwhile.
_ROUSE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_BEGIN = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_PUBLISH = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_STOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@cache
def _library() -> Library:
    return machine().load(pool_ir.text(machine().triple), _NAMES)


_NAMES = tuple(f"pool_{name}" for name in ("run", "begin", "publish", "finish", "worker", "rouse", "stop"))
_FIELDS = struct.Struct("<6q")


class Plan:
    """Steps in the form that threads walk. function: address of a native step (args, lo, hi, scratch); args: address of
    its argument block; grain: units that one claim takes. Both must live until the plan has run."""

    def __init__(self, room: int = 32) -> None:
        self._room = aligned(pool_ir.STEP_BYTES * room)
        self._view = self._room.data
        self.steps = 0
        self.shared = False

    @property
    def room(self) -> int:
        """So many steps fit without another place to lie in."""
        return len(self._room) // pool_ir.STEP_BYTES

    @property
    def address(self) -> int:
        return int(self._room.__array_interface__["data"][0])

    def clear(self, room: int = 0) -> None:
        """No steps, and room for so many at least."""
        self.steps = 0
        self.shared = False
        if room > self.room:
            self._room = aligned(pool_ir.STEP_BYTES * room)
            self._view = self._room.data

    def add(self, function: int, args: int, units: int, grain: int = 1) -> None:
        """One more step. A step that one claim takes whole is no work to share."""
        place = pool_ir.STEP_BYTES * self.steps
        if place == len(self._room):
            more = aligned(2 * place)
            more[:place] = self._room
            self._room, self._view = more, more.data
        _FIELDS.pack_into(self._view, place, function, args, units, grain, 0, 0)
        self.steps += 1
        self.shared = self.shared or units > grain


class Pool:
    """threads: how many work on a plan, the caller's included."""

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError("a pool has one thread at least")
        self.threads = threads
        self._lock = threading.Lock()
        self._workers: _Workers | None = None
        addresses = _library().addresses
        self._run = _RUN(addresses["pool_run"])
        self._rouse = _ROUSE(addresses["pool_rouse"])
        self._begin = _BEGIN(addresses["pool_begin"])
        self._publish = _PUBLISH(addresses["pool_publish"])
        self._finish = _FINISH(addresses["pool_finish"])

    def run(self, plan: Plan, scratch: int = 0) -> None:
        """Run all steps. scratch: bytes that each thread's steps may use (64-byte aligned, contents undefined)."""
        if plan.steps == 0:
            return
        shared = self.threads > 1 and plan.shared
        with self._lock:
            workers = self._ready()
            workers.reserve(scratch)
            if shared:
                workers.start()
            self._run(workers.address, plan.address, plan.steps, int(shared))

    def begin(self, plan: Plan) -> None:
        """Workers begin to walk a plan that is still being written. Until `finish` the pool serves nobody else, and the
        plan must not grow beyond its room."""
        self._lock.acquire()
        workers = self._ready()
        workers.start()
        self._begin(workers.address, plan.address)

    def publish(self, plan: Plan, scratch: int = 0) -> None:
        """The steps that the plan has now may run. scratch: bytes that they need."""
        workers = self._ready()
        workers.reserve(scratch, running=True)
        self._publish(workers.address, plan.steps)

    def finish(self, plan: Plan, scratch: int = 0) -> None:
        """All steps may run; return when they have."""
        workers = self._ready()
        try:
            workers.reserve(scratch, running=True)
            self._finish(workers.address, plan.address, plan.steps)
            workers.outgrown.clear()
        finally:
            self._lock.release()

    def rouse(self) -> None:
        """A plan with work to share comes within a millisecond: workers that sleep wake up meanwhile. They go back to sleep
        when none comes."""
        workers = self._workers
        if workers is not None and workers.process == os.getpid():
            self._rouse(workers.address)

    def _ready(self) -> _Workers:
        """The workers of this process; those of a parent process do not exist here."""
        if self._workers is None or self._workers.process != os.getpid():
            workers = self._workers = _Workers(self.threads)
            # A pool that nobody refers to runs no plan: its threads sleep, and would as long as the process lives.
            weakref.finalize(self, workers.stop)
        return self._workers

    def close(self) -> None:
        """End the threads; a later plan starts new ones."""
        with self._lock:
            if self._workers is not None:
                self._workers.stop()
                self._workers = None


class _Workers:
    """The pool's memory and threads in one process."""

    def __init__(self, threads: int) -> None:
        self.process = os.getpid()
        self.threads = threads
        self._libc = ctypes.CDLL(None)
        self._memory = aligned(pool_ir.POOL_BYTES)
        self._memory[:] = 0
        self.address = int(self._memory.ctypes.data)
        self._libc.pthread_mutex_init(ctypes.c_void_p(self.address + pool_ir.MUTEX), None)
        self._libc.pthread_cond_init(ctypes.c_void_p(self.address + pool_ir.CONDITION), None)
        self._scratch: list[npt.NDArray[np.uint8]] = []
        self._places = np.zeros(threads, np.int64)
        self._own = np.zeros((threads, 2), np.int64)
        self._handles: list[ctypes.c_void_p] = []
        self._memory[pool_ir.SCRATCH : pool_ir.SCRATCH + 8].view(np.int64)[0] = self._places.ctypes.data
        self._room = -1
        self.outgrown: list[npt.NDArray[np.uint8]] = []
        """Scratch memory that steps may still be using."""

    def reserve(self, size: int, running: bool = False) -> None:
        """Give every thread `size` bytes of scratch at least. running: threads may be inside a plan now; they see it at
        their next step."""
        if size <= self._room:
            return
        if running:
            self.outgrown += self._scratch
        self._scratch = [aligned(max(size, 64)) for _ in range(self.threads)]
        self._places[:] = [s.ctypes.data for s in self._scratch]
        self._room = size

    def start(self) -> None:
        """Make the threads, once. They take no signals: those are for the thread that runs Python."""
        if self._handles:
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            for number in range(1, self.threads):
                self._own[number] = (self.address, number)
                handle = ctypes.c_void_p()
                worker = ctypes.c_void_p(_library().addresses["pool_worker"])
                own = ctypes.c_void_p(int(self._own[number].ctypes.data))
                if self._libc.pthread_create(ctypes.byref(handle), None, worker, own) != 0:
                    break  # fewer threads do the same work
                self._handles.append(handle)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        """End and join the threads."""
        if self._handles and self.process == os.getpid():
            _STOP(_library().addresses["pool_stop"])(self.address)
            for handle in self._handles:
                self._libc.pthread_join(handle, None)
        self._handles = []


def aligned(size: int) -> npt.NDArray[np.uint8]:
    """Uninitialised bytes at a multiple of 64."""
    room = np.empty(size + 64, np.uint8)
    skip = -room.ctypes.data % 64
    return room[skip : skip + size]
