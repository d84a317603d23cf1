"""The safetensors reader and writer: against the safetensors package, and on files that are wrong in one way each."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from osprey_py.backends.oracle import OracleBackend
from osprey_py.backends.protocol import Kind, Storage
from osprey_py.check import check_source
from osprey_py.eval.run import run_program
from osprey_py.graph.runtime import Runtime
from osprey_py.tensors import safetensors as safetensors_module
from osprey_py.tensors.safetensors import BITS, TensorError, open_tensors, save_tensors


def raw_file(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def error_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(TensorError) as e:
        open_tensors(str(path))
    return str(e.value)


def package_accepts(path: Path) -> bool:
    try:
        with safe_open(path, "np") as f:
            f.keys()
    except (SafetensorError, OSError):
        return False
    return True


@settings(max_examples=40, deadline=None)
@given(
    shapes=st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=1, max_size=5),
    dtypes=st.lists(st.sampled_from(["<f8", "<f4", "<f2"]), min_size=5, max_size=5),
    data=st.binary(min_size=512, max_size=512),
)
def test_reads_what_the_package_writes(
    tmp_path_factory: pytest.TempPathFactory, shapes: list[list[int]], dtypes: list[str], data: bytes
) -> None:
    arrays = {
        f"t.{k}": np.frombuffer(data, dtype=d, count=int(np.prod(s, dtype=int))).reshape(s)
        for k, (s, d) in enumerate(zip(shapes, dtypes, strict=False))
    }
    path = tmp_path_factory.mktemp("st") / "m.safetensors"
    path.write_bytes(save(arrays))
    got = open_tensors(str(path))
    assert sorted(got.names) == sorted(arrays)
    for name, a in arrays.items():
        storage = got.read(name)
        assert got.shape(name) == a.shape
        assert storage.kind.dtype == a.dtype
        assert storage.data.tobytes() == a.tobytes()


def test_the_package_reads_what_we_write(tmp_path: Path) -> None:
    """T1, T5, T6."""
    f64, f32 = np.array([1.5, -0.0]), np.arange(6, dtype="<f4")
    path = tmp_path / "m.safetensors"
    tensors = [
        ("é.half", (2, 1), Storage(Kind.F16, np.array([1, 2], "<f2"))),
        ("b", (), Storage(Kind.F64, f64[:1])),
        ("c", (2, 3), Storage(Kind.F32, f32)),
        ("bits", (1,), Storage(Kind.BF16, np.array([0x3F80], "<u2"))),
        ("none", (0, 7), Storage(Kind.F64, np.empty(0))),
    ]
    save_tensors(str(path), tensors)
    with safe_open(path, "np") as f:
        assert f.metadata() == {"format": "pt"}
        assert f.get_tensor("c").tobytes() == f32.tobytes()
        assert f.get_tensor("c").shape == (2, 3)
        assert f.get_tensor("b").shape == ()
    back = open_tensors(str(path))
    for name, shape, storage in tensors:
        assert back.shape(name) == shape
        assert back.read(name).kind is storage.kind
        assert back.read(name).data.tobytes() == storage.data.tobytes()
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def test_elements_are_read_where_they_are_mapped(tmp_path: Path) -> None:
    """T2. Also from an odd place in the file; the view outlives the reader and cannot be written to."""
    path = tmp_path / "odd.safetensors"
    header = json.dumps({"a": entry("F64", [2], [0, 16])}).encode()
    header += b" " * ((3 - len(header)) % 8)
    path.write_bytes(raw_file(header, struct.pack("<dd", 0.1, -7.0)))
    storage = open_tensors(str(path)).read("a")
    assert storage.address % 8 == 3
    assert storage.data.tolist() == [0.1, -7.0]
    assert not storage.data.flags.owndata
    assert not storage.data.flags.writeable


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """T7."""
    path = str(tmp_path / "m.safetensors")
    save_tensors(path, [("a", (1,), Storage(Kind.F64, np.array([1.0])))])
    old = open_tensors(path).read("a")
    assert open_tensors(path).read("a").address == old.address
    save_tensors(path, [("a", (1,), Storage(Kind.F64, np.array([2.0])))])
    assert open_tensors(path).read("a").data.tolist() == [2.0]
    assert old.data.tolist() == [1.0]


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_a_file_that_nobody_reads_any_more_is_not_mapped(tmp_path: Path) -> None:
    """It is mapped again when somebody does, and its header is not looked at twice."""

    def mapped() -> bool:
        return path in Path("/proc/self/maps").read_text("utf-8")

    path = str(tmp_path / "m.safetensors")
    save_tensors(path, [(name, (1,), Storage(Kind.F64, np.array([v]))) for name, v in (("a", 1.0), ("b", 2.0))])
    one, two = (open_tensors(path).read(name) for name in "ab")
    assert mapped()
    del one
    assert mapped() and two.data.tolist() == [2.0]
    del two
    assert not mapped()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(safetensors_module, "_header", None)
        again = open_tensors(path).read("b")
    assert mapped() and again.data.tolist() == [2.0]


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mapped is what was checked."""
    path = str(tmp_path / "m.safetensors")
    save_tensors(path, [("a", (1,), Storage(Kind.F64, np.array([1.0])))])
    open_tensors(path)
    mapping = safetensors_module._map

    def late(path: str) -> object:
        save_tensors(path, [("b", (2,), Storage(Kind.F32, np.array([2.0, 3.0], "<f4")))])
        return mapping(path)

    monkeypatch.setattr(safetensors_module, "_map", late)
    assert open_tensors(path).read("b").data.tolist() == [2.0, 3.0]


