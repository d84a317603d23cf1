"""What PTX of a contract's kernel must not hold.

Comes in: PTX. Goes out: the lines that break a rule: a fused multiply-add of floats, an operation that flushes subnormals,
an approximate one, arithmetic on binary32, a float operation without its rounding.
"""

from __future__ import annotations

import re

_FORBIDDEN = re.compile(
    r"\b(?:fma|mad)\.\S*f(?:16|32|64)\b"  # one rounding where two are due
    r"|\.ftz\b|\.approx\b|\.full\b"
    r"|\b(?:add|sub|mul|div|sqrt|neg|abs|min|max)\.\S*f(?:16|32)\b"
    r"|\b(?:add|sub|mul|div|sqrt)\.(?!rn\.)\S*f64\b"
)


def broken(ptx: str) -> list[str]:
    """The instructions that round otherwise than the contract says."""
    return [line.strip() for line in ptx.splitlines() if _FORBIDDEN.search(line.split("//")[0])]
