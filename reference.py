"""GPT-2 in plain Python: greedy generation with every sum written out. It defines what the .osp model must compute.

    python reference.py generate --weights DIR --prompt "The capital of France is" --tokens 20 [--trace FILE]

DIR holds model.safetensors and merges.txt. Only the standard library is used, and nothing of osprey_py: two programs
that share no code can only agree to the last bit if both do what the contract says:
  * binary64 throughout; weights widen exactly from the type they are stored in;
  * every sum starts at 0.0 and adds its terms in ascending order, one by one, each product rounded before it is added;
  * exp and tanh are correctly rounded, sqrt and division are IEEE 754's.
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
from bisect import bisect_right
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


# --- exp and tanh, correctly rounded ---
#
# Both follow Ziv: compute with integers to a known error, round both ends of the interval, and when they differ do it
# again with twice the bits. Neither function meets a double or a midpoint of two doubles except at 0 (Lindemann), so
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
        x = add([self.w.row("wte.weight", t) for t in ids], [self.w.row("wpe.weight", r) for r in range(len(ids))])
        for h in range(self.layers):
            x = self.block(f"h.{h}.", x)
        last = self.layer_norm("ln_f", x[-1])
        return [dot(last, self.w.row("wte.weight", t)) for t in range(self.vocabulary)]

    def block(self, name: str, x: Matrix) -> Matrix:
        normed = [self.layer_norm(name + "ln_1", row) for row in x]
        mixed = self.attention(self.linear(name + "attn.c_attn", normed))
        x = add(x, self.linear(name + "attn.c_proj", mixed))
        normed = [self.layer_norm(name + "ln_2", row) for row in x]
        inner = [[gelu(v) for v in row] for row in self.linear(name + "mlp.c_fc", normed)]
        return add(x, self.linear(name + "mlp.c_proj", inner))

    def layer_norm(self, name: str, x: Row) -> Row:
        n = float(len(x))
        total = 0.0
        for v in x:
            total += v
        mean = total / n
        total = 0.0
        for v in x:
            total += (v - mean) * (v - mean)
        deviation = math.sqrt(total / n + 1e-5)
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

    def attention(self, qkv: Matrix) -> Matrix:
        """Causal: row r sees the rows up to r, and no sum has more terms than these."""
        c, size = self.width, self.width // self.heads
        root = math.sqrt(float(size))
        out = []
        for r, row in enumerate(qkv):
            mixed: Row = []
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
                values = [qkv[j][2 * c + h : 2 * c + h + size] for j in range(r + 1)]
                mixed += [dot(weights, column) for column in zip(*values, strict=True)]
            out.append(mixed)
        return out


def dot(a: Row, b: Row | tuple[float, ...]) -> float:
    total = 0.0
    for u, v in zip(a, b, strict=True):
        total += u * v
    return total


def add(a: Matrix, b: Matrix) -> Matrix:
    return [[u + v for u, v in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


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


def generate(folder: Path, prompt: str, tokens: int, trace: TextIO | None) -> None:
    model, tokenizer = Model(folder), Tokenizer(folder / "merges.txt")
    merges = len(tokenizer.tokens) - 256
    sizes = f"{merges} merges, {model.vocabulary} vocabulary rows, {model.layers} layers"
    print(f"gpt2 ({size_name(model.parameters)}) on reference.py — {sizes}")
    ids = tokenizer.encode(prompt)
    if not ids:
        raise Problem("the prompt is empty")
    if len(ids) > model.context:
        raise Problem(f"the prompt has {len(ids)} tokens, and the context holds {model.context}")
    if max(ids) >= model.vocabulary:
        raise Problem(f"token {max(ids)} of the prompt is outside the vocabulary of {model.vocabulary} rows")
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
    command = parser.add_subparsers(dest="command", required=True).add_parser("generate")
    command.add_argument("--weights", type=Path, required=True, help="a folder with model.safetensors and merges.txt")
    command.add_argument("--prompt", default="The capital of France is")
    command.add_argument("--tokens", type=int, default=20)
    command.add_argument("--trace", type=Path, help="write the ids and every logit to this file")
    options = parser.parse_args()
    prompt = os.fsencode(options.prompt).decode("utf-8", "replace")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if options.tokens < 0:
        parser.error("--tokens wants 0 or more")
    try:
        with options.trace.open("w", encoding="utf-8", newline="\n") if options.trace else nullcontext() as trace:
            generate(options.weights, prompt, options.tokens, trace)
    except (Problem, OSError) as e:
        reason = f"{e.filename}: {e.strerror}" if isinstance(e, OSError) else str(e)
        print(f"reference.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