def test_the_headers_of_many_files_are_not_kept(tmp_path: Path) -> None:
    for k in range(20):
        path = str(tmp_path / f"{k}.safetensors")
        save_tensors(path, [("a", (1,), Storage(Kind.F64, np.array([float(k)])))])
        assert open_tensors(path).read("a").data.tolist() == [float(k)]
    assert len(safetensors_module._known) == safetensors_module.MOST_KNOWN


GOOD = {"a": entry()}
EIGHT = bytes(8)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "file cut short: 0 bytes"),
        (b"1234567", "file cut short: 7 bytes"),
        (raw_file(b"{}", length=9), "file cut short: the header's length is 9 and 2 bytes follow"),
        (raw_file(b"{}", length=2**64 - 1), "header length 18446744073709551615 is over 100000000"),
        (raw_file(b"{}", length=100_000_001), "header length 100000001 is over 100000000"),
        (raw_file(b""), "not JSON: it does not begin with {"),
        (raw_file(b"[]"), "not JSON: it does not begin with {"),
        (raw_file(b' {"a":1}'), "not JSON: it does not begin with {"),
        (raw_file(b'{"a":'), "the header is not JSON"),
        (raw_file(b'{"a": NaN}'), "NaN is not JSON"),
        (raw_file(b'{"\xff": 1}'), "not JSON: not UTF-8 at byte 2"),
        (
            raw_file(b'{"\\ud800":' + json.dumps(entry()).encode() + b"}", EIGHT),
            "not JSON: half of a surrogate pair in a text",
        ),
        (raw_file(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "not JSON: nested too deep"),
        (raw_file(b"{} x"), "the header is not JSON"),
        (raw_file(b'{"__metadata__": {"a": 1}}'), "__metadata__ is not a map of strings"),
        (raw_file(b'{"__metadata__": "x"}'), "__metadata__ is not a map of strings"),
        (raw_file(b'{"a": 1, "a": 2}'), 'duplicate name "a"'),
        (raw_file(b'{"a": 1}'), 'tensor "a": its entry in the header is not an object'),
        (raw_file(b'{"a": {}}'), 'tensor "a": unknown type null'),
        *(
            (raw_file(json.dumps({"a": {**GOOD["a"], **change}}).encode(), EIGHT), reason)
            for change, reason in [
                ({"dtype": "F31"}, 'tensor "a": unknown type "F31"'),
                ({"dtype": 3}, 'tensor "a": unknown type 3'),
                ({"shape": [-2]}, 'tensor "a": bad shape [-2]'),
                ({"shape": [2.0]}, 'tensor "a": bad shape [2.0]'),
                ({"shape": [True]}, 'tensor "a": bad shape [true]'),
                ({"shape": [2**63]}, 'tensor "a": bad shape [9223372036854775808]'),
                ({"shape": 2}, 'tensor "a": bad shape 2'),
                ({"shape": [3]}, 'tensor "a": 8 bytes, but shape [3] of F32 takes 12 bytes'),
                ({"shape": [2**62, 2**62]}, "of F32 takes"),
                ({"dtype": "F4", "shape": [3]}, "takes 12 bits"),
                ({"data_offsets": [0]}, 'tensor "a": bad data_offsets [0]'),
                ({"data_offsets": [8, 0]}, 'tensor "a": bad data_offsets [8, 0]'),
                ({"data_offsets": [-8, 0]}, 'tensor "a": bad data_offsets [-8, 0]'),
                ({"data_offsets": [8, 16]}, 'tensor "a": file cut short or offsets out of range'),
            ]
        ),
        (raw_file(json.dumps(GOOD).encode(), EIGHT[:5]), 'tensor "a": file cut short or offsets out of range'),
        (raw_file(json.dumps(GOOD).encode(), bytes(9)), "1 bytes of data belong to no tensor"),
        (
            raw_file(json.dumps({"a": entry(), "b": entry("F32", [2], [4, 12])}).encode(), bytes(12)),
            'tensor "b": overlaps tensor "a"',
        ),
        (
            raw_file(json.dumps({"a": entry(), "b": entry("F32", [1], [12, 16])}).encode(), bytes(16)),
            'tensor "b": a hole of 4 bytes lies before it',
        ),
    ],
)
def test_a_malformed_file_says_what_is_wrong(tmp_path: Path, content: bytes, reason: str) -> None:
    """T3."""
    path = tmp_path / "bad.safetensors"
    message = error_of(path, content)
    assert reason in message
    assert str(path) in message


