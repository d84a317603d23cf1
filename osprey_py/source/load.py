"""Files to `Source`s: the one place where program text is read.

Comes in: a path. Goes out: a `Source` whose `path` is what diagnostics show. Keeps L1.1 (UTF-8).
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from pathlib import Path

from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import Source, Span


def read_source(path: str | os.PathLike[str]) -> Source:
    """The text of a file, a leading byte order mark dropped. Raises OspreyError (E0017) when it cannot be read or is not
    UTF-8; the diagnostic then points at the first wrong byte."""
    shown = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OspreyError(
            [Diagnostic("E0017", f"cannot read {shown}: {reason}", Span(Source(shown, ""), 0, 0))]
        ) from None
    data = data.removeprefix(BOM_UTF8)
    try:
        return Source(shown, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8")
        source = Source(shown, data.decode("utf-8", "replace"))
        diagnostic = Diagnostic(
            "E0017",
            "the file is not UTF-8 text",
            Span(source, len(good), len(good) + 1),
            f"byte 0x{data[error.start]:02X} here",
            help="save the file as UTF-8",
        )
        raise OspreyError([diagnostic]) from None
