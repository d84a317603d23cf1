"""The safetensors format: reading through a memory map, and writing.

Comes in: paths. Goes out: `Storage` views of the mapped file, in the type in which they are stored, never copied; or
`TensorError`, whose text names the file or the tensor and the reason.

A file is: u64 little-endian N; N bytes of JSON, `{name: {dtype, shape, data_offsets}, __metadata__?: {…}}`; the data,
which the offsets cover whole, without overlap and without holes.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any, NoReturn

import numpy as np

from osprey_py.backends.protocol import Kind, Storage
from osprey_py.tensors.arrival import arrivals

MAX_HEADER = 100_000_000
METADATA = "__metadata__"

BITS = {
    name: bits
    for bits, names in (
        (4, "F4"),
        (6, "F6_E2M3 F6_E3M2"),
        (8, "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ"),
        (16, "I16 U16 F16 BF16"),
        (32, "I32 U32 F32"),
        (64, "I64 U64 F64 C64"),
    )
    for name in names.split()
}
"""Bits an element of every type the format knows. A file may hold any of them; the language reads those in FLOATS."""

FLOATS = {"F64": Kind.F64, "F32": Kind.F32, "F16": Kind.F16, "BF16": Kind.BF16}
WRITTEN = {**FLOATS, "I64": Kind.I64, "BOOL": Kind.BOOL}
_NAMES = {kind: name for name, kind in WRITTEN.items()}


class TensorError(Exception):
    """Why a file or a tensor cannot be read or written. str() is one sentence for people."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One entry of the header. begin and end count bytes from the start of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(eq=False, slots=True)
class _Checked:
    """What a file was found to hold, and its map, if somebody still reads from it: weights that training has left behind
    take no memory. start: of the data; identity: of the file, as the system tells it."""

    path: str
    identity: tuple[int, ...]
    start: int
    infos: dict[str, TensorInfo]
    metadata: Mapping[str, str]
    map: weakref.ref[mmap.mmap]


class TensorFile:
    """A checked, mapped file."""

    def __init__(self, checked: _Checked, data: mmap.mmap) -> None:
        self.path = checked.path
        self.metadata = checked.metadata
        self._data = data
        self._start = checked.start
        self._infos = checked.infos

    @property
    def names(self) -> tuple[str, ...]:
        """In the header's order."""
        return tuple(self._infos)

    def info(self, name: str) -> TensorInfo:
        """Raises TensorError when there is no such tensor."""
        info = self._infos.get(name)
        if info is None:
            raise TensorError(f"tensor {quote(name)}: not in {self.path}")
        return info

    def shape(self, name: str) -> tuple[int, ...]:
        return self.info(name).shape

    def read(self, name: str) -> Storage:
        """The elements, row-major, where they are mapped. Raises TensorError for a type that is not a float."""
        return self._stored(self.info(name), FLOATS)

    def read_any(self, name: str) -> Storage:
        """The same for every type that is written: ints and bools too."""
        return self._stored(self.info(name), WRITTEN)

    def _stored(self, info: TensorInfo, kinds: Mapping[str, Kind]) -> Storage:
        kind = kinds.get(info.dtype)
        if kind is None:
            raise TensorError(
                f"tensor {quote(info.name)}: type {info.dtype} is not one of {', '.join(kinds)}, in {self.path}"
            )
        count = prod(info.shape)
        if count == 0:
            return Storage(kind, np.empty(0, kind.dtype))
        found = Storage(kind, np.frombuffer(self._data, kind.dtype, count, self._start + info.begin))
        arrivals.bring(found)
        return found


def open_tensors(path: str) -> TensorFile:
    """Map and check a file. What the last few hold is remembered, so asking for one tensor after the other is cheap."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as e:
        raise TensorError(f"{path}: {_reason(e)}") from None
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # a pipe would be waited for
        raise TensorError(f"{path}: is not a regular file")
    key = (path, _identity(found))
    checked = _known.get(key)
    data = None if checked is None else checked.map()
    if checked is None or data is None:
        opened, data = _map(path)
        if checked is None or checked.identity != opened:
            checked = _check(path, opened, data)
            while len(_known) >= MOST_KNOWN:
                del _known[next(iter(_known))]
        checked.map = weakref.ref(data)
        _known[path, checked.identity] = checked
    return TensorFile(checked, data)


MOST_KNOWN = 8
_known: dict[tuple[str, tuple[int, ...]], _Checked] = {}


def _identity(found: os.stat_result) -> tuple[int, ...]:
    """A file that changed has another."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _map(path: str) -> tuple[tuple[int, ...], mmap.mmap]:
    """(the file's identity, its bytes)"""
    try:
        with open(path, "rb") as f:
            found = os.fstat(f.fileno())
            if found.st_size < 8:
                raise TensorError(f"{path}: file cut short: {found.st_size} bytes, too few for the header's length")
            return _identity(found), mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as e:
        raise TensorError(f"{path}: {_reason(e)}") from None


def _check(path: str, identity: tuple[int, ...], data: mmap.mmap) -> _Checked:
    size = len(data)
    (length,) = struct.unpack_from("<Q", data)
    if length > MAX_HEADER:
        raise TensorError(f"{path}: header length {length} is over {MAX_HEADER}")
    if 8 + length > size:
        raise TensorError(f"{path}: file cut short: the header's length is {length} and {size - 8} bytes follow")
    header = _header(path, data[8 : 8 + length])
    infos = _entries(path, header)
    _check_layout(path, infos, size - 8 - length)
    entries = {info.name: info for info in infos}
    return _Checked(path, identity, 8 + length, entries, header.get(METADATA, {}), weakref.ref(data))


