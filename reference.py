"""GPT-2 in plain Python: greedy generation and a training step with every sum written out. It defines what the .osp
model must compute.

    python reference.py generate --weights DIR --prompt "The capital of France is" --tokens 20 [--trace FILE]
    python reference.py train --weights DIR --prompt "The capital of France is" [--rate 0.0001] [--trace FILE]

DIR holds model.safetensors and merges.txt. Only the standard library is used, and nothing of osprey_py: two programs
that share no code can only agree to the last bit if both do what the contract says:
  * binary64 throughout; weights widen exactly from the type they are stored in;
  * every sum starts at 0.0 and adds its terms in ascending order, one by one, each product rounded before it is added;
  * exp, ln and tanh are correctly rounded, sqrt and division are IEEE 754's.
Every token recomputes the whole sequence. For the 124M model that takes minutes a token.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import mmap
import os
import struct
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cache
from io import TextIOWrapper
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TextIO

Row = list[float]
Matrix = list[Row]


class Problem(Exception):
    """What the person who called is to be told."""


# --- exp, tanh and ln, correctly rounded ---
#
# All follow Ziv: compute with integers to a known error, round both ends of the interval, and when they differ do it
# again with twice the bits. None meets a double or a midpoint of two doubles except at 0, ln at 1 (Lindemann), so
# this ends. In Python int / int is correctly rounded, subnormals included.


@cache
def constants(bits: int) -> tuple[int, tuple[int, ...]]:
    """2^bits * ln 2, too small by less than 2; and 2^bits / k! for k = 0, 1, ... while it is not 0, rounded down."""
    guard = bits + 32
    ln2, term, k = 0, (1 << guard) * 2 // 3, 1
    while term:  # ln 2 = 2 atanh(1/3), the sum of 2 / (k * 3^k) over odd k
        ln2 += term // k
        term //= 9
        k += 2
    factorials = [1 << bits]
    while factorials[-1]:
        factorials.append(factorials[-1] // len(factorials))
    return ln2 >> 32, tuple(factorials)


HALVINGS = 8
EXP_ERROR = 1 << 20


def exp_fixed(n: int, d: int, bits: int) -> tuple[int, int]:
    """(y, k) with |exp(n/d) - y * 2^(k-bits)| < EXP_ERROR * 2^(k-bits), for |n/d| < 2^10.

    n/d = k ln 2 + r with 0 <= r < ln 2; exp(r) = exp(r / 2^8)^(2^8), the inner one by its power series. In units of
    2^-bits: r errs by 1 from the division and by |k| < 2^11 from ln 2, so r / 2^8 by 9; the series by 3 more, as what
    is dropped at each step of Horner's rule is next multiplied by r / 2^8 < 2^-8. A squaring doubles the relative error
    and drops at most 1; the value stays below 2. So 2^8 * (12 + 1) * 2 < 2^13, and EXP_ERROR is far above it.
    """
    ln2, factorials = constants(bits)
    k, r = divmod((n << bits) // d, ln2)
    r >>= HALVINGS
    y = 0
    for f in factorials[bits // HALVINGS :: -1]:
        y = f + (y * r >> bits)
    for _ in range(HALVINGS):
        y = y * y >> bits
    return y, k


def exp(x: float) -> float:
    """e to the x, rounded to nearest even."""
    if x != x or x > 710.0:
        return x + math.inf
    if x < -746.0:
        return 0.0
    if x == 0.0:
        return 1.0
    n, d = x.as_integer_ratio()
    bits = 128
    while True:
        y, k = exp_fixed(n, d, bits)
        low, high = (scaled(y + e, k - bits) for e in (-EXP_ERROR, EXP_ERROR))
        if low == high:
            return low
        bits *= 2


def scaled(y: int, e: int) -> float:
    """y * 2^e, rounded to nearest even."""
    try:
        return float(y << e) if e >= 0 else y / (1 << -e)
    except OverflowError:
        return math.inf


def tanh(x: float) -> float:
    """The hyperbolic tangent, rounded to nearest even: (E - 1) / (E + 1) with E = exp(2 |x|)."""
    if x != x or x == 0.0:
        return x
    if abs(x) > 20.0:
        return math.copysign(1.0, x)  # 1 - tanh 20 < 2^-56
    if abs(x) < 2.0**-28:
        return x  # |x - tanh x| < |x|^3 / 3 < 2^-57 |x|, less than half a unit in the last place of x
    n, d = abs(x).as_integer_ratio()
    bits = 128
    while True:
        y, k = exp_fixed(2 * n, d, bits)
        one = 1 << bits
        low, high = ((e - one) / (e + one) for e in ((y - EXP_ERROR) << k, (y + EXP_ERROR) << k))
        if low == high:
            return math.copysign(low, x)
        bits *= 2


LN_ERROR = 1 << 20


def ln(x: float) -> float:
    """The natural logarithm, rounded to nearest even: k ln 2 + 2 atanh((m - 1) / (m + 1)) with x = m * 2^k, 1 <= m < 2.

    z = (m - 1) / (m + 1) < 1/3, so each term of atanh's series is less than a ninth of the one before. In units of
    2^-bits: z and every power of it err by less than 2, a term by 3, and there are fewer than bits / 3 of them; ln 2 errs
    by 2, |k| < 1075 times that. Together less than 2 bits + 2^12, and LN_ERROR is far above it for bits < 2^18.
    """
    if x != x or x < 0.0:
        return math.nan
    if x == 0.0:
        return -math.inf
    if x == math.inf or x == 1.0:
        return x - 1.0
    n, d = x.as_integer_ratio()
    k = n.bit_length() - d.bit_length()
    if (n << max(-k, 0)) < (d << max(k, 0)):
        k -= 1
    n, d = n << max(-k, 0), d << max(k, 0)
    bits = 128
    while True:
        z = (n - d << bits) // (n + d)
        square, term, y, i = z * z >> bits, z, 0, 1
        while term:
            y += term // i
            term = term * square >> bits
            i += 2
        y = k * constants(bits)[0] + 2 * y
        low, high = (scaled(y + e, -bits) for e in (-LN_ERROR, LN_ERROR))
        if low == high:
            return low
        bits *= 2


# --- the weights ---

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


class Weights:
    """A safetensors file, mapped; rows of tensors are widened when they are asked for."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as f:
                self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            (length,) = struct.unpack_from("<Q", self.data)
            header = dict(json.loads(self.data[8 : 8 + length]))
        except OSError as e:
            raise Problem(f"{path}: {e.strerror}") from None
        except (ValueError, TypeError, struct.error, OverflowError):
            raise Problem(f"{path} is not a safetensors file, or cut short") from None
        header.pop("__metadata__", None)
        self.path = path
        self.start = 8 + length
        self.prefix = "transformer." if "transformer.wte.weight" in header else ""
        self.entries: dict[str, Any] = header
        self.changed: dict[str, list[array[float]]] = {}  # rows of tensors that are no longer the file's

    def entry(self, name: str) -> Any:
        entry = self.entries.get(self.prefix + name)
        if entry is None:
            raise Problem(f"tensor {self.prefix + name} is not in {self.path}")
        if entry["dtype"] not in SIZES:
            raise Problem(f"tensor {self.prefix + name} is of type {entry['dtype']}, in {self.path}")
        if self.start + entry["data_offsets"][1] > len(self.data):
            raise Problem(f"tensor {self.prefix + name} lies behind the end of {self.path}, which is cut short")
        return entry

    def shape(self, name: str) -> list[int]:
        return list(self.entry(name)["shape"])

    def row(self, name: str, r: int) -> Row:
        """Row r of a matrix, or the whole of a vector for r = 0."""
        if name in self.changed:
            return list(self.changed[name][r])
        entry = self.entry(name)
        n, dtype = entry["shape"][-1], entry["dtype"]
        at = self.start + entry["data_offsets"][0] + r * n * SIZES[dtype]
        if dtype == "BF16":  # the upper half of a binary32
            wide = bytearray(4 * n)
            raw = self.data[at : at + 2 * n]
            wide[2::4], wide[3::4] = raw[0::2], raw[1::2]
            return list(struct.unpack(f"<{n}f", wide))
        return list(struct.unpack_from(f"<{n}{ {'F64': 'd', 'F32': 'f', 'F16': 'e'}[dtype] }", self.data, at))


