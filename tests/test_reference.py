"""reference.py by itself: its functions are correctly rounded, its model is GPT-2, its tokenizer is GPT-2's."""

from __future__ import annotations

import ast
import math
import random
import struct
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import reference
from bench.make_gpt2_weights import encode
from osprey_py.numerics import exact
from tests.gpt2.support import (
    ROOT,
    corpus,
    make_weights,
    merge_list,
    package_tokenizer,
    run_reference,
)

HARD = [float.fromhex(x) for x in ("-0x1.ed318efb627eap-27", "0x1.83d4bcdebb3f4p+2", "-0x1.9e9cbbfd6080bp-31")]
HARD += [float.fromhex(x) for x in ("0x1.30587b18fbe5ep+2", "0x1.30fc1931f09cap+4", "0x1.30fc1931f09c9p+4")]
EDGES = [
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    -5e-324,
    2.0**-28,
    709.782712893384,
    709.7827128933841,
    710.5,
]
EDGES += [-745.1332191019411, -745.1332191019412, -746.5, -708.5, 1e308, -1e308, 20.0, 20.5, -19.1]


def points() -> list[float]:
    r = random.Random(1)
    spread = [r.choice((-1.0, 1.0)) * 2.0 ** r.uniform(-60, 10) for _ in range(1000)]
    return (
        HARD
        + EDGES
        + spread
        + [r.gauss(0.0, 2.0) for _ in range(1000)]
        + [r.uniform(-750.0, 712.0) for _ in range(500)]
    )


def rounded(function: str, x: float) -> float:
    """By mpmath with far more bits than any hard case needs, rounded once by int / int."""
    with mpmath.workprec(1400):
        value = getattr(mpmath, function)(mpmath.mpf(x))
        if not mpmath.isfinite(value):
            return float(value)
        sign, mantissa, exponent, _ = value._mpf_
    mantissa = -int(mantissa) if sign else int(mantissa)
    try:
        return mantissa * 2**exponent / 1 if exponent >= 0 else mantissa / 2**-exponent
    except OverflowError:
        return math.inf


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_exp_and_tanh_are_correctly_rounded(name: str) -> None:
    mine, other = getattr(reference, name), getattr(exact, name)
    for x in points():
        if x == 0.0 or math.isinf(x) or x != x or abs(x) > 1e300 or abs(x) < 1e-300:
            continue
        assert mine(x).hex() == rounded(name, x).hex(), (name, x.hex())
    for x in points():
        assert mine(x).hex() == other(x).hex(), (name, x.hex())


def test_exp_and_tanh_at_the_edges() -> None:
    cases = [(reference.exp, 0.0, 1.0), (reference.exp, -math.inf, 0.0), (reference.exp, math.inf, math.inf)]
    cases += [(reference.exp, 709.7827128933841, math.inf), (reference.exp, -745.1332191019412, 0.0)]
    cases += [(reference.exp, -745.1332191019411, 5e-324), (reference.exp, 5e-324, 1.0)]
    cases += [(reference.tanh, -0.0, -0.0), (reference.tanh, math.inf, 1.0), (reference.tanh, -math.inf, -1.0)]
    cases += [(reference.tanh, -5e-324, -5e-324)]
    for function, x, y in cases:
        assert function(x).hex() == y.hex()
    assert math.isnan(reference.exp(math.nan))
    assert math.isnan(reference.tanh(math.nan))


def test_it_stands_on_the_standard_library_alone_and_never_calls_an_inexact_function() -> None:
    tree = ast.parse((ROOT / "reference.py").read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
    math_names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "math"
    }
    assert math_names == {"sqrt", "inf", "nan", "isfinite", "copysign", "prod"}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert "pow" not in called
    sums = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "sum"]
    assert [ast.unparse(n) for n in sums] == ["sum((math.prod(s) for s in shapes.values()))"]


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_storage_types_widen_exactly(tmp_path: Path, dtype: str) -> None:
    """Subnormals, infinities and the largest values included; BF16 against the upper half of a binary32."""
    values = np.array([0.0, -0.0, 1.0, -1.5, 6e-8, 5.9e-39, 65504.0, 3e38, np.inf, 1 / 3])
    with np.errstate(over="ignore"):
        raw = encode(values, dtype)
    header = b'{"wte.weight":{"dtype":"%s","shape":[2,5],"data_offsets":[0,%d]}}' % (dtype.encode(), len(raw))
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + raw)
    if dtype == "BF16":
        wide = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").astype("<f8")
    else:
        wide = np.frombuffer(raw, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]).astype("<f8")
    weights = reference.Weights(path)
    assert [v.hex() for r in (0, 1) for v in weights.row("wte.weight", r)] == [v.hex() for v in wide.tolist()]