def _header(path: str, raw: bytes) -> dict[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                raise TensorError(f"{path}: duplicate name {quote(key)} in the header")
            seen[key] = value
        return seen

    def integer(text: str) -> int | float:
        return -0.0 if text == "-0" else int(text)  # as the format's own reader has it: no size

    def constant(text: str) -> NoReturn:
        raise ValueError(f"{text} is not JSON")

    if not raw.startswith(b"{"):
        raise TensorError(f"{path}: the header is not JSON: it does not begin with {{")
    try:
        text = raw.decode("utf-8")
        header = dict(json.loads(text, object_pairs_hook=pairs, parse_int=integer, parse_constant=constant))
        texts = header.get(METADATA)
        for text in (*header, *(chain(*texts.items()) if isinstance(texts, dict) else ())):
            str(text).encode("utf-8")
        return header
    except UnicodeEncodeError:
        raise TensorError(f"{path}: the header is not JSON: half of a surrogate pair in a text") from None
    except UnicodeDecodeError as e:
        raise TensorError(f"{path}: the header is not JSON: not UTF-8 at byte {e.start}") from None
    except RecursionError:
        raise TensorError(f"{path}: the header is not JSON: nested too deep") from None
    except ValueError as e:
        raise TensorError(f"{path}: the header is not JSON: {e}") from None


def _entries(path: str, header: dict[str, Any]) -> list[TensorInfo]:
    infos = []
    for name, entry in header.items():
        if name == METADATA:
            if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
                raise TensorError(f"{path}: {METADATA} is not a map of strings")
            continue
        where = f"{path}: tensor {quote(name)}"
        if not isinstance(entry, dict):
            raise TensorError(f"{where}: its entry in the header is not an object")
        dtype = entry.get("dtype")
        if not isinstance(dtype, str) or dtype not in BITS:
            raise TensorError(f"{where}: unknown type {json.dumps(dtype)}")
        shape = _naturals(entry.get("shape"))
        if shape is None:
            raise TensorError(f"{where}: bad shape {json.dumps(entry.get('shape'))}")
        offsets = _naturals(entry.get("data_offsets"))
        if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
            raise TensorError(f"{where}: bad data_offsets {json.dumps(entry.get('data_offsets'))}")
        begin, end = offsets
        bits = prod(shape) * BITS[dtype]
        if (end - begin) * 8 != bits:
            takes = f"{bits // 8} bytes" if bits % 8 == 0 else f"{bits} bits"
            raise TensorError(f"{where}: {end - begin} bytes, but shape {list(shape)} of {dtype} takes {takes}")
        infos.append(TensorInfo(name, dtype, shape, begin, end))
    return infos


def _check_layout(path: str, infos: Sequence[TensorInfo], size: int) -> None:
    """The tensors cover the data: in range, no overlap, no hole, nothing behind the last."""
    for info in infos:
        if info.end > size:
            raise TensorError(
                f"{path}: tensor {quote(info.name)}: file cut short or offsets out of range: "
                f"data_offsets end at {info.end}, and there are {size} bytes of data"
            )
    at, before = 0, ""
    for info in sorted(infos, key=lambda info: (info.begin, info.end)):
        if info.begin < at:
            raise TensorError(f"{path}: tensor {quote(info.name)}: overlaps tensor {quote(before)}")
        if info.begin > at:
            raise TensorError(f"{path}: tensor {quote(info.name)}: a hole of {info.begin - at} bytes lies before it")
        at, before = info.end, info.name
    if at < size:
        raise TensorError(f"{path}: {size - at} bytes of data belong to no tensor")


def save_tensors(
    path: str, tensors: Iterable[tuple[str, Sequence[int], Storage]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file with these (name, shape, elements). It is written aside, brought to the disk and renamed: whole or not
    at all. metadata: more texts for the header.

    Raises TensorError for a name given twice, a shape that does not fit its elements, and what the disk says.
    """
    items = [(name, tuple(shape), storage) for name, shape, storage in tensors]
    header: dict[str, Any] = {METADATA: {"format": "pt", **(metadata or {})}}
    at = 0
    # Wide elements first: every tensor is then aligned to its element.
    items.sort(key=lambda item: -item[2].kind.itemsize)
    for name, shape, storage in items:
        if name == METADATA or name in header:
            raise TensorError(f"tensor {quote(name)}: {'reserved name' if name == METADATA else 'given twice'}")
        if any(d < 0 for d in shape) or prod(shape) != storage.length:
            raise TensorError(f"tensor {quote(name)}: shape {list(shape)} does not fit {storage.length} elements")
        end = at + storage.length * storage.kind.itemsize
        header[name] = {"dtype": _NAMES[storage.kind], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    aside = f"{path}.{os.getpid()}.part"
    try:
        try:
            with open(aside, "wb") as f:
                f.write(struct.pack("<Q", len(text)) + text)
                for _, _, storage in items:
                    f.write(storage.data.data)
                f.flush()
                os.fsync(f.fileno())
            os.replace(aside, path)
            _sync_folder(os.path.dirname(path) or os.curdir)
        except OSError:
            if os.path.exists(aside):
                os.remove(aside)
            raise
    except (OSError, ValueError) as e:
        raise TensorError(f"{path}: {_reason(e)}") from None


def _sync_folder(folder: str) -> None:
    """Bring a rename to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def quote(name: str) -> str:
    """A name for a message: JSON's quoting, Unicode kept."""
    return json.dumps(name, ensure_ascii=False)


def _naturals(value: Any) -> tuple[int, ...] | None:
    """A JSON array of sizes, or None when it is anything else."""
    if isinstance(value, list) and all(type(v) is int and 0 <= v < 2**63 for v in value):
        return tuple(value)
    return None


def _reason(e: OSError | ValueError) -> str:
    if isinstance(e, OSError):
        return (e.strerror or str(e)).lower()
    return "not a file name"  # it holds a NUL
