"""examples/gpt2 against reference.py, byte for byte, and against itself: cache or none, threads, fusion, backends."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from osprey_py import CONTRACT_VERSION
from tests.gpt2.support import PROGRAM, SMALL, digest, make_weights, run_program, run_reference

PROMPT = "The capital of France is"

GOLDEN = {
    "small": "d55b1e71af1415e985d4086ca638387e5e91ebc426320162be25642e69ce6c2b",
    "tiny": "ff6cc30396ecc6f562c31a262960fe04c5279b86d8cb18cafc3d320436962a9b",
}
"""SHA-256 of traces under version 1 of the contract. Another hash is another version of the contract."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("tiny"))


def trace(path: Path, folder: Path, prompt: str, tokens: int, *more: str, options: tuple[str, ...] = ()) -> bytes:
    path.unlink(missing_ok=True)
    words = ["--weights", str(folder), "--prompt", prompt, "--tokens", str(tokens), "--trace", str(path), *more]
    run = run_program(*words, options=options)
    assert (run.code, run.error) == (0, "")
    return path.read_bytes()


def reference_trace(path: Path, folder: Path, prompt: str, tokens: int) -> bytes:
    words = ["--weights", str(folder), "--prompt", prompt, "--tokens", str(tokens), "--trace", str(path)]
    assert run_reference(*words).code == 0
    return path.read_bytes()


def test_the_small_model_says_what_reference_py_says(tmp_path: Path) -> None:
    assert CONTRACT_VERSION == "1"
    mine = trace(tmp_path / "a", SMALL, PROMPT, 20)
    assert mine == reference_trace(tmp_path / "b", SMALL, PROMPT, 20)
    assert digest(tmp_path / "a") == GOLDEN["small"]


def test_the_two_programs_print_the_same(tmp_path: Path) -> None:
    words = ["--weights", str(SMALL), "--prompt", PROMPT, "--tokens", "3"]
    mine, other = run_program(*words), run_reference(*words)
    assert mine.out.replace(" on host — ", " on reference.py — ") == other.out
    lines = mine.out.split("\n")
    assert lines[0] == "gpt2 (245K) on host — 255 merges, 512 vocabulary rows, 2 layers"
    ids = "352 277 64 79 274 362 296 220 37 81 300 306 326"
    assert lines[1:4] == [f"prompt: {PROMPT}", f"tokens: {ids}", "generated 3 tokens"]
    assert lines[4].startswith(PROMPT)


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_every_storage_type_and_every_spelling_of_names(tmp_path: Path, dtype: str) -> None:
    """Names with `transformer.`, and masks in the file, change nothing."""
    sizes = "--layers 1 --width 64 --vocab 270 --context 8"
    plain = make_weights(tmp_path / "plain", sizes, "--dtype", dtype)
    marked = make_weights(tmp_path / "marked", sizes, "--dtype", dtype, "--prefix", "transformer.", "--with-masks")
    mine = trace(tmp_path / "a", plain, "to be", 3)
    assert mine == reference_trace(tmp_path / "b", plain, "to be", 3)
    assert mine == trace(tmp_path / "c", marked, "to be", 3)


def test_the_cache_changes_no_byte_at_any_length_of_prompt(tiny: Path, tmp_path: Path) -> None:
    """From one token to a full context, each time to the end of the context and one token beyond it."""
    for n in range(1, 17):
        cached = trace(tmp_path / "a", tiny, "abcdefghijklmnop"[:n], 17 - n)
        again = trace(tmp_path / "b", tiny, "abcdefghijklmnop"[:n], 17 - n, "--no-kv-cache")
        assert cached == again
        assert len(json.loads(cached.split(b"\n")[0])["ids"]) == n
    assert digest(tmp_path / "a") == GOLDEN["tiny"]


def test_neither_threads_nor_fusion_nor_the_device_changes_a_byte(tiny: Path, tmp_path: Path) -> None:
    first = trace(tmp_path / "a", tiny, "abc", 3)
    assert first == reference_trace(tmp_path / "b", tiny, "abc", 3)
    for options in (
        ("--threads", "1"),
        ("--threads", "2"),
        ("--threads", "7"),
        ("--no-fusion",),
        ("--device", "oracle"),
    ):
        assert first == trace(tmp_path / "c", tiny, "abc", 3, options=options), options


def test_generation_stops_where_the_context_ends(tiny: Path) -> None:
    words = ["--weights", str(tiny), "--prompt", "abcdefghijklmn", "--tokens", "9"]
    mine, other = run_program(*words), run_reference(*words)
    assert "generated 3 tokens; the context of 16 is full" in mine.out.split("\n")
    assert mine.out.replace(" on host — ", " on reference.py — ") == other.out


def test_no_tokens_stops_after_the_prompt_s_ids(tiny: Path) -> None:
    run = run_program("--weights", str(tiny), "--prompt", "abc", "--tokens", "0")
    assert run.code == 0
    assert run.out.split("\n")[1:] == ["prompt: abc", "tokens: 64 65 66", ""]


def test_without_weights_it_runs_the_small_model_and_says_so() -> None:
    """Holds where the published weights have not been fetched; where they have, their header is printed."""
    run = run_program("--tokens", "0")
    assert run.code == 0
    if "(124M)" not in run.out:
        assert run.error.count("\n") == 1
        assert "make gpt2-weights" in run.error
        assert run.out.startswith("gpt2 (245K) on host")


def test_on_a_terminal_the_text_appears_as_it_is_made(tmp_path: Path) -> None:
    """In pieces that end in whole characters: a model of noise makes bytes that are no UTF-8, too."""
    folder = make_weights(tmp_path, "--layers 1 --width 64 --vocab 270 --context 64 --deviation 0.3")
    words = ["run", str(PROGRAM), "--weights", str(folder), "--prompt", PROMPT, "--tokens", "20"]
    main, side = pty.openpty()
    call = "import sys; from osprey_py.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", call, *words], stdout=side, cwd=PROGRAM.parent.parent.parent
    ) as process:
        os.close(side)
        pieces = []
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(main)
    assert process.returncode == 0
    shown = b"".join(pieces).decode("utf-8").replace("\r\n", "\n")
    plain = run_program(*words[2:]).out
    head, text = plain.split("generated 20 tokens\n")
    assert shown == head + text + "generated 20 tokens\n"
    assert "\ufffd" in text
    assert len(pieces) > 5


@pytest.mark.parametrize(
    ("deviation", "dtype", "logit"),
    [("0", "F32", "0x0.0p+0"), ("1e5", "F16", "nan"), ("1e150", "F64", "nan")],
)
def test_equal_scores_and_scores_that_are_no_numbers(tmp_path: Path, deviation: str, dtype: str, logit: str) -> None:
    """Of equal scores the lowest token wins; with NaN everywhere nothing is higher than the first. Infinities on the
    way (F16 weights that overflow, products that do) change nothing of that."""
    folder = make_weights(
        tmp_path, f"--layers 1 --width 64 --vocab 270 --context 8 --deviation {deviation} --dtype {dtype}"
    )
    mine = trace(tmp_path / "a", folder, "to be", 3)
    assert mine == reference_trace(tmp_path / "b", folder, "to be", 3)
    assert mine == trace(tmp_path / "c", folder, "to be", 3, "--no-kv-cache")
    last = json.loads(mine.split(b"\n")[3])
    assert last["id"] == 0
    assert set(last["logits"]) == {logit}
