"""Reading source files."""

from __future__ import annotations

from pathlib import Path

import pytest

from osprey_py.source.diagnostic import OspreyError
from osprey_py.source.load import read_source
from osprey_py.source.render import render


def test_text_is_utf8(tmp_path: Path) -> None:
    """L1.1"""
    path = tmp_path / "a.osp"
    path.write_bytes('let x = "é😀"\r\n'.encode())
    source = read_source(path)
    assert source.text == 'let x = "é😀"\r\n'
    assert source.path == str(path)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """L1.1"""
    path = tmp_path / "a.osp"
    path.write_bytes(b"\xef\xbb\xbflet x = 1")
    assert read_source(path).text == "let x = 1"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_bytes_are_refused_where_they_stand(tmp_path: Path, mark: bytes) -> None:
    """L1.1"""
    path = tmp_path / "a.osp"
    path.write_bytes(mark + "let é = 1\nlet y = ".encode() + b"\xff\xfe\n")
    with pytest.raises(OspreyError) as raised:
        read_source(path)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "E0017"
    assert diagnostic.span.place == f"{path}:2:9"
    assert "byte 0xFF" in render(diagnostic)


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.osp", tmp_path):
        with pytest.raises(OspreyError) as raised:
            read_source(path)
        (diagnostic,) = raised.value.diagnostics
        assert diagnostic.code == "E0017"
        assert str(path) in diagnostic.title
        assert "Traceback" not in render(diagnostic)
