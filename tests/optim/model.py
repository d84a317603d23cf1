"""The rules O1 to O8 in plain Python, written from the rules: what stdlib/optim.osp must give, to the last bit.

Parameters, gradients and moments are lists of lists of floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from osprey_py.numerics import exact

Buffers = list[list[float]]


def zeros_like(buffers: Buffers) -> Buffers:
    return [[0.0] * len(b) for b in buffers]


def sgd(momentum: float, rate: float, velocities: Buffers, parameters: Buffers, gradients: Buffers) -> Buffers:
    """The next parameters; `velocities` are changed in place."""
    new = []
    for v, p, g in zip(velocities, parameters, gradients, strict=True):
        for i in range(len(p)):
            v[i] = momentum * v[i] + g[i]
        new.append([p[i] - rate * v[i] for i in range(len(p))])
    return new


def power(x: float, n: int) -> float:
    return exact.exp(n * exact.ln(x))


class AdamW:
    """The optimiser and its state."""

    def __init__(self, parameters: Buffers, beta1: float, beta2: float, epsilon: float, decay: float) -> None:
        self.beta1, self.beta2, self.epsilon, self.decay = beta1, beta2, epsilon, decay
        self.steps = 0
        self.first, self.second = zeros_like(parameters), zeros_like(parameters)

    def step(self, rate: float, parameters: Buffers, gradients: Buffers) -> Buffers:
        self.steps += 1
        size = rate / (1.0 - power(self.beta1, self.steps))
        unbias = 1.0 / math.sqrt(1.0 - power(self.beta2, self.steps))
        kept = 1.0 - rate * self.decay
        new = []
        for m, v, p, g in zip(self.first, self.second, parameters, gradients, strict=True):
            q = []
            for i in range(len(p)):
                m[i] = self.beta1 * m[i] + (1.0 - self.beta1) * g[i]
                v[i] = self.beta2 * v[i] + (1.0 - self.beta2) * (g[i] * g[i])
                q.append(kept * p[i] - size * (m[i] / (math.sqrt(v[i]) * unbias + self.epsilon)))
            new.append(q)
        return new


def squares(buffers: Buffers) -> float:
    whole = 0.0
    for b in buffers:
        for start in range(0, len(b), 1024):
            row = 0.0
            for x in b[start : start + 1024]:
                row += x * x
            whole += row
    return whole


def clipped(buffers: Buffers, limit: float) -> Buffers:
    norm = math.sqrt(squares(buffers))
    scale = limit / norm if norm > limit else 1.0
    return [[x * scale for x in b] for b in buffers]


def share(step: int, steps: int) -> float:
    return 1.0 if steps < 1 else min(max(step, 0), steps) / steps


def between(start: float, end: float, part: float) -> float:
    return start * part + end * (1.0 - part)


def linear(start: float, end: float, steps: int) -> Callable[[int], float]:
    return lambda step: between(start, end, 1.0 - share(step, steps))


def sine(x: float) -> float:
    """sin(pi x): the odd powers up to the 21st."""
    y = 3.141592653589793 * x
    z = y * y
    series = 1 / math.factorial(21)
    for k in range(19, 1, -2):
        series = (-1) ** (k // 2) / math.factorial(k) + z * series
    return y + y * z * series


def fall(x: float) -> float:
    return 0.5 - 0.5 * sine(x - 0.5)


def cosine(start: float, end: float, steps: int) -> Callable[[int], float]:
    return lambda step: between(start, end, fall(share(step, steps)))


def warm_up(steps: int, schedule: Callable[[int], float]) -> Callable[[int], float]:
    return lambda k: schedule(0) * ((max(k, 0) + 1) / (steps + 1)) if k < steps else schedule(k - steps)
