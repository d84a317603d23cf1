"""ABSENT: what a lookup's twin gives where the built-in gives an Error (eval/generate/lookups.py)."""

from __future__ import annotations


class _Absent:
    __slots__ = ()


ABSENT = _Absent()
