"""The downloader, against a server on this machine that cuts, resumes and lies."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from osprey_py.tensors import download
from osprey_py.tensors.download import Progress, Published, main

CONTENT = bytes(range(256)) * 4096
FILE = Published("model.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


class Server(ThreadingHTTPServer):
    """content: what it serves. cut: after how many bytes of each answer it hangs up. ranges: whether it knows them."""

    content = CONTENT
    cut: int | None = None
    ranges = True
    status = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.asked.append(asked)
        if server.status:
            self.send_error(server.status)
            return
        begin = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.ranges else 0
        body = server.content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.cut])

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def run(folder: Path, server: Server) -> int:
    return main([str(folder), "--from", server.url], (FILE,))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_arrives_whole_and_is_not_fetched_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        assert run(tmp_path / "w", server) == 0
        assert (tmp_path / "w" / "model.bin").read_bytes() == CONTENT
        assert capsys.readouterr().out == "model.bin: 1.0 MB, size and SHA-256 checked\n"
        assert run(tmp_path / "w", server) == 0
        assert capsys.readouterr().out == "model.bin: already there\n"
        assert server.asked == [None]
        assert names(tmp_path / "w") == ["model.bin"]


def test_a_cut_connection_is_resumed_where_it_broke(tmp_path: Path) -> None:
    with serving() as server:
        server.cut = 300_000
        assert run(tmp_path, server) == 0
        assert server.asked == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]
        assert (tmp_path / "model.bin").read_bytes() == CONTENT


def test_an_interrupted_run_is_carried_on_with(tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(CONTENT[:1000])
    with serving() as server:
        assert run(tmp_path, server) == 0
        assert server.asked == ["bytes=1000-"]
        assert names(tmp_path) == ["model.bin"]
        assert (tmp_path / "model.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_begins_again(tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(b"x" * 1000)
    with serving() as server:
        server.ranges = False
        assert run(tmp_path, server) == 0
        assert (tmp_path / "model.bin").read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "model.bin.part").write_bytes(CONTENT + b"more")
    with serving() as server:
        assert run(tmp_path, server) == 0
        assert server.asked == [None]
        assert (tmp_path / "model.bin").read_bytes() == CONTENT


def test_a_wrong_hash_keeps_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        server.content = CONTENT[:-1] + b"?"
        assert run(tmp_path, server) == 1
        assert names(tmp_path) == []
        assert "model.bin is not the published file (its SHA-256 differs); nothing was kept" in capsys.readouterr().err


def test_a_wrong_size_is_refused_before_a_byte_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        server.content = CONTENT + b"more"
        assert run(tmp_path, server) == 1
        assert names(tmp_path) == []
        assert "is not the published file: 1048580 bytes, not 1048576" in capsys.readouterr().err


def test_an_older_file_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"older")
    with serving() as server:
        server.status = 404
        assert run(tmp_path, server) == 1
        assert (tmp_path / "model.bin").read_bytes() == b"older"
        server.status = 0
        assert run(tmp_path, server) == 0
        assert (tmp_path / "model.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "times", "reason"), [(404, 1, "says 404 Not Found"), (503, 5, "says 503 Service")])
def test_what_the_server_refuses_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int, times: int, reason: str
) -> None:
    with serving() as server:
        server.status = status
        assert run(tmp_path, server) == 1
        assert len(server.asked) == times
        error = capsys.readouterr().err
        assert reason in error
        assert error.count("\n") == 1


def test_no_network_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        gone = server.url
    assert main([str(tmp_path), "--from", gone], (FILE,)) == 1
    assert capsys.readouterr().err == f"download: no connection to {gone.removeprefix('http://')}: connection refused\n"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / "file" / "w")], (FILE,)) == 1
    assert capsys.readouterr().err == f"download: {tmp_path / 'file' / 'w'}: not a directory\n"


def test_the_bar_ends_full() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    progress = Progress(out, "m", 10)
    progress.at(5)
    progress.at(10)
    progress.done("checked")
    assert out.getvalue().startswith("\rm ")
    assert "\rm " + "█" * download.WIDTH + " 0.0 of 0.0 MB\nm: checked\n" in out.getvalue()
