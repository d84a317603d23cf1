"""The command line: exit codes 0, 1 and 2, one clear sentence each, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from osprey_py import CONTRACT_VERSION, __version__
from osprey_py.cli.main import COMMANDS


def osprey(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "osprey_py.cli.main", *args]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=cwd, timeout=120, check=False)


def test_version_and_help() -> None:
    assert osprey("--version").stdout == f"osprey {__version__} (contract {CONTRACT_VERSION})\n"
    text = osprey("--help")
    assert text.returncode == 0 and all(f"  {name}" in text.stdout for name in COMMANDS)
    for name in COMMANDS:
        assert osprey(name, "--help").returncode == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rum"], "did you mean `osprey run`"),
        (["hello.osp"], "osprey run hello.osp"),
        (["run"], "which program?"),
        (["run", "--threads", "0", "x.osp"], "not a whole number of at least 1"),
        (["run", "--colour", "x.osp"], "unrecognized arguments: --colour"),
        (["run", "--device", "abacus", "x.osp"], "no device `abacus`"),
        (["conform", "--device", "abacus"], "no device `abacus`"),
        (["diff", "a"], "required: B"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(tmp_path: Path, args: list[str], said: str) -> None:
    (tmp_path / "x.osp").write_text("print(1)\n")
    result = osprey(*args, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr and "Traceback" not in result.stderr


def test_run_gives_the_program_what_follows_its_path(tmp_path: Path) -> None:
    (tmp_path / "x.osp").write_text('args() |> forEach(fn(a) => print(a))\nprint("on ${gpuDevice()}")\n')
    result = osprey("run", "--device", "oracle", "--threads", "2", "x.osp", "--threads", "--help", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "--threads\n--help\non oracle\n", "")


def test_a_wrong_program_is_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "x.osp").write_text("print(missing)\n")
    for command in ("run", "check"):
        result = osprey(command, "x.osp", cwd=tmp_path)
        assert result.returncode == 1 and result.stderr.startswith("error[E0101]")
    for command in ("run", "check"):
        result = osprey(command, "nowhere.osp", cwd=tmp_path)
        assert result.returncode == 1 and "nowhere.osp" in result.stderr and "Traceback" not in result.stderr


def test_a_kernel_that_is_refused_at_its_launch_is_a_diagnostic(tmp_path: Path) -> None:
    program = """
        fn h(x: int) = length("${x}")
        fn go(f) = gpuIota(4) |> gpuMap(fn(x) => f(x) + 1)
        print(fromGpu(go(h)))
    """
    (tmp_path / "x.osp").write_text(program)
    result = osprey("run", "x.osp", cwd=tmp_path)
    assert result.returncode == 1 and "error[E03" in result.stderr and "Traceback" not in result.stderr


def test_check_says_how_many_kernels_are_pure(tmp_path: Path) -> None:
    (tmp_path / "x.osp").write_text("print(gpuFold(gpuMap(gpuIota(9), fn(x) => x * x), 0, fn(a, b) => a + b))\n")
    assert osprey("check", "--stats", "x.osp", cwd=tmp_path).stdout == "GPU kernels: 2 pure\n"


def test_check_as_json(tmp_path: Path) -> None:
    (tmp_path / "x.osp").write_text("print(missing)\n")
    result = osprey("check", "--json", "x.osp", cwd=tmp_path)
    (found,) = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (1, "")
    assert (found["code"], found["path"], found["line"], found["column"]) == ("E0101", "x.osp", 1, 7)


def test_plan_lists_launches_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "x.osp").write_text(
        "let b = gpuMap(gpuIota(9), fn(x) => x * x)\nprint(gpuFold(b, 0, fn(a, x) => a + x))\n"
    )
    result = osprey("run", "--plan", "x.osp", cwd=tmp_path)
    assert result.stdout == "204\n"
    assert "x.osp:2" in result.stderr and "launches" in result.stderr


def test_profile_tells_where_the_time_went(tmp_path: Path) -> None:
    """By kernel and by line, on standard error; what the program prints is as it was. The oracle knows no limits."""
    (tmp_path / "x.osp").write_text(
        "let b = gpuMap(gpuIota(9), fn(x) => x * x)\nprint(gpuFold(b, 0, fn(a, x) => a + x))\n"
    )
    for device in ("host", "oracle"):
        result = osprey("run", "--device", device, "--profile", "x.osp", cwd=tmp_path)
        assert (result.returncode, result.stdout) == (0, "204\n")
        assert "in 2 launches of 2 kernels" in result.stderr
        assert "x.osp:1  let b = gpuMap(gpuIota(9), fn(x) => x * x)" in result.stderr
        assert ("GB/s read from memory" in result.stderr) == (device == "host")


def trace(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return str(path)


def test_diff(tmp_path: Path) -> None:
    ids = {"ids": [1, 2]}
    a = trace(tmp_path / "a", ids, {"step": 0, "id": 7, "logits": ["0x1.0p+0", "0x1.8p+1"]})
    b = trace(tmp_path / "b", ids, {"step": 0, "id": 7, "logits": ["0x1.0p+0", "0x1.8p+2"]})
    short = trace(tmp_path / "c", ids)
    assert osprey("diff", a, a).stdout.startswith("identical: 2 lines, ")
    result = osprey("diff", a, b)
    assert result.returncode == 1
    assert result.stdout == "line 2: step 0, logits[1]: A 0x1.8p+1  B 0x1.8p+2\n"
    assert "only A has it" in osprey("diff", a, short).stdout
    gone = osprey("diff", a, str(tmp_path / "gone"))
    assert gone.returncode == 1 and "cannot read" in gone.stderr


def test_osprey_test_runs_a_folder_as_one_stream(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.test.osp").write_text(
        'test("adds", fn() => expect(1 + 1, 2))\ntest("differs", fn() => expect(1, 2))\n'
    )
    (tmp_path / "deep" / "b.test.osp").write_text(
        'test("folds", fn() => expect(gpuFold(gpuIota(4), 0, fn(a, b) => a + b), 6))\n'
    )
    (tmp_path / "other.osp").write_text("print(1)\n")
    result = osprey("test", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stdout == (
        "# a.test.osp\nok 1 - adds\nnot ok 2 - differs\n  # expected 2, got 1 at a.test.osp:2:25\n"
        "# deep/b.test.osp\nok 3 - folds\n"
        "1..3\n# tests=3 passed=2 failed=1 skipped=0\n"
    )
    filtered = osprey("test", "--filter", "fold", ".", cwd=tmp_path)
    assert filtered.returncode == 0 and "# tests=3 passed=1 failed=0 skipped=2" in filtered.stdout
    assert osprey("test", "deep", cwd=tmp_path).returncode == 0


def test_osprey_test_counts_files_that_end_early(tmp_path: Path) -> None:
    (tmp_path / "a.test.osp").write_text('test("x", fn() => expect(1, 1))\nprint(intDiv(1, 0))\n')
    (tmp_path / "b.test.osp").write_text("print(missing)\n")
    result = osprey("test", cwd=tmp_path)
    assert result.returncode == 1 and "# tests=3 passed=1 failed=2 skipped=0" in result.stdout
    assert "E0502" in result.stderr and "E0101" in result.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert osprey("test", "empty", cwd=tmp_path).returncode == 1


def test_a_program_knows_its_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x.osp").write_text("print(programFolder())\n")
    assert osprey("run", "deep/x.osp", cwd=tmp_path).stdout == "deep\n"
    assert osprey("run", "x.osp", cwd=tmp_path / "deep").stdout == ".\n"


def test_input_that_is_not_utf8_is_an_error_of_its_line(tmp_path: Path) -> None:
    """B5.2; V2.1."""
    (tmp_path / "x.osp").write_text('fn next() = input() ?: "none"\nprint([next(), next(), next(), next()])\n')
    command = [sys.executable, "-m", "osprey_py.cli.main", "run", "--device", "oracle", "x.osp"]
    for locale in ("C", "C.UTF-8"):
        done = subprocess.run(
            command,
            input=b"a\rb\r\nx\xffy\n\xc3\xa9",
            capture_output=True,
            cwd=tmp_path,
            timeout=120,
            check=False,
            env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0"},
        )
        assert (done.stdout.decode(), done.stderr) == ('["a\\rb", "none", "é", "none"]\n', b"")


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_empty(tmp_path: Path, redirection: str) -> None:
    (tmp_path / "x.osp").write_text("printError(input())\nprint(input())\nprint(missing)\n")
    (tmp_path / "y.osp").write_text("printError(input())\nprint(input())\n")
    for name, code in (("x", 1), ("y", 0)):
        command = f"'{sys.executable}' -m osprey_py.cli.main run --device oracle {name}.osp {redirection}"
        done = subprocess.run(
            ["sh", "-c", command], input="", capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
        )
        assert done.returncode == code and "Traceback" not in done.stderr


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.osp").write_text("print(1)\n")
    for args in (["run", "x.osp"], ["--help"], ["check", "--json", "x.osp"]):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "osprey_py.cli.main", *args]
            done = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, timeout=120, check=False
            )
        assert done.returncode == 1
        assert done.stderr == "osprey: standard output: No space left on device\n"


def test_conform_tries_every_backend_but_the_oracle() -> None:
    result = osprey("conform", "--part", "launches", "--only", "map of")
    assert (result.returncode, result.stderr) == (0, "")
    assert "host: 15 of 15 equal to the oracle's bytes\n" in result.stdout and "oracle:" not in result.stdout
