"""The pool's native half, in LLVM's language: how threads walk a plan together.

Comes in: the target triple. Goes out: the module's text; pool.py calls its functions.

A plan is an array of 64-byte steps {function, args, units, grain, next, done}. Every thread walks it: it claims `grain`
units at a time by adding to `next`, and goes to the next step when `done` has reached `units`, so a step sees all that
the steps before it wrote. Waiting spins briefly, then sleeps on the pool's condition; whoever fulfils a wait wakes it.
A plan may still be growing when workers begin to walk it: one word says how many steps there are and whether more come.
Who knows that a plan is near rouses the workers: they then spin for longer, for waking up takes longer than most steps.
Counters are reset only while no worker is inside: a worker enters by raising `active` and then looking at `open`, and
the caller closes by clearing `open` and then waiting for `active` to fall to 0; both orders are sequentially
consistent, so a worker that wakes late finds the pool closed, or the next plan ready.
Workers run with the default floating-point control word: round to nearest, subnormals kept (spec/numerics).
"""

from __future__ import annotations

STEP_BYTES = 64
POOL_BYTES = 640
GENERATION, OPEN, ACTIVE, SLEEPERS = 0, 64, 128, 192
STOP, PLAN, PUBLISHED, SCRATCH, ALERTS = 256, 264, 272, 280, 288
MUTEX, CONDITION = 320, 448
"""Byte offsets in the pool's own memory. Words that threads write lie on lines of their own; the mutex and the condition
get 128 bytes each, more than any system's. PUBLISHED: twice the steps that may run, and 1 when no more come."""

SPINS = 3000
"""Looks at a counter before going to sleep: some tens of microseconds."""

ROUSED_SPINS = 100_000
"""The same for workers who have been told that a plan is near: one to two milliseconds."""

_TEXT = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
{declarations}

; Return when (*place == value) is `wanted`.
define internal void @await(ptr %pool, ptr %place, i64 %value, i1 %wanted) {{
entry:
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ %n1, %again ]
  %seen = load atomic i64, ptr %place seq_cst, align 8
  %equal = icmp eq i64 %seen, %value
  %ready = icmp eq i1 %equal, %wanted
  br i1 %ready, label %done, label %again
again:
  {pause}
  %n1 = add i64 %n, 1
  %tired = icmp uge i64 %n1, {spins}
  br i1 %tired, label %sleep, label %spin
sleep:
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %sleepers = getelementptr i8, ptr %pool, i64 {sleepers}
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %look
look:
  %seen2 = load atomic i64, ptr %place seq_cst, align 8
  %equal2 = icmp eq i64 %seen2, %value
  %ready2 = icmp eq i1 %equal2, %wanted
  br i1 %ready2, label %wake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %look
wake:
  %t = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %done
done:
  ret void
}}

; Return when the generation is another than `value`. An alert that comes meanwhile makes the wait a wakeful one.
define internal void @rest(ptr %pool, ptr %generation, i64 %value) {{
entry:
  %alerts = getelementptr i8, ptr %pool, i64 {alerts}
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %sleepers = getelementptr i8, ptr %pool, i64 {sleepers}
  %first = load atomic i64, ptr %alerts seq_cst, align 8
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ %n1, %again ], [ 0, %roused ]
  %most = phi i64 [ {spins}, %entry ], [ %most, %again ], [ {roused_spins}, %roused ]
  %known = phi i64 [ %first, %entry ], [ %known, %again ], [ %now, %roused ]
  %seen = load atomic i64, ptr %generation seq_cst, align 8
  %ready = icmp ne i64 %seen, %value
  br i1 %ready, label %done, label %again
again:
  {pause}
  %n1 = add i64 %n, 1
  %tired = icmp uge i64 %n1, %most
  br i1 %tired, label %sleep, label %spin
sleep:
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %look
look:
  %seen2 = load atomic i64, ptr %generation seq_cst, align 8
  %ready2 = icmp ne i64 %seen2, %value
  %now = load atomic i64, ptr %alerts seq_cst, align 8
  %alert = icmp ne i64 %now, %known
  %up = or i1 %ready2, %alert
  br i1 %up, label %wake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %look
wake:
  %t = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br i1 %ready2, label %done, label %roused
roused:
  br label %spin
done:
  ret void
}}

; A plan is near.
define void @pool_rouse(ptr %pool) {{
entry:
  %alerts = getelementptr i8, ptr %pool, i64 {alerts}
  %a = atomicrmw add ptr %alerts, i64 1 seq_cst
  call void @announce(ptr %pool)
  ret void
}}

; Something that is waited for has happened.
define internal void @announce(ptr %pool) {{
entry:
  %sleepers = getelementptr i8, ptr %pool, i64 {sleepers}
  %n = load atomic i64, ptr %sleepers seq_cst, align 8
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %wake
wake:
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %done
done:
  ret void
}}

