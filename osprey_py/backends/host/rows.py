"""Folds along rows, many rows side by side: reads of rows become blocks, transposed in registers.

Comes in: a vector fold in which a load moves along memory with the fold's index while its lanes lie a stride apart
(the sum of each row, say). Goes out: a loop over blocks of turns. Before each block, a few neighbouring elements of
every lane's row are read as vectors, transposed, and laid down as one vector of lanes for each turn; the turns then
read those. A gather for each turn would read the same elements one by one. Order within a lane is untouched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osprey_py.backends.host import memory, sums
from osprey_py.backends.host.counting import counted
from osprey_py.backends.host.native import machine
from osprey_py.backends.host.text import Scope, Value, lanes, literal, vector
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Bound, Node, walk
from osprey_py.kernel.nest import Coefficient, Sum

if TYPE_CHECKING:
    from osprey_py.backends.host.expression import Expressions


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """A load along rows. start: its place without the fold's index. stride: from a lane's row to the next one's."""

    load: Node
    start: Sum
    stride: Coefficient


def along(e: Expressions, s: Scope, nexts: Sequence[Node], index: Bound) -> list[Rows]:
    """The loads of a vector fold's body that walk along rows. Only what is known to be in range can be read ahead,
    and only what depends on no fold inside."""
    found = []
    for node in walk(nexts):
        if node.op != "load" or node.type is not FLOAT or not e.proven(node):
            continue
        total = node.args[0].attr
        if not isinstance(total, Sum):
            continue
        steps = [t for t in total.terms if t.digit is e.lane_digit]
        turns = [t for t in total.terms if t.digit is index]
        if len(steps) == len(turns) == 1 and turns[0].multiple is None and isinstance(steps[0].multiple, Coefficient):
            rest = tuple(t for t in total.terms if t.digit is not index)
            if all(e.bound(t.digit, s) for t in rest):
                found.append(Rows(node, Sum(total.constant, rest), steps[0].multiple))
    return found


def blocks(
    e: Expressions,
    s: Scope,
    binds: int,
    last: Value,
    rows: Sequence[Rows],
    width: int,
    turn: Callable[[Scope, Value], None],
) -> None:
    """The loop of a fold: turn(scope, i) for i from 0 to last - 1, with the loads of `rows` known in the scope."""
    side = min(machine().lanes, width)
    line = vector("double", width)
    places = [e.function.array(side, line) for _ in rows]
    starts = [_starts(e, s, r, side) for r in rows]

    def block(b: Scope, first: Value) -> None:
        left = b.define(INT, 1, f"sub i64 {last}, {first}")
        many = b.widen(left, side)
        mask = b.define(BOOL, side, f"icmp sgt {many.llvm} {many}, {lanes(range(side))}")
        for r, start, place in zip(rows, starts, places, strict=True):
            _fill(e, b, r, start, place, width, first, mask)
        turns = b.define(INT, 1, f"call i64 @llvm.smin.i64(i64 {left}, i64 {side})")

        def inner(t: Scope, j: Value) -> None:
            for r, place in zip(rows, places, strict=True):
                at = t.raw(f"getelementptr {line}, ptr {place}, i64 {j}")
                t.memo[r.load] = t.define(FLOAT, width, f"load {line}, ptr {at}")
            turn(t, t.define(INT, 1, f"add i64 {first}, {j}"))

        counted(b, binds, literal(0), turns, 1, inner)

    counted(s, 0, literal(0), last, side, block)


def _starts(e: Expressions, s: Scope, r: Rows, side: int) -> list[str]:
    """Where the rows of the first lanes begin. Lanes that do not count read the last row that does; there is one
    square of lanes then."""
    slot = r.load.attr
    assert isinstance(slot, int)
    kind = e.arguments.kinds[slot]
    first = memory.address(s, e.arguments.bases[slot], kind, sums.first_lane(e, r.start, s))
    stride = e.arguments.number(r.stride)
    found = []
    for k in range(side):
        row = literal(k)
        if s.live is not None:
            final = s.define(INT, 1, f"sub i64 {s.live}, 1")
            row = s.define(INT, 1, f"call i64 @llvm.smin.i64(i64 {row}, i64 {final})")
        found.append(memory.address(s, first, kind, s.define(INT, 1, f"mul i64 {row}, {stride}")))
    return found


def _fill(
    e: Expressions, b: Scope, r: Rows, starts: list[str], place: str, width: int, first: Value, mask: Value
) -> None:
    """Lay down as many turns as a vector has lanes, from `first` on, a square of elements at a time."""
    slot = r.load.attr
    assert isinstance(slot, int)
    kind = e.arguments.kinds[slot]
    stride = e.arguments.number(r.stride)
    side = len(starts)
    square = vector("double", side)

    def group(g: Scope, lane: Value) -> None:
        at = g.define(INT, 1, f"add i64 {g.define(INT, 1, f'mul i64 {lane}, {stride}')}, {first}")
        vectors = []
        for start in starts:
            raw = memory.masked_load(g, memory.address(g, start, kind, at), kind, side, mask)
            vectors.append(memory.widen(g, raw, kind, side).name)
        for k, name in enumerate(transposed(g, vectors, square)):
            line = g.define(INT, 1, f"add i64 {lane}, {k * width}")
            g.write(f"store {square} {name}, ptr {g.raw(f'getelementptr double, ptr {place}, i64 {line}')}, align 8")

    if width == side:
        group(b, literal(0))
    else:
        counted(b, 0, literal(0), literal(width), side, group)


def transposed(s: Scope, vectors: list[str], ty: str) -> list[str]:
    """The columns of a square of vectors: at each distance, pairs exchange the quarters off the diagonal."""
    side = len(vectors)
    distance = 1
    while distance < side:
        swapped = list(vectors)
        for r in range(side):
            if not r & distance:
                low, high = vectors[r], vectors[r + distance]
                even = [c if not c & distance else side + c - distance for c in range(side)]
                odd = [c + distance if not c & distance else side + c for c in range(side)]
                swapped[r] = _shuffle(s, low, high, ty, even)
                swapped[r + distance] = _shuffle(s, low, high, ty, odd)
        vectors = swapped
        distance *= 2
    return vectors


def _shuffle(s: Scope, a: str, b: str, ty: str, order: list[int]) -> str:
    picks = ", ".join(f"i32 {k}" for k in order)
    return s.raw(f"shufflevector {ty} {a}, {ty} {b}, <{len(order)} x i32> <{picks}>")