# --- the model ---


class Model:
    """The sizes, read off the tensors' shapes, and the weights."""

    def __init__(self, folder: Path) -> None:
        self.w = w = Weights(folder / "model.safetensors")
        self.vocabulary, self.width = w.shape("wte.weight")
        self.context = w.shape("wpe.weight")[0]
        numbers = [n.removeprefix(w.prefix).split(".")[1] for n in w.entries if n.startswith(w.prefix + "h.")]
        self.layers = 1 + max((int(n) for n in numbers if n.isdecimal()), default=-1)
        self.heads = self.width // 64
        config = folder / "config.json"
        if config.exists():
            try:
                self.heads = int(json.loads(config.read_text("utf-8")).get("n_head", self.heads))
            except (ValueError, TypeError, AttributeError):
                raise Problem(f"{config} does not say how many heads there are") from None
        if self.heads < 1 or self.width % self.heads:
            raise Problem(f"{self.heads} heads do not divide a width of {self.width}")
        c = self.width
        linears = {"attn.c_attn": (c, 3 * c), "attn.c_proj": (c, c), "mlp.c_fc": (c, 4 * c), "mlp.c_proj": (4 * c, c)}
        shapes = {"wte.weight": [self.vocabulary, c], "wpe.weight": [self.context, c]}
        norms = ["ln_f"]
        for h in range(self.layers):
            norms += [f"h.{h}.ln_1", f"h.{h}.ln_2"]
            for part, (inner, cols) in linears.items():
                shapes |= {f"h.{h}.{part}.weight": [inner, cols], f"h.{h}.{part}.bias": [cols]}
        for norm in norms:
            shapes |= {f"{norm}.weight": [c], f"{norm}.bias": [c]}
        for name, shape in shapes.items():
            if w.shape(name) != shape:
                raise Problem(f"tensor {w.prefix + name} has shape {w.shape(name)}, not {shape}")
        self.parameters = sum(math.prod(s) for s in shapes.values())

    def logits(self, ids: list[int]) -> Row:
        """The scores of every possible next token."""
        last = self.layer_norm("ln_f", self.forward(ids)[-1].x[-1])
        return [dot(last, self.w.row("wte.weight", t)) for t in range(self.vocabulary)]

    def forward(self, ids: list[int]) -> list[Block]:
        """What each block computed, and last the rows that come out of the last."""
        x = add([self.w.row("wte.weight", t) for t in ids], [self.w.row("wpe.weight", r) for r in range(len(ids))])
        blocks = []
        for h in range(self.layers):
            blocks.append(Block(x))
            x = self.block(f"h.{h}.", blocks[-1])
        return [*blocks, Block(x)]

    def block(self, name: str, b: Block) -> Matrix:
        b.normed1 = [self.layer_norm(name + "ln_1", row) for row in b.x]
        b.qkv = self.linear(name + "attn.c_attn", b.normed1)
        b.mixed, b.shares = self.attention(b.qkv)
        b.attended = add(b.x, self.linear(name + "attn.c_proj", b.mixed))
        b.normed2 = [self.layer_norm(name + "ln_2", row) for row in b.attended]
        b.expanded = self.linear(name + "mlp.c_fc", b.normed2)
        b.inner = [[gelu(v) for v in row] for row in b.expanded]
        return add(b.attended, self.linear(name + "mlp.c_proj", b.inner))

    def layer_norm(self, name: str, x: Row) -> Row:
        mean, deviation = moments(x)
        gains, biases = self.w.row(name + ".weight", 0), self.w.row(name + ".bias", 0)
        return [(v - mean) / deviation * g + b for v, g, b in zip(x, gains, biases, strict=True)]

    def linear(self, name: str, x: Matrix) -> Matrix:
        """x times weight [inner, cols], plus bias. Each output adds over the inner index, ascending, from 0.0."""
        inner, cols = self.w.shape(name + ".weight")
        y = [[0.0] * cols for _ in x]
        for k in range(inner):
            weights = self.w.row(name + ".weight", k)
            for r, row in enumerate(x):
                u = row[k]
                y[r] = [s + u * v for s, v in zip(y[r], weights, strict=True)]
        bias = self.w.row(name + ".bias", 0)
        return [[s + b for s, b in zip(row, bias, strict=True)] for row in y]

    def attention(self, qkv: Matrix) -> tuple[Matrix, list[Matrix]]:
        """Causal: row r sees the rows up to r, and no sum has more terms than these. With the shares of every row: for
        each head, those of the rows up to r."""
        c, size = self.width, self.width // self.heads
        root = math.sqrt(float(size))
        out, shares = [], []
        for r, row in enumerate(qkv):
            mixed: Row = []
            heads: Matrix = []
            for h in range(0, c, size):
                query = row[h : h + size]
                scores = [dot(query, qkv[j][c + h : c + h + size]) / root for j in range(r + 1)]
                highest = -math.inf
                for s in scores:
                    if s > highest or s != s:
                        highest = s
                weights = [exp(s - highest) for s in scores]
                total = 0.0
                for e in weights:
                    total += e
                weights = [e / total for e in weights]
                heads.append(weights)
                values = [qkv[j][2 * c + h : 2 * c + h + size] for j in range(r + 1)]
                mixed += [dot(weights, column) for column in zip(*values, strict=True)]
            out.append(mixed)
            shares.append(heads)
        return out, shares


