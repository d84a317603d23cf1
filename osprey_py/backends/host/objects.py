"""The object cache on disk: machine code by the hash of what it was compiled from.

Comes in: a key and bytes. Goes out: the bytes again, in this process or a later one. Files live in
`$XDG_CACHE_HOME/osprey-py/objects` (`~/.cache` without it). A file is written beside its place and renamed, so a
reader never sees half of one; it begins with the digest of its contents, so a damaged one is ignored and written
anew. When the folder passes its bound, the files used longest ago go. Every failure of the file system means: no
cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

import llvmlite

BOUND = 256 << 20
"""Bytes the folder may hold."""

_MAGIC = b"osprey-object-1\n"

_room: dict[Path, int] = {}
"""Bytes that this process may still write into a folder before it looks again at all that is there, which takes time."""


def key(text: str, *parts: str) -> str:
    """The name of a compilation: everything that decides its bytes."""
    digest = hashlib.sha256()
    for part in (llvmlite.__version__, *parts, text):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


@cache
def sources() -> str:
    """A digest of the compiler itself: what text it makes of a kernel depends on nothing else."""
    digest = hashlib.sha256(llvmlite.__version__.encode())
    package = Path(__file__).parents[2]
    for part in ("backends", "backends/host", "kernel", "numerics"):
        for path in sorted((package / part).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "osprey-py" / "objects"


def fetch(name: str) -> bytes | None:
    """The bytes kept under this key, or None."""
    try:
        path = folder() / name
        blob = path.read_bytes()
        head = len(_MAGIC) + 32
        code = blob[head:]
        if blob[:head] != _MAGIC + hashlib.sha256(code).digest():
            return None
        os.utime(path)
        return code
    except (OSError, RuntimeError):
        return None


def keep(name: str, code: bytes) -> None:
    """Store bytes under a key; silently nothing where the disk does not allow it."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(temporary, place / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return
        _room[place] = _room.get(place, 0) - len(code)
        if _room[place] < 0:
            _room[place] = min(BOUND - _trim(place), BOUND // 16)
    except (OSError, RuntimeError):
        return


def _trim(place: Path) -> int:
    """Remove the files used longest ago until half the bound is left, if the bound is passed. How much is there then."""
    with os.scandir(place) as entries:
        files = [(s.st_mtime_ns, s.st_size, e.path) for e in entries for s in (e.stat(),)]
    total = sum(size for _, size, _ in files)
    if total <= BOUND:
        return total
    for _, size, path in sorted(files):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= BOUND // 2:
            break
    return total
