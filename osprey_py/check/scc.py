"""Strongly connected components, by Tarjan's algorithm without recursion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def components(nodes: Sequence[N], successors: Callable[[N], Iterable[N]]) -> list[list[N]]:
    """The components, each after all it depends on; inside one, nodes in the order given."""
    order = {n: i for i, n in enumerate(nodes)}
    index: dict[N, int] = {}
    low: dict[N, int] = {}
    on_stack: set[N] = set()
    stack: list[N] = []
    found: list[list[N]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter([s for s in successors(root) if s in order]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            advanced = False
            for s in rest:
                if s not in index:
                    index[s] = low[s] = len(index)
                    stack.append(s)
                    on_stack.add(s)
                    work.append((s, iter([t for t in successors(s) if t in order])))
                    advanced = True
                    break
                if s in on_stack:
                    low[node] = min(low[node], index[s])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                group: list[N] = []
                while True:
                    n = stack.pop()
                    on_stack.discard(n)
                    group.append(n)
                    if n == node:
                        break
                found.append(sorted(group, key=order.__getitem__))
    return found
