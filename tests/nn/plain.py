"""The layers of stdlib/nn on lists of rows of Python's floats, by the rules B8.5 to B8.12: every sum from 0.0, one term
after the other. exp, ln and tanh are reference.py's."""

from __future__ import annotations

import math
from collections.abc import Iterable

from reference import exp, ln, tanh

Row = list[float]
Matrix = list[Row]


def ordered_sum(terms: Iterable[float]) -> float:
    total = 0.0
    for term in terms:
        total = total + term
    return total


def dot(a: Iterable[float], b: Iterable[float]) -> float:
    return ordered_sum(u * v for u, v in zip(a, b, strict=True))


def largest(xs: Iterable[float]) -> float:
    high = float("-inf")
    for x in xs:
        high = max(high, x)
    return high


def linear(x: Matrix, weight: Matrix, bias: Row) -> Matrix:
    """weight: [inner][cols]."""
    return [[dot(row, column) + b for column, b in zip(zip(*weight, strict=True), bias, strict=True)] for row in x]


def tied(x: Matrix, table: Matrix) -> Matrix:
    return [[dot(row, other) for other in table] for row in x]


def layer_norm(x: Matrix, gain: Row, bias: Row) -> Matrix:
    result = []
    for row in x:
        n = float(len(row))
        mean = ordered_sum(row) / n
        deviation = math.sqrt(ordered_sum((v - mean) * (v - mean) for v in row) / n + 1e-5)
        result.append([(v - mean) / deviation * g + b for v, g, b in zip(row, gain, bias, strict=True)])
    return result


def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def softmax(row: Row) -> Row:
    high = largest(row)
    exps = [exp(v - high) for v in row]
    total = ordered_sum(exps)
    return [e / total for e in exps]


def cross_entropy(x: Matrix, targets: list[int]) -> float:
    losses = []
    for row, target in zip(x, targets, strict=True):
        high = largest(row)
        losses.append(ln(ordered_sum(exp(v - high) for v in row)) - (row[target] - high))
    return ordered_sum(losses) / float(len(x))


def attention(queries: list[Matrix], keys: list[Matrix], values: list[Matrix], heads: int) -> list[Matrix]:
    """Each: [batches][rows][width]; queries have as many rows as they are short of the keys' last."""
    result = []
    for q, k, v in zip(queries, keys, values, strict=True):
        width = len(k[0])
        size = width // heads
        before = len(k) - len(q)
        mixed: Matrix = [[0.0] * width for _ in q]
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            for r, query in enumerate(q):
                seen = before + r + 1
                shares = softmax([dot(query[part], k[j][part]) / math.sqrt(size) for j in range(seen)])
                for c in range(h * size, (h + 1) * size):
                    mixed[r][c] = ordered_sum(shares[j] * v[j][c] for j in range(seen))
        result.append(mixed)
    return result
