#!/usr/bin/env python3
"""Make examples/gpt2/small again, byte for byte: merges learned from bench/small_corpus.txt, and seeded weights.

    make_small_model.py [DIR]

The corpus is the beginning of Coriolanus as Tiny Shakespeare has it (public domain).
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import make_gpt2_weights

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from reference import byte_chars, split_words  # noqa: E402

MERGES = 767
"""With 256 bytes and <|endoftext|> a vocabulary of 1024."""

SIZES = "--layers 2 --width 128 --heads 2 --vocab 1024 --context 128 --dtype F16 --deviation 0.15 --seed 7".split()


def learn(text: str, count: int) -> list[tuple[str, str]]:
    """Byte-pair encoding: again and again the most frequent pair; of equals, the first in code point order."""
    chars = byte_chars()
    words = Counter(tuple(chars[b] for b in word.encode("utf-8")) for word in split_words(text))
    merges = []
    for _ in range(count):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        joined: Counter[tuple[str, ...]] = Counter()
        for word, times in words.items():
            joined[merge(word, best)] += times
        words = joined
    return merges


def merge(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    out: list[str] = []
    at = 0
    while at < len(word):
        hit = word[at : at + 2] == pair
        out.append("".join(pair) if hit else word[at])
        at += 2 if hit else 1
    return tuple(out)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "examples" / "gpt2" / "small"
    make_gpt2_weights.main([str(folder), *SIZES])
    corpus = (ROOT / "bench" / "small_corpus.txt").read_text("utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in learn(corpus, MERGES))]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{folder / 'merges.txt'}: {MERGES} merges")


if __name__ == "__main__":
    main()