def test_malformed_files_are_those_the_package_refuses(tmp_path: Path) -> None:
    """T1. A good file cut at every length, and with every byte of its header changed, is read by both or by neither."""
    path = tmp_path / "m.safetensors"
    good = raw_file(json.dumps({"a": entry(), "b": entry("F16", [2, 2], [8, 16])}).encode(), bytes(16))
    variants = [good[:n] for n in range(len(good) + 1)]
    variants += [good[:k] + bytes([c]) + good[k + 1 :] for k in range(8, len(good) - 16) for c in b'0"{,8-']
    taken = 0
    for variant in variants:
        path.unlink(missing_ok=True)
        path.write_bytes(variant)
        try:
            open_tensors(str(path))
            ours = True
        except TensorError:
            ours = False
        taken += ours
        assert ours == package_accepts(path), variant
    assert 1 < taken < len(variants)


def test_damaged_files_are_those_the_package_refuses(tmp_path: Path) -> None:
    """T1, T3: bytes of good files changed, dropped and added at random; both readers accept the same."""
    good = [
        raw_file(json.dumps({"a": entry(), "b": entry("F16", [], [8, 10])}).encode(), bytes(10)),
        raw_file(b'{"__metadata__":{"k":"v"},"a":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}}  ', EIGHT),
        raw_file(b'{"a":{"dtype":"BF16","shape":[0,3],"data_offsets":[0,0]}}'),
    ]
    likely = b'0123456789"{}[],:.-e\\ FBabdt\xff\x00'
    r = random.Random(7)
    verdicts = set()
    for k in range(800):
        content = bytearray(r.choice(good))
        for _ in range(r.choice((1, 1, 2, 3))):
            at = r.randrange(len(content))
            content[at : at + r.choice((0, 1, 1))] = bytes(r.choices(likely, k=r.choice((0, 1, 1))))
        if r.random() < 0.7:  # the header's length is made to fit, so that what is in it is looked at
            content[:8] = struct.pack("<Q", max(bytes(content).rfind(b"}") - 7, 0))
        path = tmp_path / f"{k}.safetensors"
        path.write_bytes(content)
        try:
            open_tensors(str(path))
            accepted = True
        except TensorError as e:
            accepted = not str(e).startswith(str(path))
        verdicts.add(accepted)
        assert accepted == package_accepts(path), bytes(content)
    assert verdicts == {True, False}


def test_other_types_are_legal_in_a_file_and_refused_as_tensors(tmp_path: Path) -> None:
    """T4."""
    path = tmp_path / "ints.safetensors"
    path.write_bytes(save({"ids": np.arange(3), "flag": np.array([True]), "x": np.array([2.5])}))
    file = open_tensors(str(path))
    assert file.shape("ids") == (3,)
    assert file.read("x").data.tolist() == [2.5]
    with pytest.raises(TensorError, match=r'tensor "ids": type I64 is not one of F64, F32, F16, BF16'):
        file.read("ids")
    with pytest.raises(TensorError, match=r'tensor "flag": type BOOL'):
        file.read("flag")