; Walk the plan to its end. place: where this thread's scratch memory is said; it may become larger between two steps.
define internal void @walk(ptr %pool, ptr %plan, ptr %place) {{
entry:
  %published = getelementptr i8, ptr %pool, i64 {published}
  br label %step
step:
  %at = phi ptr [ %plan, %entry ], [ %at.next, %next ], [ %at, %wait ]
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ], [ %i, %wait ]
  %word = load atomic i64, ptr %published seq_cst, align 8
  %steps = lshr i64 %word, 1
  %there = icmp ult i64 %i, %steps
  br i1 %there, label %load, label %over
over:
  %last.bit = and i64 %word, 1
  %ended = icmp ne i64 %last.bit, 0
  br i1 %ended, label %end, label %wait
wait:
  call void @await(ptr %pool, ptr %published, i64 %word, i1 false)
  br label %step
load:
  %function = load ptr, ptr %at, align 8
  %args.at = getelementptr i8, ptr %at, i64 8
  %args = load ptr, ptr %args.at, align 8
  %units.at = getelementptr i8, ptr %at, i64 16
  %units = load i64, ptr %units.at, align 8
  %grain.at = getelementptr i8, ptr %at, i64 24
  %grain = load i64, ptr %grain.at, align 8
  %claim = getelementptr i8, ptr %at, i64 32
  %finished = getelementptr i8, ptr %at, i64 40
  %scratch = load ptr, ptr %place, align 8
  br label %take
take:
  %lo = atomicrmw add ptr %claim, i64 %grain seq_cst
  %some = icmp slt i64 %lo, %units
  br i1 %some, label %work, label %join
work:
  %top = add i64 %lo, %grain
  %short = icmp slt i64 %units, %top
  %hi = select i1 %short, i64 %units, i64 %top
  call void %function(ptr %args, i64 %lo, i64 %hi, ptr %scratch)
  %count = sub i64 %hi, %lo
  %before = atomicrmw add ptr %finished, i64 %count seq_cst
  %after = add i64 %before, %count
  %last = icmp eq i64 %after, %units
  br i1 %last, label %tell, label %take
tell:
  call void @announce(ptr %pool)
  br label %next
join:
  call void @await(ptr %pool, ptr %finished, i64 %units, i1 true)
  br label %next
next:
  %at.next = getelementptr i8, ptr %at, i64 {step}
  %i.next = add i64 %i, 1
  br label %step
end:
  ret void
}}

; Workers may walk this plan, of which no step has been published.
define void @pool_begin(ptr %pool, ptr %plan) {{
entry:
  %published = getelementptr i8, ptr %pool, i64 {published}
  store atomic i64 0, ptr %published seq_cst, align 8
  call void @open(ptr %pool, ptr %plan)
  ret void
}}

; The first `steps` steps are written, their counters 0.
define void @pool_publish(ptr %pool, i64 %steps) {{
entry:
  %published = getelementptr i8, ptr %pool, i64 {published}
  %word = shl i64 %steps, 1
  store atomic i64 %word, ptr %published seq_cst, align 8
  call void @announce(ptr %pool)
  ret void
}}

; So are all. Return when they have run and no worker is inside.
define void @pool_finish(ptr %pool, ptr %plan, i64 %steps) {{
entry:
  %control = alloca i64, align 8
  {save}
  {reset}
  call void @last(ptr %pool, i64 %steps)
  call void @announce(ptr %pool)
  call void @close(ptr %pool, ptr %plan)
  {restore}
  ret void
}}

; A plan that is there as a whole, from its start to its end. `shared` says whether workers take part.
define void @pool_run(ptr %pool, ptr %plan, i64 %steps, i64 %shared) {{
entry:
  %control = alloca i64, align 8
  {save}
  {reset}
  %plan.end = getelementptr [{step} x i8], ptr %plan, i64 %steps
  br label %clear
clear:
  %at = phi ptr [ %plan, %entry ], [ %at.next, %zero ]
  %over = icmp eq ptr %at, %plan.end
  br i1 %over, label %choose, label %zero
zero:
  %claim = getelementptr i8, ptr %at, i64 32
  %finished = getelementptr i8, ptr %at, i64 40
  store atomic i64 0, ptr %claim monotonic, align 8
  store atomic i64 0, ptr %finished monotonic, align 8
  %at.next = getelementptr i8, ptr %at, i64 {step}
  br label %clear
choose:
  call void @last(ptr %pool, i64 %steps)
  %alone = icmp eq i64 %shared, 0
  br i1 %alone, label %solo, label %many
solo:
  call void @mine(ptr %pool, ptr %plan)
  br label %done
many:
  call void @open(ptr %pool, ptr %plan)
  call void @close(ptr %pool, ptr %plan)
  br label %done
done:
  {restore}
  ret void
}}

; There are `steps` steps, and no more come.
define internal void @last(ptr %pool, i64 %steps) {{
entry:
  %published = getelementptr i8, ptr %pool, i64 {published}
  %twice = shl i64 %steps, 1
  %word = or i64 %twice, 1
  store atomic i64 %word, ptr %published seq_cst, align 8
  ret void
}}

