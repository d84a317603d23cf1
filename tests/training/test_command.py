"""The command line: options of the program, the text, and what is refused before anything is written (TR3-TR6, TR17)."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from osprey_py.training.checkpoint import NAME
from tests.training.support import BIGRAM, Train, text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--row-cuont", "3"], "there is no option `--row-cuont`; did you mean `--row-count`?"),
        (["--rezume"], "did you mean `--resume`?"),
        (["--row-count", "many"], "argument --row-count: `many` is not an int"),
        (["--row-count", "1.5"], "argument --row-count: `1.5` is not an int"),
        (["--row-count", "9223372036854775808"], "is not an int"),
        (["--rate", "fast"], "argument --rate: `fast` is not a finite float"),
        (["--rate", "inf"], "argument --rate: `inf` is not a finite float"),
        (["--warm", "yes"], "what is `yes`?"),
        (["--warm=1"], "argument --warm"),
        (["--opening"], "argument --opening: expected one argument"),
        (["--steps", "0"], "argument --steps: `0` is not a whole number of at least 1"),
        (["--seed", "-1"], "argument --seed: `-1` is not a whole number from 0 to 2^63 - 1"),
        (["--resume"], "--resume: from where? give --checkpoint DIR"),
        (["--ro", "3"], "there is no option `--ro`"),
        (["--device", "abacus"], "no device `abacus`"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(train: Train, words: list[str], said: str) -> None:
    """TR3"""
    found = train(*words)
    assert (found.code, found.out) == (2, "") and said in found.err, found.err


def test_help_knows_the_program(train: Train) -> None:
    """TR3"""
    found = train("--help")
    assert found.code == 0
    for part in (
        "--row-count INT",
        "default: 4",
        "--warm, --no-warm",
        "--opening TEXT",
        "--checkpoint DIR",
        "--every N",
    ):
        assert part in found.out


def options_of(log: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(log.read_text(encoding="utf-8").splitlines()[0])["options"]
    return found


def test_options_reach_the_program(train: Train, tmp_path: Path) -> None:
    """TR3"""
    log = tmp_path / "log"
    assert train("--steps", 1, "--log", log).code == 0
    defaults = {
        "rowCount": 4,
        "rowTokens": 8,
        "rate": 4.0,
        "momentum": 0.5,
        "warm": True,
        "letters": 40,
        "opening": "t",
    }
    assert options_of(log) == defaults
    words = ["--row-count", "2", "--rate=-2.5e-1", "--no-warm", "--opening", "a t", "--letters", "+3"]
    assert train("--steps", 1, "--log", log, *words).code == 0
    assert options_of(log) == {
        **defaults, "rowCount": 2, "rate": -0.25, "warm": False, "opening": "a t", "letters": 3
    }  # fmt: skip


def test_the_program_may_refuse_options_together(train: Train, tmp_path: Path) -> None:
    """TR1"""
    found = train("--momentum", "1.5", "--checkpoint", tmp_path / "kept")
    assert (found.code, found.err) == (1, "osprey train: --momentum is to be below 1.0, not 1.5\n")
    assert not (tmp_path / "kept" / NAME).exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty, and there is nothing to learn from it"),
        (b"\xef\xbb\xbf", "empty, and there is nothing to learn from it"),
        (b"abc\nd\xffef" * 100, "not UTF-8 at byte 5, in line 2"),
        (b"\xef\xbb\xbfab\xff", "not UTF-8 at byte 5, in line 1"),
        (b"abcdefgh", "too short: its first nine tenths, for training, are 7 tokens, and a row of 8 wants 9"),
        (b"abab" * 20, "too short: its last tenth, for validation, are 8 tokens, and a row of 8 wants 9"),
        (b"abab" * 50 + b"x", "the validation part: the character x is not in the training part"),
    ],
)
def test_texts_that_cannot_be_learnt(train: Train, tmp_path: Path, content: bytes, said: str) -> None:
    """TR6"""
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    kept, log = tmp_path / "kept", tmp_path / "log"
    found = train("--checkpoint", kept, "--log", log, data=path)
    assert (found.code, found.out, found.err) == (1, "", f"osprey train: {path}: {said}\n")
    assert not log.exists() and list(kept.iterdir()) == []


def test_any_text_of_utf8_is_learnt(train: Train, tmp_path: Path) -> None:
    """TR6: line ends stay as they are, a byte order mark does not."""
    path = tmp_path / "given.txt"
    path.write_bytes("\ufeff".encode() + "ä漢\r\n🦅".encode() * 40)
    found = train("--steps", 1, "--opening", "漢", "--letters", "3", data=path)
    assert found.code == 0 and "vocabulary 5" in found.out, found.err


def test_files_that_cannot_be_used_are_named(train: Train, tmp_path: Path) -> None:
    """TR6, TR15"""
    nowhere = tmp_path / "no" / "folder"
    found = train(data=nowhere)
    assert (found.code, found.err) == (1, f"osprey train: {nowhere}: no such file or directory\n")
    found = train("--log", nowhere, "--steps", 1)
    assert found.code == 1 and found.err == f"osprey train: {nowhere}: no such file or directory\n"
    found = train("--plot", nowhere, "--steps", 1)
    assert found.code == 1 and found.err == f"osprey train: {nowhere}: there is no folder {nowhere.parent}\n"
    (tmp_path / "file").write_text("")
    found = train("--checkpoint", tmp_path / "file", "--steps", 1)
    assert found.code == 1 and found.err == f"osprey train: {tmp_path / 'file'}: file exists\n"
    found = train(program=tmp_path / "none.osp")
    assert found.code == 1 and "cannot read" in found.err and "Traceback" not in found.err


def test_a_program_with_a_mistake_is_told_as_ever(train: Train, tmp_path: Path) -> None:
    """TR1"""
    path = tmp_path / "wrong.osp"
    path.write_text("export fn options() = missing\n")
    assert "error[E0101]" in train(program=path).err
    path.write_text("export fn options() = 1\n")
    found = train(program=path)
    assert found.code == 1 and found.err.count("error[E0601]") == 9


# --- the program's own text ------------------------------------------------------------------------------------------


def with_data(folder: Path, content: bytes, url: str, sha256: str = "") -> Path:
    """The model of the tests, with data of its own."""
    folder.mkdir()
    path = folder / "own.osp"
    digest = sha256 or hashlib.sha256(content).hexdigest()
    data = f'{{ file: "data/own.txt", url: "{url}", bytes: {len(content)}, sha256: "{digest}" }}'
    path.write_text(f"{BIGRAM.read_text(encoding='utf-8')}\nexport fn data() = {data}\n", encoding="utf-8")
    return path


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = text(900).encode()
        self.send_response(200 if self.path == "/a/b.txt" else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_default_data_is_fetched_once(train: Train, tmp_path: Path) -> None:
    """TR5"""
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        program = with_data(tmp_path / "p", text(900).encode(), f"http://127.0.0.1:{server.server_port}/a/b.txt")
        found = train("--steps", 1, program=program, data=None)
        assert found.code == 0 and "size and SHA-256 checked" in found.err, found.err
        assert (tmp_path / "p" / "data" / "own.txt").read_bytes() == text(900).encode()
    finally:
        server.shutdown()
        server.server_close()
    assert train("--steps", 1, program=program, data=None).code == 0  # and now without the server
    (tmp_path / "p" / "data" / "own.txt").write_text("mine")
    found = train("--steps", 1, program=program, data=None)
    assert found.code == 1 and "own.txt is not the published file (its SHA-256 differs)" in found.err
    assert (tmp_path / "p" / "data" / "own.txt").read_text() == "mine"


def test_default_data_that_cannot_be_had(train: Train, tmp_path: Path) -> None:
    """TR5"""
    found = train("--steps", 1, data=None)
    assert (
        found.code == 1
        and found.err == "osprey train: which text? give --data FILE; the program has no data of its own\n"
    )
    program = with_data(tmp_path / "p", b"abc", "http://127.0.0.1:9/a/b.txt")
    found = train("--steps", 1, program=program, data=None)
    assert found.code == 1 and "no connection to 127.0.0.1:9" in found.err and "--data FILE" in found.err
    program = with_data(tmp_path / "q", b"abc", "file:///etc/passwd")
    assert "no address to fetch it from" in train("--steps", 1, program=program, data=None).err


# --- what contradicts a checkpoint --------------------------------------------------------------------------------------


def test_contradictions_name_both_sides(train: Train, tmp_path: Path) -> None:
    """TR17"""
    kept, log = tmp_path / "kept", tmp_path / "log"
    first = ["--checkpoint", kept, "--steps", 3, "--row-count", 2, "--seed", 5]
    assert train(*first).code == 0
    before = (kept / NAME).read_bytes()
    path = kept / NAME
    found = train(*first)
    assert (found.code, found.err) == (
        1,
        f"osprey train: {path} is there already: --resume goes on from it; another folder begins anew\n",
    )
    resume = ["--checkpoint", kept, "--resume", "--log", log]
    other = tmp_path / "other.txt"
    other.write_text(text() + " ", encoding="utf-8")
    cases = [
        (["--row-count", 3], f"{path}: made with --row-count 2, and the command line says 3"),
        (["--no-warm"], f"{path}: made with --warm true, and the command line says false"),
        (["--seed", 6], f"{path}: made with --seed 5, and the command line says 6"),
        (["--steps", 2], f"{path}: 3 steps were taken, and there are to be 2 in all"),
    ]
    for words, said in cases:
        found = train(*resume, *words)
        assert (found.code, found.err) == (1, f"osprey train: {said}\n")
    found = train(*resume, data=other)
    assert found.code == 1 and f"{path}: made from another text than {other}" in found.err
    assert path.read_bytes() == before and not log.exists()
    for words in ([], ["--row-count", 2, "--seed", 5]):  # what is not given is the checkpoint's
        assert train(*resume, "--steps", 5, *words).code == 0
        assert options_of(log)["rowCount"] == 2 and json.loads(log.read_text().splitlines()[0])["seed"] == 5


def test_steps_of_the_program_contradict_too(train: Train, tmp_path: Path) -> None:
    """TR4, TR17"""
    program = tmp_path / "steps.osp"
    source = BIGRAM.read_text(encoding="utf-8").replace("{ rowCount: int", "{ steps: int, rowCount: int")
    program.write_text(source.replace("    rowCount: 4", "    steps: 7, rowCount: 4"), encoding="utf-8")
    kept = ["--checkpoint", tmp_path / "kept", "--log", tmp_path / "log"]
    found = train(*kept, "--until", 3, program=program)
    assert found.code == 0 and "stopped after 3 of 7 steps; --resume goes on" in found.out
    found = train(*kept, "--resume", "--steps", 9, program=program)
    assert found.code == 1 and "made with --steps 7, and the command line says 9" in found.err
    found = train(*kept, "--resume", program=program)
    assert found.code == 0 and "step     6 " in found.out and options_of(tmp_path / "log")["steps"] == 7


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("letters: int,", "letters: int, extra: int,", "only the program has the option `extra`"),
        ("rate: float", "rate: int", "an option is of another type"),
        ("speed: List<GpuBuffer<float>>", "pace: List<GpuBuffer<float>>", "nothing is known of `pace`"),
        ("note: string", "note: int", "no tensor `note` that could be read"),
        ("best: (float, bool)", "best: (bool, float)", "`best.0` is of type f64 and shape []"),
        ("{ size: int, table", "{ table", "the program's state has no `size`"),
        ("characters: List<int>, ids", "letters: List<int>, ids", "the vocabulary is not of the program's type"),
    ],
)
def test_a_program_that_changed_is_told(train: Train, tmp_path: Path, old: str, new: str, said: str) -> None:
    """TR17: the program here only has the changed types; nothing of it runs before it is refused."""
    kept = ["--checkpoint", tmp_path / "kept"]
    assert train(*kept, "--steps", 1).code == 0
    program = tmp_path / "changed.osp"
    lines = BIGRAM.read_text(encoding="utf-8").replace(old, new).splitlines()
    types = "\n".join(line for line in lines if line.startswith("export type"))
    assert new in types
    extra = ", extra: 1" if "extra" in new else ""
    rate = "4" if "rate: int" in new else "4.0"
    learnt = (
        "Vocabulary { letters: [], ids: Map() }"
        if "letters: List" in new
        else "Vocabulary { characters: [], ids: Map() }"
    )
    program.write_text(
        f"""{types}
