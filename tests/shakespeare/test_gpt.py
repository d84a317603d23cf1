"""examples/shakespeare/gpt.osp: its text, its parameters, its first loss, what it writes."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pytest

from osprey_py.backends.host import HostBackend
from osprey_py.backends.oracle import OracleBackend
from osprey_py.eval.values import Record
from osprey_py.training.program import TrainingProgram
from tests.nn import plain
from tests.shakespeare.support import LETTERS, SMALL, floats, gpt, options, part, tokens

TEXT = "".join(random.Random(1).sample(LETTERS * 3, 3 * len(LETTERS)))


def begun(program: TrainingProgram, /, seed: int = 0, **changed: Any) -> tuple[Record, Any, Any]:
    """Options, vocabulary and first state."""
    o = options(program, **changed)
    v = program.learn(o, TEXT)
    return o, v, program.init(o, v, seed)


def window(program: TrainingProgram, rows: int, seed: int = 7) -> tuple[Any, Any]:
    """Random inputs, and random targets."""
    r = random.Random(seed)
    return tuple(tokens(program, [r.randrange(len(LETTERS)) for _ in range(rows)]) for _ in range(2))  # type: ignore[return-value]


def test_the_vocabulary_is_the_characters_of_the_text_ascending() -> None:
    program = gpt()
    o = program.options()
    v = program.learn(o, TEXT)
    assert part(v, "characters") == LETTERS and program.vocabulary_size(v) == 65
    assert program.encode(v, "To be") == [LETTERS.index(c) for c in "To be"]
    assert program.encode(v, "") == []
    found = program.learn(o, "né\U0001f989 a\u0301")
    assert part(found, "characters") == " ané\u0301\U0001f989"
    assert program.encode(found, "\U0001f989né") == [5, 2, 3]


def test_a_character_that_was_never_seen_is_named() -> None:
    program = gpt()
    v = program.learn(program.options(), TEXT)
    assert program.encode(v, "To be, ör not") == "character 8, ö, was never seen"
    assert program.encode(v, "\U0001f989") == "character 1, \U0001f989, was never seen"


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 112_577),
        ({"tied": True}, 112_577 - 64 * 65 - 65),
        # The seed's first exercise: 65 * 128 + 64 * 128 + 4 * (4 * 128 + 12 * 128 * 128 + 9 * 128) + 2 * 128 + 129 * 65.
        ({"layers": 4, "width": 128}, 818_241),
        ({"layers": 0, "heads": 1}, 65 * 64 + 64 * 64 + 2 * 64 + 65 * 65),
    ],
)
def test_parameters_are_as_many_as_counted_by_hand(changed: dict[str, Any], count: int) -> None:
    program = gpt()
    _, _, state = begun(program, **changed)
    assert program.parameters(state) == count


def test_the_first_parameters_are_distributed_as_the_seed_says() -> None:
    """Embeddings normal with deviation 0.02, weights even between ±1 / sqrt(inner), norms at 1 and 0, biases at 0."""
    program = gpt()
    _, _, state = begun(program)
    for name in ("characters", "places"):
        xs = floats(program, state, f"model.{name}")
        deviation = math.sqrt(math.fsum(x * x for x in xs) / len(xs))
        assert abs(deviation / 0.02 - 1.0) < 0.05 and abs(math.fsum(xs) / len(xs)) < 0.001
        assert len(set(xs)) == len(xs)
    for name, inner in (("blocks.0.attention", 64), ("blocks.1.contract", 256), ("head.0", 64)):
        xs = floats(program, state, f"model.{name}.weight")
        bound = 1.0 / math.sqrt(inner)
        assert (
            max(map(abs, xs)) <= bound and abs(math.fsum(x * x for x in xs) / len(xs) / (bound * bound / 3) - 1) < 0.06
        )
        assert set(floats(program, state, f"model.{name}.bias")) == {0.0}
    assert set(floats(program, state, "model.norm.gain")) == {1.0}
    assert set(floats(program, state, "model.blocks.1.norm2.bias")) == {0.0}
    matrices = [floats(program, state, f"model.{name}")[:20] for name in ("blocks.0.attention.weight", "head.0.weight")]
    matrices += [floats(program, state, f"model.blocks.{n}.expand.weight")[:20] for n in range(2)]
    assert all(a != b for a, b in pairwise(sorted(matrices)))


def test_another_seed_begins_elsewhere_and_the_same_one_where_it_did() -> None:
    program = gpt()
    first, again, other = (floats(program, begun(program, seed)[2], "model.characters") for seed in (0, 0, 1))
    assert first == again and not set(first) & set(other)


@pytest.mark.parametrize("tied", [False, True])
def test_the_first_loss_is_about_that_of_knowing_nothing(tied: bool) -> None:
    program = gpt()
    for seed in range(3):
        o, _, state = begun(program, seed, tied=tied)
        loss = program.evaluate(o, state, *window(program, 16 * 64))
        assert abs(loss / math.log(65) - 1.0) < 0.12


def test_every_backend_computes_the_same_loss() -> None:
    programs = [gpt(HostBackend(threads=n), fusion=fusion) for n in (1, 2) for fusion in (True, False)]
    losses = set()
    for program in [*programs, gpt(OracleBackend())]:
        o, _, state = begun(program, **SMALL)
        losses.add(program.evaluate(o, state, *window(program, 32)).hex())
    assert len(losses) == 1


def test_a_window_does_not_see_another_nor_its_own_future() -> None:
    """The loss of two windows is the mean of what each has alone; and a first position has the loss that it has with
    nothing behind it."""
    program = gpt()
    small = {**SMALL, "batch": 1}
    _, _, state = begun(program, **small)
    r = random.Random(3)
    xs, ys = ([r.randrange(65) for _ in range(16)] for _ in range(2))

    def loss(at: slice, windows: int) -> float:
        o = options(program, **{**small, "batch": windows})
        return program.evaluate(o, state, tokens(program, xs[at]), tokens(program, ys[at]))

    alone = [loss(slice(0, 8), 1), loss(slice(8, 16), 1)]
    assert abs(loss(slice(0, 16), 2) - (alone[0] + alone[1]) / 2) < 1e-12
    growing = [loss(slice(0, n), 1) * n for n in range(1, 9)]
    rows = [b - a for a, b in pairwise([0.0, *growing])]
    xs[7] = (xs[7] + 1) % 65
    changed = [loss(slice(0, n), 1) * n for n in range(1, 9)]
    assert changed[:7] == growing[:7] and changed[7] != growing[7]
    assert all(2.0 < row < 8.0 for row in rows)


def test_writing_is_decided_by_the_seed_and_goes_on_from_where_it_was() -> None:
    program = gpt()
    o, v, state = begun(program, **SMALL, characters=40)
    text = program.sample(o, v, state, 5)
    assert len(text) == 40 and set(text) <= set(LETTERS)
    assert program.sample(o, v, state, 5) == text != program.sample(o, v, state, 6)
    shorter = options(program, **SMALL, characters=12)
    assert text.startswith(program.sample(shorter, v, state, 5))
    assert program.sample(options(program, **SMALL, characters=0), v, state, 5) == ""
    best = program.sample(options(program, **SMALL, characters=20, temperature=0.0), v, state, 5)
    assert best == program.sample(options(program, **SMALL, characters=20, top=1), v, state, 99)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"heads": 3}, "3 heads do not divide a width of 64"),
        ({"batch": 0}, "batch, context, width and heads are 1 at least"),
        ({"context": -1}, "batch, context, width and heads are 1 at least"),
        ({"layers": -1}, "layers, warmup and characters are not negative"),
        ({"decay": -0.1}, "rate, decay and clip are not negative"),
        ({"warmup": 600}, "600 steps of warmup leave none of 600"),
        ({"dropout": 1.0}, "dropout is a share from 0 to below 1, not 1.0"),
        ({"schedule": "steep"}, "there is no schedule steep, only constant, linear, cosine"),
        ({}, ""),
    ],
)
def test_options_that_make_no_model_are_refused(changed: dict[str, object], said: str) -> None:
    program = gpt()
    assert program.complaint(options(program, **changed)) == said


@pytest.mark.parametrize("tied", [False, True])
def test_the_loss_is_that_of_the_layers_in_plain_python(tied: bool) -> None:
    """To the last bit, with the parameters of the program."""
    program = gpt()
    rows, context, width, heads = 2, 5, 6, 3
    sizes = {"batch": rows, "context": context, "width": width, "heads": heads, "layers": 2, "tied": tied}
    o, _, state = begun(program, 1, **sizes)
    r = random.Random(2)
    xs, ys = ([r.randrange(65) for _ in range(rows * context)] for _ in range(2))

    def matrix(path: str, cols: int) -> plain.Matrix:
        found = floats(program, state, f"model.{path}")
        return [found[n : n + cols] for n in range(0, len(found), cols)]

    def row(path: str) -> plain.Row:
        return floats(program, state, f"model.{path}")

    def linear(x: plain.Matrix, path: str) -> plain.Matrix:
        bias = row(f"{path}.bias")
        return plain.linear(x, matrix(f"{path}.weight", len(bias)), bias)

    def norm(x: plain.Matrix, path: str) -> plain.Matrix:
        return plain.layer_norm(x, row(f"{path}.gain"), row(f"{path}.bias"))

    table, places = matrix("characters", width), matrix("places", width)
    x = [add(table[token], places[n % context]) for n, token in enumerate(xs)]
    for n in range(2):
        qkv = linear(norm(x, f"blocks.{n}.norm1"), f"blocks.{n}.attention")
        windows = [qkv[at : at + context] for at in range(0, rows * context, context)]
        q, k, v = ([[y[p * width : (p + 1) * width] for y in w] for w in windows] for p in range(3))
        mixed = [y for w in plain.attention(q, k, v, heads) for y in w]
        x = list(map(add, x, linear(mixed, f"blocks.{n}.projection")))
        inner = linear(norm(x, f"blocks.{n}.norm2"), f"blocks.{n}.expand")
        x = list(map(add, x, linear([list(map(plain.gelu, y)) for y in inner], f"blocks.{n}.contract")))
    last = norm(x, "norm")
    scores = plain.tied(last, table) if tied else linear(last, "head.0")
    assert program.evaluate(o, state, tokens(program, xs), tokens(program, ys)) == plain.cross_entropy(scores, ys)


def add(a: plain.Row, b: plain.Row) -> plain.Row:
    return [u + v for u, v in zip(a, b, strict=True)]