def test_the_package_knows_the_same_types(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    for dtype, bits in BITS.items():
        path.unlink(missing_ok=True)
        path.write_bytes(raw_file(json.dumps({"a": entry(dtype, [8], [0, bits])}).encode(), bytes(bits)))
        assert open_tensors(str(path)).info("a").dtype == dtype
        assert package_accepts(path), dtype


def test_missing_things_are_named(tmp_path: Path) -> None:
    """T3."""
    with pytest.raises(TensorError, match=r"nowhere\.safetensors: no such file or directory"):
        open_tensors(str(tmp_path / "nowhere.safetensors"))
    with pytest.raises(TensorError, match="is a directory"):
        open_tensors(str(tmp_path))
    with pytest.raises(TensorError, match="not a file name"):
        open_tensors("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TensorError, match="pipe: is not a regular file"):
        open_tensors(str(tmp_path / "pipe"))
    path = tmp_path / "m.safetensors"
    path.write_bytes(raw_file(b"{}"))
    with pytest.raises(TensorError, match=r'tensor "h.0.ln_1.bias": not in .*m\.safetensors'):
        open_tensors(str(path)).read("h.0.ln_1.bias")


def test_the_writer_refuses_what_it_cannot_write(tmp_path: Path) -> None:
    """T6."""
    path = tmp_path / "m.safetensors"
    one = Storage(Kind.F64, np.array([1.0]))
    for tensors, reason in [
        ([("a", (2,), one)], r"shape \[2\] does not fit 1 elements"),
        ([("a", (-1,), one)], r"shape \[-1\] does not fit"),
        ([("a", (1,), one), ("a", (1,), one)], 'tensor "a": given twice'),
        ([("__metadata__", (1,), one)], "reserved name"),
    ]:
        with pytest.raises(TensorError, match=reason):
            save_tensors(str(path), tensors)
    with pytest.raises(TensorError, match="no such file or directory"):
        save_tensors(str(tmp_path / "no" / "m.safetensors"), [("a", (1,), one)])
    with pytest.raises(TensorError, match="not a file name"):
        save_tensors("a\0b", [("a", (1,), one)])
    assert list(tmp_path.iterdir()) == []


def test_metadata_ints_and_bools_are_kept_and_told(tmp_path: Path) -> None:
    """T8, and what checkpoints are made of: the package reads the same."""
    path = tmp_path / "all.safetensors"
    items = [
        ("whole", (2,), Storage(Kind.I64, np.array([-(2**63), 7], np.int64))),
        ("yes", (), Storage(Kind.BOOL, np.array([1], np.uint8))),
    ]
    save_tensors(str(path), items, {"größe": '{"a":"\n"}', "b": ""})
    told = {"format": "pt", "größe": '{"a":"\n"}', "b": ""}
    with safe_open(path, "np") as file:
        assert dict(file.metadata()) == told
        assert file.get_tensor("whole").tolist() == [-(2**63), 7] and file.get_tensor("yes").tolist() is True
    ours = open_tensors(str(path))
    assert dict(ours.metadata) == told
    assert (ours.read_any("whole").data.tolist(), ours.read_any("yes").data.tolist()) == ([-(2**63), 7], [1])
    with pytest.raises(TensorError, match="type I64 is not one of F64, F32, F16, BF16"):
        ours.read("whole")
    half = raw_file(json.dumps({"__metadata__": {"a": "\ud800"}}).encode())
    assert "half of a surrogate pair" in error_of(tmp_path / "half.safetensors", half)
    assert not package_accepts(tmp_path / "half.safetensors")


def test_the_language_reads_metadata(tmp_path: Path) -> None:
    """T8"""
    path = tmp_path / "texts.safetensors"
    save_tensors(str(path), [], {"a": "ä"})
    program, told = check_source(
        f'''match tensorMetadata("{path}") {{
            Success {{ value }} => print(value)
            Error {{ message }} => print(message)
        }}
        print(tensorMetadata("{tmp_path}/none"))'''
    )
    assert program is not None, told
    out = io.StringIO()
    assert run_program(program, runtime=Runtime(OracleBackend()), stdout=out) == 0
    assert out.getvalue() == (
        f'{{ "format": "pt", "a": "ä" }}\nError(tensorMetadata: {tmp_path}/none: no such file or directory)\n'
    )
