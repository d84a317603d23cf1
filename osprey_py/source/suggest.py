"""Did you mean …?

Comes in: a name that is not there, and the names that are. Goes out: one sentence, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean `length`?` for the nearest known name that a slip could have turned into `name`, else ""."""
    best = closest(name, known)
    return f"did you mean `{best}`?" if best else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name at the least distance, if that is small for its length; ties by the order given."""
    limit = 0 if len(name) < 3 else max(1, len(name) // 3)
    best: str | None = None
    best_distance = limit + 1
    for candidate in dict.fromkeys(known):
        if candidate == name or abs(len(candidate) - len(name)) > limit:
            continue
        d = distance(name.lower(), candidate.lower(), limit)
        if d < best_distance:
            best, best_distance = candidate, d
    return best


def distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) from a to b; anything above `limit` is limit + 1."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row, two_back = row, [i], before
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, two_back[j - 2] + 1)
            row.append(cost)
        before = last
        if min(row) > limit:
            return limit + 1
    return row[-1]