class Block:
    """What one block computes; its name says of which line of Model.block."""

    normed1: Matrix
    qkv: Matrix
    mixed: Matrix
    shares: list[Matrix]
    attended: Matrix
    normed2: Matrix
    expanded: Matrix
    inner: Matrix

    def __init__(self, x: Matrix) -> None:
        self.x = x


def moments(x: Row) -> tuple[float, float]:
    """The mean and the deviation of a row, as layer norm takes them."""
    n = float(len(x))
    mean = plain_sum(x) / n
    total = 0.0
    for v in x:
        total += (v - mean) * (v - mean)
    return mean, math.sqrt(total / n + 1e-5)


def plain_sum(x: Iterable[float]) -> float:
    """From left to right (the built-in sum compensates what is lost in rounding)."""
    total = 0.0
    for v in x:
        total += v
    return total


def dot(a: Row, b: Row | tuple[float, ...]) -> float:
    total = 0.0
    for u, v in zip(a, b, strict=True):
        total += u * v
    return total


def add(a: Matrix, b: Matrix) -> Matrix:
    return [[u + v for u, v in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


# --- a training step ---


class Step:
    """The gradient of the loss, tensor by tensor, and the parameters one step down it.

    A gradient is made row by row, summed, applied to its parameters and dropped, so that the 124M model fits; `keep` it
    for all of them. Nothing changes before `finish`: every derivative is one at the old parameters.
    """

    def __init__(self, model: Model, ids: list[int], rate: float, keep: bool = False) -> None:
        self.model, self.rate = model, rate
        self.sums: dict[str, float] = {}
        self.gradients: dict[str, Matrix] | None = {} if keep else None
        self.changed: dict[str, list[array[float]]] = {}
        self.inputs, self.targets = ids[:-1], ids[1:]
        self.blocks = model.forward(self.inputs)
        self.loss, self.exps, self.totals = self.forward_loss()

    def forward_loss(self) -> tuple[float, Matrix, Row]:
        """(the loss, each position's exps over the vocabulary, their sums)."""
        self.last = [self.model.layer_norm("ln_f", row) for row in self.blocks[-1].x]
        logits: Matrix = [[] for _ in self.last]
        for t in range(self.model.vocabulary):
            weights = self.model.w.row("wte.weight", t)
            for r, row in enumerate(self.last):
                logits[r].append(dot(row, weights))
        exps, totals, loss = [], [], 0.0
        for row, target in zip(logits, self.targets, strict=True):
            highest = -math.inf
            for v in row:
                if v > highest or v != v:
                    highest = v
            exps.append([exp(v - highest) for v in row])
            totals.append(plain_sum(exps[-1]))
            loss += ln(totals[-1]) - (row[target] - highest)
        return loss / float(len(logits)), exps, totals

    def take(self, name: str, rows: Iterable[Row]) -> None:
        """The gradient of a tensor, by rows."""
        total, changed, kept = 0.0, [], []
        for r, row in enumerate(rows):
            for g in row:
                total += g
            old = self.model.w.row(name, r)
            changed.append(array("d", [w - self.rate * g for w, g in zip(old, row, strict=True)]))
            if self.gradients is not None:
                kept.append(row)
        self.sums[name] = total
        self.changed[name] = changed
        if self.gradients is not None:
            self.gradients[name] = kept

    def finish(self) -> None:
        """Take the step."""
        self.model.w.changed |= self.changed

    def backward(self) -> None:
        model, count = self.model, float(len(self.inputs))
        scores = [[e / total for e in row] for row, total in zip(self.exps, self.totals, strict=True)]
        for row, target in zip(scores, self.targets, strict=True):
            row[target] -= 1.0
        scores = [[v / count for v in row] for row in scores]
        normed = [[0.0] * model.width for _ in scores]
        for t in range(model.vocabulary):
            weights = model.w.row("wte.weight", t)
            for r, row in enumerate(scores):
                normed[r] = [s + row[t] * w for s, w in zip(normed[r], weights, strict=True)]
        dx = self.layer_norm("ln_f", self.blocks[-1].x, normed)
        for h in reversed(range(model.layers)):
            dx = self.block(f"h.{h}.", self.blocks[h], dx)
        self.take("wte.weight", self.embedding(scores, dx))
        zeros = [0.0] * model.width
        self.take("wpe.weight", (dx[r] if r < len(dx) else zeros for r in range(model.context)))

    def embedding(self, scores: Matrix, dx: Matrix) -> Iterator[Row]:
        """Rows of wte's gradient: what the head gives, plus what the positions with this token give."""
        looked = {t: [0.0] * self.model.width for t in self.inputs}
        for t, row in zip(self.inputs, dx, strict=True):
            looked[t] = add([looked[t]], [row])[0]
        zeros = [0.0] * self.model.width
        for t, row in enumerate(transposed_times(scores, self.last)):
            yield add([row], [looked.get(t, zeros)])[0]

    def block(self, name: str, b: Block, dy: Matrix) -> Matrix:
        inner = self.linear(name + "mlp.c_proj", b.inner, dy)
        expanded = [
            [d * gelu_slope(x) for d, x in zip(p, q, strict=True)] for p, q in zip(inner, b.expanded, strict=True)
        ]
        normed = self.linear(name + "mlp.c_fc", b.normed2, expanded)
        attended = add(dy, self.layer_norm(name + "ln_2", b.attended, normed))
        qkv = self.attention(b, self.linear(name + "attn.c_proj", b.mixed, attended))
        normed = self.linear(name + "attn.c_attn", b.normed1, qkv)
        return add(attended, self.layer_norm(name + "ln_1", b.x, normed))

    def linear(self, name: str, x: Matrix, dy: Matrix) -> Matrix:
        """Of Model.linear(name, x): that of x. Its sums run over columns of the weight, the parameters' over rows of x."""
        inner, _ = self.model.w.shape(name + ".weight")
        dx: Matrix = [[] for _ in x]
        for k in range(inner):
            weights = self.model.w.row(name + ".weight", k)
            for r, row in enumerate(dy):
                dx[r].append(dot(row, weights))
        self.take(name + ".weight", transposed_times(x, dy))
        self.take(name + ".bias", [column_sums(dy)])
        return dx

    def layer_norm(self, name: str, x: Matrix, dy: Matrix) -> Matrix:
        """Of Model.layer_norm on each row: that of x."""
        gains, n = self.model.w.row(name + ".weight", 0), float(self.model.width)
        products, dx = [], []
        for row, d in zip(x, dy, strict=True):
            mean, deviation = moments(row)
            normal = [(v - mean) / deviation for v in row]
            scaled = [v * g for v, g in zip(d, gains, strict=True)]
            level, slope = plain_sum(scaled) / n, dot(scaled, normal) / n
            dx.append([(u - level - v * slope) / deviation for u, v in zip(scaled, normal, strict=True)])
            products.append([u * v for u, v in zip(d, normal, strict=True)])
        self.take(name + ".weight", [column_sums(products)])
        self.take(name + ".bias", [column_sums(dy)])
        return dx

    def attention(self, b: Block, dy: Matrix) -> Matrix:
        """Of Model.attention: that of qkv. A query adds over keys up to its own; a key and a value add over queries from
        their own on."""
        c, size = self.model.width, self.model.width // self.model.heads
        root = math.sqrt(float(size))
        out = [[0.0] * (3 * c) for _ in dy]
        for r, row in enumerate(dy):
            for h in range(self.model.heads):
                q, k, v = (slice(at + h * size, at + (h + 1) * size) for at in (0, c, 2 * c))
                shares = b.shares[r][h]
                slopes = [dot(row[q], b.qkv[j][v]) for j in range(r + 1)]
                level = dot(shares, slopes)
                scores = [p * (d - level) / root for p, d in zip(shares, slopes, strict=True)]
                for j in range(r + 1):
                    out[r][q] = [s + scores[j] * u for s, u in zip(out[r][q], b.qkv[j][k], strict=True)]
                    out[j][k] = [s + scores[j] * u for s, u in zip(out[j][k], b.qkv[r][q], strict=True)]
                    out[j][v] = [s + shares[j] * u for s, u in zip(out[j][v], row[q], strict=True)]
        return out


def transposed_times(x: Matrix, dy: Matrix) -> Iterator[Row]:
    """The rows of x transposed times dy; rows of x ascending."""
    for k in range(len(x[0])):
        total = [0.0] * len(dy[0])
        for row, d in zip(x, dy, strict=True):
            total = [s + row[k] * v for s, v in zip(total, d, strict=True)]
        yield total


def column_sums(m: Matrix) -> Row:
    total = [0.0] * len(m[0])
    for row in m:
        total = [s + v for s, v in zip(total, row, strict=True)]
    return total


def gelu_slope(x: float) -> float:
    t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * (0.7978845608028654 * (1.0 + 0.134145 * x * x))


def argmax(row: Row) -> int:
    """The index of the highest; of the first of equals."""
    best = 0
    for i, v in enumerate(row):
        if v > row[best]:
            best = i
    return best


# --- the tokenizer ---

CLASSES = (
    "c-mc5>u*$55O?Oh?#|x3d-u_OwYyvBvao&7EtD!?u!xozj2Mk1m`F56B#KA^F(&$9F{MOk)u=2H6%k4eqJWX`()i)-ZVQ5l8uf#I=wgV8e}!|mV1o"
    "B?ZqD3!{N{INW_3nq`hh@#N<toH_DVaX3;=k$6d+0f4Ip?QhsVL&XL(alM9`(R?NavjbRj$o5JrO}5L|#<c4H7y^8#$B5)uMznoOIZN`a1auNV>#1"
    "w&z1T8Nkcjw7UCI|o68kigP%PLBSa=jbuv`cCF#%C`?=5`wqwTe2KmhatjHg#gJw08pS1!cM@T<wF2hK!$%H=0MI#$hXY1D2x$5LdnOkge6j1MMa9"
    "C1DX|OK-;YFJt|1?N`L`C1<)ot;XVrr?P^C)99%6q4}nHV$A(DJSH~V`On^k6Oo=6a=l!<}!*X8NEO6ZosKw<kFajC1PFp7G#6r=K!}$z$@tLgIXc"
    "W$8ZzGf+$e{}M%FIwQu<S8-sy|{4<s78mOra#GfI-!Rq9pmaP=KmchU-<-Smf7&xhs#$T8s-|n5d=01el%Rfa^TRv6y}kO3&#^2%=O<!XVBb|E6|K"
    "Gp+VqTK5=mlK}&F+>gS{e(Y8X<pwR_Nsy`sHbpwi?xjlev&!(zgA;2OV|_xngz<hik0S#Cd>+@J&#cwvGXD~i*}>3~RcsCz?4V>iYx+CDRY0VmloV"
    "jac@aw(C8F{TQv!oV*qU?HEkHdG(mS#@PEOiMIdEfiv~dz&C>mQS|KJ=353R!5I<IjeI*db$?41g{Jq2!o;6~AMgQClZ48&L~jG_6jP4CW%f&NY>&"
    "ZSwT92TTi_6|i0vLF{(gLV+Yts=bj6@zyDTp&SKN<%jU9@LDo*FO(TQZkTV&2A|{nUQ-m4ntUS*4gf?$aY!K(LTg~Vor41Lw7HAmO6!EM<7|d*sak"
    "OE3@1fiSFp)w)UjGY&mo0^mV2)g)9fQx&+wekZj}Bx}uPd;eD+NV?1Q~i+8k16l|3vp90{MOtV_=vZ#!UTsh7n?|gqr7Rqs0+2g?4_65ef(7SUuZ!"
    "uvOo20_5zsbUd+~m*!w8%gk1Q*93`cQ4pynFx_L|`Dd-49i4gEUtmbcUd@C&qRT%zqu$UprWvs*TPbAAcr%{d7d9XTSSUUEb6D{6g-JBbP3id}Mtj"
    "7cILo-=<>Ir~7K}4SSV!3hsA?8C^&7lk?Uu)e_y<_nB-ZR6iPqEVpz>TGQjRlcO&xM+6KtKc0F5)^els!$Zhsv<6mlvswJ@@W&k2kAcSfm}Uy{|9h"
    "=J&*ZhP?_TA-+egNQ#;#nncV@DqHpw$)=9KZ<gsH9VUipB5pU+5W_t`{f4N&lBrJU;@aZ7&t@^?ON*-{{g@OdbRG<T2w^WovnX62%;9m3|pH$u%bU"
    "xhE9oSiyy>Co>-niKm}bJyX!%JeGF92CEOO5PaN#%TH@dWEFk%IhnHdYiL@Eb}~VF(&pBJ<YO_czv8k=*rviAHEW`Q>3}N>R*so33|tP<DI1qzAH`"
    "Ft01&ypG#3)sowiY;_}(tugBr)n~)BKMB{+;_EOG*a3?Jc|2=V-yl<&d(cVES`ZyBoX1Yo@$E!5+WuLt~f{p#{1(^j4yfIbVOV>_XX|ph}P9?N=7}"
    "3SW!+}A}iFIm=m9k2vu~(NFMZKE$4pFz<ZoILaSD|~!dxuQC_6;?voK52_Z6+Om*q)w@Jw@MFX+ySll+&A@qRnmBPrUrs*SlzTa%wIoFqht<`dISj"
    "g%9ZWvA7-In*M43lG$SwUw!5*)y~nC@c;+8dSInLcOLG8@Q-gevnP(yzp_Lv7X"
)
"""The categories L and N of Unicode 16.0.0 (each Python's unicodedata is of another version): how many code points to
skip and to take, in turn, each count as the character of that number. bench/make_unicode_table.py prints it."""

# The code points at which a letter, or a number, begins or ends to be one.
LETTERS, NUMBERS = (
    list(accumulate(map(ord, counts)))
    for counts in zlib.decompress(base64.b85decode("".join(CLASSES))).decode("utf-8").split("\0")
)
WHITE = frozenset(
    [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
)


@cache
def kind(char: str) -> str:
    """`space`, `letter`, `number` or `other`."""
    if ord(char) in WHITE:
        return "space"
    if bisect_right(LETTERS, ord(char)) % 2:
        return "letter"
    return "number" if bisect_right(NUMBERS, ord(char)) % 2 else "other"


def split_words(text: str) -> list[str]:
    """GPT-2's pre-tokenizer: `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`."""
    words, at = [], 0
    while at < len(text):
        found = next((c for c in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(c, at)), "")
        end = at + len(found)
        if not found:
            first = at + 1 if text[at] == " " and at + 1 < len(text) and kind(text[at + 1]) != "space" else at
            end = first
            while end < len(text) and kind(text[end]) == kind(text[first]):
                end += 1
            if kind(text[first]) == "space" and end < len(text) and end - at > 1:
                end -= 1  # the last space belongs to the word behind it
        words.append(text[at:end])
        at = end
    return words


def byte_chars() -> list[str]:
    """The character that stands for each byte in the merge list: itself where it prints, else the next from U+0100."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    chars = {b: chr(b) for b in prints}
    for b in range(256):
        chars.setdefault(b, chr(0x100 + len(chars) - len(prints)))
    return [chars[b] for b in range(256)]


class Tokenizer:
    """Byte-level BPE from the merge list alone. Ids: the 256 bytes (printing ones first), then the merges in order,
    then <|endoftext|>."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_text("utf-8").split("\n")
        except OSError as e:
            raise Problem(f"{path}: {e.strerror}") from None
        except UnicodeDecodeError as e:
            raise Problem(f"{path}: not UTF-8 at byte {e.start}") from None
        self.chars = byte_chars()
        prints = sorted(self.chars, key=lambda c: (ord(c) >= 0x100, c))
        self.tokens = list(prints)
        ids = {c: i for i, c in enumerate(prints)}
        self.merges: dict[tuple[int, int], int] = {}
        for number, line in enumerate(lines, 1):
            if not line or line.startswith("#version"):
                continue
            parts = line.split(" ")
            if len(parts) != 2 or parts[0] not in ids or parts[1] not in ids:
                raise Problem(f"{path}, line {number}: not a merge of two known tokens: {line}")
            self.merges[ids[parts[0]], ids[parts[1]]] = ids[parts[0] + parts[1]] = len(self.tokens)
            self.tokens.append(parts[0] + parts[1])
        self.byte_ids = [ids[c] for c in self.chars]

    def encode(self, text: str) -> list[int]:
        return [t for word in split_words(text) for t in self.encode_word(word)]

    def encode_word(self, word: str) -> list[int]:
        parts = [self.byte_ids[b] for b in word.encode("utf-8")]
        while len(parts) > 1:
            pairs = [self.merges[p] for p in pairwise(parts) if p in self.merges]
            if not pairs:
                break
            merged = min(pairs)  # ids ascend with the rank
            out: list[int] = []
            at = 0
            while at < len(parts):
                hit = at + 1 < len(parts) and self.merges.get((parts[at], parts[at + 1])) == merged
                out.append(merged if hit else parts[at])
                at += 2 if hit else 1
            parts = out
        return parts

    def decode(self, ids: list[int]) -> str:
        """What is not UTF-8 becomes U+FFFD."""
        values = {c: b for b, c in enumerate(self.chars)}
        out = bytearray()
        for t in ids:
            if t < len(self.tokens):
                out += bytes(values[c] for c in self.tokens[t])
            else:
                out += b"<|endoftext|>" if t == len(self.tokens) else b"\xef\xbf\xbd"
        return out.decode("utf-8", "replace")


# --- the command ---


def trace_line(out: TextIO | None, record: dict[str, Any]) -> None:
    """One line of JSON, keys as given, no spaces: the traces of two programs are compared as bytes."""
    if out is not None:
        out.write(json.dumps(record, separators=(",", ":")) + "\n")
        out.flush()


def size_name(parameters: int) -> str:
    if parameters >= 1_000_000:
        return f"{(parameters + 500_000) // 1_000_000}M"
    return f"{(parameters + 500) // 1000}K" if parameters >= 1000 else str(parameters)


def check(model: Model, ids: list[int]) -> None:
    if not ids:
        raise Problem("the prompt is empty")
    if len(ids) > model.context:
        raise Problem(f"the prompt has {len(ids)} tokens, and the context holds {model.context}")
    if max(ids) >= model.vocabulary:
        raise Problem(f"token {max(ids)} of the prompt is outside the vocabulary of {model.vocabulary} rows")


PARTS = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")


def train(folder: Path, prompt: str, rate: float, trace: TextIO | None) -> None:
    model, tokenizer = Model(folder), Tokenizer(folder / "merges.txt")
    ids = tokenizer.encode(prompt)
    check(model, ids)
    if len(ids) < 2:
        raise Problem("the prompt has one token, and a loss wants two at least")
    size = size_name(model.parameters)
    print(f"gpt2 ({size}) on reference.py — one training step over {len(ids)} tokens, learning rate {rate}")
    print(f"prompt: {prompt}")
    print("tokens:", *ids, flush=True)
    trace_line(trace, {"ids": ids, "rate": rate.hex()})
    step = Step(model, ids, rate)
    print("loss", step.loss, flush=True)
    trace_line(trace, {"loss": step.loss.hex()})
    step.backward()
    outer = {name: step.sums[name] for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias")}
    wte, wpe, gain, bias = outer.values()
    print("grad wte", wte, "wpe", wpe, "ln_f", gain, bias)
    trace_line(trace, {"gradient": {name: v.hex() for name, v in outer.items()}})
    for h in range(model.layers):
        names = [f"h.{h}.{part}.{kind}" for part in PARTS for kind in ("weight", "bias")]
        print(f"h.{h}", *(step.sums[name] for name in names))
        trace_line(trace, {"gradient": {name: step.sums[name].hex() for name in names}})
    step.finish()
    after = Step(model, ids, rate).loss
    print("loss after one step", after)
    trace_line(trace, {"after": after.hex()})


def generate(folder: Path, prompt: str, tokens: int, trace: TextIO | None) -> None:
    model, tokenizer = Model(folder), Tokenizer(folder / "merges.txt")
    merges = len(tokenizer.tokens) - 256
    sizes = f"{merges} merges, {model.vocabulary} vocabulary rows, {model.layers} layers"
    print(f"gpt2 ({size_name(model.parameters)}) on reference.py — {sizes}")
    ids = tokenizer.encode(prompt)
    check(model, ids)
    print(f"prompt: {prompt}")
    print("tokens:", *ids, flush=True)
    trace_line(trace, {"ids": ids})
    if tokens == 0:
        return
    new = min(tokens, model.context + 1 - len(ids))
    for step in range(new):
        logits = model.logits(ids)
        ids.append(argmax(logits))
        trace_line(trace, {"step": step, "id": ids[-1], "logits": [v.hex() for v in logits]})
    full = "" if new == tokens else f"; the context of {model.context} is full"
    print(f"generated {new} {'token' if new == 1 else 'tokens'}{full}")
    print(tokenizer.decode(ids))


def main() -> int:
    parser = argparse.ArgumentParser(description="GPT-2 in plain Python, the yardstick of examples/gpt2.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("generate").add_argument("--tokens", type=int, default=20)
    commands.add_parser("train").add_argument("--rate", type=float, default=0.0001)
    for command in commands.choices.values():
        command.add_argument(
            "--weights", type=Path, required=True, help="a folder with model.safetensors and merges.txt"
        )
        command.add_argument("--prompt", default="The capital of France is")
        command.add_argument("--trace", type=Path, help="write the ids and every number to this file")
    options = parser.parse_args()
    prompt = os.fsencode(options.prompt).decode("utf-8", "replace")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if options.command == "generate" and options.tokens < 0:
        parser.error("--tokens wants 0 or more")
    if options.command == "train" and not math.isfinite(options.rate):
        parser.error("--rate wants a number")
    try:
        with options.trace.open("w", encoding="utf-8", newline="\n") if options.trace else nullcontext() as trace:
            if options.command == "generate":
                generate(options.weights, prompt, options.tokens, trace)
            else:
                train(options.weights, prompt, options.rate, trace)
    except (Problem, OSError) as e:
        reason = f"{e.filename}: {e.strerror}" if isinstance(e, OSError) else str(e)
        print(f"reference.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