define internal void @open(ptr %pool, ptr %plan) {{
entry:
  %plan.at = getelementptr i8, ptr %pool, i64 {plan}
  store ptr %plan, ptr %plan.at, align 8
  %open = getelementptr i8, ptr %pool, i64 {open}
  store atomic i64 1, ptr %open seq_cst, align 8
  %generation = getelementptr i8, ptr %pool, i64 {generation}
  %g = atomicrmw add ptr %generation, i64 1 seq_cst
  call void @announce(ptr %pool)
  ret void
}}

; The caller walks too, then lets nobody in and waits for those inside.
define internal void @close(ptr %pool, ptr %plan) {{
entry:
  call void @mine(ptr %pool, ptr %plan)
  %open = getelementptr i8, ptr %pool, i64 {open}
  store atomic i64 0, ptr %open seq_cst, align 8
  %active = getelementptr i8, ptr %pool, i64 {active}
  call void @await(ptr %pool, ptr %active, i64 0, i1 true)
  ret void
}}

; The caller's walk: its scratch memory is the first.
define internal void @mine(ptr %pool, ptr %plan) {{
entry:
  %places.at = getelementptr i8, ptr %pool, i64 {scratch}
  %places = load ptr, ptr %places.at, align 8
  call void @walk(ptr %pool, ptr %plan, ptr %places)
  ret void
}}

; A worker's life. own: {{pool, number}}.
define ptr @pool_worker(ptr %own) {{
entry:
  {reset}
  %pool = load ptr, ptr %own, align 8
  %number.at = getelementptr i8, ptr %own, i64 8
  %number = load i64, ptr %number.at, align 8
  %generation = getelementptr i8, ptr %pool, i64 {generation}
  %open = getelementptr i8, ptr %pool, i64 {open}
  %active = getelementptr i8, ptr %pool, i64 {active}
  %stop = getelementptr i8, ptr %pool, i64 {stop}
  %plan.at = getelementptr i8, ptr %pool, i64 {plan}
  %places.at = getelementptr i8, ptr %pool, i64 {scratch}
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %now, %leave ]
  call void @rest(ptr %pool, ptr %generation, i64 %seen)
  %now = load atomic i64, ptr %generation seq_cst, align 8
  %end = load atomic i64, ptr %stop seq_cst, align 8
  %ended = icmp ne i64 %end, 0
  br i1 %ended, label %exit, label %enter
enter:
  %a = atomicrmw add ptr %active, i64 1 seq_cst
  %ready = load atomic i64, ptr %open seq_cst, align 8
  %late = icmp eq i64 %ready, 0
  br i1 %late, label %leave, label %work
work:
  %plan = load ptr, ptr %plan.at, align 8
  %places = load ptr, ptr %places.at, align 8
  %place = getelementptr ptr, ptr %places, i64 %number
  call void @walk(ptr %pool, ptr %plan, ptr %place)
  br label %leave
leave:
  %b = atomicrmw sub ptr %active, i64 1 seq_cst
  call void @announce(ptr %pool)
  br label %idle
exit:
  ret ptr null
}}

define void @pool_stop(ptr %pool) {{
entry:
  %stop = getelementptr i8, ptr %pool, i64 {stop}
  store atomic i64 1, ptr %stop seq_cst, align 8
  %generation = getelementptr i8, ptr %pool, i64 {generation}
  %g = atomicrmw add ptr %generation, i64 1 seq_cst
  call void @announce(ptr %pool)
  ret void
}}
"""

_X86 = {
    "declarations": """declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
@default_control = private constant i32 8064""",
    "pause": "call void @llvm.x86.sse2.pause()",
    "save": "call void @llvm.x86.sse.stmxcsr(ptr %control)",
    "reset": "call void @llvm.x86.sse.ldmxcsr(ptr @default_control)",
    "restore": "call void @llvm.x86.sse.ldmxcsr(ptr %control)",
}
_ARM = {
    "declarations": """declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)""",
    "pause": "call void @llvm.aarch64.hint(i32 1)",
    "save": """%fpcr = call i64 @llvm.aarch64.get.fpcr()
  store i64 %fpcr, ptr %control, align 8""",
    "reset": "call void @llvm.aarch64.set.fpcr(i64 0)",
    "restore": """%saved = load i64, ptr %control, align 8
  call void @llvm.aarch64.set.fpcr(i64 %saved)""",
}
_OTHER = {
    "declarations": "",
    "pause": 'fence syncscope("singlethread") seq_cst',
    "save": "",
    "reset": "",
    "restore": "",
}


def text(triple: str) -> str:
    """The module for a target. x86-64 and AArch64 set and restore their control registers; others start with defaults."""
    machine = triple.split("-", 1)[0]
    parts = _X86 if machine in ("x86_64", "amd64") else _ARM if machine in ("aarch64", "arm64") else _OTHER
    return _TEXT.format(
        spins=SPINS,
        roused_spins=ROUSED_SPINS,
        step=STEP_BYTES,
        generation=GENERATION,
        open=OPEN,
        active=ACTIVE,
        sleepers=SLEEPERS,
        stop=STOP,
        plan=PLAN,
        published=PUBLISHED,
        scratch=SCRATCH,
        alerts=ALERTS,
        mutex=MUTEX,
        condition=CONDITION,
        **parts,
    )
