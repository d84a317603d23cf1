"""Checkpoints: all that a run needs to go on, in one safetensors file (spec/training TR15-TR17).

Comes in: a folder, and a `Moment` of a run. Goes out: the folder's one file, replaced whole; or what it holds, checked.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from osprey_py import CONTRACT_VERSION
from osprey_py.backends.protocol import Kind, Storage
from osprey_py.eval.values import Record
from osprey_py.graph.buffer import Buffer
from osprey_py.graph.runtime import Runtime
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Ty
from osprey_py.tensors.safetensors import TensorError, TensorFile, open_tensors, save_tensors
from osprey_py.training.errors import TrainingError, reason
from osprey_py.training.plain import BufferLeaf, Leaf, ListOf, Schema, build, from_json, leaves, to_json
from osprey_py.training.signature import Signature

NAME = "checkpoint.safetensors"
LOSSES, AT, VALIDATION = "train/losses", "validation/steps", "validation/losses"
KINDS = {float: Kind.F64, int: Kind.I64, bool: Kind.BOOL}
TYPES: dict[type, Ty] = {float: FLOAT, int: INT, bool: BOOL}


@dataclass(slots=True)
class History:
    """losses: of every step so far. validations: (step, loss)."""

    losses: list[float] = field(default_factory=list)
    validations: list[tuple[int, float]] = field(default_factory=list)

    @property
    def done(self) -> int:
        """How many steps have been taken."""
        return len(self.losses)


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run is made from, besides its program: the same origin gives the same bytes."""

    options: Record
    vocabulary: Any
    seed: int
    sha256: str


class Checkpoint:
    """A checkpoint's file, opened and found whole. Its state is read when the program's types are known."""

    def __init__(self, path: Path) -> None:
        """Raises TrainingError for what is no checkpoint of this contract."""
        self.path = path
        self._file = _opened(path)
        data = self._json("training")
        try:
            contract = data["contract"]
            self.done, self.seed, self.sha256 = int(data["steps"]), int(data["seed"]), str(data["sha256"])
            self._texts, self._lengths = dict(data["texts"]), dict(data["lengths"])
        except (KeyError, TypeError, ValueError):
            raise self._wrong("its `training` is not what a checkpoint has there") from None
        if contract != CONTRACT_VERSION:
            raise self._wrong(
                f"made under the numerical contract {contract}, and this is {CONTRACT_VERSION}: the numbers would differ"
            )

    def options(self, signature: Signature) -> dict[str, Any]:
        """By field."""
        data = self._json("options")
        names = {name for name, _ in signature.options.fields}
        if not isinstance(data, dict):
            raise self._wrong("its options are no record")
        for name in sorted(names ^ set(data)):
            where = "the program" if name in names else "the checkpoint"
            raise self._wrong(f"only {where} has the option `{name}`: the program has changed")
        try:
            return {name: from_json(leaf, data[name]) for name, leaf in signature.options.fields}
        except ValueError as e:
            raise self._wrong(f"an option is of another type: {e}") from None

    def vocabulary(self, signature: Signature) -> Any:
        try:
            return from_json(signature.vocabulary, self._json("vocabulary"))
        except ValueError as e:
            raise self._wrong(f"the vocabulary is not of the program's type: {e}") from None

    def state(self, signature: Signature, runtime: Runtime) -> Any:
        names = set(self._file.names) - {LOSSES, AT, VALIDATION}
        used: set[str] = set()

        def take(path: str, leaf: Leaf | BufferLeaf | ListOf) -> Any:
            path = path or "state"
            if isinstance(leaf, ListOf):
                return self._text(self._lengths, path, int)
            if isinstance(leaf, Leaf) and leaf.kind is str:
                return self._text(self._texts, path, str)
            used.add(path)
            if isinstance(leaf, Leaf):
                return self._array(path, KINDS[leaf.kind], ()).astype(leaf.kind).tolist()[0]
            data = self._array(path, KINDS[leaf.element], None)
            return runtime.from_list(data, TYPES[leaf.element])  # type: ignore[arg-type]

        state = build(signature.state, take)
        for name in sorted(names - used):
            raise self._wrong(f"the program's state has no `{name}`: the program has changed")
        return state

    def history(self) -> History:
        losses = self._array(LOSSES, Kind.F64, (self.done,)).tolist()
        steps = self._array(AT, Kind.I64, None).tolist()
        return History(losses, list(zip(steps, self._array(VALIDATION, Kind.F64, (len(steps),)).tolist(), strict=True)))

    def _array(self, name: str, kind: Kind, shape: tuple[int, ...] | None) -> np.ndarray[Any, Any]:
        """Raises TrainingError when there is no such tensor. shape None: any of rank 1."""
        try:
            found = self._file.read_any(name)
            has = self._file.shape(name)
        except TensorError:
            raise self._wrong(f"no tensor `{name}` that could be read: the program has changed") from None
        if found.kind is not kind or (len(has) != 1 if shape is None else has != shape):
            raise self._wrong(f"`{name}` is of type {found.kind.value} and shape {list(has)}: the program has changed")
        return found.data

    def _text(self, among: Mapping[str, Any], path: str, kind: type) -> Any:
        found = among.get(path)
        if type(found) is not kind:
            raise self._wrong(f"nothing is known of `{path}`: the program has changed")
        return found

    def _json(self, key: str) -> Any:
        try:
            return json.loads(self._file.metadata[key])
        except (KeyError, ValueError):
            raise self._wrong(f"no checkpoint: its metadata has no `{key}`") from None

    def _wrong(self, what: str) -> TrainingError:
        return TrainingError(f"{self.path}: {what}")


