"""The text that is learnt: read, cut in two, encoded, and refused where it cannot be used (spec/training TR5, TR6).

Comes in: a path, or the default data of a program. Goes out: `Text`, then a `Part` for training and one for validation;
TrainingError for what is wrong.
"""

from __future__ import annotations

import hashlib
import sys
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from osprey_py.tensors.download import DownloadError, Published, fetch
from osprey_py.training.batches import Tokens
from osprey_py.training.errors import TrainingError, reason
from osprey_py.training.program import DefaultData, TrainingProgram, Value


@dataclass(frozen=True, slots=True)
class Text:
    """path: as it is shown; sha256: of the file's bytes; training, validation: its two parts."""

    path: str
    sha256: str
    training: str
    validation: str


@dataclass(frozen=True, slots=True)
class Part:
    """`training` or `validation`, as tokens."""

    name: str
    tokens: Tokens


def default_text(data: DefaultData | None, folder: Path) -> Path:
    """Where the program's own text lies; fetched when it is not there."""
    if data is None:
        raise TrainingError("which text? give --data FILE; the program has no data of its own")
    path = folder / data.file
    if path.exists():
        if _sha256(path) != data.sha256:
            raise TrainingError(
                f"{path} is not the published file (its SHA-256 differs); remove it, or give it with --data"
            )
        return path
    url = urlsplit(data.url)
    source, _, remote = data.url.rpartition("/")
    if url.scheme not in ("http", "https") or not remote:
        raise TrainingError(f"the program's data has no address to fetch it from: {data.url}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fetch(Published(path.name, data.bytes, data.sha256, remote), path.parent, source, sys.stderr)
    except DownloadError as e:
        raise TrainingError(f"{e} (any UTF-8 text will do: --data FILE)") from None
    except OSError as e:
        raise TrainingError(f"{e.filename or path}: {reason(e)}") from None
    return path


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()
    except OSError as e:
        raise TrainingError(f"{path}: {reason(e)}") from None


def read_text(path: Path) -> Text:
    """A UTF-8 file, its first nine tenths for training."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as e:
        raise TrainingError(f"{path}: {reason(e) if isinstance(e, OSError) else 'not a file name'}") from None
    try:
        text = data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as e:
        at = e.start + (len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0)
        line = data[:at].count(b"\n") + 1
        raise TrainingError(f"{path}: not UTF-8 at byte {at}, in line {line}") from None
    if not text:
        raise TrainingError(f"{path}: empty, and there is nothing to learn from it")
    cut = 9 * len(text) // 10
    return Text(str(path), hashlib.sha256(data).hexdigest(), text[:cut], text[cut:])


def encoded(program: TrainingProgram, vocabulary: Value, text: Text, tokens: int) -> tuple[Part, Part]:
    """Both parts. tokens: of a row."""
    size = program.vocabulary_size(vocabulary)
    parts = []
    for name, part in (("training", text.training), ("validation", text.validation)):
        found = program.encode(vocabulary, part)
        if isinstance(found, str):
            raise TrainingError(f"{text.path}: the {name} part: {found}")
        if len(found) < tokens + 1:
            share = "first nine tenths" if name == "training" else "last tenth"
            raise TrainingError(
                f"{text.path}: too short: its {share}, for {name}, are {len(found)} tokens, and a row of {tokens} wants "
                f"{tokens + 1}"
            )
        made = np.array(found, np.int64)
        wrong = np.flatnonzero((made < 0) | (made >= size))
        if len(wrong):
            raise TrainingError(
                f"`encode` gives the token {made[wrong[0]]} at {wrong[0]} of the {name} part, "
                f"and the vocabulary has 0 to {size - 1}"
            )
        parts.append(Part(name, made))
    return parts[0], parts[1]