export fn options() = Options {{
    rowCount: 4, rowTokens: 8, rate: {rate}, momentum: 0.5, warm: true, letters: 40, opening: "t"{extra}
}}
export fn learn(o: Options, text: string) = {learnt}
export fn vocabularySize(v: Vocabulary) = 99
export fn encode(v: Vocabulary, text: string) -> Result<List<int>, string> = Success {{ value: toList(range(0, 50)) }}
export fn window(o: Options) = (1, 2)
fn none() -> State = none()
export fn init(o: Options, v: Vocabulary, seed: int) = none()
export fn parameters(s: State) = 1.0
export fn step(o: Options, s: State, n: int, a: GpuBuffer<int>, b: GpuBuffer<int>) = (s, 0.0)
export fn evaluate(o: Options, s: State, a: GpuBuffer<int>, b: GpuBuffer<int>) = 0.0
export fn sample(o: Options, v: Vocabulary, s: State, seed: int) = ""
""",
        encoding="utf-8",
    )
    found = train(*kept, "--resume", program=program)
    assert found.code == 1 and said in found.err, found.err


def test_what_is_no_checkpoint_is_told(train: Train, tmp_path: Path) -> None:
    """TR17"""
    kept = tmp_path / "kept"
    assert train("--checkpoint", kept, "--steps", 1).code == 0
    whole = (kept / NAME).read_bytes()
    for content, said in [
        (whole[:-8], "file cut short"),
        (b"x" * 100, "header length"),
        (whole.replace(b'"training":', b'"trainin_":'), "its metadata has no `training`"),
        (whole.replace(b'\\"contract\\":\\"1\\"', b'\\"contract\\":\\"0\\"'), "numerical contract 0, and this is 1"),
        (whole.replace(b'\\"seed\\":0', b'\\"sead\\":0'), "not what a checkpoint has there"),
    ]:
        assert content != whole
        (kept / NAME).write_bytes(content)
        found = train("--checkpoint", kept, "--steps", 2, "--resume")
        assert found.code == 1 and f"{kept / NAME}: " in found.err and said in found.err, found.err


def test_a_plot_wants_matplotlib(train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told before anything else happens."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = train("--plot", tmp_path / "plot.png", data=tmp_path / "not there")
    assert (found.code, found.err) == (
        1,
        "osprey train: --plot wants matplotlib, which is not installed: pip install 'osprey-py[plot]'\n",
    )