def numpy_logits(folder: Path, ids: list[int], heads: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The same network the way numpy people write it; its sums have another order, so its last bits differ."""
    w = reference.Weights(folder / "model.safetensors")
    get = {n: np.array([w.row(n, r) for r in range(math.prod(w.shape(n)[:-1]))]).reshape(w.shape(n)) for n in w.entries}

    def norm(x, name):  # type: ignore[no-untyped-def]
        off = x - x.mean(-1, keepdims=True)
        return off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-5) * get[name + ".weight"] + get[name + ".bias"]

    def linear(x, name):  # type: ignore[no-untyped-def]
        return x @ get[name + ".weight"] + get[name + ".bias"]

    x = get["wte.weight"][ids] + get["wpe.weight"][: len(ids)]
    mask = np.where(np.tri(len(ids)) == 0, -np.inf, 0.0)
    for h in range(reference.Model(folder).layers):
        q, k, v = np.split(linear(norm(x, f"h.{h}.ln_1"), f"h.{h}.attn.c_attn"), 3, -1)
        mixed = []
        for a, b, c in zip(*(np.split(m, heads, -1) for m in (q, k, v)), strict=True):
            s = a @ b.T / math.sqrt(a.shape[-1]) + mask
            e = np.exp(s - s.max(-1, keepdims=True))
            mixed.append(e / e.sum(-1, keepdims=True) @ c)
        x = x + linear(np.concatenate(mixed, -1), f"h.{h}.attn.c_proj")
        y = linear(norm(x, f"h.{h}.ln_2"), f"h.{h}.mlp.c_fc")
        y = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + linear(y, f"h.{h}.mlp.c_proj")
    out: np.ndarray[tuple[int], np.dtype[np.float64]] = norm(x, "ln_f")[-1] @ get["wte.weight"].T
    return out


def test_it_is_gpt2_as_numpy_computes_it(tmp_path: Path) -> None:
    folder = make_weights(tmp_path)
    ids = [5, 250, 17, 17, 299, 0]
    mine = np.array(reference.Model(folder).logits(ids))
    assert np.abs(mine - numpy_logits(folder, ids, heads=4)).max() < 1e-10


def test_classes_of_characters_are_the_tokenizers_package_s() -> None:
    """Over every code point: \\p{L}, \\p{N} and \\s, by Unicode 16.0.0."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    for name, pattern in (("letter", r"\p{L}"), ("number", r"\p{N}"), ("space", r"\s")):
        split = Split(Regex(pattern), "removed")
        for begin in range(0, 0x110000, 1024):
            text = "".join(map(chr, range(begin, begin + 1024))) if not 0xD800 <= begin < 0xE000 else ""
            left = {c for piece, _ in split.pre_tokenize_str(text) for c in piece}
            assert {c for c in text if c not in left} == {c for c in text if reference.kind(c) == name}, hex(begin)


def test_the_tokenizer_is_the_tokenizers_package_s() -> None:
    merges = merge_list()
    mine, package = reference.Tokenizer(merges), package_tokenizer(merges)
    text = corpus()
    ids = mine.encode(text)
    assert ids == package.encode(text).ids
    assert mine.decode(ids) == text
    r = random.Random(5)
    for _ in range(500):
        near = "".join(
            r.choice(" \n\t'’sdtrevlmé1²Ⅷ中🙂a\u0085\u00a0\u3000\u200b\U00010d40") for _ in range(r.randrange(25))
        )
        far = "".join(
            chr(r.choice([r.randrange(0xD800), r.randrange(0xE000, 0x110000)])) for _ in range(r.randrange(25))
        )
        for text in (near, far, near + far):
            assert mine.encode(text) == package.encode(text).ids, ascii(text)
        scattered = [r.randrange(len(mine.tokens)) for _ in range(8)]
        assert mine.decode(scattered) == package.decode(scattered)


def test_the_published_ids_of_the_prompt() -> None:
    """What GPT-2's own tokenizer gives, where the published merges have been fetched; the small model's otherwise."""
    tokenizer = reference.Tokenizer(merge_list())
    ids = tokenizer.encode("The capital of France is")
    assert ids == (
        [464, 3139, 286, 4881, 318]
        if len(tokenizer.tokens) == 50256
        else [352, 277, 64, 79, 274, 362, 296, 220, 37, 81, 300, 306, 326]
    )


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: No such file or directory"),
        (lambda f: (f / "merges.txt").unlink(), "merges.txt: No such file or directory"),
        (lambda f: (f / "model.safetensors").write_bytes(b"{}"), "is not a safetensors file, or cut short"),
        (
            lambda f: (f / "merges.txt").write_text("#version: 0.2\nq zz\n"),
            "line 2: not a merge of two known tokens: q zz",
        ),
        (lambda f: (f / "config.json").write_text('{"n_head": 5}'), "5 heads do not divide a width of 32"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, break_it: object, message: str) -> None:
    folder = make_weights(tmp_path)
    break_it(folder)  # type: ignore[operator]
    run = run_reference("--weights", str(folder), "--prompt", "a", "--tokens", "1")
    assert run.code == 1
    assert message in run.error
    assert run.error.count("\n") == 1
