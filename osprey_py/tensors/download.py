"""Fetching published files, GPT-2's by `python -m osprey_py.tensors.download FOLDER [--from URL]`.

Comes in: a folder. Goes out: the files in it, each whole or not there: bytes go to NAME.part, which a later run carries
on with, and which is renamed once its size and SHA-256 are the published ones. What goes wrong is one sentence and exit
code 1.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

SOURCE = "https://huggingface.co/openai-community/gpt2/resolve/607a30d783dfa663caf39e06633721c8d4cfcd7e"
ATTEMPTS = 5
"""How often a connection that broke is made again without having brought a byte."""

CHUNK = 1 << 18
TIMEOUT = 30.0
WIDTH = 30


@dataclass(frozen=True, slots=True)
class Published:
    """name: here; remote: at the source, where that is another."""

    name: str
    size: int
    sha256: str
    remote: str = ""


GPT2 = (
    Published("merges.txt", 456_318, "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
    Published("model.safetensors", 548_105_171, "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"),
)


class DownloadError(Exception):
    """One sentence for the person who waits."""


class Progress:
    """A bar on a terminal; elsewhere one line when a file is done."""

    def __init__(self, out: TextIO, name: str, size: int) -> None:
        self._out, self._name, self._size = out, name, size
        self._bar = out.isatty()
        self._shown = 0.0

    def at(self, have: int) -> None:
        now = time.monotonic()
        if self._bar and (now - self._shown > 0.1 or have == self._size):
            self._shown = now
            full = WIDTH * have // self._size
            bar = "█" * full + "░" * (WIDTH - full)
            print(
                f"\r{self._name} {bar} {have / 1e6:.1f} of {self._size / 1e6:.1f} MB",
                end="",
                file=self._out,
                flush=True,
            )

    def done(self, text: str) -> None:
        print(f"{self.line_break()}{self._name}: {text}", file=self._out, flush=True)

    def line_break(self) -> str:
        """What leaves the bar's line, if there is one."""
        return "\n" if self._bar and self._shown else ""


def sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def fetch(file: Published, folder: Path, source: str, out: TextIO) -> None:
    """Put one file into the folder. Raises DownloadError; NAME.part then holds what has come so far."""
    final, part = folder / file.name, folder / f"{file.name}.part"
    progress = Progress(out, file.name, file.size)
    if final.exists() and final.stat().st_size == file.size and sha256(final) == file.sha256:
        progress.done("already there")
        return
    if part.exists() and part.stat().st_size > file.size:
        part.unlink()
    url = f"{source}/{file.remote or file.name}"
    try:
        _receive(file, part, url, progress)
    except DownloadError as e:
        raise DownloadError(f"{progress.line_break()}{e}") from None
    if sha256(part) != file.sha256:
        part.unlink()
        raise DownloadError(f"{url} is not the published file (its SHA-256 differs); nothing was kept")
    os.replace(part, final)
    progress.done(f"{file.size / 1e6:.1f} MB, size and SHA-256 checked")


def _receive(file: Published, part: Path, url: str, progress: Progress) -> None:
    """Until the part is whole. A broken connection is made again where it broke, as long as something comes."""
    idle = 0
    while True:
        have = part.stat().st_size if part.exists() else 0
        if have == file.size:
            return
        try:
            _receive_once(file, part, url, have, progress)
            reason = "the connection was closed"
        except urllib.error.HTTPError as e:
            reason = f"the server says {e.code} {e.reason}"
            if e.code == 416:
                part.unlink(missing_ok=True)
            elif e.code < 500:
                raise DownloadError(f"{url}: {reason}") from None
        except urllib.error.URLError as e:
            reason = f"no connection to {urlsplit(url).netloc}: {_why(e.reason)}"
            if have == 0:
                raise DownloadError(reason) from None
        except (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException) as e:
            reason = f"the connection broke: {_why(e)}"
        now = part.stat().st_size if part.exists() else 0
        idle = 0 if now > have else idle + 1
        if idle == ATTEMPTS:
            raise DownloadError(f"{url}: {reason}, after {now} of {file.size} bytes; a new run carries on from there")


def _receive_once(file: Published, part: Path, url: str, have: int, progress: Progress) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "osprey-py"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        carries_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        begin = have if carries_on else 0
        length = response.headers.get("Content-Length")
        if length is not None and begin + int(length) != file.size:
            raise DownloadError(f"{url} is not the published file: {begin + int(length)} bytes, not {file.size}")
        with part.open("ab" if carries_on else "wb") as f:
            at = begin
            while at < file.size and (data := response.read(min(CHUNK, file.size - at))):
                f.write(data)
                at += len(data)
                progress.at(at)


def _why(reason: object) -> str:
    return (reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)).lower()


def main(argv: list[str] | None = None, files: tuple[Published, ...] = GPT2) -> int:
    parser = argparse.ArgumentParser(prog="osprey_py.tensors.download", description="Fetch GPT-2's weights and merges.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--from", dest="source", metavar="URL", default=SOURCE, help=f"where they lie (default: {SOURCE})"
    )
    options = parser.parse_args(argv)
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            fetch(file, options.folder, options.source.rstrip("/"), sys.stdout)
    except DownloadError as e:
        print(f"download: {e}", file=sys.stderr)
        return 1
    except OSError as e:
        print(f"download: {e.filename or options.folder}: {(e.strerror or str(e)).lower()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndownload: stopped; a new run carries on from there", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