def _opened(path: Path) -> TensorFile:
    try:
        return open_tensors(str(path))
    except TensorError as e:
        raise TrainingError(str(e)) from None


class Keeper:
    """Keeps a run's checkpoint in a folder that no other run uses meanwhile."""

    def __init__(self, folder: Path, signature: Signature, runtime: Runtime, origin: Origin) -> None:
        self.path = folder / NAME
        self._signature = signature
        self._runtime = runtime
        self._options = _text(signature.options, origin.options)
        self._vocabulary = _text(signature.vocabulary, origin.vocabulary)
        self._origin = origin
        self.saved: int | None = None

    def save(self, state: Any, history: History) -> None:
        """Replace the checkpoint. Raises TrainingError when it cannot be written; the one before then stands."""
        tensors: list[tuple[str, tuple[int, ...], Storage]] = []
        texts: dict[str, str] = {}
        lengths: dict[str, int] = {}
        for path, leaf, value in leaves(self._signature.state, state):
            path = path or "state"
            if isinstance(leaf, ListOf):
                lengths[path] = value
            elif isinstance(leaf, BufferLeaf):
                tensors.append((path, (len(value),), self._stored(value)))
            elif leaf.kind is str:
                texts[path] = value
            else:
                tensors.append((path, (), _storage(KINDS[leaf.kind], [value])))
        tensors.append((LOSSES, (history.done,), _storage(Kind.F64, history.losses)))
        steps, losses = [s for s, _ in history.validations], [x for _, x in history.validations]
        tensors.append((AT, (len(steps),), _storage(Kind.I64, steps)))
        tensors.append((VALIDATION, (len(losses),), _storage(Kind.F64, losses)))
        metadata = {"options": self._options, "vocabulary": self._vocabulary}
        metadata["training"] = _compact(
            {
                "contract": CONTRACT_VERSION,
                "steps": history.done,
                "seed": self._origin.seed,
                "sha256": self._origin.sha256,
                "texts": texts,
                "lengths": lengths,
            }
        )
        try:
            save_tensors(str(self.path), tensors, metadata)
        except TensorError as e:
            stands = f"; the checkpoint of step {self.saved} stands" if self.saved is not None else ""
            raise TrainingError(f"{e}{stands}") from None
        self.saved = history.done

    def _stored(self, buffer: Buffer) -> Storage:
        """As numbers of the language are written, whatever the buffer was read from."""
        found = self._runtime.storage(buffer)
        return found if found.kind in _WRITTEN else _storage(Kind.F64, self._runtime.read(buffer))


_WRITTEN = frozenset(KINDS.values())


def _storage(kind: Kind, values: list[Any]) -> Storage:
    return Storage(kind, np.array(values, kind.dtype))


def _text(schema: Schema, value: Any) -> str:
    return _compact(to_json(schema, value))


def _compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for this run alone; what a killed run left half written in it is gone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as e:
        raise TrainingError(f"{folder}: {reason(e)}") from None
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TrainingError(f"{folder}: another `osprey train` keeps its checkpoints there now") from None
        for left in folder.glob(f"{NAME}.*.part"):
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(opened)
