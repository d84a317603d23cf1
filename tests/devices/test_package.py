"""A backend of another package is found by its entry point, listed, selected, refused for what it refuses, and conforms."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from osprey_py.backends import discovery
from osprey_py.cli.main import main

PACKAGE = Path(__file__).parent / "counting_backend"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as an installer leaves it: on the path, its metadata beside it, made from its pyproject.toml."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [f"[{g}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for g, entries in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "osprey_counting").symlink_to(PACKAGE / "osprey_counting")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("osprey_counting", None)


@pytest.mark.usefixtures("installed")
def test_it_is_found_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """D1."""
    assert "counting" in discovery.names()
    assert discovery.choices("counting") == ["counting:thumb", "counting:finger"]
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert "counting:finger: counts on its finger\n    float64, int64; 1 units\n" in shown


@pytest.mark.usefixtures("installed")
def test_it_is_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S2.10."""
    program = tmp_path / "x.osp"
    program.write_text('print("${gpuDevice()}: ${gpuFold(gpuIota(5), 0, fn(a, b) => a + b)}")\n')
    assert main(["run", "--device", "counting", str(program)]) == 0
    assert main(["run", "--device", "counting:finger", str(program)]) == 0
    assert capsys.readouterr().out == "counting: 10\ncounting:finger: 10\n"
    with pytest.raises(SystemExit) as left:
        main(["run", "--device", "counting:toe", str(program)])
    assert left.value.code == 1
    told = capsys.readouterr().err
    assert told == "osprey: device `counting:toe` cannot be used: it has no toe (count on what there is)\n"


@pytest.mark.usefixtures("installed")
def test_what_it_refuses_is_told_at_the_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S2.10."""
    program = tmp_path / "x.osp"
    program.write_text(
        "fn down(n) = if n == 0 { 0 } else { 1 + down(n - 1) }\nprint(1)\nprint(fromGpu(gpuIota(3) |> gpuMap(down)))\n"
    )
    assert main(["run", "--device", "counting", str(program)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "1\n"
    assert shown.err.startswith("error[E0507]: device `counting`: it cannot count backwards\n")
    assert "x.osp:3:15" in shown.err and "this launch" in shown.err


@pytest.mark.usefixtures("installed")
def test_it_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["conform", "--device", "counting", "--against", "host", "--part", "launches", "--only"]
    assert main([*args, "map of"]) == 0 and main([*args, "recursion"]) == 0
    shown = capsys.readouterr().out
    assert "counting: 1 of 1 equal to the host's bytes, 1 of them refused by name\n" in shown


def test_without_it_there_is_no_such_device(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["conform", "--device", "counting"])
    assert left.value.code == 2
    assert "no device `counting`; there are: cuda, host, opencl, oracle" in capsys.readouterr().err
